//! Which questions were refused to how well the refusals were placed.
//!
//! The positive class is "unanswerable". Precision and F1 depend on how many questions of each
//! kind a set happens to hold, so the balanced forms weigh the answerable ones as if there were as
//! many of them as of the others.

/// What became of one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Whether the corpus holds an answer.
    pub answerable: bool,
    /// Whether the system said that it doesn't know.
    pub refused: bool,
    /// What the threshold was held against, higher meaning surer; `None` where nothing was found.
    pub score: Option<f64>,
}

/// Counts of the four cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusals {
    unanswerable: f64,
    answerable: f64,
    rightly_refused: f64,
    wrongly_refused: f64,
}

impl Refusals {
    /// Counts outcomes, each as often as its weight says.
    pub fn count(outcomes: &[Outcome], weights: &[u32]) -> Self {
        // All four cases in one array: a bootstrap counts often, and a branch here guesses badly.
        let mut counts = [0_u64; 4];
        for (outcome, weight) in outcomes.iter().zip(weights) {
            let case = usize::from(outcome.answerable) * 2 + usize::from(outcome.refused);
            counts[case] += u64::from(*weight);
        }
        let [missed, rightly_refused, answered, wrongly_refused] = counts.map(|n| n as f64);
        Self {
            unanswerable: missed + rightly_refused,
            answerable: answered + wrongly_refused,
            rightly_refused,
            wrongly_refused,
        }
    }

    /// The same with the answerable questions weighed to the number of the others; `None` where
    /// one kind is missing.
    pub fn balanced(self) -> Option<Self> {
        if self.answerable == 0.0 || self.unanswerable == 0.0 {
            return None;
        }
        let weight = self.unanswerable / self.answerable;
        Some(Self {
            answerable: self.unanswerable,
            wrongly_refused: self.wrongly_refused * weight,
            ..self
        })
    }

    /// Share of the refusals that were right; `None` without a refusal or an unanswerable question.
    pub fn precision(&self) -> Option<f64> {
        let refused = self.rightly_refused + self.wrongly_refused;
        (refused > 0.0 && self.unanswerable > 0.0).then(|| self.rightly_refused / refused)
    }

    /// Share of the unanswerable questions that were refused; `None` without any.
    pub fn recall(&self) -> Option<f64> {
        (self.unanswerable > 0.0).then(|| self.rightly_refused / self.unanswerable)
    }

    /// Harmonic mean of precision and recall, 0 where nothing was refused; `None` without an
    /// unanswerable question.
    pub fn f1(&self) -> Option<f64> {
        let all = self.unanswerable + self.rightly_refused + self.wrongly_refused;
        (self.unanswerable > 0.0).then(|| 2.0 * self.rightly_refused / all)
    }
}
