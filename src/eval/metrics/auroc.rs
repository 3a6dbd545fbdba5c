//! Scores and answerability to the area under the receiver operating characteristic.

use super::Outcome;

/// The chance that an answerable question scores above an unanswerable one, a tie counting half;
/// what refusal could reach at any threshold. Outcomes count as often as their weight says; one
/// without a score, for which nothing was found, is below all others. `None` unless there are both
/// kinds.
pub fn auroc(outcomes: &[Outcome], weights: &[u32]) -> Option<f64> {
    let scored = outcomes.iter().zip(weights).map(|(outcome, weight)| {
        let score = outcome.score.unwrap_or(f64::NEG_INFINITY);
        (score, outcome.answerable, f64::from(*weight))
    });
    // A bootstrap calls this a thousand times on outcomes that it has sorted once.
    if scored.clone().is_sorted_by(|a, b| a.0 <= b.0) {
        return area(scored);
    }
    let mut sorted: Vec<(f64, bool, f64)> = scored.collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    area(sorted.into_iter())
}

/// The area from scores in ascending order, each with its kind and weight.
fn area(sorted: impl Iterator<Item = (f64, bool, f64)>) -> Option<f64> {
    // Weights of both kinds, in all and at the score of the moment.
    let (mut answerable, mut unanswerable, mut yes, mut no) = (0.0, 0.0, 0.0, 0.0);
    let (mut above, mut last) = (0.0, f64::NAN);
    for (score, kind, weight) in sorted {
        if score != last {
            above += yes * (unanswerable - no / 2.0);
            (yes, no, last) = (0.0, 0.0, score);
        }
        if kind {
            yes += weight;
            answerable += weight;
        } else {
            no += weight;
            unanswerable += weight;
        }
    }
    above += yes * (unanswerable - no / 2.0);
    (answerable > 0.0 && unanswerable > 0.0).then(|| above / (answerable * unanswerable))
}
