//! Options to parts: which corpus, which models, which numbers.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    chunk::{ChunkSettings, Chunker, Strategy},
    cli::Opened,
    corpus::{self, Corpus},
    embed::{Embedder, HashingEmbedder},
    error::{Error, Result},
    index::Index,
    lexical::LexicalIndex,
    pipeline::{Fusion, Pipeline, Retriever, Settings},
    prompt::{Order, Show, Template},
    reader::{Extractive, Reader},
    rerank::{Overlap, Reranker},
    rewrite::{Identity, QueryRewriter},
    store::FlatStore,
    text::Analyzer,
    tokenizer::Tokenizer,
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
    /// `hashing`, or a checkpoint folder
    #[arg(long, env = "MINIRAG_EMBEDDER", value_name = "NAME|DIR")]
    pub embedder: Option<String>,
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

/// How much is said, and with how many threads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Running")]
pub struct VerboseArgs {
    /// Say less on stderr
    #[arg(short, long, env = "MINIRAG_QUIET")]
    pub quiet: bool,
    /// Say more on stderr
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Threads to work with [default: one a core]
    #[arg(long, env = "MINIRAG_THREADS", value_name = "N")]
    pub threads: Option<usize>,
}

impl VerboseArgs {
    /// Sets the number of threads; call once, before anything runs.
    ///
    /// # Errors
    /// No threads, or a second call.
    pub fn apply(&self) -> Result<()> {
        let Some(threads) = self.threads else { return Ok(()) };
        if threads == 0 {
            return Err(Error::Setting("--threads is 0: need at least 1".into()));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().map_err(|error| Error::Setting(format!("--threads: {error}")))
    }
}
