//! The network over plain slices, for inference.
//!
//! Sequences are packed one after the other without padding, longest first, in blocks of some
//! hundred tokens, and the blocks are shared out to the cores; where there are fewer blocks than
//! cores, the cores share the tokens of a block. Within a block a layer is done for a stretch of
//! tokens at a time, so that what lies between its products stays in a core's cache.
//!
//! No value depends on the blocks, the stretches or the number of threads: a sequence has the same
//! vectors alone and in a batch, bit by bit.

mod attention;
mod layer;

use candle_core::Tensor;
use rayon::prelude::*;

use super::{BertConfig, Sequence};
use crate::{error::Result, nn::kernels};
use attention::{Attention, Head};
use layer::{Layer, Norm, Scratch};

/// Tokens of a block, unless one sequence has more.
const BLOCK: usize = 384;
/// Tokens of a stretch.
const STRETCH: usize = 132;
/// Stretches have a multiple of these: the rows of a tile of the product.
const ROWS: usize = 12;

/// The network, its weights laid out for products.
pub struct FusedBert {
    config: BertConfig,
    words: Vec<f32>,
    positions: Vec<f32>,
    types: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// The vectors of one sequence's tokens.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The sequence's place in the call.
    pub index: usize,
    /// Shape `(tokens, hidden)`.
    pub tokens: &'a [f32],
}

/// A block's tokens: vectors, and queries, keys and values of this layer and the next.
#[derive(Default)]
struct State {
    x: Vec<f32>,
    qkv: Vec<f32>,
    next_qkv: Vec<f32>,
    /// One for each sequence and head.
    heads: Vec<Head>,
}

impl FusedBert {
    /// The network over the parameters of [`BertConfig::plan`], got by their names without prefix.
    ///
    /// # Errors
    /// Those of `get`.
    pub fn new(config: &BertConfig, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        let values = |name: &str| -> Result<Vec<f32>> {
            let tensor = get(name)?.flatten_all()?;
            Ok(tensor.to_vec1::<f32>()?)
        };
        let layer = |index| Layer::new(config, index, &values);
        Ok(Self {
            words: values("embeddings.word_embeddings.weight")?,
            positions: values("embeddings.position_embeddings.weight")?,
            types: values("embeddings.token_type_embeddings.weight")?,
            norm: Norm::new(config, "embeddings.LayerNorm", &values)?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// The network's shape.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// Runs the sequences on all cores; `finish` makes of the vectors of one's tokens a row of
    /// `width` values, and the rows come back in the order of the sequences, `(n, width)`.
    ///
    /// # Errors
    /// A sequence that [`BertConfig::check`] refuses.
    pub fn encode(
        &self,
        sequences: &[Sequence<'_>],
        width: usize,
        finish: &(dyn Fn(Encoded<'_>, &mut [f32]) + Sync),
    ) -> Result<Vec<f32>> {
        sequences.iter().try_for_each(|sequence| self.config.check(sequence))?;
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(sequences[*index].ids.len()));
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut tokens = 0;
        for index in order {
            let length = sequences[index].ids.len();
            match blocks.last_mut().filter(|_| tokens + length <= BLOCK) {
                Some(block) => block.push(index),
                None => {
                    blocks.push(vec![index]);
                    tokens = 0;
                }
            }
            tokens += length;
        }
        let parts = rayon::current_num_threads().div_ceil(blocks.len().max(1));
        let run = |state: &mut State, block: &Vec<usize>| {
            let members: Vec<Sequence<'_>> = block.iter().map(|index| sequences[*index]).collect();
            self.forward(&members, state, parts);
            let mut rows = vec![0.0; block.len() * width];
            let mut start = 0;
            for ((index, member), row) in block.iter().zip(&members).zip(rows.chunks_mut(width)) {
                let end = start + member.ids.len() * self.config.hidden_size;
                finish(Encoded { index: *index, tokens: &state.x[start..end] }, row);
                start = end;
            }
            rows
        };
        let rows: Vec<Vec<f32>> = blocks.par_iter().map_init(State::default, run).collect();
        let mut out = vec![0.0; sequences.len() * width];
        for (block, rows) in blocks.iter().zip(&rows) {
            for (index, row) in block.iter().zip(rows.chunks_exact(width)) {
                out[index * width..][..width].copy_from_slice(row);
            }
        }
        Ok(out)
    }

    /// Leaves the vectors of a block's tokens in `state.x`, its tokens shared out in `parts`.
    fn forward(&self, sequences: &[Sequence<'_>], state: &mut State, parts: usize) {
        let State { x, qkv, next_qkv, heads } = state;
        let hidden = self.config.hidden_size;
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.ids.len()).collect();
        let tokens: usize = lengths.iter().sum();
        self.embed(sequences, x);
        qkv.resize(tokens * 3 * hidden, 0.0);
        next_qkv.resize(tokens * 3 * hidden, 0.0);
        let part = tokens.div_ceil(parts).next_multiple_of(ROWS).min(STRETCH);
        let share = tokens.div_ceil(part).div_ceil(parts);
        if let Some(first) = self.layers.first() {
            let rows = x.par_chunks(part * hidden).zip(qkv.par_chunks_mut(part * 3 * hidden));
            rows.with_min_len(share).for_each(|(x, qkv)| first.qkv.multiply(qkv, x));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let next = self.layers.get(index + 1);
            let attention = Attention::new(&self.config, &lengths, (qkv, heads), parts);
            let rows =
                x.par_chunks_mut(part * hidden).zip(next_qkv.par_chunks_mut(part * 3 * hidden));
            rows.enumerate().with_min_len(share).for_each_init(
                Scratch::default,
                |scratch, (stretch, (x, next_qkv))| {
                    attention.attend(stretch * part, x.len() / hidden, scratch);
                    layer.finish(x, scratch);
                    if let Some(next) = next {
                        next.qkv.multiply(next_qkv, x);
                    }
                },
            );
            std::mem::swap(qkv, next_qkv);
        }
    }

    /// The sum of each token's three rows, normalised.
    fn embed(&self, sequences: &[Sequence<'_>], x: &mut Vec<f32>) {
        let hidden = self.config.hidden_size;
        let first = self.config.first_position();
        x.clear();
        for sequence in sequences {
            for (place, id) in sequence.ids.iter().enumerate() {
                let kind = sequence.types.get(place).map_or(0, |kind| *kind as usize);
                let word = &self.words[*id as usize * hidden..][..hidden];
                let kind = &self.types[kind * hidden..][..hidden];
                let position = &self.positions[(first + place) * hidden..][..hidden];
                x.extend(word.iter().zip(kind).zip(position).map(|((w, k), p)| w + k + p));
            }
        }
        kernels::layer_norm(x, &self.norm.gamma, &self.norm.beta, self.norm.eps);
    }
}
