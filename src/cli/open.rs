//! Options to a pipeline ready for questions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{ModelArgs, SourceArgs, args::decimal, value_name};
use crate::{
    corpus::{self, Corpus},
    embed::{self, Embedder, HashingEmbedder},
    error::{Error, Result},
    eval::run::Stage,
    index::{Index, Manifest, Origin, Tools},
    lexical::{Bm25Settings, LexicalIndex},
    pipeline::{Pipeline, Settings},
    prompt::Template,
    reader::{Extractive, Reader},
    rerank::{Overlap, Reranker},
    rewrite::{Identity, QueryRewriter},
    store::FlatStore,
    text::Analyzer,
    tokenizer::Tokenizer,
};

/// The tokenizer that counts a chunk's tokens, as shipped.
static TOKENIZER: &[u8] = include_bytes!("../../models/tokenizer/tokenizer.json");

/// A pipeline ready for questions, and how it is to be asked.
pub struct Opened {
    /// The parts.
    pub pipeline: Pipeline,
    /// The numbers.
    pub settings: Settings,
    /// How the documents were cut, e.g. `markdown:150:20`.
    pub chunker: String,
    /// What an answer depends on.
    pub fingerprint: Map<String, Value>,
    /// Files that are not among the documents, each with its reason.
    pub skipped: Vec<corpus::Skipped>,
}

/// Opens what the options name: an index, or documents that are indexed in memory.
///
/// # Errors
/// A corpus or index that cannot be read, an option that does not fit it.
pub fn open(source: &SourceArgs, models: &ModelArgs) -> Result<Opened> {
    let mut embedder =
        embedder(&embedder_name(source.embedder.as_deref(), source.index.as_deref()))?;
    let (index, skipped) = match &source.index {
        Some(dir) => (open_index(dir, source, embedder.as_ref())?, Vec::new()),
        None => build_index(source, embedder.as_ref())?,
    };
    let chunker = index.manifest.chunker.clone();
    let template = match corpus::is_default(&index.documents) {
        true => Template::Tutor,
        false => Template::Snippets,
    };
    let settings = Settings { template, ..models.settings() };
    settings.check()?;
    let fingerprint = fingerprint(&index.manifest, models, template);
    let vectors = embedder.fit(index.vectors)?;
    let lexical = Arc::new(index.lexical);
    let overlap = Overlap { analyzer: lexical.analyzer(), stats: lexical.clone() };
    let pipeline = Pipeline {
        documents: index.documents,
        chunks: index.chunks,
        embedder,
        store: Box::new(FlatStore::new(vectors)),
        lexical: lexical as Arc<dyn LexicalIndex>,
        rewriter: rewriter(&models.rewriter)?,
        reranker: reranker(&models.reranker, &overlap)?,
        reader: reader(&models.reader, overlap.analyzer)?,
        analyzer: overlap.analyzer,
        evidence: Arc::new(overlap),
    };
    Ok(Opened { pipeline, settings, chunker, fingerprint, skipped })
}

/// What an answer depends on: the index, the parts and the numbers.
fn fingerprint(manifest: &Manifest, models: &ModelArgs, template: Template) -> Map<String, Value> {
    let mut fingerprint = models.condition();
    let mut set = |name: &str, value: Value| fingerprint.insert(name.to_owned(), value);
    set("corpus", manifest.corpus_hash.as_str().into());
    set("chunker", manifest.chunker.as_str().into());
    set("tokenizer", manifest.tokenizer.as_str().into());
    set("embedder", manifest.embedder.as_str().into());
    set("analyzer", manifest.analyzer.as_str().into());
    set("bm25-k1", decimal(manifest.k1));
    set("bm25-b", decimal(manifest.b));
    set("template", template.name().into());
    fingerprint
}

impl Opened {
    /// What a run measures, as reports and gates name it: the fingerprint, the corpus by the first
    /// digits of its hash, and how far down the chain the run goes.
    pub(super) fn condition(&self, stage: Stage) -> Map<String, Value> {
        const DIGITS: usize = 12;
        let mut condition = self.fingerprint.clone();
        if let Some(Value::String(hash)) = condition.get_mut("corpus") {
            *hash = hash.chars().take(DIGITS).collect();
        }
        condition.insert("stage".to_owned(), value_name(&stage).into());
        condition
    }
}

