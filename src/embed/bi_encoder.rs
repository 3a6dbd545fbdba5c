//! The static bi-encoder: a folder that sentence-transformers loads too.
//!
//! Modules: `StaticEmbedding` (a table and a tokenizer, the mean over a text's tokens without
//! special ones), any number of `Dense`, `Normalize`. Written with the module names that every
//! version knows; read with the old and the new ones. A module that is none of these is an error:
//! left out, it would give other vectors and no sign of it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use candle_core::{DType, Device, Tensor};
use include_dir::{Dir, include_dir};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    embed::Embedder,
    error::{Error, Result},
    nn::{
        bi_encoder::{Activation, BiEncoderConfig, DenseConfig, FusedBiEncoder},
        params::{CHECKPOINT, parse_tensors, write_tensors},
    },
    tokenizer::Tokenizer,
    types::Vectors,
};

/// What comes with the binary, so that it answers alike wherever it is run.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/models/biencoder");

/// Gets the content of a file of a model.
type Read<'a> = &'a dyn Fn(&Path) -> Result<Vec<u8>>;

fn from_disk(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(Error::io(path))
}

/// A trained network with its tokenizer.
pub struct BiEncoder {
    tokenizer: Arc<Tokenizer>,
    network: FusedBiEncoder,
    fingerprint: String,
}

/// An entry of `modules.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Module {
    pub(super) idx: usize,
    pub(super) name: String,
    pub(super) path: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

impl Module {
    /// The class, whatever package it is in: the versions of sentence-transformers moved it.
    pub(super) fn class(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or(&self.kind)
    }
}

/// The `config.json` of a `Dense` module.
#[derive(Serialize, Deserialize)]
struct DenseJson {
    in_features: usize,
    out_features: usize,
    bias: bool,
    activation_function: String,
    /// Whether the input is added to the output, which cannot be done here.
    #[serde(default, skip_serializing)]
    use_residual: bool,
}

const MODULES: &str = "modules.json";
const WEIGHTS: &str = "model.safetensors";
const TABLE: &str = "embedding.weight";
const WEIGHT: &str = "linear.weight";
const BIAS: &str = "linear.bias";
/// Names of the activations, as torch has them.
const ACTIVATIONS: [(&str, Activation); 4] = [
    ("torch.nn.modules.linear.Identity", Activation::Identity),
    ("torch.nn.modules.activation.GELU", Activation::Gelu),
    ("torch.nn.modules.activation.Tanh", Activation::Tanh),
    ("torch.nn.modules.activation.ReLU", Activation::Relu),
];

impl BiEncoder {
    /// The network with its tokenizer.
    ///
    /// # Errors
    /// Another vocabulary than the network's.
    pub fn new(tokenizer: Arc<Tokenizer>, network: FusedBiEncoder) -> Result<Self> {
        let (expected, got) = (network.config().vocab_size, tokenizer.vocab_size());
        if got > expected {
            return Err(Error::Shape { what: "tokenizer's vocabulary", expected, got });
        }
        let mut hash = Sha256::new();
        let mut update = |values: &[f32]| {
            for values in values.chunks(4096) {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                hash.update(bytes);
            }
        };
        update(network.table());
        for (weight, bias) in network.dense() {
            update(weight);
            update(bias);
        }
        hash.update(format!("{:?}", network.config()));
        hash.update(tokenizer.fingerprint());
        let hex: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let fingerprint = format!("bi-encoder-{}-{hex}", network.config().dim());
        Ok(Self { tokenizer, network, fingerprint })
    }

