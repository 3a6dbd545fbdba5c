//! Content-token overlap: how much of what the question is about a passage holds.
//!
//! The score is the share, weighted by idf, of the question's distinct terms that occur in the
//! passage. A term that the corpus has never seen weighs most, so that a question about another
//! subject scores low on every passage: that is what the refusal threshold is held against.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    error::Result,
    rerank::Reranker,
    text::{Analyzer, TermStats},
    types::{Explanation, Scale},
};

/// Idf-weighted overlap of question and passage, 0 to 1.
#[derive(Clone)]
pub struct Overlap {
    /// How words become terms.
    pub analyzer: Analyzer,
    /// How much each term says.
    pub stats: Arc<dyn TermStats>,
}

impl Overlap {
    /// The question's distinct terms, each with its weight.
    fn weights(&self, question: &str) -> Vec<(String, f32)> {
        let terms: BTreeSet<String> = self.analyzer.terms(question).into_iter().collect();
        terms.into_iter().map(|term| (self.stats.idf(&term), term)).map(|(w, t)| (t, w)).collect()
    }

    /// Marks which of `weights`' terms `passage` holds.
    fn held(&self, weights: &[(String, f32)], passage: &str) -> Vec<bool> {
        let mut held = vec![false; weights.len()];
        self.analyzer.words(passage, |word| {
            if let Some(term) = self.analyzer.term(word)
                && let Ok(at) = weights.binary_search_by(|(t, _)| t.as_str().cmp(&term))
            {
                held[at] = true;
            }
        });
        held
    }
}

impl Reranker for Overlap {
    fn name(&self) -> &'static str {
        "overlap"
    }

    fn scale(&self) -> Scale {
        Scale::Overlap
    }

    fn score(&self, question: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let weights = self.weights(question);
        let total: f32 = weights.iter().map(|(_, weight)| weight).sum();
        let score = |passage: &&str| {
            let held = self.held(&weights, passage);
            let found: f32 =
                weights.iter().zip(held).filter(|(_, held)| *held).map(|(w, _)| w.1).sum();
            // A question of stop words alone says nothing to hold a passage against.
            if total > 0.0 { found / total } else { 0.0 }
        };
        Ok(passages.iter().map(score).collect())
    }

    fn explain(&self, question: &str, passage: &str) -> Result<Explanation> {
        let weights = self.weights(question);
        let total: f32 = weights.iter().map(|(_, weight)| weight).sum();
        let held = self.held(&weights, passage);
        let parts: Vec<Explanation> = weights
            .iter()
            .zip(held)
            .map(|((term, weight), held)| match held {
                true => Explanation::leaf(format!("holds \"{term}\""), weight / total),
                false => Explanation::leaf(format!("lacks \"{term}\""), 0.0),
            })
            .collect();
        let value = parts.iter().map(|part| part.value).sum();
        Ok(Explanation { what: "overlap, share of the question's idf".into(), value, parts })
    }
}
