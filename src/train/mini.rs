//! MiniBiEncoder as something to train: a fresh one for a corpus, or one to go on with.

use std::{collections::HashSet, path::Path, sync::Arc};

use candle_core::{DType, Tensor};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::bi_encoder::{Model, TextEncoder};
use crate::{
    embed::{self, Embedder},
    error::{Error, Result},
    nn::{
        BiEncoder, Params,
        adamw::Group,
        bi_encoder::{BiEncoderConfig, FusedBiEncoder, TABLE, TOKEN_WEIGHT, dense_name},
        ops::Bags,
    },
    tokenizer::Tokenizer,
};

/// The network, its parameters and its tokenizer.
pub struct MiniBiEncoder {
    config: BiEncoderConfig,
    params: Params,
    network: BiEncoder,
    tokenizer: Arc<Tokenizer>,
    /// The type of the numbers in a saved checkpoint.
    pub dtype: DType,
}

/// Of the learning rate. The table learns words one by one, each seen rarely; the layers after it
/// see every text, and at the table's rate they forget the identity that they start as, which cost
/// SciFact .03 nDCG@10.
const TOKEN_WEIGHT_RATE: f64 = 0.2;
const DENSE_RATE: f64 = 0.01;

impl MiniBiEncoder {
    /// A fresh network of `dim` dimensions, whose tokens weigh what they tell apart in `texts`:
    /// their idf, divided by its mean.
    ///
    /// # Errors
    /// A tokenizer that fails.
    pub fn new(tokenizer: Arc<Tokenizer>, dim: usize, texts: &[&str], seed: u64) -> Result<Self> {
        let weights = idf(&tokenizer, texts)?;
        let config = BiEncoderConfig::mini(tokenizer.vocab_size(), dim);
        let params = Params::new(&config.plan(&weights), seed)?;
        let network = BiEncoder::new(&config, &params)?;
        Ok(Self { config, params, network, tokenizer, dtype: DType::F32 })
    }

    /// The network of a folder, to be trained further.
    ///
    /// # Errors
    /// As [`embed::BiEncoder::open`].
    pub fn open(folder: &Path, dtype: DType) -> Result<Self> {
        let (tokenizer, fused) = embed::BiEncoder::open(folder)?.into_parts();
        let config = fused.config().clone();
        let mut plan = config.plan(&vec![1.0; config.vocab_size]);
        let mut set = |name: &str, values: &[f32]| {
            if let Some(param) = plan.get_mut(name) {
                param.init = crate::nn::Init::Values(values.to_vec());
            }
        };
        set(TABLE, fused.table());
        for (index, (weight, bias)) in fused.dense().iter().enumerate() {
            set(&dense_name(index, "weight"), weight);
            set(&dense_name(index, "bias"), bias);
        }
        let params = Params::new(&plan, 0)?;
        let network = BiEncoder::new(&config, &params)?;
        Ok(Self { config, params, network, tokenizer, dtype })
    }

    /// The network as it is, ready to embed.
    ///
    /// # Errors
    /// Those of candle.
    pub fn static_embedder(&self) -> Result<embed::BiEncoder> {
        let network = FusedBiEncoder::from_network(&self.network)?;
        embed::BiEncoder::new(self.tokenizer.clone(), network)
    }
}

impl TextEncoder for MiniBiEncoder {
    fn params(&self) -> &Params {
        &self.params
    }

    fn embed(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let bags: Bags = texts.iter().copied().collect();
        self.network.forward(Arc::new(bags))
    }

    fn dim(&self) -> usize {
        self.config.dim()
    }

    fn group(&self, name: &str) -> Group {
        let lr = match name {
            TABLE => 1.0,
            TOKEN_WEIGHT => TOKEN_WEIGHT_RATE,
            _ => DENSE_RATE,
        };
        Group { lr, decay: name.starts_with("dense") && name.ends_with("weight") }
    }

    fn save(&self, folder: &Path) -> Result<()> {
        self.static_embedder()?.save_as(folder, self.dtype)
    }
}

impl Model for MiniBiEncoder {
    fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn describe(&self) -> Value {
        let BiEncoderConfig { vocab_size, hidden_size, .. } = self.config;
        json!({
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "dim": self.config.dim(),
            "parameters": self.params.count(),
            "tokenizer": self.tokenizer.fingerprint(),
            "dtype": self.dtype.as_str(),
        })
    }

    fn embedder(&self) -> Result<Box<dyn Embedder>> {
        Ok(Box::new(self.static_embedder()?))
    }
}

/// For each token `ln(1 + (N - n + 0.5) / (n + 0.5))`, as in BM25, divided by the mean over all
/// tokens; `n` of the `N` texts hold it.
fn idf(tokenizer: &Tokenizer, texts: &[&str]) -> Result<Vec<f32>> {
    let held = texts.par_iter().map(|text| {
        let mut ids = Vec::new();
        tokenizer.encode_ids_into(text, &mut ids)?;
        Ok(ids.into_iter().collect::<HashSet<u32>>())
    });
    let held: Vec<HashSet<u32>> = held.collect::<Result<_, Error>>()?;
    let mut counts = vec![0_u32; tokenizer.vocab_size()];
    for id in held.into_iter().flatten() {
        counts[id as usize] += 1;
    }
    let total = texts.len() as f32;
    let idf = |n: &u32| (1.0 + (total - *n as f32 + 0.5) / (*n as f32 + 0.5)).ln();
    let mut weights: Vec<f32> = counts.iter().map(idf).collect();
    let mean = weights.iter().sum::<f32>() / weights.len().max(1) as f32;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    Ok(weights)
}