    /// Reads a folder of modules `StaticEmbedding`, `Dense`, `Normalize`.
    ///
    /// # Errors
    /// A file that is missing, cut short, or of other sizes; a module that is not one of these.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::read(folder, &from_disk)
    }

    /// The shipped model as compiled into the binary.
    ///
    /// # Errors
    /// A binary that was built without it.
    pub fn built_in() -> Result<Self> {
        Self::read(Path::new("models/biencoder"), &|path| {
            let inside = path.strip_prefix("models/biencoder").unwrap_or(path);
            match BUILT_IN.get_file(inside) {
                Some(file) => Ok(file.contents().to_vec()),
                None => Err(Error::format(path, "is not in this binary: give --embedder DIR")),
            }
        })
    }

    /// The model in `folder`, whose files `read` gets.
    fn read(folder: &Path, read: Read<'_>) -> Result<Self> {
        let path = folder.join(MODULES);
        let modules: Vec<Module> = parse_json(&read(&path)?, &path)?;
        let mut table = None;
        let mut layers = Vec::new();
        let mut normalize = false;
        for (place, module) in modules.iter().enumerate() {
            let inside = folder.join(&module.path);
            match (place, module.class()) {
                (0, "StaticEmbedding") => table = Some(read_table(&inside.join(WEIGHTS), read)?),
                (1.., "Dense") if !normalize => layers.push(read_layer(&inside, read)?),
                (1.., "Normalize") => normalize = true,
                (_, class) => {
                    let message = format!(
                        "module {place} is `{class}`; a static model has StaticEmbedding, then \
                         Dense, then Normalize"
                    );
                    return Err(Error::format(path, message));
                }
            }
        }
        let Some((vocab_size, hidden_size, table)) = table else {
            return Err(Error::format(path, "there are no modules"));
        };
        let (dense, weights) = layers.into_iter().unzip();
        let config = BiEncoderConfig { vocab_size, hidden_size, dense, normalize };
        let network = FusedBiEncoder::new(config, table, weights)
            .map_err(|error| Error::format(folder, error.to_string()))?;
        let path = folder.join(&modules[0].path).join("tokenizer.json");
        let tokenizer = Tokenizer::from_bytes(&read(&path)?)
            .map_err(|error| Error::format(&path, error.to_string()))?;
        Self::new(Arc::new(tokenizer), network)
            .map_err(|error| Error::format(folder, error.to_string()))
    }

    /// Writes the folder, which is there and empty.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.save_as(folder, DType::F32)
    }

    /// As [`BiEncoder::save`], its numbers in another type: [`DType::F16`] halves the files.
    ///
    /// # Errors
    /// A file that cannot be written, a type that is neither.
    pub fn save_as(&self, folder: &Path, dtype: DType) -> Result<()> {
        let config = self.network.config();
        let static_module = ("StaticEmbedding", String::new());
        let dense = (1..=config.dense.len()).map(|idx| ("Dense", format!("{idx}_Dense")));
        let last = config.dense.len() + 1;
        let normalize = config.normalize.then(|| ("Normalize", format!("{last}_Normalize")));
        let modules: Vec<Module> = (std::iter::once(static_module).chain(dense).chain(normalize))
            .enumerate()
            .map(|(idx, (class, path))| Module {
                idx,
                name: idx.to_string(),
                path,
                kind: format!("sentence_transformers.models.{class}"),
            })
            .collect();
        write_json(&folder.join(MODULES), &modules)?;
        let about = json!({
            "model_type": "SentenceTransformer",
            "prompts": { "query": "", "document": "" },
            "default_prompt_name": null,
            "similarity_fn_name": "cosine",
        });
        write_json(&folder.join("config_sentence_transformers.json"), &about)?;
        let size = json!({
            "model_type": "minirag-bi-encoder",
            "vocab_size": config.vocab_size,
            "hidden_size": config.hidden_size,
            "embedding_dimension": config.dim(),
        });
        write_json(&folder.join("config.json"), &size)?;
        self.tokenizer.save(folder)?;
        let shape = [config.vocab_size, config.hidden_size];
        let table = Tensor::from_slice(self.network.table(), &shape, &Device::Cpu)?;
        let table = table.to_dtype(dtype)?;
        write_tensors(&folder.join(WEIGHTS), &[(TABLE.to_owned(), table)].into(), CHECKPOINT)?;
        for (module, (layer, weights)) in
            modules[1..].iter().zip(config.dense.iter().zip(self.network.dense()))
        {
            write_dense(&folder.join(&module.path), *layer, weights, dtype)?;
        }
        if let Some(module) = modules.last().filter(|module| module.class() == "Normalize") {
            let path = folder.join(&module.path);
            fs::create_dir_all(&path).map_err(Error::io(&path))?;
            // git keeps no empty folders.
            write_json(&path.join("config.json"), &json!({}))?;
        }
        Ok(())
    }

    /// The tokenizer and the network.
    pub fn into_parts(self) -> (Arc<Tokenizer>, FusedBiEncoder) {
        (self.tokenizer, self.network)
    }

    /// The network.
    pub fn network(&self) -> &FusedBiEncoder {
        &self.network
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl Embedder for BiEncoder {
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn dim(&self) -> usize {
        self.network.config().dim()
    }

    fn embed_passages(&self, passages: &[&str]) -> Result<Vectors> {
        /// Passages whose activations stay in a core's cache.
        const BLOCK: usize = 64;
        let dim = self.dim();
        let mut data = vec![0.0; passages.len() * dim];
        data.par_chunks_mut(BLOCK * dim).zip(passages.par_chunks(BLOCK)).try_for_each(
            |(out, passages)| {
                let (mut ids, mut ends) = (Vec::new(), vec![0]);
                for passage in passages {
                    self.tokenizer.encode_ids_into(passage, &mut ids)?;
                    ends.push(ids.len());
                }
                let bags: Vec<&[u32]> = ends.windows(2).map(|end| &ids[end[0]..end[1]]).collect();
                self.network.encode(&bags, out);
                Ok::<_, Error>(())
            },
        )?;
        Vectors::new(dim, data)
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Vectors> {
        self.embed_passages(queries)
    }
}

/// Rows, columns and values of an embedding table; model2vec has another name for it.
fn read_table(path: &Path, read: Read<'_>) -> Result<(usize, usize, Vec<f32>)> {
    let mut tensors = parse_tensors(&read(path)?, path)?;
    let table = tensors.remove(TABLE).or_else(|| tensors.remove("embeddings"));
    let unknown = tensors.keys().map(String::as_str).collect::<Vec<_>>().join("`, `");
    match table {
        Some(table) if tensors.is_empty() => {
            let (rows, columns) = table.dims2()?;
            Ok((rows, columns, table.flatten_all()?.to_vec1()?))
        }
        Some(_) => {
            let message = format!("beside the table there is `{unknown}`, which cannot be used");
            Err(Error::format(path, message))
        }
        None => {
            let message = format!("there is no `{TABLE}` and no `embeddings`, but `{unknown}`");
            Err(Error::format(path, message))
        }
    }
}

pub(super) type Weights = (Vec<f32>, Vec<f32>);

/// Reads a `Dense` module from its folder.
pub(super) fn read_dense(folder: &Path) -> Result<(DenseConfig, Weights)> {
    read_layer(folder, &from_disk)
}

fn read_layer(folder: &Path, read: Read<'_>) -> Result<(DenseConfig, Weights)> {
    let path = folder.join("config.json");
    let DenseJson { in_features, out_features, bias, activation_function, use_residual } =
        parse_json(&read(&path)?, &path)?;
    if use_residual {
        return Err(Error::format(path, "use_residual is true, which cannot be run"));
    }
    let known = ACTIVATIONS.iter().find(|(name, _)| *name == activation_function);
    let Some((_, activation)) = known else {
        let names = ACTIVATIONS.map(|(name, _)| name).join("`, `");
        let message = format!("activation `{activation_function}`; known are `{names}`");
        return Err(Error::format(path, message));
    };
    let path = folder.join(WEIGHTS);
    let mut tensors = parse_tensors(&read(&path)?, &path)?;
    let mut take = |name: &str, shape: &[usize]| -> Result<Vec<f32>> {
        match tensors.remove(name) {
            Some(tensor) if tensor.dims() == shape => Ok(tensor.flatten_all()?.to_vec1()?),
            Some(tensor) => {
                let got = tensor.dims();
                let message = format!("`{name}` has shape {got:?}; config.json wants {shape:?}");
                Err(Error::format(&path, message))
            }
            None => Err(Error::format(&path, format!("there is no `{name}`"))),
        }
    };
    let weight = take(WEIGHT, &[out_features, in_features])?;
    let biases = if bias { take(BIAS, &[out_features])? } else { Vec::new() };
    if let Some(name) = tensors.keys().next() {
        return Err(Error::format(&path, format!("`{name}` is no parameter of a dense layer")));
    }
    let config = DenseConfig { in_features, out_features, bias, activation: *activation };
    Ok((config, (weight, biases)))
}

fn write_dense(
    folder: &Path,
    layer: DenseConfig,
    (weight, bias): &Weights,
    dtype: DType,
) -> Result<()> {
    let DenseConfig { in_features, out_features, bias: has_bias, activation } = layer;
    let name = ACTIVATIONS.iter().find(|(_, known)| *known == activation);
    let json = DenseJson {
        in_features,
        out_features,
        bias: has_bias,
        activation_function: name.map_or("", |(name, _)| name).to_owned(),
        use_residual: false,
    };
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    write_json(&folder.join("config.json"), &json)?;
    let mut tensors = BTreeMap::new();
    let shape = [out_features, in_features];
    let weight = Tensor::from_slice(weight, &shape, &Device::Cpu)?;
    tensors.insert(WEIGHT.to_owned(), weight.to_dtype(dtype)?);
    if has_bias {
        let bias = Tensor::from_slice(bias, out_features, &Device::Cpu)?;
        tensors.insert(BIAS.to_owned(), bias.to_dtype(dtype)?);
    }
    write_tensors(&folder.join(WEIGHTS), &tensors, CHECKPOINT)
}

/// Reads a JSON file.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    parse_json(&from_disk(path)?, path)
}

fn parse_json<T: serde::de::DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::format(path, format!("not what such a file holds: {error}")))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::format(path, format!("cannot be written: {error}")))?;
    fs::write(path, text + "\n").map_err(Error::io(path))
}
