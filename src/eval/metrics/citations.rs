//! Cited bytes and gold bytes to citation precision and recall.
//!
//! Both sides are spans of documents, so that a re-chunking changes nothing. Where only documents
//! are judged, [`document_precision`] takes the place of the first.

use std::{collections::BTreeMap, ops::Range};

use crate::{eval::dataset::GoldSpan, types::DocumentId};

/// What an answer cites: a document and its bytes.
pub type Cited<'a> = (&'a DocumentId, Range<usize>);

/// Share of the citations that overlap a gold span; `None` without citations or without gold.
pub fn citation_precision(cited: &[Cited<'_>], gold: &[GoldSpan]) -> Option<f64> {
    if gold.is_empty() {
        return None;
    }
    share(cited, |(document, span)| gold.iter().any(|gold| gold.overlaps(document, span)))
}

/// Share of the gold spans that a citation overlaps; `None` without gold.
pub fn citation_recall(cited: &[Cited<'_>], gold: &[GoldSpan]) -> Option<f64> {
    share(gold, |gold| cited.iter().any(|(document, span)| gold.overlaps(document, span)))
}

/// Share of the citations whose document is relevant; `None` without citations or without a
/// relevant document.
pub fn document_precision(cited: &[Cited<'_>], relevance: &BTreeMap<String, i64>) -> Option<f64> {
    if !relevance.values().any(|grade| *grade > 0) {
        return None;
    }
    share(cited, |(document, _)| relevance.get(&*document.0).is_some_and(|grade| *grade > 0))
}

fn share<T>(items: &[T], counts: impl Fn(&T) -> bool) -> Option<f64> {
    let count = items.iter().filter(|item| counts(item)).count();
    (!items.is_empty()).then(|| count as f64 / items.len() as f64)
}
