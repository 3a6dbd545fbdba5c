//! The network in its differentiable form, over batches filled up to the longest sequence.
//!
//! There is no dropout: a text has one vector, in training too.

use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::{BertConfig, HiddenAct, Sequence};
use crate::{
    error::Result,
    nn::{Params, ops},
};

/// The network over parameters that are being trained.
pub struct Bert {
    config: BertConfig,
    tables: [Tensor; 3],
    norm: Norm,
    layers: Vec<Layer>,
}

/// Sequences side by side, shorter ones filled up.
pub struct Batch {
    words: Tensor,
    types: Tensor,
    positions: Tensor,
    lengths: Arc<[usize]>,
    width: usize,
}

struct Linear {
    weight: Tensor,
    bias: Tensor,
}

struct Norm {
    gamma: Tensor,
    beta: Tensor,
    eps: f32,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    out_norm: Norm,
    up: Linear,
    down: Linear,
    down_norm: Norm,
}

impl Batch {
    /// The sequences, filled up to the longest with tokens that nothing attends to.
    ///
    /// # Errors
    /// A sequence that [`BertConfig::check`] refuses.
    pub fn new(config: &BertConfig, sequences: &[Sequence<'_>]) -> Result<Self> {
        sequences.iter().try_for_each(|sequence| config.check(sequence))?;
        let lengths: Arc<[usize]> = sequences.iter().map(|sequence| sequence.ids.len()).collect();
        let width = lengths.iter().copied().max().unwrap_or(0);
        let (mut words, mut types, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in sequences {
            for place in 0..width {
                words.push(sequence.ids.get(place).copied().unwrap_or(0));
                types.push(sequence.types.get(place).copied().unwrap_or(0));
                positions.push((config.first_position() + place) as u32);
            }
        }
        let tensor = |ids: Vec<u32>| {
            let count = ids.len();
            Tensor::from_vec(ids, count, &Device::Cpu)
        };
        let (words, types, positions) = (tensor(words)?, tensor(types)?, tensor(positions)?);
        Ok(Self { words, types, positions, lengths, width })
    }

    /// Tokens of each sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }
}

impl Linear {
    fn new(params: &Params, name: &str) -> Result<Self> {
        let get = |kind| params.get(&format!("{name}.{kind}"));
        Ok(Self { weight: get("weight")?, bias: get("bias")? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(ops::linear(x, &self.weight, Some(&self.bias))?)
    }
}

impl Norm {
    fn new(config: &BertConfig, params: &Params, name: &str) -> Result<Self> {
        let Linear { weight: gamma, bias: beta } = Linear::new(params, name)?;
        Ok(Self { gamma, beta, eps: config.layer_norm_eps as f32 })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(ops::layer_norm(x, &self.gamma, &self.beta, self.eps)?)
    }
}

impl Bert {
    /// The network over parameters that follow [`BertConfig::plan`] with that prefix.
    ///
    /// # Errors
    /// A parameter that is missing.
    pub fn new(config: &BertConfig, params: &Params, prefix: &str) -> Result<Self> {
        let table = |name: &str| params.get(&format!("{prefix}embeddings.{name}.weight"));
        let layer = |index: usize| -> Result<Layer> {
            let name = |part: &str| format!("{prefix}encoder.layer.{index}.{part}");
            let linear = |part: &str| Linear::new(params, &name(part));
            let norm = |part: &str| Norm::new(config, params, &name(part));
            Ok(Layer {
                query: linear("attention.self.query")?,
                key: linear("attention.self.key")?,
                value: linear("attention.self.value")?,
                out: linear("attention.output.dense")?,
                out_norm: norm("attention.output.LayerNorm")?,
                up: linear("intermediate.dense")?,
                down: linear("output.dense")?,
                down_norm: norm("output.LayerNorm")?,
            })
        };
        Ok(Self {
            tables: [
                table("word_embeddings")?,
                table("token_type_embeddings")?,
                table("position_embeddings")?,
            ],
            norm: Norm::new(config, params, &format!("{prefix}embeddings.LayerNorm"))?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// The network's shape.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// The vectors of all tokens, shape `(batch, width, hidden)`; those that fill up mean nothing.
    ///
    /// # Errors
    /// Those of candle.
    pub fn forward(&self, batch: &Batch) -> Result<Tensor> {
        let [words, types, positions] = &self.tables;
        let x = words.index_select(&batch.words, 0)?;
        let x = (x + types.index_select(&batch.types, 0)?)?;
        let x = (x + positions.index_select(&batch.positions, 0)?)?;
        let mut x = self.norm.forward(&x)?;
        for layer in &self.layers {
            let context = self.attend(layer, &x, batch)?;
            let middle = (layer.out.forward(&context)? + &x)?;
            let middle = layer.out_norm.forward(&middle)?;
            let wide = self.widen(&layer.up, &middle)?;
            x = layer.down_norm.forward(&(layer.down.forward(&wide)? + &middle)?)?;
        }
        // From (batch * width, hidden).
        Ok(x.reshape((batch.lengths.len(), batch.width, self.config.hidden_size))?)
    }

    fn attend(&self, layer: &Layer, x: &Tensor, batch: &Batch) -> Result<Tensor> {
        let (count, width) = (batch.lengths.len(), batch.width);
        let (heads, size) = (self.config.num_attention_heads, self.config.head_size());
        let split = |linear: &Linear| -> Result<Tensor> {
            // (batch * width, hidden) to (batch, heads, width, head size).
            let split = linear.forward(x)?.reshape((count, width, heads, size))?;
            Ok(split.transpose(1, 2)?.contiguous()?)
        };
        let (query, key, value) = (split(&layer.query)?, split(&layer.key)?, split(&layer.value)?);
        let scores = query.matmul(&key.t()?)?;
        let scale = 1.0 / (size as f32).sqrt();
        let shares = ops::masked_softmax(&scores, batch.lengths.clone(), scale)?;
        let context = shares.matmul(&value)?.transpose(1, 2)?.contiguous()?;
        Ok(context.reshape((count * width, heads * size))?)
    }

    fn widen(&self, up: &Linear, x: &Tensor) -> Result<Tensor> {
        Ok(match self.config.hidden_act {
            HiddenAct::Gelu => ops::linear_gelu(x, &up.weight, &up.bias)?,
            HiddenAct::GeluTanh => up.forward(x)?.gelu()?,
            HiddenAct::Relu => up.forward(x)?.relu()?,
        })
    }
}
