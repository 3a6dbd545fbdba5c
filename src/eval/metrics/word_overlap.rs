//! Question and gold quotes to how much of the answer the question gives away.

use std::collections::BTreeSet;

use crate::text::Analyzer;

/// Share of the question's content words that the gold quotes hold; `None` without a quote or a
/// content word. It says how far word matching alone can get, so it stands beside every figure.
pub fn word_overlap<'a>(question: &str, quotes: impl IntoIterator<Item = &'a str>) -> Option<f64> {
    let quotes: Vec<&str> = quotes.into_iter().collect();
    if quotes.is_empty() {
        return None;
    }
    let held: BTreeSet<String> = content(&quotes.join("\n"));
    share(&content(question), &held)
}

/// The distinct content words of a text, as stems.
pub(super) fn content(text: &str) -> BTreeSet<String> {
    Analyzer::default().content(text)
}

/// Share of `words` that `held` has; `None` without words.
pub(super) fn share(words: &BTreeSet<String>, held: &BTreeSet<String>) -> Option<f64> {
    let found = words.intersection(held).count();
    (!words.is_empty()).then(|| found as f64 / words.len() as f64)
}
