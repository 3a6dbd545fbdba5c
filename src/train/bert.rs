//! A pretrained encoder of the BERT family as something to train further.

use std::{
    fs,
    path::{Path, PathBuf},
};

use candle_core::{DType, Tensor};
use serde_json::{Value, json};

use super::bi_encoder::{Model, TextEncoder};
use crate::{
    embed::{BertEmbedder, BertParts, Embedder},
    error::{Error, Result},
    nn::{
        Params,
        adamw::Group,
        bert::BertEncoder,
        params::{CHECKPOINT, write_tensors},
    },
    tokenizer::Tokenizer,
};

/// The network, its parameters, its tokenizer and the folder they came from.
pub struct BertBiEncoder {
    folder: PathBuf,
    /// Where in the folder the network is: mostly the folder itself.
    network_folder: PathBuf,
    params: Params,
    network: BertEncoder,
    tokenizer: Tokenizer,
    max_tokens: usize,
    dim: usize,
    dtype: DType,
}

impl BertBiEncoder {
    /// The encoder of a folder; `dtype` is the type of the numbers in a saved checkpoint.
    ///
    /// # Errors
    /// As [`BertEmbedder::parts`].
    pub fn open(folder: &Path, dtype: DType) -> Result<Self> {
        let BertParts { config, pooling, max_tokens, tokenizer, tensors, network } =
            BertEmbedder::parts(folder)?;
        let params = Params::from_tensors(&config.plan(""), tensors, &network)?;
        Ok(Self {
            folder: folder.to_owned(),
            network_folder: network,
            network: BertEncoder::new(&config, &params, pooling, false)?,
            dim: config.hidden_size,
            params,
            tokenizer,
            max_tokens,
            dtype,
        })
    }
}

impl TextEncoder for BertBiEncoder {
    fn params(&self) -> &Params {
        &self.params
    }

    fn embed(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let framed =
            texts.iter().map(|ids| Ok(self.tokenizer.frame(ids, None, self.max_tokens)?.ids));
        let framed: Vec<Vec<u32>> = framed.collect::<Result<_>>()?;
        let framed: Vec<&[u32]> = framed.iter().map(Vec::as_slice).collect();
        self.network.encode(&framed)
    }

    fn dim(&self) -> usize {
        self.dim
    }

    /// Biases and layer norms do not decay.
    fn group(&self, name: &str) -> Group {
        Group { lr: 1.0, decay: name.ends_with("weight") && !name.contains("LayerNorm") }
    }

    /// The folder as it was, with the weights as they are.
    fn save(&self, folder: &Path) -> Result<()> {
        copy_settings(&self.folder, folder)?;
        let inside = self.network_folder.strip_prefix(&self.folder).unwrap_or(Path::new(""));
        let tensors = self.params.snapshot()?.into_iter();
        let tensors = tensors.map(|(name, tensor)| Ok((name, tensor.to_dtype(self.dtype)?)));
        let path = folder.join(inside).join("model.safetensors");
        write_tensors(&path, &tensors.collect::<Result<_>>()?, CHECKPOINT)
    }
}

impl Model for BertBiEncoder {
    fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn describe(&self) -> Value {
        json!({
            "dim": self.dim,
            "parameters": self.params.count(),
            "tokenizer": self.tokenizer.fingerprint(),
            "dtype": self.dtype.as_str(),
        })
    }

    fn embedder(&self) -> Result<Box<dyn Embedder>> {
        Ok(Box::new(BertEmbedder::open(&self.folder)?))
    }
}

/// Copies what a folder and its modules say of themselves: JSON and vocabularies, but neither
/// weights nor the record of the run that made it.
fn copy_settings(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).map_err(Error::io(from))?;
    for entry in entries {
        let path = entry.map_err(Error::io(from))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let target = to.join(name);
        if path.is_dir() {
            // Modules have a number in front, as `1_Pooling`.
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                fs::create_dir_all(&target).map_err(Error::io(&target))?;
                copy_settings(&path, &target)?;
            }
        } else if (name.ends_with(".json") || name.ends_with(".txt"))
            && name != "train.json"
            && !name.ends_with(".index.json")
        {
            fs::copy(&path, &target).map_err(Error::io(&target))?;
        }
    }
    Ok(())
}
