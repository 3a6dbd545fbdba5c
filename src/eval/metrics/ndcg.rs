//! Judged ranking to normalised discounted cumulative gain (Järvelin and Kekäläinen 2002).
//!
//! As `ndcg_cut` of `trec_eval`: linear gain, discount log2(rank + 1), the ideal ranking holds all
//! relevant documents, also those that no run found.

use super::Judged;

/// nDCG over the first `k`, 0 to 1; 0 where nothing is relevant.
pub fn ndcg(judged: &Judged, k: usize) -> f64 {
    let discounted = |grade: f64, rank: usize| grade / (rank as f64 + 1.0).log2();
    let gained: f64 = judged.found(k).map(|(grade, rank)| discounted(grade, rank)).sum();
    let mut ideal: Vec<f64> = judged.gold.iter().map(|gold| gold.grade).collect();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    let best: f64 =
        ideal.iter().take(k).enumerate().map(|(at, grade)| discounted(*grade, at + 1)).sum();
    // One chunk may hold two gold spans and so beat an ideal that needs two ranks for them.
    if best > 0.0 { (gained / best).min(1.0) + 0.0 } else { 0.0 }
}
