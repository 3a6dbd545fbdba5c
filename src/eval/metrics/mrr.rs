//! Judged ranking to reciprocal rank; its mean over questions is MRR.

use super::Judged;

/// One over the rank of the first relevant result, 0 where the first `k` hold none.
pub fn reciprocal_rank(judged: &Judged, k: usize) -> f64 {
    judged.first_rank().filter(|rank| *rank <= k).map_or(0.0, |rank| 1.0 / rank as f64)
}
