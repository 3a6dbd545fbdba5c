//! AdamW (Loshchilov and Hutter 2019), with groups and with a state that can be saved.

use std::{collections::BTreeMap, sync::Mutex};

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Tensor};

use super::{Gradients, Params, kernels, ops::with_values};
use crate::error::{Error, Result};

/// The optimiser's constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWSettings {
    /// Peak learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the division finite.
    pub epsilon: f64,
    /// Decoupled weight decay a step, times the learning rate; only of groups that decay.
    pub weight_decay: f64,
    /// Gradients are scaled down to this global norm; 0 leaves them as they are.
    pub clip: f64,
}

impl Default for AdamWSettings {
    fn default() -> Self {
        Self { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01, clip: 1.0 }
    }
}

/// How one parameter is treated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// Times the learning rate.
    pub lr: f64,
    /// Whether weight decay applies: not to biases, norms and embeddings.
    pub decay: bool,
}

/// The optimiser: two moments for each parameter, and how many steps they have seen.
pub struct AdamW {
    settings: AdamWSettings,
    groups: BTreeMap<String, Group>,
    moments: BTreeMap<String, Moments>,
    steps: i32,
}

#[derive(Default)]
struct Moments {
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl AdamW {
    /// Fresh moments for `params`; `group` says how each is treated by its name.
    pub fn new(params: &Params, settings: AdamWSettings, group: impl Fn(&str) -> Group) -> Self {
        let zeros = |count| Moments { mean: vec![0.0; count], square: vec![0.0; count] };
        Self {
            settings,
            groups: params.iter().map(|(name, _)| (name.to_owned(), group(name))).collect(),
            moments: params
                .iter()
                .map(|(name, var)| (name.to_owned(), zeros(var.elem_count())))
                .collect(),
            steps: 0,
        }
    }

    /// Moves `params` against their gradients, at `factor` times the peak learning rate; `norm` is
    /// the gradients' [`global_norm`], by which they are clipped. A parameter without a gradient
    /// stays.
    ///
    /// # Errors
    /// A gradient of another size than its parameter.
    pub fn step(
        &mut self,
        params: &Params,
        gradients: &Gradients,
        (factor, norm): (f64, f64),
    ) -> Result<()> {
        let AdamWSettings { lr, beta1, beta2, epsilon, weight_decay, clip } = self.settings;
        let shrink = if clip > 0.0 && norm > clip { clip / norm } else { 1.0 };
        self.steps += 1;
        let correct = |beta: f64| (1.0 / (1.0 - beta.powi(self.steps))) as f32;
        for (name, var) in params.iter() {
            let Some(gradient) = gradients.get(name) else { continue };
            let (Some(moments), Some(group)) = (self.moments.get_mut(name), self.groups.get(name))
            else {
                continue;
            };
            if gradient.elem_count() != var.elem_count() {
                return Err(Error::Shape {
                    what: "gradient size",
                    expected: var.elem_count(),
                    got: gradient.elem_count(),
                });
            }
            let lr = lr * group.lr * factor;
            let decay = if group.decay { lr * weight_decay } else { 0.0 };
            let rates = kernels::AdamWRates {
                beta1: beta1 as f32,
                beta2: beta2 as f32,
                epsilon: epsilon as f32,
                decay: decay as f32,
                correct1: correct(beta1),
                correct2: correct(beta2),
                lr: lr as f32,
                shrink: shrink as f32,
            };
            with_values(gradient, |gradient| {
                var.inplace_op1(&Update { gradient, moments: Mutex::new(moments), rates })
            })??;
        }
        Ok(())
    }

    /// The moments by name, `name.mean` and `name.square`, and the number of steps as `steps`.
    ///
    /// # Errors
    /// Those of candle.
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut state = BTreeMap::new();
        for (name, Moments { mean, square }) in &self.moments {
            for (kind, values) in [("mean", mean), ("square", square)] {
                let tensor = Tensor::from_slice(values, values.len(), &Device::Cpu)?;
                state.insert(format!("{name}.{kind}"), tensor);
            }
        }
        // Exact in f32 up to 16 million steps.
        state.insert("steps".to_owned(), Tensor::new(&[self.steps as f32], &Device::Cpu)?);
        Ok(state)
    }

    /// Takes up a saved [`AdamW::state`].
    ///
    /// # Errors
    /// A moment that is missing or has another size.
    pub fn restore(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let read = |name: &str, size: usize| -> Result<Vec<f32>> {
            let Some(tensor) = state.get(name) else {
                return Err(Error::Setting(format!("the saved optimiser has no `{name}`")));
            };
            let values = tensor.to_vec1::<f32>()?;
            match values.len() {
                got if got != size => {
                    Err(Error::Shape { what: "saved moment", expected: size, got })
                }
                _ => Ok(values),
            }
        };
        for (name, moments) in &mut self.moments {
            let size = moments.mean.len();
            moments.mean = read(&format!("{name}.mean"), size)?;
            moments.square = read(&format!("{name}.square"), size)?;
        }
        self.steps = read("steps", 1)?[0] as i32;
        Ok(())
    }
}

/// The Euclidean norm of all gradients together.
///
/// # Errors
/// Those of candle.
pub fn global_norm(gradients: &Gradients) -> Result<f64> {
    let mut sum = 0.0;
    for gradient in gradients.values() {
        sum += with_values(gradient, |g| f64::from(kernels::sum_of_squares(g)))?;
    }
    Ok(sum.sqrt())
}

struct Update<'a> {
    gradient: &'a [f32],
    // The trait lends the operation only shared.
    moments: Mutex<&'a mut Moments>,
    rates: kernels::AdamWRates,
}

impl InplaceOp1 for Update<'_> {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _: &Layout) -> candle_core::Result<()> {
        let CpuStorage::F32(values) = storage else { candle_core::bail!("AdamW for f32 only") };
        let Ok(mut moments) = self.moments.lock() else {
            candle_core::bail!("an optimiser step failed before")
        };
        let Moments { mean, square } = &mut **moments;
        kernels::adamw(values, self.gradient, mean, square, self.rates);
        Ok(())
    }
}
