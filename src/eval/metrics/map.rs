//! Judged ranking to average precision; its mean over questions is MAP.

use super::Judged;

/// Mean over all gold of the precision at the rank where it was found, 0 for what was not.
pub fn average_precision(judged: &Judged) -> f64 {
    if judged.gold.is_empty() {
        return 0.0;
    }
    let found = judged.found(usize::MAX).map(|(_, rank)| super::precision(judged, rank));
    found.sum::<f64>() / judged.gold.len() as f64
}
