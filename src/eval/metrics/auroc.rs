//! Scores and answerability to the area under the receiver operating characteristic.

use super::Outcome;

/// The chance that an answerable question scores above an unanswerable one, a tie counting half;
/// what refusal could reach at any threshold. Outcomes count as often as their weight says, those
/// without a score not at all; `None` unless both kinds have one.
pub fn auroc(outcomes: &[Outcome], weights: &[u32]) -> Option<f64> {
    let mut scored: Vec<(f64, bool, f64)> = outcomes
        .iter()
        .zip(weights)
        .filter_map(|(o, weight)| Some((o.score?, o.answerable, f64::from(*weight))))
        .collect();
    // A bootstrap calls this a thousand times on outcomes that it has sorted once.
    if !scored.is_sorted_by(|a, b| a.0 <= b.0) {
        scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    }
    let (mut answerable, mut unanswerable, mut above) = (0.0, 0.0, 0.0);
    for tied in scored.chunk_by(|a, b| a.0 == b.0) {
        let sum = |kind: bool| tied.iter().filter(|item| item.1 == kind).map(|item| item.2).sum();
        let (yes, no): (f64, f64) = (sum(true), sum(false));
        above += yes * (unanswerable + no / 2.0);
        answerable += yes;
        unanswerable += no;
    }
    (answerable > 0.0 && unanswerable > 0.0).then(|| above / (answerable * unanswerable))
}
