//! `spans.jsonl` and `corpora/` (Smith and Troynikov 2024) to gold spans in bytes.
//!
//! The file counts characters; each span is checked against the text it should hold.

use std::{collections::BTreeMap, fs, ops::Range, path::Path};

use serde::Deserialize;

use super::GoldSpan;
use crate::{
    corpus::beir::id,
    error::{Error, Result},
    eval::files,
    types::DocumentId,
};

#[derive(Deserialize)]
struct SpanLine {
    #[serde(deserialize_with = "id")]
    _id: String,
    corpus_id: String,
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    content: String,
    start_index: usize,
    end_index: usize,
}

struct Source {
    id: DocumentId,
    text: String,
    /// The byte at which each character begins, and the length.
    starts: Vec<usize>,
}

/// Gold spans by question.
pub(super) fn read(dir: &Path) -> Result<BTreeMap<String, Vec<GoldSpan>>> {
    let sources = read_sources(&dir.join("corpora"))?;
    let path = dir.join("spans.jsonl");
    let mut gold: BTreeMap<String, Vec<GoldSpan>> = BTreeMap::new();
    for (at, line) in files::json_lines::<SpanLine>(&path)? {
        let fail = |message: String| files::at_line(&path, at, message);
        let Some(source) = sources.get(&line.corpus_id) else {
            return Err(fail(format!("`corpora` has no document `{}`", line.corpus_id)));
        };
        for reference in line.references {
            let span = bytes(source, &reference).ok_or_else(|| {
                fail(format!(
                    "characters {}..{} of `{}` are not the reference's content",
                    reference.start_index, reference.end_index, line.corpus_id
                ))
            })?;
            let document = source.id.clone();
            let span = GoldSpan { document, span, quote: reference.content };
            gold.entry(line._id.clone()).or_default().push(span);
        }
    }
    Ok(gold)
}

/// The files of `corpora/` by their name without extension.
fn read_sources(folder: &Path) -> Result<BTreeMap<String, Source>> {
    let mut sources = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let (Some(stem), Some(name)) = (path.file_stem(), path.file_name()) else { continue };
        if !path.is_file() || name.to_string_lossy().starts_with('.') {
            continue;
        }
        let text = files::read(&path)?;
        let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let id = DocumentId::from(&*name.to_string_lossy());
        sources.insert(stem.to_string_lossy().into_owned(), Source { id, text, starts });
    }
    Ok(sources)
}

fn bytes(source: &Source, reference: &Reference) -> Option<Range<usize>> {
    let start = *source.starts.get(reference.start_index)?;
    let end = *source.starts.get(reference.end_index)?;
    let holds = source.text.get(start..end)? == reference.content && start < end;
    holds.then_some(start..end)
}
