//! Question and answer to whether the answer is about the question.

use super::word_overlap::{content, share};
use crate::cite::strip_markers;

/// Share of the question's content words that the answer takes up, every word alike; `None` for a
/// question without content words.
pub fn answer_relevance(question: &str, answer: &str) -> Option<f64> {
    share(&content(question), &content(&strip_markers(answer)))
}
