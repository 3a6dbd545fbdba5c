//! Documents in; everything that answering needs out, in memory or in one file.
//!
//! An index holds the documents' decoded texts (spans count their bytes), the chunks, their
//! vectors as the embedder gave them (an embedder that fits itself to the corpus does so after
//! opening, so that an updated index equals a fresh one) and the inverted index. The manifest
//! names all that these depend on. The same documents and settings give the same bytes.

mod file;
mod manifest;
mod open;
mod swap;
mod update;
mod verify;

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

pub use file::FILE;
pub use manifest::{FORMAT, Manifest};
pub use update::{ChunkChoice, Report, Request, update};
pub use verify::{Verification, verify};

use crate::{
    chunk::{ChunkSettings, Chunker, Length},
    corpus::{Kind, content_hash},
    embed::Embedder,
    error::{Error, Result},
    lexical::{Bm25, Bm25Settings},
    text::Analyzer,
    tokenizer::Tokenizer,
    types::{Chunk, ChunkId, Document, Vectors},
};

/// Documents made searchable.
#[derive(Debug, Clone)]
pub struct Index {
    /// What it was made of, and with what.
    pub manifest: Manifest,
    /// In the order of their ids.
    pub documents: Vec<Document>,
    /// In the order of (document, offset); a chunk's place is its row.
    pub chunks: Vec<Chunk>,
    /// Shape `(chunks, dim)`, as stored: before [`Embedder::fit`].
    pub vectors: Vectors,
    /// Over [`Chunk::index_text`], the same rows.
    pub lexical: Bm25,
}

/// Where the documents come from, for the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The folder or file.
    pub path: String,
    /// How it stores them.
    pub kind: Kind,
    /// The arguments that make the same index again.
    pub arguments: Vec<String>,
}

/// What counts, embeds and analyses.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Counts the tokens of chunks.
    pub tokenizer: &'a Tokenizer,
    /// Turns chunks into vectors, and sentences for the chunker `semantic`.
    pub embedder: &'a dyn Embedder,
    /// Turns words into terms.
    pub analyzer: Analyzer,
    /// The constants of BM25.
    pub bm25: Bm25Settings,
}

impl<'a> Tools<'a> {
    /// These tools, with the default analyzer and constants.
    pub fn new(tokenizer: &'a Tokenizer, embedder: &'a dyn Embedder) -> Self {
        let (analyzer, bm25) = (Analyzer::default(), Bm25Settings::default());
        Self { tokenizer, embedder, analyzer, bm25 }
    }
}

/// How long each stage of a build took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Documents to chunks.
    pub chunk: Duration,
    /// Chunks to vectors.
    pub embed: Duration,
    /// Chunks to the inverted index.
    pub lexical: Duration,
}

/// Passages that are embedded at a time, so that a network's intermediate values stay small.
const BATCH: usize = 1024;

impl Index {
    /// Indexes `documents`, which must be in the order of their ids.
    ///
    /// # Errors
    /// What a tool reports; documents or chunks out of order.
    pub fn build(
        documents: Vec<Document>,
        origin: Origin,
        settings: ChunkSettings,
        tools: &Tools<'_>,
    ) -> Result<(Self, BuildReport)> {
        let mut report = BuildReport::default();
        let start = Instant::now();
        let sentences = |sentences: &[&str]| tools.embedder.embed_passages(sentences);
        let length = Length::Tokens(tools.tokenizer);
        let chunks = Chunker::new(settings, length, Some(&sentences))?.split_all(&documents)?;
        report.chunk = start.elapsed();

        let texts: Vec<String> = chunks.iter().map(Chunk::index_text).collect();
        let start = Instant::now();
        let vectors = embed(&texts, tools.embedder)?;
        report.embed = start.elapsed();

        let start = Instant::now();
        let lexical = Bm25::build(&texts, tools.analyzer, tools.bm25)?;
        report.lexical = start.elapsed();

        let manifest = Manifest {
            format: FORMAT,
            minirag: env!("CARGO_PKG_VERSION").to_owned(),
            corpus: origin.path,
            corpus_kind: origin.kind,
            corpus_hash: content_hash(&documents),
            chunker: settings.to_string(),
            tokenizer: tools.tokenizer.fingerprint().to_owned(),
            embedder: tools.embedder.fingerprint(),
            dim: tools.embedder.dim(),
            analyzer: tools.analyzer.fingerprint(),
            k1: tools.bm25.k1,
            b: tools.bm25.b,
            documents: documents.len(),
            chunks: chunks.len(),
            tokens: chunks.iter().map(|chunk| chunk.tokens - chunk.overlap.min(chunk.tokens)).sum(),
            arguments: origin.arguments,
        };
        let index = Self { manifest, documents, chunks, vectors, lexical };
        match index.faults().into_iter().next() {
            None => Ok((index, report)),
            Some(fault) => {
                Err(Error::Mismatch(format!("the new index contradicts itself: {fault}")))
            }
        }
    }

    /// What `self` has that `old` has not, and the other way round.
    pub fn changes_since(&self, old: Option<&Self>) -> Changes {
        let documents = old.map_or(&[][..], |old| &old.documents);
        let chunks = old.map_or(&[][..], |old| &old.chunks);
        Changes {
            documents: DocumentChanges::between(documents, &self.documents),
            chunks: ChunkChanges::between(chunks, &self.chunks),
        }
    }
}

fn embed(texts: &[String], embedder: &dyn Embedder) -> Result<Vectors> {
    let mut data = Vec::with_capacity(texts.len() * embedder.dim());
    for batch in texts.chunks(BATCH) {
        let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
        let vectors = embedder.embed_passages(&batch)?;
        if vectors.len() != batch.len() {
            return Err(Error::Shape {
                what: "vectors that the embedder gave",
                expected: batch.len(),
                got: vectors.len(),
            });
        }
        data.extend(vectors.into_data());
    }
    Vectors::new(embedder.dim(), data)
}

/// What a new index changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// By id, title and text.
    pub documents: DocumentChanges,
    /// By id and text.
    pub chunks: ChunkChanges,
}

/// Ids of documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentChanges {
    /// Not there before.
    pub added: Vec<String>,
    /// There before with another content.
    pub changed: Vec<String>,
    /// Not there any more.
    pub removed: Vec<String>,
    /// How many are as before.
    pub unchanged: usize,
}

impl DocumentChanges {
    /// Compares two lists of documents.
    pub fn between(old: &[Document], new: &[Document]) -> Self {
        let mut before: HashMap<_, _> =
            old.iter().map(|document| (&document.id, document)).collect();
        let mut changes = Self::default();
        for document in new {
            match before.remove(&document.id) {
                None => changes.added.push(document.id.to_string()),
                Some(old) if old.text == document.text && old.title == document.title => {
                    changes.unchanged += 1;
                }
                Some(_) => changes.changed.push(document.id.to_string()),
            }
        }
        changes.removed = before.keys().map(ToString::to_string).collect();
        changes.removed.sort();
        changes
    }
}

/// Numbers of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkChanges {
    /// Not there before.
    pub added: usize,
    /// As before.
    pub kept: usize,
    /// Not there any more.
    pub removed: usize,
}

impl ChunkChanges {
    fn between(old: &[Chunk], new: &[Chunk]) -> Self {
        let before: HashSet<(ChunkId, &str)> =
            old.iter().map(|chunk| (chunk.id, &*chunk.text)).collect();
        let kept = new.iter().filter(|chunk| before.contains(&(chunk.id, &*chunk.text))).count();
        Self { added: new.len() - kept, kept, removed: old.len() - kept.min(old.len()) }
    }
}
