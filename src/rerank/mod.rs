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
///
/// The search keeps a say: a score is multiplied by `1 - weight + weight * share`, where `share` is
/// the candidate's score in the search over that of the first. So the first keeps what the reranker
/// gives it, and one that the search put far behind has to be better by as much. Scores without a
/// zero (logits) are left as they are: a product would turn a bad one into a better one.
pub fn rerank(
    reranker: &dyn Reranker,
    question: &str,
    candidates: &[ScoredChunk<'_>],
    weight: f32,
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
    let best = candidates.first().map_or(0.0, |first| first.score);
    let has_zero = matches!(reranker.scale(), Scale::Overlap | Scale::Probability);
    let share = |score: f32| match has_zero && best > 0.0 {
        true => (score / best).clamp(0.0, 1.0),
        false => 1.0,
    };
    let hit = |(rank, (candidate, score)): (usize, (&ScoredChunk<'_>, f32))| {
        let score = score * (1.0 - weight + weight * share(candidate.score));
        (Hit { row: candidate.row, score }, rank)
    };
    let hits = candidates.iter().zip(scores).enumerate().map(hit).collect();
    Ranking::with_ties(reranker.scale(), hits, candidates.len())
}
