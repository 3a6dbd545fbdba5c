//! A network's parameters by name: seeded at birth, strict when read, sorted always.
//!
//! A network states its parameters as a [`Plan`], from which both a fresh set and the check of a
//! file follow. Each parameter draws its values from a stream of its own name, so that adding one
//! moves no other.

use std::{collections::BTreeMap, path::Path};

use candle_core::{DType, Device, Tensor, Var};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{
    error::{Error, Result},
    rng,
};

/// How a parameter starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    /// Normal around 0, with this standard deviation.
    Normal(f32),
    /// This value everywhere.
    Constant(f32),
    /// These values, row after row.
    Values(Vec<f32>),
}

/// One parameter of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its shape.
    pub shape: Vec<usize>,
    /// How it starts.
    pub init: Init,
}

impl Param {
    /// A parameter of that shape and start.
    pub fn new(shape: impl Into<Vec<usize>>, init: Init) -> Self {
        Self { shape: shape.into(), init }
    }
}

/// All parameters of a network, by the names that its file has.
pub type Plan = BTreeMap<String, Param>;

/// A gradient for each parameter that the loss depends on, by name.
pub type Gradients = BTreeMap<String, Tensor>;

/// The parameters of one network, all `f32` on the CPU.
#[derive(Debug, Clone, Default)]
pub struct Params(BTreeMap<String, Var>);

impl Params {
    /// Fresh parameters; the same seed gives the same values on every machine.
    ///
    /// # Errors
    /// Initial values that do not fill the shape.
    pub fn new(plan: &Plan, seed: u64) -> Result<Self> {
        let mut vars = BTreeMap::new();
        for (name, param) in plan {
            let count = param.shape.iter().product();
            let values = match &param.init {
                Init::Constant(value) => vec![*value; count],
                Init::Values(values) => values.clone(),
                Init::Normal(std) => {
                    let mut rng = rng::derive(seed, &format!("init {name}"));
                    (0..count).map(|_| std * rng.normal()).collect()
                }
            };
            let tensor = Tensor::from_vec(values, param.shape.as_slice(), &Device::Cpu)?;
            vars.insert(name.clone(), Var::from_tensor(&tensor)?);
        }
        Ok(Self(vars))
    }

    /// Parameters with the values of `tensors`, which must be those of the plan, no more, no less.
    ///
    /// # Errors
    /// Missing or unknown names, or other shapes; `path` is where they were read.
    pub fn from_tensors(
        plan: &Plan,
        mut tensors: BTreeMap<String, Tensor>,
        path: &Path,
    ) -> Result<Self> {
        check(plan, &tensors, path)?;
        let mut vars = BTreeMap::new();
        for name in plan.keys() {
            let Some(tensor) = tensors.remove(name) else { continue };
            vars.insert(name.clone(), Var::from_tensor(&tensor)?);
        }
        Ok(Self(vars))
    }

    /// Reads a safetensors file that holds exactly the plan's parameters.
    ///
    /// # Errors
    /// As [`read_tensors`] and [`Params::from_tensors`].
    pub fn load(plan: &Plan, path: &Path) -> Result<Self> {
        Self::from_tensors(plan, read_tensors(path)?, path)
    }

    /// The tensor of that name, which follows the parameter as it is trained.
    ///
    /// # Errors
    /// There is none: the plan and the network disagree.
    pub fn get(&self, name: &str) -> Result<Tensor> {
        match self.0.get(name) {
            Some(var) => Ok(var.as_tensor().clone()),
            None => Err(Error::Setting(format!("the network has no parameter `{name}`"))),
        }
    }

    /// Names and parameters, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.0.iter().map(|(name, var)| (name.as_str(), var))
    }

    /// Number of values in all.
    pub fn count(&self) -> usize {
        self.0.values().map(|var| var.elem_count()).sum()
    }

    /// The values as they are now, by name.
    ///
    /// # Errors
    /// Those of candle.
    pub fn snapshot(&self) -> Result<BTreeMap<String, Tensor>> {
        self.0.iter().map(|(name, var)| Ok((name.clone(), var.as_tensor().copy()?))).collect()
    }

    /// Sets every parameter to the value of its name in `tensors`.
    ///
    /// # Errors
    /// A name that is missing, or another shape.
    pub fn restore(&self, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, var) in &self.0 {
            let Some(tensor) = tensors.get(name) else {
                return Err(Error::Setting(format!("the saved state has no parameter `{name}`")));
            };
            var.set(tensor)?;
        }
        Ok(())
    }

    /// The gradients of `loss` with respect to the parameters that it depends on.
    ///
    /// # Errors
    /// Those of candle.
    pub fn gradients(&self, loss: &Tensor) -> Result<Gradients> {
        let store = loss.backward()?;
        let gradient = |(name, var): (&String, &Var)| Some((name.clone(), store.get(var)?.clone()));
        Ok(self.0.iter().filter_map(gradient).collect())
    }
}

