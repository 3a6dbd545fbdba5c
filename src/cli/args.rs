//! Options to parts: which corpus, which models, which numbers.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    path::PathBuf,
};

use clap::{Args, builder::FalseyValueParser};
use serde_json::{Map, Value};

use super::{Opened, one_line, value_name};
use crate::{
    chunk::Strategy,
    error::{Error, Result},
    index::ChunkChoice,
    pipeline::{Fusion, Retriever, Settings},
    prompt::{Order, Show},
};

/// Where the documents come from and how they are cut.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Documents")]
pub struct SourceArgs {
    /// A folder or file of documents, or a BEIR folder, indexed in memory [default: the grammar
    /// corpus]
    #[arg(long, env = "MINIRAG_CORPUS", value_name = "PATH", conflicts_with = "index")]
    pub corpus: Option<PathBuf>,
    /// An index made by `index`
    #[arg(long, env = "MINIRAG_INDEX", value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// How documents are cut [default: auto, by format; a BEIR document is one chunk]
    #[arg(long, env = "MINIRAG_CHUNKER", value_enum)]
    pub chunker: Option<Strategy>,
    /// Tokens a chunk aims at [default: 150]
    #[arg(long, env = "MINIRAG_CHUNK_TOKENS", value_name = "N")]
    pub chunk_tokens: Option<usize>,
    /// Tokens that neighbouring chunks share [default: 20]
    #[arg(long, env = "MINIRAG_CHUNK_OVERLAP", value_name = "N")]
    pub chunk_overlap: Option<usize>,
    /// How fast repeats of a word stop to count in BM25 [default: 1.2]
    #[arg(long, env = "MINIRAG_BM25_K1", value_name = "X")]
    pub bm25_k1: Option<f32>,
    /// How much BM25 holds long passages back, 0 to 1 [default: 0.75]
    #[arg(long, env = "MINIRAG_BM25_B", value_name = "X")]
    pub bm25_b: Option<f32>,
    /// `hashing`, or a checkpoint folder [default: models/biencoder, which is also built in]
    #[arg(long, env = "MINIRAG_EMBEDDER", value_name = "NAME|DIR")]
    pub embedder: Option<String>,
}

impl SourceArgs {
    /// The settings of the chunker that were asked for.
    pub(super) fn chunk_choice(&self) -> ChunkChoice {
        ChunkChoice {
            strategy: self.chunker,
            tokens: self.chunk_tokens,
            overlap: self.chunk_overlap,
        }
    }
}

/// Which parts answer, and with which numbers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Answering")]
pub struct ModelArgs {
    /// Which searches are asked
    #[arg(long, env = "MINIRAG_RETRIEVER", value_enum, default_value_t = Settings::default().retriever)]
    pub retriever: Retriever,
    /// How their rankings become one
    #[arg(long, env = "MINIRAG_FUSION", value_enum, default_value_t = Settings::default().fusion)]
    pub fusion: Fusion,
    /// Weight of the dense search, 0 to 1
    #[arg(long, env = "MINIRAG_FUSION_WEIGHT", value_name = "X", default_value_t = Settings::default().fusion_weight)]
    pub fusion_weight: f32,
    /// `auto` or `none`: how the question becomes queries
    #[arg(long, env = "MINIRAG_REWRITER", value_name = "NAME", default_value = "auto")]
    pub rewriter: String,
    /// `overlap` or `none`: the second look at the candidates
    #[arg(long, env = "MINIRAG_RERANKER", value_name = "NAME|DIR", default_value = "overlap")]
    pub reranker: String,
    /// `extractive`: what writes the answer
    #[arg(long, env = "MINIRAG_READER", value_name = "NAME|PATH", default_value = "extractive")]
    pub reader: String,
    /// How much the search's order counts beside the reranker's score, 0 to 1
    #[arg(long, env = "MINIRAG_SEARCH_WEIGHT", value_name = "X", default_value_t = Settings::default().search_weight)]
    pub search_weight: f32,
    /// Candidates to rerank
    #[arg(long, env = "MINIRAG_CANDIDATES", value_name = "N", default_value_t = Settings::default().candidates)]
    pub candidates: usize,
    /// Passages to read
    #[arg(long, env = "MINIRAG_TOP_K", value_name = "N", default_value_t = Settings::default().top_k)]
    pub top_k: usize,
    /// What the prompt shows of a passage
    #[arg(long, env = "MINIRAG_EVIDENCE", value_enum, default_value_t = Settings::default().show)]
    pub evidence: Show,
    /// Where the best passage stands in the prompt
    #[arg(long, env = "MINIRAG_ORDER", value_enum, default_value_t = Settings::default().order)]
    pub order: Order,
    /// Refuse when the best passage scores less [default: that of the reranker's scale]
    #[arg(long, env = "MINIRAG_THRESHOLD", value_name = "X", allow_negative_numbers = true)]
    pub threshold: Option<f32>,
}

