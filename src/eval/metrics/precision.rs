//! Judged ranking to precision.

use super::Judged;

/// Share of the first `k` ranks that is relevant; ranks that the run left empty are not.
pub fn precision(judged: &Judged, k: usize) -> f64 {
    let relevant = judged.relevant.iter().take(k).filter(|relevant| **relevant).count();
    relevant as f64 / k.max(1) as f64
}
