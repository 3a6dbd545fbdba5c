//! Feature hashing: the embedder that needs no training, and the control for those that do.
//!
//! Each term adds or subtracts (by a bit of its hash, which keeps the dot product unbiased:
//! Weinberger et al. 2009) its sublinear count `1 + ln(tf)` in one of `dim` buckets. What is
//! stored knows nothing of the corpus; at opening, [`HashingEmbedder::fit`] weighs each bucket by
//! its idf over the stored passages, on both sides, so that an updated index equals a fresh one.

use ahash::AHashMap;
use rayon::prelude::*;

use crate::{
    embed::Embedder,
    error::{Error, Result},
    nn::kernels::normalize,
    text::Analyzer,
    types::Vectors,
};

/// Signed hashing of stems into buckets.
#[derive(Debug, Clone)]
pub struct HashingEmbedder {
    analyzer: Analyzer,
    /// One weight a bucket; all 1 until fitted.
    idf: Vec<f32>,
}

impl HashingEmbedder {
    /// Buckets of the default embedder.
    pub const DIM: usize = 256;

    /// An embedder with `dim` buckets.
    pub fn new(dim: usize) -> Self {
        Self { analyzer: Analyzer::default(), idf: vec![1.0; dim] }
    }

    fn embed(&self, text: &str, row: &mut [f32], known: &mut Hashes) {
        let mut hashes = Vec::new();
        self.analyzer.words(text, |word| {
            let hash = known.get(word).copied().unwrap_or_else(|| {
                let hash = self.analyzer.term(word).map(|term| fnv1a(&term));
                known.insert(word.into(), hash);
                hash
            });
            hashes.extend(hash);
        });
        // In the order of the hashes, so that floats are added in the same order in every run.
        hashes.sort_unstable();
        for term in hashes.chunk_by(|a, b| a == b) {
            let sign = if term[0] >> 63 == 0 { 1.0 } else { -1.0 };
            let bucket = (term[0] % self.dim() as u64) as usize;
            row[bucket] += sign * (1.0 + (term.len() as f32).ln()) * self.idf[bucket];
        }
        normalize(row);
    }
}

/// The hash of each word's term, `None` for a stop word: stemming costs more than all the rest.
type Hashes = AHashMap<Box<str>, Option<u64>>;

impl Default for HashingEmbedder {
    fn default() -> Self {
        Self::new(Self::DIM)
    }
}

impl Embedder for HashingEmbedder {
    fn fingerprint(&self) -> String {
        format!("hashing-{}-{}", self.dim(), self.analyzer.fingerprint())
    }

    fn dim(&self) -> usize {
        self.idf.len()
    }

    fn embed_passages(&self, passages: &[&str]) -> Result<Vectors> {
        if self.dim() == 0 {
            return Err(Error::Setting("a hashing embedder needs at least one bucket".to_owned()));
        }
        let mut data = vec![0.0; passages.len() * self.dim()];
        let rows = data.par_chunks_exact_mut(self.dim()).zip(passages);
        rows.with_min_len(64).for_each_init(Hashes::default, |known, (row, passage)| {
            self.embed(passage, row, known);
        });
        Vectors::new(self.dim(), data)
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Vectors> {
        self.embed_passages(queries)
    }

    fn fit(&mut self, stored: Vectors) -> Result<Vectors> {
        if stored.dim() != self.dim() {
            return Err(Error::Shape {
                what: "stored vector length",
                expected: self.dim(),
                got: stored.dim(),
            });
        }
        let mut holding = vec![0_u32; self.dim()];
        for row in stored.rows() {
            for (count, value) in holding.iter_mut().zip(row) {
                *count += u32::from(*value != 0.0);
            }
        }
        let n = stored.len() as f32;
        let idf = |count: &u32| ((n + 1.0) / (*count as f32 + 1.0)).ln() + 1.0;
        self.idf = holding.iter().map(idf).collect();
        let dim = stored.dim();
        let mut data = stored.into_data();
        for row in data.chunks_exact_mut(dim) {
            row.iter_mut().zip(&self.idf).for_each(|(value, idf)| *value *= idf);
            normalize(row);
        }
        Vectors::new(dim, data)
    }
}

fn fnv1a(term: &str) -> u64 {
    let hash = term.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // FNV's high bits mix poorly on short words: finish as SplitMix64 does.
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
