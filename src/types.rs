//! The nouns of the crate: everything that one stage hands to the next.

mod ranking;

use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

use sha2::{Digest, Sha256};

pub use ranking::{Hit, Ranking, Row, Scale};

use crate::{
    error::{Error, Result},
    text::spell_tables,
};

/// Names a document for people and for citations: its path below the corpus root, `/`-separated
/// and NFC-normalised.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId(pub Arc<str>);

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for DocumentId {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

/// A text as it was brought, decoded but not normalised; every span in the crate counts its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The document's name.
    pub id: DocumentId,
    /// The first heading, or the file's stem.
    pub title: Arc<str>,
    /// The whole text, UTF-8.
    pub text: String,
    /// What is known besides, e.g. `format` and `encoding`.
    pub metadata: BTreeMap<String, String>,
}

/// Identifies a chunk across runs: the first 6 bytes of `sha256(document id + ":" + token offset)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub [u8; 6]);

impl ChunkId {
    /// The id of the chunk of `document` that begins `token_offset` tokens into it.
    pub fn new(document: &DocumentId, token_offset: usize) -> Self {
        let hash = Sha256::digest(format!("{document}:{token_offset}"));
        Self(std::array::from_fn(|i| hash[i]))
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A passage: the unit that is embedded, ranked and cited.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// Stable across runs.
    pub id: ChunkId,
    /// Where the text came from.
    pub document: DocumentId,
    /// The document's title.
    pub title: Arc<str>,
    /// Place among the document's chunks, from 0.
    pub ordinal: usize,
    /// Tokens of the document before this chunk.
    pub token_offset: usize,
    /// Tokens of this chunk.
    pub tokens: usize,
    /// Tokens shared with the chunk before.
    pub overlap: usize,
    /// Bytes of the document's text; `document.text[span] == chunk.text`.
    pub span: Range<usize>,
    /// The passage.
    pub text: String,
    /// The headings above the passage, outermost first, joined by ` > `; the title is left out.
    pub heading: String,
    /// The header row of the table that the passage continues; empty if it begins none midway.
    pub table_header: String,
    /// The strategy and settings that cut it, e.g. `markdown:150:20`.
    pub chunker: Arc<str>,
}

impl Chunk {
    /// What the embedder and BM25 see: title, heading path and text, its table rows spelt out.
    pub fn index_text(&self) -> String {
        let mut text = String::with_capacity(self.title.len() + self.text.len() + 64);
        for part in [&self.title, self.heading.as_str()].into_iter().filter(|p| !p.is_empty()) {
            text.push_str(part);
            text.push_str("\n\n"); // a paragraph of its own, not the start of a sentence
        }
        text + &spell_tables(&self.text, &self.table_header)
    }

    /// `document:ordinal`, the place a citation names.
    pub fn anchor(&self) -> String {
        format!("{}:{}", self.document, self.ordinal)
    }
}

/// Where a query came from, which decides how it is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryOrigin {
    /// The user's own words.
    Original,
    /// The same question in other words (multi-query).
    Paraphrase,
    /// One part of a compound question (decomposition).
    SubQuestion,
    /// An invented answer (HyDE, Gao et al. 2023); embedded as a passage, not as a query.
    Hypothetical,
}

impl QueryOrigin {
    /// The origin's name in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Paraphrase => "paraphrase",
            Self::SubQuestion => "sub-question",
            Self::Hypothetical => "hypothetical",
        }
    }
}

/// One text to search with.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// Where they came from.
    pub origin: QueryOrigin,
    /// Weight of its rankings in the fusion; the original's is 1.
    pub weight: f32,
}

impl Query {
    /// The user's question as it is.
    pub fn original(question: &str) -> Self {
        Self { text: question.to_owned(), origin: QueryOrigin::Original, weight: 1.0 }
    }
}

/// A matrix of embeddings, shape `(n, dim)`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    dim: usize,
    data: Vec<f32>,
}

impl Vectors {
    /// Wraps `data`, whose length must be a multiple of `dim` and whose values must be finite.
    pub fn new(dim: usize, data: Vec<f32>) -> Result<Self> {
        if dim == 0 || !data.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "vectors, values per row",
                expected: dim,
                got: data.len(),
            });
        }
        if let Some(at) = data.iter().position(|x| !x.is_finite()) {
            let row = u32::try_from(at / dim).unwrap_or(u32::MAX);
            return Err(Error::NonFinite { stage: "embedding", row, score: data[at] });
        }
        Ok(Self { dim, data })
    }

    /// Values per row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.len() / self.dim
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The rows, each of length `dim`.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.dim)
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.dim..][..self.dim]
    }

    /// All values, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The values without the matrix.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }
}

