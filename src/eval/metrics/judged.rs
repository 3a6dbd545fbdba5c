//! A ranking and what is gold to the ranks at which the gold was found.

use std::{collections::BTreeMap, collections::HashSet, ops::Range};

use crate::{
    error::{Error, Result},
    eval::{dataset::GoldSpan, trec},
    types::DocumentId,
};

/// One thing that should be found: a relevant document or a gold span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gold {
    /// The relevance, above 0.
    pub(super) grade: f64,
    /// Where it was first found, from 1.
    pub(super) rank: Option<usize>,
}

/// A ranking held against its gold; all that the retrieval measures need.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// For each rank, whether it shows anything relevant.
    pub(super) relevant: Vec<bool>,
    pub(super) gold: Vec<Gold>,
}

impl Judged {
    /// Judges documents. Ranked by score, then document id, both descending; a document without a
    /// judgement and a relevance of 0 or below are not relevant.
    ///
    /// # Errors
    /// A score that is not finite, a document that comes twice.
    pub fn documents<S: AsRef<str>>(
        run: &[(S, f32)],
        relevance: &BTreeMap<String, i64>,
    ) -> Result<Self> {
        let mut ranked: Vec<(&str, f32)> = run.iter().map(|(id, s)| (id.as_ref(), *s)).collect();
        let mut seen = HashSet::with_capacity(ranked.len());
        for (id, score) in &ranked {
            if !score.is_finite() {
                return Err(Error::Mismatch(format!("the run scores document `{id}` {score}")));
            }
            if !seen.insert(id) {
                return Err(Error::Mismatch(format!("the run lists document `{id}` twice")));
            }
        }
        ranked.sort_unstable_by(|a, b| trec::order(*a, *b));
        let rank_of: BTreeMap<&str, usize> =
            ranked.iter().enumerate().map(|(at, (id, _))| (*id, at + 1)).collect();
        let relevant_grade = |id: &str| relevance.get(id).is_some_and(|grade| *grade > 0);
        let gold = relevance.iter().filter(|(_, grade)| **grade > 0);
        Ok(Self {
            relevant: ranked.iter().map(|(id, _)| relevant_grade(id)).collect(),
            gold: gold
                .map(|(id, grade)| Gold {
                    grade: *grade as f64,
                    rank: rank_of.get(id.as_str()).copied(),
                })
                .collect(),
        })
    }

    /// Judges chunks, best first, each by its document and bytes: a gold span is found by the
    /// first chunk that overlaps it, a chunk is relevant if it overlaps any. Labels are spans, so
    /// they hold under every chunking.
    pub fn chunks(ranked: &[(&DocumentId, Range<usize>)], gold: &[GoldSpan]) -> Self {
        let overlaps = |(document, span): &(&DocumentId, Range<usize>), gold: &GoldSpan| {
            gold.overlaps(document, span)
        };
        let first = |span: &GoldSpan| ranked.iter().position(|chunk| overlaps(chunk, span));
        let relevant = ranked.iter().map(|chunk| gold.iter().any(|span| overlaps(chunk, span)));
        Self {
            relevant: relevant.collect(),
            gold: gold
                .iter()
                .map(|span| Gold { grade: 1.0, rank: first(span).map(|at| at + 1) })
                .collect(),
        }
    }

    /// The rank, from 1, of the first relevant result.
    pub fn first_rank(&self) -> Option<usize> {
        self.relevant.iter().position(|relevant| *relevant).map(|at| at + 1)
    }

    /// The gold found within the first `k` ranks.
    pub(super) fn found(&self, k: usize) -> impl Iterator<Item = (f64, usize)> + '_ {
        self.gold
            .iter()
            .filter_map(move |gold| Some((gold.grade, gold.rank.filter(|rank| *rank <= k)?)))
    }
}
