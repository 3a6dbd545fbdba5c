//! Judged ranking to hit rate (`success` of `trec_eval`).

use super::Judged;

/// 1 where anything relevant is among the first `k`, else 0.
pub fn hit_rate(judged: &Judged, k: usize) -> f64 {
    f64::from(u8::from(judged.first_rank().is_some_and(|rank| rank <= k)))
}
