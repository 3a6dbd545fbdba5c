//! Partial selection: the best `k` of many scores, without sorting them all.

use crate::{
    error::Result,
    types::{Hit, Ranking, Row, Scale},
};

/// Scores are tested against the threshold this many at a time.
const STRIP: usize = 64;

/// Keeps the best `k` of the scores it is offered; equal scores go to the lower row.
///
/// A buffer of up to `2 * k` candidates is cut back to `k` whenever it is full, which costs a
/// constant time a candidate however large `k` is; most scores fail the threshold test, which is
/// made for a strip of them at once.
#[derive(Debug, Clone)]
pub(super) struct TopK {
    k: usize,
    /// Only scores above it can still be among the best.
    threshold: f32,
    candidates: Vec<Hit>,
}

impl TopK {
    /// A selection of the `k` best among scores above `floor`.
    pub(super) fn new(k: usize, floor: f32) -> Self {
        Self { k, threshold: floor, candidates: Vec::new() }
    }

    /// Offers `scores[i]` for row `first + i`, unless `skip` says that the row must not be found;
    /// rows must be offered in ascending order.
    pub(super) fn offer(&mut self, first: u32, scores: &[f32], skip: impl Fn(Row) -> bool) {
        if self.k == 0 {
            return;
        }
        for (strip, row) in scores.chunks(STRIP).zip((first..).step_by(STRIP)) {
            // No branch in the test, so that it becomes vector code.
            if strip.iter().fold(false, |any, score| any | (*score > self.threshold)) {
                self.take(row, strip, &skip);
            }
        }
    }

    fn take(&mut self, first: u32, scores: &[f32], skip: &impl Fn(Row) -> bool) {
        for (&score, row) in scores.iter().zip(first..) {
            // A later row must be better, not equal: that is the rule for ties.
            if score > self.threshold && !skip(Row(row)) {
                self.candidates.push(Hit { row: Row(row), score });
                if self.candidates.len() / 2 >= self.k.max(STRIP / 2) {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        if self.candidates.len() > self.k {
            self.candidates.select_nth_unstable_by(self.k - 1, |a, b| {
                b.score.total_cmp(&a.score).then(a.row.cmp(&b.row))
            });
            self.candidates.truncate(self.k);
            self.threshold = self.candidates[self.k - 1].score;
        }
    }

    /// The selection of what either was offered.
    #[must_use]
    pub(super) fn merge(mut self, other: Self) -> Self {
        self.candidates.extend(other.candidates);
        if self.k > 0 {
            self.cut();
        }
        self
    }

    /// The selected rows, best first.
    ///
    /// # Errors
    /// A score that is not finite.
    pub(super) fn into_ranking(self, scale: Scale) -> Result<Ranking> {
        Ranking::new(scale, self.candidates, self.k)
    }
}
