//! minirag answers questions from your own documents with citations you can check.
//!
//! The modules are declared in the order in which a question travels through them, which is also
//! the order to read them in. `ARCHITECTURE.md` says who may import whom, and a test enforces it.

// What flows, and what every room may use.
pub mod error;
pub mod types;
pub mod text;
pub mod rng;
pub mod tokenizer;
pub mod nn;

// The rooms, in the order the data meets them.
pub mod corpus;
pub mod chunk;
pub mod embed;
pub mod store;
pub mod lexical;
pub mod rewrite;
pub mod fuse;
pub mod rerank;
pub mod prompt;
pub mod reader;
pub mod cite;

// What knows the rooms: the index on disk, and the way of one question through them.
pub mod index;
pub mod pipeline;

// Beside the way: measuring it, training what it runs on, and the command line.
pub mod eval;
pub mod train;
pub mod cli;

pub use error::{Error, Result};
