//! Content overlap: how much of what a question is about a passage holds.
//!
//! Terms count by their idf, in units of a word that the corpus has never seen. What a passage
//! holds of the question is taken twice, over the whole passage and over its best sentence, since
//! words that stand together mean more than words that are strewn about; call the mean `x`, and
//! the weight of the whole question `total`. The score is
//! `known * max(x / total, x / (x + 1))`: either the passage holds most of a short question, or
//! much of a long one. `known` is the share of the question that the corpus has words for at all.
//!
//! Within a question that is the order of `x`. Across questions it makes scores comparable: one
//! about another subject, whose words the corpus lacks, scores low on every passage, and that is
//! what the refusal threshold is held against. A corpus of a few passages is taken for one of
//! [`SMALLEST`]: a word that one file in two holds is still a rare word.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    error::Result,
    rerank::Reranker,
    text::{Analyzer, TermStats, idf, is_frame, units},
    types::{Explanation, Scale},
};

/// Fewer passages than these say little about how rare a word is.
const SMALLEST: usize = 500;

/// Idf-weighted overlap of question and passage, 0 to 1.
#[derive(Clone)]
pub struct Overlap {
    /// How words become terms.
    pub analyzer: Analyzer,
    /// How much each term says.
    pub stats: Arc<dyn TermStats>,
}

/// The most that a word that only frames a question weighs, however rare the corpus has it, in units of a word that the corpus has never seen.
const FRAME_WEIGHT: f32 = 0.3;

/// The distinct terms of a question.
struct Terms {
    /// Ascending, each with its idf in units of an unseen word's.
    weights: Vec<(String, f32)>,
    /// Their sum.
    total: f32,
    /// The share of it that the corpus has seen.
    known: f32,
}

impl Overlap {
    fn question(&self, question: &str) -> Terms {
        let passages = self.stats.passages().max(SMALLEST);
        let unseen = idf(passages, 0);
        let terms: BTreeSet<String> = self.analyzer.terms(question).into_iter().collect();
        let weigh = |term: &str| {
            let weight = idf(passages, self.stats.holding(term)) / unseen;
            if is_frame(term) { weight.min(FRAME_WEIGHT) } else { weight }
        };
        let weights: Vec<(String, f32)> =
            terms.into_iter().map(|term| (weigh(&term), term)).map(|(w, t)| (t, w)).collect();
        let total: f32 = weights.iter().map(|(_, weight)| weight).sum();
        let known: f32 = weights.iter().map(|(_, weight)| *weight).filter(|w| *w < 1.0).sum();
        // A question of stop words alone says nothing to hold a passage against.
        let known = if total > 0.0 { known / total } else { 0.0 };
        Terms { weights, total, known }
    }

    /// Marks the terms that `text` holds.
    fn held(&self, terms: &Terms, text: &str) -> Vec<bool> {
        let mut held = vec![false; terms.weights.len()];
        self.analyzer.words(text, |word| {
            if let Some(term) = self.analyzer.term(word)
                && let Ok(at) = terms.weights.binary_search_by(|(t, _)| t.as_str().cmp(&term))
            {
                held[at] = true;
            }
        });
        held
    }

    /// The weight of the terms that the whole passage holds, and that its best sentence does.
    fn weigh(&self, terms: &Terms, passage: &str) -> (f32, f32) {
        let weight = |text: &str| -> f32 {
            let held = self.held(terms, text);
            terms.weights.iter().zip(held).filter(|(_, held)| *held).map(|((_, w), _)| w).sum()
        };
        let whole = weight(passage);
        if whole == 0.0 {
            return (0.0, 0.0);
        }
        let sentences = units(passage).into_iter().map(|unit| weight(&passage[unit.span]));
        (whole, sentences.fold(0.0, f32::max))
    }
}

fn score(terms: &Terms, (whole, sentence): (f32, f32)) -> f32 {
    let held = (whole + sentence) / 2.0;
    let share = if terms.total > 0.0 { held / terms.total } else { 0.0 };
    terms.known * share.max(held / (held + 1.0))
}

impl Reranker for Overlap {
    fn name(&self) -> &'static str {
        "overlap"
    }

    fn scale(&self) -> Scale {
        Scale::Overlap
    }

    fn score(&self, question: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let terms = self.question(question);
        let score = |passage: &&str| score(&terms, self.weigh(&terms, passage));
        Ok(passages.iter().map(score).collect())
    }

    fn explain(&self, question: &str, passage: &str) -> Result<Explanation> {
        let terms = self.question(question);
        let held = self.held(&terms, passage);
        let (whole, sentence) = self.weigh(&terms, passage);
        let term = |((term, weight), held): (&(String, f32), bool)| match held {
            true => Explanation::leaf(format!("holds \"{term}\""), *weight),
            false => Explanation::leaf(format!("lacks \"{term}\", worth {weight:.4}"), 0.0),
        };
        let parts = terms.weights.iter().zip(held).map(term).collect();
        Ok(Explanation {
            what: "overlap".to_owned(),
            value: score(&terms, (whole, sentence)),
            parts: vec![
                Explanation::leaf(
                    "share of the question that the corpus has words for",
                    terms.known,
                ),
                Explanation { what: "held by the whole passage".to_owned(), value: whole, parts },
                Explanation::leaf("held by its best sentence", sentence),
            ],
        })
    }
}
