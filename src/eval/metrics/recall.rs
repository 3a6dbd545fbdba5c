//! Judged ranking to recall.

use super::Judged;

/// Share of the gold that is found in the first `k`; 0 where nothing is relevant.
///
/// For documents `recall` of `trec_eval`; for chunks the share of gold spans that the first `k`
/// chunks overlap.
pub fn recall(judged: &Judged, k: usize) -> f64 {
    match judged.gold.len() {
        0 => 0.0,
        gold => judged.found(k).count() as f64 / gold as f64,
    }
}
