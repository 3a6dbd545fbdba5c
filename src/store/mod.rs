//! Vectors in, nearest rows out. Holds rows, never text.

mod flat;
mod kernel;
mod top_k;

pub use flat::FlatStore;

use crate::{
    error::Result,
    types::{Ranking, Vectors},
};

/// Finds the vectors nearest to a query by cosine similarity.
///
/// A vector of zeros has no direction: as a row it is never found, as a query it finds nothing.
pub trait VectorStore: Send + Sync {
    /// Values per vector.
    fn dim(&self) -> usize;

    /// Number of vectors.
    fn len(&self) -> usize;

    /// True without vectors.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `k` rows nearest to `query`, which need not have unit length.
    ///
    /// # Errors
    /// A query of another length than [`VectorStore::dim`], or with a value that is not finite.
    fn search(&self, query: &[f32], k: usize) -> Result<Ranking>;

    /// [`VectorStore::search`] for each of `queries`, in their order; a pass over the rows serves many.
    ///
    /// # Errors
    /// As [`VectorStore::search`].
    fn search_batch(&self, queries: &Vectors, k: usize) -> Result<Vec<Ranking>>;
}
