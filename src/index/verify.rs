//! An index in; what is wrong with it out: with the file, with its parts, with its corpus.

use std::{fmt, path::Path};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::{DocumentChanges, Index, file::sqlite};
use crate::{corpus, embed::Embedder, error::Result, lexical::Bm25, types::Chunk};

/// Chunks that are embedded again for the comparison.
const SAMPLE: usize = 256;

/// How far a value of a vector may lie from the same on another machine.
const TOLERANCE: f32 = 1e-4;

/// What [`verify`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Contradictions of the index with itself; empty for a sound one.
    pub faults: Vec<String>,
    /// What its corpus has become since; `None` if that could not be read, for the reason given.
    pub corpus: std::result::Result<DocumentChanges, String>,
}

impl Verification {
    /// True for a sound index of the corpus as it is.
    pub fn is_ok(&self) -> bool {
        let same = |changes: &DocumentChanges| {
            changes.added.is_empty() && changes.changed.is_empty() && changes.removed.is_empty()
        };
        self.faults.is_empty() && self.corpus.as_ref().is_ok_and(same)
    }
}

impl Verification {
    /// The findings for scripts.
    pub fn json(&self) -> Value {
        let corpus = match &self.corpus {
            Ok(DocumentChanges { added, changed, removed, unchanged }) => json!({
                "added": added, "changed": changed, "removed": removed, "unchanged": unchanged,
            }),
            Err(reason) => json!({ "unreadable": reason }),
        };
        json!({ "ok": self.is_ok(), "faults": self.faults, "documents": corpus })
    }
}

/// The findings for people.
impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().try_for_each(|fault| writeln!(f, "fault: {fault}"))?;
        match &self.corpus {
            Err(reason) => writeln!(f, "the documents cannot be read: {reason}")?,
            Ok(DocumentChanges { added, changed, removed, .. }) => {
                for (what, ids) in [("added", added), ("changed", changed), ("removed", removed)] {
                    ids.iter().try_for_each(|id| writeln!(f, "{what} since: {id}"))?;
                }
            }
        }
        match self.is_ok() {
            true => write!(f, "the index is sound and up to date"),
            false => write!(f, "run `index` to build it again"),
        }
    }
}

/// Checks the index in `dir`: that it opens (checksums, counts, spans, order), that SQLite finds
/// its file sound, that its texts give its inverted index and, for a sample, its vectors, and
/// that the corpus, by default the one it was made of, still holds its documents.
///
/// # Errors
/// An index that does not open.
pub fn verify(
    dir: &Path,
    documents: Option<&Path>,
    embedder: &dyn Embedder,
) -> Result<Verification> {
    let index = Index::open(dir)?;
    let mut faults = integrity(&dir.join(super::FILE))?;
    let texts: Vec<String> = index.chunks.iter().map(Chunk::index_text).collect();
    let lexical = Bm25::build(&texts, index.lexical.analyzer(), index.lexical.settings())?;
    if lexical.serialize() != index.lexical.serialize() {
        faults.push("the inverted index is not that of the texts".into());
    }
    faults.extend(index.vector_fault(&texts, embedder)?);
    let place = &index.manifest.corpus;
    let found = match documents {
        Some(path) => corpus::load(path),
        None if place == corpus::EMBEDDED_NAME => corpus::embedded(),
        None => corpus::load(Path::new(place)),
    };
    let corpus = found
        .map(|corpus| DocumentChanges::between(&index.documents, &corpus.documents))
        .map_err(|error| error.to_string());
    Ok(Verification { faults, corpus })
}

fn integrity(path: &Path) -> Result<Vec<String>> {
    let failed = sqlite(path);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(&failed)?;
    let mut check = connection.prepare("PRAGMA integrity_check").map_err(&failed)?;
    let rows = check.query_map([], |row| row.get::<_, String>(0)).map_err(&failed)?;
    let lines = rows.collect::<rusqlite::Result<Vec<String>>>().map_err(&failed)?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

impl Index {
    fn vector_fault(&self, texts: &[String], embedder: &dyn Embedder) -> Result<Option<String>> {
        let (made, now) = (&self.manifest.embedder, embedder.fingerprint());
        if *made != now {
            return Ok(Some(format!("its vectors are of `{made}`, this minirag has `{now}`")));
        }
        let step = texts.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<&str> = texts.iter().step_by(step).map(String::as_str).collect();
        let again = embedder.embed_passages(&sample)?;
        let differs = |(row, vector): &(usize, &[f32])| {
            let stored = self.vectors.row(*row);
            stored.iter().zip(*vector).any(|(a, b)| (a - b).abs() > TOLERANCE)
        };
        let fault = (0..).step_by(step).zip(again.rows()).find(differs);
        Ok(fault.map(|(row, _)| {
            format!("the vector of chunk {} is not that of its text", self.chunks[row].anchor())
        }))
    }
}
