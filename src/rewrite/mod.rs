//! A question in, the queries to search with out.

use crate::{error::Result, text::TermStats, types::Query};

/// What a rewriter may know of the corpus.
#[derive(Clone, Copy)]
pub struct RewriteContext<'a> {
    /// How common each term is.
    pub stats: &'a dyn TermStats,
}

/// Turns one question into one or more queries.
pub trait QueryRewriter: Send + Sync {
    /// The strategy's name in traces.
    fn name(&self) -> &'static str;

    /// The queries, the user's own question among them.
    fn rewrite(&self, question: &str, context: &RewriteContext<'_>) -> Result<Vec<Query>>;
}

/// Searches with the question as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity;

impl QueryRewriter for Identity {
    fn name(&self) -> &'static str {
        "none"
    }

    fn rewrite(&self, question: &str, _context: &RewriteContext<'_>) -> Result<Vec<Query>> {
        Ok(vec![Query::original(question)])
    }
}
