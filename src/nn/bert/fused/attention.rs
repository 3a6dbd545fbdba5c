//! Attention of a stretch of tokens to all tokens of their sequences.

use rayon::prelude::*;

use super::{super::BertConfig, layer::Scratch};
use crate::nn::kernels::{self, Packed, Rows, RowsMut};

/// What one head sees of one sequence, laid out for products.
#[derive(Default)]
pub(super) struct Head {
    /// Shape `(head size, tokens)`.
    keys: Packed,
    /// Shape `(tokens, head size)`.
    values: Packed,
}

/// The attention of one layer over the sequences of a block.
pub(super) struct Attention<'a> {
    lengths: &'a [usize],
    /// Queries, keys and values of each token, side by side.
    qkv: &'a [f32],
    heads: &'a [Head],
    hidden: usize,
    head_size: usize,
    scale: f32,
}

impl<'a> Attention<'a> {
    /// Lays out keys and values of sequences of those lengths, the work shared out in `parts`.
    pub(super) fn new(
        config: &BertConfig,
        lengths: &'a [usize],
        (qkv, heads): (&'a [f32], &'a mut Vec<Head>),
        parts: usize,
    ) -> Self {
        let (hidden, head_size) = (config.hidden_size, config.head_size());
        let count = config.num_attention_heads;
        let mut starts = Vec::with_capacity(lengths.len());
        let mut tokens = 0;
        for length in lengths {
            starts.push(tokens);
            tokens += length;
        }
        let all = lengths.len() * count;
        if heads.len() < all {
            heads.resize_with(all, Head::default);
        }
        let used = heads[..all].par_iter_mut().enumerate();
        used.with_min_len(all.div_ceil(parts)).for_each(|(place, head)| {
            let (sequence, column) = (place / count, place % count * head_size);
            let from = starts[sequence] * 3 * hidden + column;
            let rows = |part| Rows { values: &qkv[from + part * hidden..], stride: 3 * hidden };
            head.keys.set_transposed(rows(1), lengths[sequence], head_size);
            head.values.set(rows(2), lengths[sequence], head_size);
        });
        let scale = 1.0 / (head_size as f32).sqrt();
        Self { lengths, qkv, heads: &heads[..all], hidden, head_size, scale }
    }

    /// Leaves in `scratch.context` what `count` tokens from `first` on attend to.
    pub(super) fn attend(&self, first: usize, count: usize, scratch: &mut Scratch) {
        let Scratch { context, scores, .. } = scratch;
        context.resize(count * self.hidden, 0.0);
        let per_sequence = self.hidden / self.head_size;
        let mut start = 0;
        for (length, heads) in self.lengths.iter().zip(self.heads.chunks_exact(per_sequence)) {
            let (from, to) = (start.max(first), (start + length).min(first + count));
            start += length;
            if from >= to {
                continue;
            }
            let queries = to - from;
            scores.resize(queries * length, 0.0);
            for (index, head) in heads.iter().enumerate() {
                let column = index * self.head_size;
                let query = &self.qkv[from * 3 * self.hidden + column..];
                let query = Rows { values: query, stride: 3 * self.hidden };
                let out = RowsMut { values: scores, stride: *length };
                head.keys.multiply(out, query, queries, &[]);
                kernels::softmax(scores, *length, *length, self.scale);
                let out = &mut context[(from - first) * self.hidden + column..];
                let out = RowsMut { values: out, stride: self.hidden };
                head.values.multiply(out, Rows { values: scores, stride: *length }, queries, &[]);
            }
        }
    }
}
