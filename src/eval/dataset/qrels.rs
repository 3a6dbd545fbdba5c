//! `qrels/SPLIT.tsv` to judgements.
//!
//! Two shapes, told apart line by line: BEIR's `query-id document-id score`, tab-separated under a
//! header, and TREC's `query-id iteration document-id relevance`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::Qrels;
use crate::{
    error::{Error, Result},
    eval::files,
};

const EXTENSIONS: [&str; 4] = ["tsv", "txt", "qrels", "trec"];

/// One judgement and the line it stands in.
pub(super) struct Judgements {
    pub(super) qrels: Qrels,
    /// The line, from 1, at which each question first comes.
    pub(super) lines: BTreeMap<String, usize>,
    pub(super) path: PathBuf,
}

/// The judgement files of a BEIR folder by the name of their split.
pub(super) fn splits(dir: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let folder = dir.join("qrels");
    let mut splits = BTreeMap::new();
    for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
        let path = entry.map_err(Error::io(&folder))?.path();
        let known =
            path.extension().is_some_and(|ext| EXTENSIONS.iter().any(|known| ext == *known));
        if let (true, Some(stem)) = (known, path.file_stem()) {
            splits.insert(stem.to_string_lossy().into_owned(), path);
        }
    }
    Ok(splits)
}

/// Reads a judgement file.
pub(super) fn read(path: &Path) -> Result<Judgements> {
    let text = files::read(path)?;
    let mut read =
        Judgements { qrels: Qrels::new(), lines: BTreeMap::new(), path: path.to_owned() };
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fail = |message: String| files::at_line(path, at + 1, message);
        let fields: Vec<&str> = match line.contains('\t') {
            true => line.split('\t').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        let (query, document, score) = match fields[..] {
            [query, document, score] | [query, _, document, score] => (query, document, score),
            _ => {
                let found = fields.len();
                return Err(fail(format!(
                    "expected query-id, corpus-id, score (or the four fields of TREC), found \
                     {found} fields"
                )));
            }
        };
        if at == 0 && query.to_lowercase().starts_with('q') && score.eq_ignore_ascii_case("score") {
            continue;
        }
        let Ok(score) = score.parse::<i64>() else {
            return Err(fail(format!("the relevance `{score}` is not a whole number")));
        };
        let judged = read.qrels.entry(query.to_owned()).or_default();
        if let Some(before) = judged.insert(document.to_owned(), score).filter(|b| *b != score) {
            return Err(fail(format!(
                "query `{query}` judges document `{document}` {before} and {score}"
            )));
        }
        read.lines.entry(query.to_owned()).or_insert(at + 1);
    }
    Ok(read)
}
