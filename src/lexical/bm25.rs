//! BM25 over an inverted index, term at a time.
//!
//! Lucene's variant (Kamphuis et al. 2020, "Which BM25 do you mean?") with a passage's true
//! length where Lucene keeps a lossy byte: `sum of idf * tf / (tf + k1 * (1 - b + b * len / avg))`
//! with `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`. The summands do not depend on the query, so
//! they are computed once; a query adds those of its terms into one score a passage.

use std::cell::Cell;

use super::{LexicalIndex, select::drain_best, vocabulary::Vocabulary};
use crate::{
    error::{Error, Result},
    text::{Analyzer, TermStats, idf},
    types::{Explanation, Ranking, Row, Scale},
};

/// The two constants of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25Settings {
    /// How fast repeats of a term stop to count; 0 counts none.
    pub k1: f32,
    /// How much long passages are held back, 0 to 1.
    pub b: f32,
}

impl Default for Bm25Settings {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

impl Bm25Settings {
    pub(super) fn check(self) -> Result<Self> {
        if !(self.k1 >= 0.0 && self.k1.is_finite()) {
            return Err(Error::Setting(format!("k1 of BM25 is {}, must be 0 or more", self.k1)));
        }
        if !(0.0..=1.0).contains(&self.b) {
            return Err(Error::Setting(format!("b of BM25 is {}, must be from 0 to 1", self.b)));
        }
        Ok(self)
    }
}

/// What a term adds to the score of a passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Posting {
    pub(super) row: u32,
    pub(super) impact: f32,
}

/// The terms of all passages, each with the passages that hold it.
#[derive(Debug, Clone)]
pub struct Bm25 {
    pub(super) settings: Bm25Settings,
    pub(super) analyzer: Analyzer,
    /// Terms of each passage, repeats included.
    pub(super) lengths: Vec<u32>,
    /// Numbered in ascending order of the terms.
    pub(super) terms: Vocabulary,
    /// Term `t` has the postings from `starts[t]` to `starts[t + 1]`, rows ascending.
    pub(super) starts: Vec<usize>,
    /// How often the passage of each posting holds the term.
    pub(super) counts: Vec<u32>,
    pub(super) postings: Vec<Posting>,
}

