//! MiniBiEncoder: the mean of a text's token embeddings, through a small MLP, to unit length.
//!
//! A static embedder in the sense of sentence-transformers (StaticEmbedding, Dense, Dense,
//! Normalize): no attention, so a passage costs little more than its tokenisation. In training
//! each token also has a weight that starts at its idf and is folded into its row at the end: the
//! idf-weighted mean of random rows is a fair retriever already, and learning starts from there.

use std::sync::Arc;

use candle_core::Tensor;
use rayon::prelude::*;

use super::{
    Init, Param, Params, Plan,
    kernels::{self, Packed, Rows, RowsMut},
    ops::{self, Bags},
};
use crate::error::{Error, Result};

/// What a dense layer does to its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// The exact GELU.
    Gelu,
    /// Hyperbolic tangent.
    Tanh,
    /// What is below zero becomes zero.
    Relu,
}

/// One dense layer, as sentence-transformers' `Dense` module has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseConfig {
    /// Values that go in.
    pub in_features: usize,
    /// Values that come out.
    pub out_features: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// What follows.
    pub activation: Activation,
}

/// The shape of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BiEncoderConfig {
    /// Tokens.
    pub vocab_size: usize,
    /// Values of a token's embedding.
    pub hidden_size: usize,
    /// The layers after the mean.
    pub dense: Vec<DenseConfig>,
    /// Whether what comes out has unit length.
    pub normalize: bool,
}

impl BiEncoderConfig {
    /// Embeddings of `dim` values and an MLP of twice as many in between.
    pub fn mini(vocab_size: usize, dim: usize) -> Self {
        let layer = |in_features, out_features, activation| DenseConfig {
            in_features,
            out_features,
            bias: true,
            activation,
        };
        let dense =
            vec![layer(dim, 2 * dim, Activation::Gelu), layer(2 * dim, dim, Activation::Identity)];
        Self { vocab_size, hidden_size: dim, dense, normalize: true }
    }

    /// Values of an embedded text.
    pub fn dim(&self) -> usize {
        self.dense.last().map_or(self.hidden_size, |layer| layer.out_features)
    }

    /// The parameters, with random embeddings and an MLP that is the identity to begin with:
    /// `gelu(x) - gelu(-x) = x`, so `[I; -I]` and then `[I, -I]` change nothing, and training
    /// starts from the retriever that the weighted mean is. `weights` are those of the tokens.
    pub fn plan(&self, weights: &[f32]) -> Plan {
        let mut plan = Plan::new();
        let table = [self.vocab_size, self.hidden_size];
        plan.insert(TABLE.to_owned(), Param::new(table, Init::Normal(TABLE_STD)));
        plan.insert(
            TOKEN_WEIGHT.to_owned(),
            Param::new([self.vocab_size], Init::Values(weights.to_vec())),
        );
        for (index, layer) in self.dense.iter().enumerate() {
            let (from, to) = (layer.in_features, layer.out_features);
            let init = match to == 2 * from {
                true => {
                    mirror(to, from, MLP_GAIN, |row, column| (row % from == column, row < from))
                }
                false => mirror(to, from, 1.0 / MLP_GAIN, |row, column| {
                    (column % to == row, column < to)
                }),
            };
            plan.insert(dense_name(index, "weight"), Param::new([to, from], Init::Values(init)));
            if layer.bias {
                plan.insert(dense_name(index, "bias"), Param::new([to], Init::Constant(0.0)));
            }
        }
        plan
    }
}

/// Deviation of a fresh embedding's values.
const TABLE_STD: f32 = 0.1;
/// How far into the curve of the GELU the MLP starts.
const MLP_GAIN: f32 = 4.0;

/// The table's name.
pub const TABLE: &str = "embedding.weight";
/// The name of the tokens' weights; training has them, a checkpoint has them folded in.
pub const TOKEN_WEIGHT: &str = "token_weight";

/// The name of a dense layer's `weight` or `bias`.
pub fn dense_name(index: usize, kind: &str) -> String {
    format!("dense.{index}.{kind}")
}

