//! Texts in, an inverted index out; a query in, rows out.

mod bm25;
mod build;
mod saved;
mod select;
mod vocabulary;

pub use bm25::{Bm25, Bm25Settings};

use crate::{
    error::Result,
    text::TermStats,
    types::{Explanation, Ranking, Row},
};

/// Finds the passages that share words with a query.
pub trait LexicalIndex: TermStats {
    /// Number of passages.
    fn len(&self) -> usize;

    /// True without passages.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `k` best passages for `query`, which is plain text; none that shares no term.
    fn search(&self, query: &str, k: usize) -> Result<Ranking>;

    /// The parts of the score of `row` for `query`: one a term of the query that it holds.
    fn explain(&self, query: &str, row: Row) -> Explanation;
}
