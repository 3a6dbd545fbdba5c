//! Candidates in, the same candidates in a better order out.

mod overlap;

pub use overlap::Overlap;

use crate::{
    error::{Error, Result},
    types::{Explanation, Hit, Ranking, Scale, ScoredChunk},
};

/// Scores each passage against the question, reading both together.
pub trait Reranker: Send + Sync {
    /// The model's name in traces.
    fn name(&self) -> &'static str;

    /// What its scores measure.
    fn scale(&self) -> Scale;

    /// One score a passage, in the order given; higher is better.
    fn score(&self, question: &str, passages: &[&str]) -> Result<Vec<f32>>;

    /// The parts of one passage's score.
    fn explain(&self, question: &str, passage: &str) -> Result<Explanation>;
}

/// Orders `candidates`, best first before, by `reranker`; equal scores keep their order.
pub fn rerank(
    reranker: &dyn Reranker,
    question: &str,
    candidates: &[ScoredChunk<'_>],
) -> Result<Ranking> {
    let texts: Vec<String> = candidates.iter().map(|c| c.chunk.index_text()).collect();
    let passages: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = reranker.score(question, &passages)?;
    if scores.len() != passages.len() {
        return Err(Error::Shape {
            what: "reranker scores",
            expected: passages.len(),
            got: scores.len(),
        });
    }
    let hits = candidates.iter().zip(scores).enumerate();
    let hits = hits.map(|(rank, (c, score))| (Hit { row: c.row, score }, rank)).collect();
    Ranking::with_ties(reranker.scale(), hits, candidates.len())
}