/// The tokenizer that counts a chunk's tokens.
///
/// # Errors
/// A `models/tokenizer` that is found but cannot be read.
pub fn tokenizer() -> Result<Tokenizer> {
    match corpus::shipped(Path::new("models/tokenizer")) {
        Some(folder) => Tokenizer::load(folder),
        None => Tokenizer::from_bytes(TOKENIZER),
    }
}

fn open_index(dir: &Path, source: &SourceArgs, embedder: &dyn Embedder) -> Result<Index> {
    let index = Index::open(dir)?;
    index.manifest.check_embedder(&embedder.fingerprint())?;
    let cut = [
        source.chunker.map(|_| "--chunker"),
        source.chunk_tokens.map(|_| "--chunk-tokens"),
        source.chunk_overlap.map(|_| "--chunk-overlap"),
        source.bm25_k1.map(|_| "--bm25-k1"),
        source.bm25_b.map(|_| "--bm25-b"),
    ];
    if let Some(option) = cut.into_iter().flatten().next() {
        let chunker = &index.manifest.chunker;
        return Err(Error::Setting(format!(
            "{option}: the index is made already (`{chunker}`); make another of the documents"
        )));
    }
    Ok(index)
}

fn build_index(
    source: &SourceArgs,
    embedder: &dyn Embedder,
) -> Result<(Index, Vec<corpus::Skipped>)> {
    let (corpus, path) = corpus::load_or_default(source.corpus.as_deref())?;
    let Corpus { documents, skipped, kind, .. } = corpus;
    let tokenizer = tokenizer()?;
    let origin = Origin { path, kind, arguments: Vec::new() };
    let default = Bm25Settings::default();
    let bm25 = Bm25Settings {
        k1: source.bm25_k1.unwrap_or(default.k1),
        b: source.bm25_b.unwrap_or(default.b),
    };
    let tools = Tools { bm25, ..Tools::new(&tokenizer, embedder) };
    let settings = source.chunk_choice().complete(kind, None)?;
    let (index, _) = Index::build(documents, origin, settings, &tools)?;
    Ok((index, skipped))
}

/// The shipped embedder: a folder that is looked for, or else what is compiled in.
pub const EMBEDDER: &str = "models/biencoder";

/// The name of the embedder to use: the one given, else that of the index in `dir`, if there is
/// one, else the shipped one.
pub fn embedder_name(given: Option<&str>, dir: Option<&Path>) -> String {
    let of_index = || Index::manifest(dir?).ok()?.embedder_argument().map(str::to_owned);
    given.map(str::to_owned).or_else(of_index).unwrap_or_else(|| EMBEDDER.to_owned())
}

/// The embedder of that name on the command line, or of that folder.
///
/// # Errors
/// There is none.
pub fn embedder(name: &str) -> Result<Box<dyn Embedder>> {
    if name == "hashing" {
        return Ok(Box::new(HashingEmbedder::default()));
    }
    let folder = PathBuf::from(name);
    match if folder.exists() { Some(folder) } else { corpus::shipped(Path::new(name)) } {
        Some(folder) => embed::open(&folder),
        None if name == EMBEDDER => Ok(Box::new(embed::BiEncoder::built_in()?)),
        None => Err(unknown("embedder", name, "`hashing`, or the folder of a checkpoint")),
    }
}

fn rewriter(name: &str) -> Result<Box<dyn QueryRewriter>> {
    match name {
        "auto" | "none" => Ok(Box::new(Identity)),
        other => Err(unknown("rewriter", other, "`auto` or `none`")),
    }
}

fn reranker(name: &str, overlap: &Overlap) -> Result<Option<Box<dyn Reranker>>> {
    match name {
        "overlap" => Ok(Some(Box::new(overlap.clone()))),
        "none" => Ok(None),
        other => Err(unknown("reranker", other, "`overlap` or `none`")),
    }
}

fn reader(name: &str, analyzer: Analyzer) -> Result<Box<dyn Reader>> {
    match name {
        "extractive" => Ok(Box::new(Extractive { analyzer, ..Extractive::default() })),
        other => Err(unknown("reader", other, "`extractive`")),
    }
}

fn unknown(option: &str, name: &str, known: &str) -> Error {
    Error::Setting(format!("--{option} {name}: there is none of that name; there is {known}"))
}
