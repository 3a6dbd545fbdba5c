//! A folder of questions, judgements and gold answers to a [`Dataset`].
//!
//! Two shapes are read: a BEIR folder ([`beir`]) and the grammar set ([`grammar`]). A question
//! without judgements stays in the set: retrieval measures skip it, answer measures don't.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    error::{Error, Result},
    eval::files,
    types::DocumentId,
};

pub mod beir;
pub mod grammar;
mod qrels;
mod spans;

/// For each judged question its judged documents and their relevance; above 0 is relevant.
pub type Qrels = BTreeMap<String, BTreeMap<String, i64>>;

/// Bytes of a document that answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldSpan {
    /// The document.
    pub document: DocumentId,
    /// Bytes of its text.
    pub span: Range<usize>,
    /// Those bytes.
    pub quote: String,
}

impl GoldSpan {
    /// True if these bytes of `document` share at least one with the span.
    pub fn overlaps(&self, document: &DocumentId, span: &Range<usize>) -> bool {
        self.document == *document && self.span.start.max(span.start) < self.span.end.min(span.end)
    }
}

/// A question and what is known about its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its id in qrels and runs.
    pub id: String,
    /// What the user asks.
    pub text: String,
    /// The kind of question, by which reports are sliced.
    pub class: Option<String>,
    /// Short gold answers, the most usual first; all are right.
    pub answers: Vec<String>,
    /// Where the answer stands; empty where only documents are judged.
    pub gold: Vec<GoldSpan>,
    /// Whether the corpus holds an answer; `None` where the set doesn't say.
    pub answerable: Option<bool>,
    /// The gold answer as a sentence.
    pub answer: Option<String>,
}

/// The questions of one split.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The folder's name, or the name in its `meta.json`.
    pub name: String,
    /// Which part of the set this is.
    pub split: String,
    /// In the order of the file.
    pub queries: Vec<Question>,
    /// Judgements; questions without any are not in it.
    pub qrels: Qrels,
    /// What to search in; `None` is the default corpus.
    pub corpus: Option<PathBuf>,
    /// What the set says about itself.
    pub meta: Meta,
}

impl Dataset {
    /// Keeps the first `n` questions and their judgements.
    pub fn limit(&mut self, n: usize) {
        self.queries.truncate(n);
        let kept: BTreeSet<&str> = self.queries.iter().map(|query| query.id.as_str()).collect();
        self.qrels.retain(|id, _| kept.contains(id.as_str()));
    }

    /// What to print if the set was made for another chunker than `chunker`.
    pub fn chunker_mismatch(&self, chunker: &str) -> Option<String> {
        let made_for = self.meta.chunker.as_deref().filter(|made_for| *made_for != chunker)?;
        Some(format!(
            "the judgements of {} were made with the chunker `{made_for}`, this index with \
             `{chunker}`: figures of the two do not compare",
            self.name
        ))
    }
}

/// `meta.json` beside the questions; keys that are not named here are left to other readers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The set's name in reports.
    pub name: Option<String>,
    /// The chunker and settings that the judgements belong to, e.g. `markdown:150:20`.
    pub chunker: Option<String>,
    /// Named selections of question ids, which can be asked for like a split, e.g. `smoke`.
    pub subsets: BTreeMap<String, Vec<String>>,
}

impl Meta {
    /// Reads `meta.json` of a folder; all unset where there is none.
    fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("meta.json");
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = files::read(&path)?;
        serde_json::from_str(&text).map_err(|e| Error::format(&path, e.to_string()))
    }
}

/// The name of a folder, for reports.
fn folder_name(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    whole.file_name().map_or_else(|| dir.display().to_string(), |n| n.to_string_lossy().into())
}