/// Checks that `tensors` are those of the plan, no more, no less, in its shapes.
///
/// # Errors
/// Missing or unknown names, or other shapes; `path` is where they were read.
pub fn check(plan: &Plan, tensors: &BTreeMap<String, Tensor>, path: &Path) -> Result<()> {
    let missing: Vec<&str> =
        plan.keys().filter(|name| !tensors.contains_key(*name)).map(String::as_str).collect();
    let unknown: Vec<&str> =
        tensors.keys().filter(|name| !plan.contains_key(*name)).map(String::as_str).collect();
    if !missing.is_empty() || !unknown.is_empty() {
        return Err(Error::format(
            path,
            format!(
                "not the parameters of this network: missing {}; unknown {}",
                list(&missing),
                list(&unknown)
            ),
        ));
    }
    for (name, param) in plan {
        let Some(tensor) = tensors.get(name).filter(|tensor| tensor.dims() != param.shape) else {
            continue;
        };
        let (got, expected) = (tensor.dims(), &param.shape);
        let message = format!("`{name}` has shape {got:?}; config.json wants {expected:?}");
        return Err(Error::format(path, message));
    }
    Ok(())
}

/// Reads the tensors of a safetensors file as `f32`.
///
/// # Errors
/// No such file, one that is no safetensors file or is cut short, a type that holds no floats.
pub fn read_tensors(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    parse_tensors(&std::fs::read(path).map_err(Error::io(path))?, path)
}

/// As [`read_tensors`], of the content of the file at `path`.
///
/// # Errors
/// Bytes that are no safetensors file, a type that holds no floats.
pub fn parse_tensors(bytes: &[u8], path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| {
        let size = bytes.len();
        Error::format(path, format!("{size} bytes that are no safetensors file: {error}"))
    })?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        tensors.insert(name.to_owned(), tensor(&view, name, path)?);
    }
    Ok(tensors)
}

fn tensor(view: &TensorView<'_>, name: &str, path: &Path) -> Result<Tensor> {
    let data = view.data();
    let dtype = match view.dtype() {
        Dtype::F32 => {
            let float = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let values: Vec<f32> = data.chunks_exact(4).map(float).collect();
            return Ok(Tensor::from_vec(values, view.shape(), &Device::Cpu)?);
        }
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F64 => DType::F64,
        // The position ids that old BERT files carry.
        Dtype::I64 => DType::I64,
        other => {
            let message = format!("`{name}` holds {other:?}; f32, f16, bf16 and f64 can be read");
            return Err(Error::format(path, message));
        }
    };
    let tensor = Tensor::from_raw_buffer(data, dtype, view.shape(), &Device::Cpu)?;
    Ok(tensor.to_dtype(DType::F32)?)
}

/// What every checkpoint says of itself: transformers looks for it.
pub const CHECKPOINT: (&str, &str) = ("format", "pt");

/// Writes tensors (`f16` as such, all others as `f32`) and one line of metadata (a second one would have no fixed order) as a
/// safetensors file, the same bytes for the same values.
///
/// # Errors
/// A file that cannot be written.
pub fn write_tensors(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    (key, value): (&str, &str),
) -> Result<()> {
    let mut bytes = BTreeMap::new();
    for (name, tensor) in tensors {
        let values = tensor.flatten_all()?;
        let (dtype, raw): (_, Vec<u8>) = match tensor.dtype() {
            DType::F16 => {
                let values = values.to_vec1::<half::f16>()?;
                (Dtype::F16, values.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            _ => {
                let values = values.to_vec1::<f32>()?;
                (Dtype::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
        };
        bytes.insert(name.as_str(), (dtype, tensor.dims().to_vec(), raw));
    }
    let invalid = |error| Error::format(path, format!("cannot be written: {error}"));
    let mut views = Vec::new();
    for (name, (dtype, shape, raw)) in &bytes {
        let view = TensorView::new(*dtype, shape.clone(), raw).map_err(invalid)?;
        views.push((*name, view));
    }
    let metadata = [(key.to_owned(), value.to_owned())].into();
    let data = safetensors::serialize(views, Some(metadata)).map_err(invalid)?;
    std::fs::write(path, data).map_err(Error::io(path))
}

/// At most a few names, and how many more there are.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names {
        [] => "none".to_owned(),
        names if names.len() <= SHOWN => format!("`{}`", names.join("`, `")),
        names => format!("`{}` and {} more", names[..SHOWN].join("`, `"), names.len() - SHOWN),
    }
}
