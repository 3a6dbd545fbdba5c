//! Exact search: every row is compared with the query.
//!
//! In: rows once, then queries. Out: the rows of highest cosine. The scan runs at the speed of
//! memory for one query and at that of the processor for a batch; see [`super::kernel`] for the
//! layout that makes it so.

use rayon::prelude::*;

use super::{
    VectorStore,
    kernel::{Kernel, LANES},
    top_k::TopK,
};
use crate::{
    error::{Error, Result},
    types::{Ranking, Row, Scale, Vectors},
};

/// Rows of a panel: the piece of work between two selections, whose scores stay in the cache.
const PANEL: usize = 48 * LANES;

/// Queries of one pass; the scores of a panel for all of them still fit in the cache.
const BATCH: usize = 256;

/// Multiplications that one thread makes in less time than it takes to wake another.
const SMALL: usize = 1 << 20;

/// Unit vectors held in memory, searched one and all.
#[derive(Debug, Clone)]
pub struct FlatStore {
    dim: usize,
    len: usize,
    /// Shape `(len / 16, dim, 16)`: whole blocks of rows, interleaved.
    blocks: Vec<f32>,
    /// The rows left over, as one block filled up with zeros; empty if none are.
    rest: Vec<f32>,
    /// Rows of zeros, ascending.
    zeros: Vec<Row>,
    kernel: Kernel,
}

impl FlatStore {
    /// A store of `vectors`; rows are scaled to unit length, those of zeros stay zeros.
    pub fn new(vectors: Vectors) -> Self {
        let (dim, len) = (vectors.dim(), vectors.len());
        let mut blocks = vectors.into_data();
        let zeros = blocks
            .par_chunks_exact_mut(dim)
            .enumerate()
            .filter_map(|(row, values)| (!to_unit(values)).then_some(Row(row as u32)))
            .collect();
        let whole = len - len % LANES;
        let mut rest = vec![0.0; if whole < len { dim * LANES } else { 0 }];
        rest[..(len - whole) * dim].copy_from_slice(&blocks[whole * dim..]);
        blocks.truncate(whole * dim);
        // In place, block by block: a second copy of the vectors may not fit in memory.
        blocks
            .par_chunks_exact_mut(dim * LANES)
            .chain(rest.par_chunks_exact_mut(dim * LANES))
            .for_each_init(|| vec![0.0; dim * LANES], |rows, block| interleave(block, rows));
        Self { dim, len, blocks, rest, zeros, kernel: Kernel::best() }
    }

    /// The vector instructions in use, e.g. `avx512`.
    pub fn kernel(&self) -> &'static str {
        self.kernel.name
    }

    /// Searches for each of `queries`, shape `(n, dim)`, all of unit length or zeros.
    fn scan(&self, queries: &[f32], k: usize) -> Result<Vec<Ranking>> {
        let count = queries.len() / self.dim;
        let panels = self.len.div_ceil(PANEL);
        let fresh = || (vec![TopK::new(k, f32::NEG_INFINITY); count], vec![0.0; count * PANEL]);
        let step = |(mut best, mut scores): (Vec<TopK>, Vec<f32>), panel: usize| {
            self.scan_panel(panel, queries, &mut scores, &mut best);
            (best, scores)
        };
        let best = if self.len * queries.len() <= SMALL {
            (0..panels).fold(fresh(), step).0
        } else {
            // Which panels a thread gets is chance, but not what the best of all of them are.
            let join = |a: Vec<TopK>, b: Vec<TopK>| {
                a.into_iter().zip(b).map(|(a, b)| a.merge(b)).collect::<Vec<_>>()
            };
            let parts = (0..panels).into_par_iter().fold(fresh, step).map(|(best, _)| best);
            parts.reduce_with(join).unwrap_or_default()
        };
        best.into_iter().map(|best| best.into_ranking(Scale::Cosine)).collect()
    }

    fn scan_panel(&self, panel: usize, queries: &[f32], scores: &mut [f32], best: &mut [TopK]) {
        let first = panel * PANEL;
        let skip = |row| self.zeros.binary_search(&row).is_ok();
        let mut offer = |first: usize, blocks: &[f32], rows: usize| {
            let width = blocks.len() / self.dim;
            let scores = &mut scores[..best.len() * width];
            self.kernel.dots(self.dim, queries, blocks, scores);
            for (best, scores) in best.iter_mut().zip(scores.chunks_exact(width)) {
                best.offer(first as u32, &scores[..rows], skip);
            }
        };
        let whole = self.blocks.len() / self.dim;
        let end = whole.min(first + PANEL);
        if first < end {
            offer(first, &self.blocks[first * self.dim..end * self.dim], end - first);
        }
        if end < self.len && self.len <= first + PANEL {
            offer(end, &self.rest, self.len - end);
        }
    }

    /// A copy of `query` of unit length; `None` if it is all zeros.
    fn unit(&self, query: &[f32]) -> Result<Option<Vec<f32>>> {
        if query.len() != self.dim {
            return Err(Error::Shape {
                what: "query vector length",
                expected: self.dim,
                got: query.len(),
            });
        }
        if let Some(value) = query.iter().find(|value| !value.is_finite()) {
            return Err(Error::Setting(format!(
                "the query vector holds {value}, which has no direction: check the embedder"
            )));
        }
        let mut query = query.to_vec();
        Ok(to_unit(&mut query).then_some(query))
    }
}

impl VectorStore for FlatStore {
    fn dim(&self) -> usize {
        self.dim
    }

    fn len(&self) -> usize {
        self.len
    }

    fn search(&self, query: &[f32], k: usize) -> Result<Ranking> {
        let empty = Ranking::empty(Scale::Cosine);
        match self.unit(query)? {
            Some(query) => Ok(self.scan(&query, k)?.pop().unwrap_or(empty)),
            None => Ok(empty),
        }
    }

    fn search_batch(&self, queries: &Vectors, k: usize) -> Result<Vec<Ranking>> {
        let mut rankings = vec![Ranking::empty(Scale::Cosine); queries.len()];
        let mut units = Vec::with_capacity(queries.data().len());
        let mut places = Vec::with_capacity(queries.len());
        for (place, query) in queries.rows().enumerate() {
            if let Some(query) = self.unit(query)? {
                units.extend(query);
                places.push(place);
            }
        }
        for (places, units) in places.chunks(BATCH).zip(units.chunks(BATCH * self.dim)) {
            for (place, ranking) in places.iter().zip(self.scan(units, k)?) {
                rankings[*place] = ranking;
            }
        }
        Ok(rankings)
    }
}

/// Scales `row` to unit length unless it has it; false if it is all zeros.
fn to_unit(row: &mut [f32]) -> bool {
    // In f64, where the square of no f32 overflows or vanishes.
    let norm = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if norm > 0.0 && (norm - 1.0).abs() > 1e-6 {
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    }
    norm > 0.0
}

/// Turns 16 rows, one after the other, into a block: value after value, 16 rows each.
fn interleave(block: &mut [f32], rows: &mut [f32]) {
    rows.copy_from_slice(block);
    let dim = rows.len() / LANES;
    for (d, values) in block.chunks_exact_mut(LANES).enumerate() {
        for (lane, value) in values.iter_mut().enumerate() {
            *value = rows[lane * dim + d];
        }
    }
}