impl ModelArgs {
    /// The numbers that travel with a question.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            retriever: self.retriever,
            fusion: self.fusion,
            fusion_weight: self.fusion_weight,
            search_weight: self.search_weight,
            candidates: self.candidates,
            top_k: self.top_k,
            show: self.evidence,
            order: self.order,
            threshold: self.threshold,
            ..Settings::default()
        }
    }

    /// The options by name, as reports and gates have them.
    pub(super) fn condition(&self) -> Map<String, Value> {
        let mut condition = Map::new();
        let mut set = |name: &str, value: Value| condition.insert(name.to_owned(), value);
        set("retriever", value_name(&self.retriever).into());
        set("fusion", value_name(&self.fusion).into());
        set("fusion-weight", decimal(self.fusion_weight));
        set("rewriter", self.rewriter.as_str().into());
        set("reranker", self.reranker.as_str().into());
        set("search-weight", decimal(self.search_weight));
        set("reader", self.reader.as_str().into());
        set("candidates", self.candidates.into());
        set("top-k", self.top_k.into());
        set("evidence", value_name(&self.evidence).into());
        set("order", value_name(&self.order).into());
        if let Some(threshold) = self.threshold {
            set("threshold", decimal(threshold));
        }
        condition
    }
}

/// How much is said, and with how many threads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Running")]
pub struct VerboseArgs {
    /// Say less on stderr
    #[arg(short, long, env = "MINIRAG_QUIET", value_parser = FalseyValueParser::new())]
    pub quiet: bool,
    /// Say more on stderr, quiet or not
    #[arg(short, long, env = "MINIRAG_VERBOSE", value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// Threads to work with [default: one a core]
    #[arg(long, env = "MINIRAG_THREADS", value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// More threads than this are a slip of the finger.
const MAX_THREADS: usize = 1024;

impl VerboseArgs {
    /// Sets the number of threads; call once, before anything runs.
    ///
    /// # Errors
    /// A second call.
    pub fn apply(&self) -> Result<()> {
        let Some(threads) = self.threads else { return Ok(()) };
        if threads.get() > MAX_THREADS {
            let message = format!("--threads is {threads}: need at most {MAX_THREADS}");
            return Err(Error::Setting(message));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get());
        pool.build_global().map_err(|error| Error::Setting(format!("--threads: {error}")))
    }

    /// Says one line on standard error, unless quiet.
    pub fn say(&self, text: &str) {
        if self.verbose || !self.quiet {
            let _ = writeln!(io::stderr(), "{}", one_line(text));
        }
    }

    /// Says which files of the corpus could not be read: all of them when verbose, else how many.
    pub fn report(&self, opened: &Opened) {
        if self.verbose {
            for skipped in &opened.skipped {
                self.say(&format!("skipped {}: {}", skipped.path, skipped.reason));
            }
        } else if !opened.skipped.is_empty() {
            let count = opened.skipped.len();
            self.say(&format!("skipped {count} files that are no readable text (-v names them)"));
        }
    }
}

/// A number as it was typed: 0.3, not the 0.30000001192092896 that its `f32` is as an `f64`.
pub(super) fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}
