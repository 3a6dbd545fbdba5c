//! A BEIR `corpus.jsonl` in (Thakur et al. 2021: `_id`, `title`, `text`, `metadata`); one
//! document a line out, under the ids that the qrels use.

use std::{collections::HashMap, path::Path};

use rayon::prelude::*;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::{Corpus, Kind};
use crate::{
    error::{Error, Result},
    types::Document,
};

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "_id", deserialize_with = "id")]
    id: String,
    #[serde(default)]
    title: Option<String>,
    text: String,
    #[serde(default)]
    metadata: Option<serde_json::Map<String, Value>>,
}

/// An `_id` as a text; some sets number their documents and queries.
pub(crate) fn id<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    match Value::deserialize(from)? {
        Value::String(id) => Ok(id),
        Value::Number(id) if id.is_u64() => Ok(id.to_string()),
        other => Err(D::Error::custom(format!("the _id is {other}: expected a text or a number"))),
    }
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
    let id = line.id;
    if id.is_empty() {
        return Err(at_line(path, number, "the _id is empty".into()));
    }
    let mut metadata: std::collections::BTreeMap<String, String> = line
        .metadata
        .into_iter()
        .flatten()
        .map(|(key, value)| match value {
            Value::String(value) => (key, value),
            value => (key, value.to_string()),
        })
        .collect();
    metadata.entry("format".into()).or_insert_with(|| "text".into());
    let title = line.title.unwrap_or_default().into();
    Ok(Document { id: id.as_str().into(), title, text: line.text, metadata })
}

fn at_line(path: &Path, number: usize, message: String) -> Error {
    Error::format(format!("{}:{number}", path.display()), message)
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
