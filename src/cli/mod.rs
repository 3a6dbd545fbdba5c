//! The options that the commands share, and what they open.
//!
//! Every option is also an environment variable (`MINIRAG_INDEX` and so on). The binaries parse,
//! call the library and print; what they have in common lives here.

mod args;
mod show;

pub use args::{ModelArgs, SourceArgs, VerboseArgs};
pub use show::latencies;

use serde_json::{Map, Value};

use crate::pipeline::{Pipeline, Settings};

/// A pipeline ready for questions, and how it is to be asked.
pub struct Opened {
    /// The parts.
    pub pipeline: Pipeline,
    /// The numbers.
    pub settings: Settings,
    /// What the answers depend on: embedder, chunker, tokenizer, corpus.
    pub fingerprint: Map<String, Value>,
}
