//! Text in, vectors out.

mod hashing;

pub use hashing::HashingEmbedder;

use crate::{error::Result, types::Vectors};

/// Turns texts into vectors whose dot product is their similarity.
pub trait Embedder: Send + Sync {
    /// Names the embedder and everything that its vectors depend on.
    fn fingerprint(&self) -> String;

    /// Values per vector.
    fn dim(&self) -> usize;

    /// Shape `(passages, dim)`; rows of unit length, or all zeros for a text without words.
    fn embed_passages(&self, passages: &[&str]) -> Result<Vectors>;

    /// Shape `(queries, dim)`, as [`Embedder::embed_passages`].
    fn embed_queries(&self, queries: &[&str]) -> Result<Vectors>;

    /// Adapts the embedder to the corpus whose stored passage vectors are given, and returns
    /// those vectors adapted alike; called once when an index is opened. Most embedders know
    /// nothing of the corpus and change nothing.
    fn fit(&mut self, stored: Vectors) -> Result<Vectors> {
        Ok(stored)
    }
}
