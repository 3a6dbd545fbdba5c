//! Weighted means of embedding rows, one for each bag of token ids.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{BLOCK, output, tensor, values, with_values};
use crate::nn::kernels;

/// Lists of token ids, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Bags {
    ids: Vec<u32>,
    /// Where each bag ends in `ids`.
    ends: Vec<usize>,
}

impl Bags {
    /// Adds a bag; an empty one is embedded as zeros.
    pub fn push(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len());
    }

    /// Number of bags.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without bags.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bags in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|bag| self.get(bag))
    }

    fn get(&self, bag: usize) -> &[u32] {
        let start = if bag == 0 { 0 } else { self.ends[bag - 1] };
        &self.ids[start..self.ends[bag]]
    }
}

impl<'a> FromIterator<&'a [u32]> for Bags {
    fn from_iter<I: IntoIterator<Item = &'a [u32]>>(bags: I) -> Self {
        let mut all = Self::default();
        bags.into_iter().for_each(|ids| all.push(ids));
        all
    }
}

/// The mean over each bag of `weights[id] * table[id]`, shape `(bags, dim)`: `table` is
/// `(vocabulary, dim)`, `weights` `(vocabulary)`.
///
/// # Errors
/// An id outside the vocabulary, or tables that do not fit each other.
pub fn embedding_bag(table: &Tensor, weights: &Tensor, bags: Arc<Bags>) -> Result<Tensor> {
    let (vocabulary, _) = table.dims2()?;
    if weights.dims() != [vocabulary] {
        bail!("{vocabulary} embeddings have weights of shape {:?}", weights.shape());
    }
    if let Some(id) = bags.ids.iter().find(|id| **id as usize >= vocabulary) {
        bail!("token {id} of a vocabulary of {vocabulary}");
    }
    table.apply_op2(weights, EmbeddingBag { bags })
}

struct EmbeddingBag {
    bags: Arc<Bags>,
}

impl CustomOp2 for EmbeddingBag {
    fn name(&self) -> &'static str {
        "embedding-bag"
    }

    fn cpu_fwd(
        &self,
        table: &CpuStorage,
        table_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, d) = table_layout.shape().dims2()?;
        let (table, weights) = (values(table, table_layout)?, values(weights, weights_layout)?);
        let mut out = vec![0.0; self.bags.len() * d];
        let bags = out.par_chunks_mut(d).enumerate().with_min_len(BLOCK);
        bags.for_each_init(Vec::new, |rows, (bag, sum)| {
            let ids = self.bags.get(bag);
            let scale = 1.0 / ids.len() as f32;
            rows.clear();
            rows.extend(ids.iter().map(|id| (*id, scale * weights[*id as usize])));
            kernels::add_scaled_rows(sum, table, rows);
        });
        output(out, (self.bags.len(), d))
    }

    /// Each token's row gathers from the bags that hold it, in their order: no two threads write
    /// to one row, and the sum is the same for any number of them.
    fn bwd(
        &self,
        table: &Tensor,
        weights: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (vocabulary, d) = table.dims2()?;
        let holders = self.bags.by_token(vocabulary);
        let (d_table, d_weights) = with_values(table, |table| {
            with_values(weights, |weights| {
                with_values(grad, |grad| {
                    let (mut d_table, mut d_weights) =
                        (vec![0.0; vocabulary * d], vec![0.0; vocabulary]);
                    let rows = d_table.par_chunks_mut(d).zip(&mut d_weights).enumerate();
                    rows.with_min_len(4 * BLOCK).for_each(|(id, (row, d_weight))| {
                        let holders = holders.of(id);
                        if holders.is_empty() {
                            return;
                        }
                        kernels::add_scaled_rows(row, grad, holders);
                        *d_weight = kernels::dot(row, &table[id * d..][..d]);
                        row.iter_mut().for_each(|x| *x *= weights[id]);
                    });
                    (d_table, d_weights)
                })
            })
        })???;
        Ok((Some(tensor(d_table, table.shape())?), Some(tensor(d_weights, weights.shape())?)))
    }
}

/// For each token the bags that hold it, by counting sort.
struct Holders {
    /// Where each token's entries start, and where the last ends.
    starts: Vec<usize>,
    /// Bag and 1 / its length, once for each time that it holds the token.
    entries: Vec<(u32, f32)>,
}

impl Holders {
    fn of(&self, id: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[id]..self.starts[id + 1]]
    }
}

impl Bags {
    fn by_token(&self, vocabulary: usize) -> Holders {
        let mut starts = vec![0; vocabulary + 1];
        for id in &self.ids {
            starts[*id as usize + 1] += 1;
        }
        for id in 0..vocabulary {
            starts[id + 1] += starts[id];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); self.ids.len()];
        for (bag, ids) in (0_u32..).zip(self.iter()) {
            let share = 1.0 / ids.len() as f32;
            for id in ids {
                let place = &mut next[*id as usize];
                entries[*place] = (bag, share);
                *place += 1;
            }
        }
        Holders { starts, entries }
    }
}
