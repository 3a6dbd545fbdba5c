//! A BEIR `corpus.jsonl` in (Thakur et al. 2021: `_id`, `title`, `text`, `metadata`); one
//! document a line out, under the ids that the qrels use.

use std::{collections::HashMap, path::Path};

use rayon::prelude::*;
use serde::Deserialize;

use super::{Corpus, Kind};
use crate::{
    error::{Error, Result},
    types::Document,
};

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "_id")]
    id: Id,
    #[serde(default)]
    title: Option<String>,
    text: String,
    #[serde(default)]
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Some sets number their documents.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Name(String),
    Number(u64),
}

/// The documents of the file at `path`.
pub(super) fn load(path: &Path) -> Result<Corpus> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let lines: Vec<(usize, &[u8])> = bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .map(|(at, line)| (at + 1, if at == 0 { without_mark(line) } else { line }))
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .collect();
    let parsed: Vec<Document> =
        lines.par_iter().map(|&(number, line)| parse(path, number, line)).collect::<Result<_>>()?;
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(parsed.len());
    for (document, (number, _)) in parsed.iter().zip(&lines) {
        if let Some(before) = first.insert(&document.id.0, *number) {
            let id = &document.id;
            let message = format!("the _id {id:?} of line {before} comes again: ids must differ");
            return Err(at_line(path, *number, message));
        }
    }
    if parsed.is_empty() {
        return Err(Error::format(path, "holds no document: every line is blank"));
    }
    let mut documents = parsed;
    documents.sort_by(|a, b| a.id.cmp(&b.id));
    let found = documents.len();
    Ok(Corpus { documents, skipped: Vec::new(), found, kind: Kind::Beir })
}

fn parse(path: &Path, number: usize, line: &[u8]) -> Result<Document> {
    let expected = "expected {\"_id\": ..., \"title\": ..., \"text\": ...}";
    let line: Line = serde_json::from_slice(line)
        .map_err(|error| at_line(path, number, format!("{error}; {expected}")))?;
    let id = match line.id {
        Id::Name(id) => id,
        Id::Number(id) => id.to_string(),
    };
    if id.is_empty() {
        return Err(at_line(path, number, "the _id is empty".into()));
    }
    let mut metadata: std::collections::BTreeMap<String, String> = line
        .metadata
        .into_iter()
        .flatten()
        .map(|(key, value)| match value {
            serde_json::Value::String(value) => (key, value),
            value => (key, value.to_string()),
        })
        .collect();
    metadata.insert("format".into(), "text".into());
    let title = line.title.unwrap_or_default().into();
    Ok(Document { id: id.as_str().into(), title, text: line.text, metadata })
}

fn at_line(path: &Path, number: usize, message: String) -> Error {
    Error::format(format!("{}:{number}", path.display()), message)
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
