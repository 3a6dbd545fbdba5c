//! Scored rows in; the one order of results out.

use crate::error::{Error, Result};

/// The place of a chunk in an opened index; dense, from 0, in the order of (document, offset).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row(pub u32);

/// What a score measures; scores of different scales are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Cosine similarity, -1 to 1.
    Cosine,
    /// BM25, above 0.
    Bm25,
    /// Reciprocal rank fusion, 0 to `weights / (60 + 1)`.
    Rrf,
    /// Convex combination of normalised scores, 0 to 1.
    Convex,
    /// How much of the question's content, weighted by idf, a passage holds, by share or by amount,
    /// times the share of the question that the corpus has words for, 0 to 1.
    Overlap,
    /// A reranker's own unbounded score (a logit).
    Rerank,
    /// A calibrated probability, 0 to 1.
    Probability,
}

impl Scale {
    /// The scale's name in traces, JSON and errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Bm25 => "bm25",
            Self::Rrf => "rrf",
            Self::Convex => "convex",
            Self::Overlap => "overlap",
            Self::Rerank => "rerank",
            Self::Probability => "probability",
        }
    }
}

/// One ranked chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The chunk's row.
    pub row: Row,
    /// Higher is better; the unit is the ranking's [`Scale`].
    pub score: f32,
}

/// An ordered result list: best first, no row twice, finite scores.
///
/// Every search, fusion and reranking is put in order here.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    scale: Scale,
    hits: Vec<Hit>,
}

impl Ranking {
    /// Orders `hits` and keeps the best `k`; equal scores come in the order of their rows.
    ///
    /// # Errors
    /// A score that is NaN or infinite.
    pub fn new(scale: Scale, hits: Vec<Hit>, k: usize) -> Result<Self> {
        Self::with_ties(scale, hits.into_iter().map(|hit| (hit, 0)).collect(), k)
    }

    /// Orders `hits`; equal scores come in the order of the number beside them (e.g. the best
    /// rank before), then of their rows.
    ///
    /// # Errors
    /// A score that is NaN or infinite.
    pub fn with_ties(scale: Scale, hits: Vec<(Hit, usize)>, k: usize) -> Result<Self> {
        if let Some((hit, _)) = hits.iter().find(|(hit, _)| !hit.score.is_finite()) {
            return Err(Error::NonFinite { stage: scale.name(), row: hit.row.0, score: hit.score });
        }
        // Rows that come in ascending order, as a scan delivers them, hold none twice.
        let unique = hits.is_sorted_by(|(a, _), (b, _)| a.row < b.row);
        let mut places: Vec<u128> = hits.iter().map(|(hit, tie)| place(*hit, *tie)).collect();
        // Partial selection: sorting all hits of a large index for ten of them is waste.
        if unique && places.len() / 4 > k.max(16) {
            places.select_nth_unstable(k);
            places.truncate(k);
        }
        places.sort_unstable();
        let mut hits: Vec<Hit> = places.into_iter().map(hit_at).collect();
        if !unique {
            let mut seen = std::collections::HashSet::with_capacity(hits.len());
            hits.retain(|hit| seen.insert(hit.row));
        }
        hits.truncate(k);
        Ok(Self { scale, hits })
    }

    /// A ranking of nothing.
    pub fn empty(scale: Scale) -> Self {
        Self { scale, hits: Vec::new() }
    }

    /// What the scores measure.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Best first.
    pub fn hits(&self) -> &[Hit] {
        &self.hits
    }

    /// The rank-1 score.
    pub fn best(&self) -> Option<f32> {
        self.hits.first().map(|hit| hit.score)
    }

    /// The place of `row`, from 1, and its score.
    pub fn find(&self, row: Row) -> Option<(usize, f32)> {
        let at = self.hits.iter().position(|hit| hit.row == row)?;
        Some((at + 1, self.hits[at].score))
    }
}

/// A number that is smaller the better a hit is: score, then `tie`, then row. Numbers are sorted
/// several times faster than hits are by comparing their parts.
fn place(hit: Hit, tie: usize) -> u128 {
    let bits = (hit.score + 0.0).to_bits(); // -0.0 becomes 0.0, so that the two tie.
    let descending = if bits >> 31 == 0 { !bits & !SIGN } else { bits };
    u128::from(descending) << 96 | (tie as u128) << 32 | u128::from(hit.row.0)
}

/// The hit of a [`place`].
fn hit_at(place: u128) -> Hit {
    let descending = (place >> 96) as u32;
    let bits = if descending & SIGN == 0 { !descending & !SIGN } else { descending };
    Hit { row: Row(place as u32), score: f32::from_bits(bits) }
}

/// The sign of an `f32`.
const SIGN: u32 = 1 << 31;
