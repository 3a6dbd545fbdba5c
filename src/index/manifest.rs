//! What an index was made of, and with what; and the checks that hold it to its manifest.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Index;
use crate::{
    corpus::Kind,
    error::{Error, Result},
    lexical::LexicalIndex,
    types::{Chunk, ChunkId, Document, Vectors},
};

/// The version of the file format; a reader refuses a later one.
pub const FORMAT: u32 = 1;

/// Everything that an index depends on. No times: the same input gives the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The version of minirag that wrote it.
    pub minirag: String,
    /// The folder or file of the documents, absolute, or `embedded`.
    pub corpus: String,
    /// How it stores them.
    pub corpus_kind: Kind,
    /// [`crate::corpus::content_hash`] of the documents.
    pub corpus_hash: String,
    /// The chunker's settings, e.g. `auto:150:20`.
    pub chunker: String,
    /// Fingerprint of the tokenizer that counted the tokens.
    pub tokenizer: String,
    /// Fingerprint of what made the vectors.
    pub embedder: String,
    /// Values a vector.
    pub dim: usize,
    /// Fingerprint of what made the terms.
    pub analyzer: String,
    /// `k1` of BM25.
    pub k1: f32,
    /// `b` of BM25.
    pub b: f32,
    /// Number of documents.
    pub documents: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Number of tokens, those that chunks share counted once.
    pub tokens: usize,
    /// The arguments that make the same index again.
    pub arguments: Vec<String>,
}

/// `sha256` of each part of an index, 64 hex digits each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksums {
    pub(super) manifest: String,
    pub(super) documents: String,
    pub(super) chunks: String,
    pub(super) vectors: String,
    pub(super) lexical: String,
}

impl Checksums {
    /// Of the values as they are in memory, so that a file is only believed if reading it gave
    /// back what was written, whatever lies between.
    pub(super) fn new(manifest: &str, index: &Parts<'_>, lexical: &[u8]) -> Self {
        let ((documents, chunks), (vectors, lexical)) = rayon::join(
            || rayon::join(|| hash_documents(index.documents), || hash_chunks(index.chunks)),
            || {
                rayon::join(
                    || hash_vectors(index.vectors),
                    || format!("{:x}", Sha256::digest(lexical)),
                )
            },
        );
        let manifest = hash_manifest(manifest);
        Self { manifest, documents, chunks, vectors, lexical }
    }

    /// The name of the first part in which `self` differs from `other`.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        [
            ("manifest", &self.manifest, &other.manifest),
            ("documents", &self.documents, &other.documents),
            ("chunks", &self.chunks, &other.chunks),
            ("vectors", &self.vectors, &other.vectors),
            ("lexical index", &self.lexical, &other.lexical),
        ]
        .into_iter()
        .find_map(|(name, a, b)| (a != b).then_some(name))
    }
}

/// The parts of an index that are stored row by row.
pub(super) struct Parts<'a> {
    pub(super) documents: &'a [Document],
    pub(super) chunks: &'a [Chunk],
    pub(super) vectors: &'a Vectors,
}

/// A hash over fields, each after its length, so that no two lists of fields run together to the
/// same bytes.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text);
    }

    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    fn finish(self) -> String {
        format!("{:x}", self.0.finalize())
    }
}

/// Of the manifest as JSON.
pub(super) fn hash_manifest(manifest: &str) -> String {
    format!("{:x}", Sha256::digest(manifest))
}

fn hash_documents(documents: &[Document]) -> String {
    let mut fields = Fields::default();
    for Document { id, title, text, metadata } in documents {
        [&id.0, title, text.as_str()].into_iter().for_each(|text| fields.text(text));
        fields.number(metadata.len());
        metadata.iter().flat_map(|(key, value)| [key, value]).for_each(|text| fields.text(text));
    }
    fields.finish()
}

fn hash_chunks(chunks: &[Chunk]) -> String {
    let mut fields = Fields::default();
    for chunk in chunks {
        let texts: [&str; 5] =
            [&chunk.document.0, &chunk.title, &chunk.heading, &chunk.table_header, &chunk.chunker];
        texts.into_iter().for_each(|text| fields.text(text));
        let (start, end) = (chunk.span.start, chunk.span.end);
        [chunk.ordinal, chunk.token_offset, chunk.tokens, chunk.overlap, start, end]
            .into_iter()
            .for_each(|number| fields.number(number));
        fields.0.update(chunk.id.0);
    }
    fields.finish()
}

fn hash_vectors(vectors: &Vectors) -> String {
    let mut hash = Sha256::new();
    for row in vectors.rows() {
        hash.update(row.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
    }
    format!("{:x}", hash.finalize())
}

impl Manifest {
    /// The embedder's name on the command line that made the index.
    pub fn embedder_argument(&self) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == "--embedder")?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    /// Checks that `embedder` is the one that made the vectors.
    ///
    /// # Errors
    /// Another embedder, with both names.
    pub fn check_embedder(&self, embedder: &str) -> Result<()> {
        if self.embedder == embedder {
            return Ok(());
        }
        let made = &self.embedder;
        Err(Error::Mismatch(format!(
            "the index was built with `{made}`, the embedder is `{embedder}`: run `index` again, \
             or pass the embedder of the index"
        )))
    }
}

impl Index {
    /// In what the index contradicts itself; empty for a sound one.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let manifest = &self.manifest;
        for (what, expected, got) in [
            ("documents", manifest.documents, self.documents.len()),
            ("chunks", manifest.chunks, self.chunks.len()),
            ("vectors", manifest.chunks, self.vectors.len()),
            ("values a vector", manifest.dim, self.vectors.dim()),
            ("passages of the lexical index", manifest.chunks, self.lexical.len()),
        ] {
            if expected != got {
                faults.push(format!("{got} {what}, the manifest says {expected}"));
            }
        }
        if !self.documents.is_sorted_by(|a, b| a.id < b.id) {
            faults.push("documents are not in the order of their ids, or one comes twice".into());
        }
        if !self.chunks.is_sorted_by_key(|chunk| (&chunk.document, chunk.span.start, chunk.ordinal))
        {
            faults.push("chunks are not in the order of document and offset".into());
        }
        let faulty = |chunk: &Chunk| Some((chunk.anchor(), self.fault_of(chunk)?));
        let faulty = self.chunks.iter().filter_map(faulty);
        faults.extend(faulty.map(|(anchor, fault)| format!("chunk {anchor}: {fault}")));
        for pair in self.chunks.windows(2) {
            let [a, b] = pair else { continue };
            if a.document == b.document && a.token_offset >= b.token_offset {
                let anchor = b.anchor();
                faults.push(format!("chunk {anchor}: its offset is not after the one before"));
            }
        }
        faults
    }

    fn fault_of(&self, chunk: &Chunk) -> Option<String> {
        let found = self.documents.binary_search_by(|document| document.id.cmp(&chunk.document));
        let Ok(at) = found else { return Some("its document is not in the index".into()) };
        let document = &self.documents[at];
        if document.text.get(chunk.span.clone()) != Some(&*chunk.text) {
            return Some(format!("its span {:?} does not hold its text", chunk.span));
        }
        if chunk.title != document.title {
            return Some("its title is not its document's".into());
        }
        (chunk.id != ChunkId::new(&chunk.document, chunk.token_offset))
            .then(|| format!("its id {} does not belong to its offset", chunk.id))
    }
}
