//! The best of a dense array of scores, in two passes that mostly run as vector code.

use crate::types::{Hit, Row};

/// Scores are tested against the bound this many at a time.
const STRIP: usize = 16;

/// Returns hits that hold the best `k` of `scores` above 0, rows ascending, and sets all scores
/// to 0.
///
/// The first pass takes the maximum of each of many groups of rows. The `k`-th best of these is
/// a bound that `k` rows reach, so that the second pass collects little more than `k` hits.
pub(super) fn drain_best(scores: &mut [f32], k: usize) -> Vec<Hit> {
    let bound = bound(scores, k);
    let mut hits = Vec::with_capacity(k.min(scores.len()) + STRIP);
    // Strips of a size that the compiler knows, and no branch on a score: vector code.
    let (strips, rest) = scores.as_chunks::<STRIP>();
    for (strip, at) in strips.iter().zip(0..) {
        if strip.iter().fold(false, |any, score| any | (*score >= bound)) {
            let mut found = [Hit { row: Row(0), score: 0.0 }; STRIP];
            let mut count = 0;
            for (score, row) in strip.iter().zip((at * STRIP) as u32..) {
                found[count] = Hit { row: Row(row), score: *score };
                count += usize::from(*score >= bound);
            }
            hits.extend_from_slice(&found[..count]);
        }
    }
    let rest = rest.iter().zip((strips.len() * STRIP) as u32..);
    let rest = rest.filter(|(score, _)| **score >= bound);
    hits.extend(rest.map(|(score, row)| Hit { row: Row(row), score: *score }));
    scores.fill(0.0);
    hits
}

/// A score above 0 that at least `k` of `scores` reach, if `k` are above 0.
fn bound(scores: &[f32], k: usize) -> f32 {
    if k == 0 || k > scores.len() / 16 {
        return f32::MIN_POSITIVE;
    }
    // Four groups and more for each wanted row: few of the best share one.
    let groups = (4 * k).next_power_of_two().max(128);
    let mut best = vec![0.0_f32; groups];
    for scores in scores.chunks(groups) {
        for (best, score) in best.iter_mut().zip(scores) {
            *best = if *score > *best { *score } else { *best };
        }
    }
    // The bits of floats that are not negative are in the order of the floats.
    let mut bits: Vec<u32> = best.into_iter().map(f32::to_bits).collect();
    let (_, nth, _) = bits.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    f32::from_bits(*nth).max(f32::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn what_is_collected_holds_the_best() {
        let mut rng = Rng::new(3);
        for (len, k) in [(0, 3), (5, 10), (31, 1), (300, 1), (1000, 10), (5000, 100), (5001, 7)] {
            // Few values, so that many tie at the bound.
            let scores: Vec<f32> = (0..len).map(|_| rng.below(60) as f32 / 7.0).collect();
            let mut left = scores.clone();
            let hits = drain_best(&mut left, k);
            assert!(left.iter().all(|score| *score == 0.0));
            assert!(hits.is_sorted_by(|a, b| a.row < b.row));
            assert!(
                hits.iter().all(|hit| hit.score > 0.0 && hit.score == scores[hit.row.0 as usize])
            );
            let worst = hits.iter().map(|hit| hit.score).fold(f32::INFINITY, f32::min);
            let positive = scores.iter().filter(|score| **score > 0.0).count();
            assert!(hits.len() >= k.min(positive));
            let reach = scores.iter().filter(|score| **score >= worst).count();
            assert!(hits.is_empty() || hits.len() == reach, "{len} {k}");
        }
    }
}
