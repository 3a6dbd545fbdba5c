//! The one definition of a word and of a sentence.
//!
//! Everything that compares texts (BM25, overlap, the hashing embedder, the metrics) goes through
//! [`Analyzer`]; everything that quotes goes through [`units`], whose spans are bytes of the text
//! as it was brought.

mod sentence;
mod words;

pub use sentence::{Unit, UnitKind, plain, table_cells, units};
pub use words::{Analyzer, TermStats, fold, is_solid};