/// A `(rows, columns)` matrix of `gain` and `-gain` where `at` says so.
fn mirror(
    rows: usize,
    columns: usize,
    gain: f32,
    at: impl Fn(usize, usize) -> (bool, bool),
) -> Vec<f32> {
    let value = |place: usize| match at(place / columns, place % columns) {
        (false, _) => 0.0,
        (true, true) => gain,
        (true, false) => -gain,
    };
    (0..rows * columns).map(value).collect()
}

/// The network in its differentiable form.
pub struct BiEncoder {
    config: BiEncoderConfig,
    table: Tensor,
    token_weight: Tensor,
    dense: Vec<(Tensor, Option<Tensor>)>,
}

impl BiEncoder {
    /// The network over parameters that follow its plan.
    ///
    /// # Errors
    /// A parameter that is missing.
    pub fn new(config: &BiEncoderConfig, params: &Params) -> Result<Self> {
        let dense = config.dense.iter().enumerate().map(|(index, layer)| {
            let bias = layer.bias.then(|| params.get(&dense_name(index, "bias"))).transpose()?;
            Ok((params.get(&dense_name(index, "weight"))?, bias))
        });
        Ok(Self {
            table: params.get(TABLE)?,
            token_weight: params.get(TOKEN_WEIGHT)?,
            dense: dense.collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// Embeds bags of token ids, shape `(bags, dim)`, before they are brought to unit length.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn forward(&self, bags: Arc<Bags>) -> Result<Tensor> {
        let mut x = ops::embedding_bag(&self.table, &self.token_weight, bags)?;
        for ((weight, bias), layer) in self.dense.iter().zip(&self.config.dense) {
            x = match (layer.activation, bias) {
                (Activation::Gelu, Some(bias)) => ops::linear_gelu(&x, weight, bias)?,
                (activation, bias) => {
                    let x = ops::linear(&x, weight, bias.as_ref())?;
                    match activation {
                        Activation::Identity => x,
                        Activation::Gelu => x.gelu_erf()?,
                        Activation::Tanh => x.tanh()?,
                        Activation::Relu => x.relu()?,
                    }
                }
            };
        }
        Ok(x)
    }
}

/// The network in its fused form, for inference.
pub struct FusedBiEncoder {
    config: BiEncoderConfig,
    table: Vec<f32>,
    /// Weights `(out, in)` and biases, the latter empty where there is none.
    dense: Vec<(Vec<f32>, Vec<f32>)>,
    /// The weights once more, laid out for products whose bits do not depend on the batch: equal
    /// passages must have equal vectors, wherever they stand.
    packed: Vec<Packed>,
}

impl FusedBiEncoder {
    /// The network over `table`, shape `(vocabulary, hidden)`, and weights and biases of its
    /// layers.
    ///
    /// # Errors
    /// A matrix whose size is not the one of the configuration.
    pub fn new(
        config: BiEncoderConfig,
        table: Vec<f32>,
        dense: Vec<(Vec<f32>, Vec<f32>)>,
    ) -> Result<Self> {
        let fits = |what, expected, got| match expected == got {
            true => Ok(()),
            false => Err(Error::Shape { what, expected, got }),
        };
        fits("size of the embedding table", config.vocab_size * config.hidden_size, table.len())?;
        fits("number of dense layers", config.dense.len(), dense.len())?;
        let mut width = config.hidden_size;
        for (layer, (weight, bias)) in config.dense.iter().zip(&dense) {
            fits("inputs of a dense layer", width, layer.in_features)?;
            width = layer.out_features;
            fits("size of a dense layer", layer.in_features * width, weight.len())?;
            fits("size of a dense layer's bias", if layer.bias { width } else { 0 }, bias.len())?;
        }
        let layers = config.dense.iter().zip(&dense);
        let packed = layers.map(|(layer, (weight, _))| Packed::new(weight, layer.in_features));
        let packed = packed.collect();
        Ok(Self { config, table, dense, packed })
    }

    /// The network as trained, its token weights folded into the table.
    ///
    /// # Errors
    /// Those of candle.
    pub fn from_network(network: &BiEncoder) -> Result<Self> {
        let values = |tensor: &Tensor| Ok::<_, Error>(tensor.flatten_all()?.to_vec1::<f32>()?);
        let mut table = values(&network.table)?;
        let hidden = network.config.hidden_size;
        for (row, weight) in table.chunks_exact_mut(hidden).zip(values(&network.token_weight)?) {
            row.iter_mut().for_each(|x| *x *= weight);
        }
        let dense = network.dense.iter().map(|(weight, bias)| {
            let bias = bias.as_ref().map_or(Ok(Vec::new()), values)?;
            Ok((values(weight)?, bias))
        });
        Self::new(network.config.clone(), table, dense.collect::<Result<_>>()?)
    }

    /// The network's shape.
    pub fn config(&self) -> &BiEncoderConfig {
        &self.config
    }

    /// The embedding table, shape `(vocabulary, hidden)`.
    pub fn table(&self) -> &[f32] {
        &self.table
    }

    /// Weights and biases of the layers.
    pub fn dense(&self) -> &[(Vec<f32>, Vec<f32>)] {
        &self.dense
    }

    /// Embeds bags of token ids into `out`, shape `(bags, dim)`, on the calling thread. Ids
    /// outside the vocabulary are passed over, and an empty bag gives zeros.
    pub fn encode(&self, bags: &[&[u32]], out: &mut [f32]) {
        let hidden = self.config.hidden_size;
        let mut x = vec![0.0; bags.len() * hidden];
        let mut rows = Vec::new();
        for (sum, ids) in x.chunks_exact_mut(hidden).zip(bags) {
            let scale = 1.0 / ids.len().max(1) as f32;
            let known = ids.iter().filter(|id| (**id as usize) < self.config.vocab_size);
            rows.clear();
            rows.extend(known.map(|id| (*id, scale)));
            kernels::add_scaled_rows(sum, &self.table, &rows);
        }
        let layers = self.config.dense.iter().zip(&self.packed);
        for ((layer, weight), (_, bias)) in layers.zip(&self.dense) {
            x = dense(&x, weight, bias, layer.activation);
        }
        out.copy_from_slice(&x);
        for (row, ids) in out.chunks_exact_mut(self.config.dim()).zip(bags) {
            if ids.is_empty() {
                row.fill(0.0);
            } else if self.config.normalize {
                kernels::normalize(row);
            }
        }
    }

    /// As [`FusedBiEncoder::encode`], on all cores.
    pub fn encode_parallel(&self, bags: &[&[u32]]) -> Vec<f32> {
        /// Bags whose activations stay in a core's cache.
        const BLOCK: usize = 64;
        let dim = self.config.dim();
        let mut out = vec![0.0; bags.len() * dim];
        out.par_chunks_mut(BLOCK * dim).zip(bags.par_chunks(BLOCK)).for_each(|(out, bags)| {
            self.encode(bags, out);
        });
        out
    }
}

/// A dense layer of rows `x`, shape `(n, in)`; `bias` has a value for each output, or none.
pub fn dense(x: &[f32], weight: &Packed, bias: &[f32], activation: Activation) -> Vec<f32> {
    let (inputs, outputs) = (weight.inputs(), weight.outputs());
    let count = x.len() / inputs;
    let mut y = vec![0.0; count * outputs];
    let out = RowsMut { values: &mut y, stride: outputs };
    weight.multiply(out, Rows { values: x, stride: inputs }, count, bias);
    activate(&mut y, activation);
    y
}

fn activate(rows: &mut [f32], activation: Activation) {
    match activation {
        Activation::Identity => {}
        Activation::Gelu => kernels::gelu(rows),
        Activation::Tanh => rows.iter_mut().for_each(|x| *x = x.tanh()),
        Activation::Relu => kernels::relu(rows),
    }
}