thread_local! {
    /// A score for each passage, all 0 between searches: a fresh one a query would cost more than
    /// the query.
    static SCORES: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

impl Bm25 {
    /// Puts the parts together; `postings` still lack their impacts.
    pub(super) fn assemble(
        settings: Bm25Settings,
        analyzer: Analyzer,
        lengths: Vec<u32>,
        lists: Lists,
    ) -> Self {
        let Lists { terms, starts, counts, postings } = lists;
        let mut index = Self { settings, analyzer, lengths, terms, starts, counts, postings };
        let norms = index.norms();
        for term in 0..index.terms.len() {
            let list = index.starts[term]..index.starts[term + 1];
            let idf = idf(index.lengths.len(), list.len());
            let counts = &index.counts[list.clone()];
            for (posting, count) in index.postings[list].iter_mut().zip(counts) {
                posting.impact = idf * saturated(*count, norms[posting.row as usize]);
            }
        }
        index
    }

    /// How words became terms, and how a query's do.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// The constants.
    pub fn settings(&self) -> Bm25Settings {
        self.settings
    }

    /// Every term in ascending order, with the number of passages that hold it.
    pub fn vocabulary(&self) -> impl Iterator<Item = (&str, usize)> {
        self.terms.iter().zip(self.starts.windows(2).map(|list| list[1] - list[0]))
    }

    /// [`LexicalIndex::search`] for a query whose terms are known; repeats count.
    ///
    /// # Errors
    /// None that a valid index can give.
    pub fn search_terms<T: AsRef<str>>(&self, terms: &[T], k: usize) -> Result<Ranking> {
        let mut query = Vec::with_capacity(terms.len());
        terms.iter().for_each(|term| self.add_term(&mut query, term.as_ref()));
        self.search_weighted(&query, k)
    }

    /// The query's terms that the index knows, in order of first use, with their counts.
    fn query_terms(&self, query: &str) -> Vec<(u32, u32)> {
        let mut terms = Vec::new();
        self.analyzer.words(query, |word| {
            if let Some(term) = self.analyzer.term(word) {
                self.add_term(&mut terms, &term);
            }
        });
        terms
    }

    fn add_term(&self, query: &mut Vec<(u32, u32)>, term: &str) {
        if let Some(term) = self.terms.find(term) {
            match query.iter_mut().find(|(known, _)| *known == term) {
                Some((_, count)) => *count += 1,
                None => query.push((term, 1)),
            }
        }
    }

    fn search_weighted(&self, query: &[(u32, u32)], k: usize) -> Result<Ranking> {
        if query.is_empty() || k == 0 {
            return Ok(Ranking::empty(Scale::Bm25));
        }
        let mut scores = SCORES.take();
        scores.resize(scores.len().max(self.len()), 0.0);
        for &(term, count) in query {
            let weight = count as f32;
            for posting in self.list(term) {
                scores[posting.row as usize] += weight * posting.impact;
            }
        }
        let hits = drain_best(&mut scores[..self.len()], k);
        SCORES.set(scores);
        Ranking::new(Scale::Bm25, hits, k)
    }

    fn list(&self, term: u32) -> &[Posting] {
        &self.postings[self.starts[term as usize]..self.starts[term as usize + 1]]
    }

    /// `k1 * (1 - b + b * len / avg)` for each passage.
    fn norms(&self) -> Vec<f32> {
        let total: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let average = (total as f64 / self.len().max(1) as f64).max(f64::MIN_POSITIVE);
        let Bm25Settings { k1, b } = self.settings;
        let norm = |length: &u32| k1 * (1.0 - b + b * (f64::from(*length) / average) as f32);
        self.lengths.iter().map(norm).collect()
    }
}

/// The postings of all terms, without impacts.
pub(super) struct Lists {
    pub(super) terms: Vocabulary,
    pub(super) starts: Vec<usize>,
    pub(super) counts: Vec<u32>,
    pub(super) postings: Vec<Posting>,
}

fn saturated(count: u32, norm: f32) -> f32 {
    count as f32 / (count as f32 + norm)
}

impl TermStats for Bm25 {
    fn passages(&self) -> usize {
        self.lengths.len()
    }

    fn holding(&self, term: &str) -> usize {
        self.terms.find(term).map_or(0, |term| self.list(term).len())
    }
}

impl LexicalIndex for Bm25 {
    fn len(&self) -> usize {
        self.lengths.len()
    }

    fn search(&self, query: &str, k: usize) -> Result<Ranking> {
        self.search_weighted(&self.query_terms(query), k)
    }

    fn explain(&self, query: &str, row: Row) -> Explanation {
        let mut score = Explanation::leaf("bm25", 0.0);
        for (term, repeats) in self.query_terms(query) {
            let list = self.list(term);
            let Ok(at) = list.binary_search_by_key(&row.0, |posting| posting.row) else {
                continue;
            };
            let (text, idf) = (self.terms.get(term), idf(self.lengths.len(), list.len()));
            let (count, length) =
                (self.counts[self.starts[term as usize] + at], self.lengths[row.0 as usize]);
            let tf = format!("tf: {count} of {length} terms, saturated");
            let mut parts = vec![
                Explanation::leaf(format!("idf: {} of {} passages", list.len(), self.len()), idf),
                Explanation::leaf(tf, list[at].impact / idf),
            ];
            if repeats > 1 {
                parts.push(Explanation::leaf("times in the query", repeats as f32));
            }
            let value = repeats as f32 * list[at].impact;
            score.value += value;
            score.parts.push(Explanation { what: text.to_owned(), value, parts });
        }
        score
    }
}