/// A hit joined with its text.
#[derive(Debug, Clone, Copy)]
pub struct ScoredChunk<'a> {
    /// The chunk's row.
    pub row: Row,
    /// The passage.
    pub chunk: &'a Chunk,
    /// Its score.
    pub score: f32,
}

/// Why a score is what it is: a small tree of named parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The quantity, e.g. `idf("eaten")`.
    pub what: String,
    /// Its value.
    pub value: f32,
    /// What it was computed from.
    pub parts: Vec<Explanation>,
}

impl Explanation {
    /// A quantity without parts.
    pub fn leaf(what: impl Into<String>, value: f32) -> Self {
        Self { what: what.into(), value, parts: Vec::new() }
    }
}

/// A sentence or table row of a passage, with the support that the reranker gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Bytes of the document's text.
    pub span: Range<usize>,
    /// Readable text: markdown marks taken off, a table row spelt out with its header.
    pub text: String,
    /// For a table row, its cells as (column header, cell); empty for a sentence.
    pub cells: Vec<(String, String)>,
    /// The heading it stands under; empty where there is none.
    pub section: String,
    /// The question just before it in the text, as in a list of questions and answers.
    pub asked: String,
    /// How well it fits the question, on the reranker's scale.
    pub score: f32,
}

/// One numbered passage of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Cited as `[#marker]`; the place in the reranked list, from 1.
    pub marker: usize,
    /// The chunk, whole.
    pub chunk: Chunk,
    /// The chunk's score after reranking.
    pub score: f32,
    /// Its sentences and table rows, in the order of the text.
    pub evidence: Vec<Evidence>,
    /// What the prompt shows of it: the best evidence, or the whole chunk.
    pub shown: String,
}

/// What the reader sees: the question and its numbered sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The user's question, never a rewritten one.
    pub question: String,
    /// The passages, in the order in which the prompt holds them.
    pub sources: Vec<Source>,
    /// The whole text given to a generative reader.
    pub text: String,
    /// Markers of the passages that did not fit, lowest rank first.
    pub dropped: Vec<usize>,
    /// Tokens that were left out with them.
    pub dropped_tokens: usize,
}

/// What a reader wrote, markers unresolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// Text with `[#1]`-style markers; empty when the reader refuses.
    pub text: String,
    /// The short value inside the answer, e.g. `eaten`, where the reader knows it.
    pub value: Option<String>,
    /// For each marker, the bytes of the document that the reader used, where it knows them.
    pub used: Vec<(usize, Range<usize>)>,
}

/// One resolved marker.
#[derive(Debug, Clone, PartialEq)]
pub struct Citation {
    /// The number in the text.
    pub marker: usize,
    /// The cited chunk.
    pub chunk: ChunkId,
    /// The cited document.
    pub document: DocumentId,
    /// `document:ordinal`.
    pub anchor: String,
    /// The headings above the passage.
    pub section: String,
    /// Bytes of the document's text.
    pub span: Range<usize>,
    /// Those bytes.
    pub quote: String,
    /// Whether the quote carries the sentence that cites it.
    pub supported: bool,
    /// Share of that sentence's content words found in the quote, 0 to 1.
    pub support: f32,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The best passage scored below the threshold.
    BelowThreshold,
    /// Nothing was found.
    NoPassages,
    /// The reader wrote a refusal.
    ReaderRefused,
    /// The draft's claims are not carried by what it cites.
    NotSupported,
}

impl Reason {
    /// The reason's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::BelowThreshold => "below-threshold",
            Self::NoPassages => "no-passages",
            Self::ReaderRefused => "reader-refused",
            Self::NotSupported => "not-supported",
        }
    }
}

/// What the user gets. A refusal with citations cannot be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// An answer whose every citation resolves.
    Cited {
        /// The answer, with `[#1]`-style markers.
        text: String,
        /// The short value inside it, where the reader knows it.
        value: Option<String>,
        /// The sources, in order of first use.
        citations: Vec<Citation>,
    },
    /// "I don't know."
    Unknown {
        /// Why.
        reason: Reason,
        /// The rank-1 score, if anything was found.
        best: Option<f32>,
        /// The threshold it was held against, if there was one.
        threshold: Option<f32>,
    },
}
