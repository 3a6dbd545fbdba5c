//! A BEIR folder (Thakur et al. 2021) to a [`Dataset`].
//!
//! `queries.jsonl` with `_id`, `text` and optional `metadata` (`class`, `split`, `answerable`),
//! `qrels/SPLIT.tsv`, and optionally `answers.jsonl` with `_id` and `answers`. A question belongs
//! to a split if the split judges it; a question that no split judges belongs to every split,
//! unless its metadata names one. It is unanswerable if its metadata say so, or if it has an
//! empty list of answers and no relevant document.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;
use serde_json::Value;

use super::{Dataset, Meta, Qrels, Question, folder_name, qrels, spans};
use crate::{
    corpus::beir::id,
    error::{Error, Result},
    eval::files,
};

#[derive(Deserialize)]
struct QueryLine {
    #[serde(deserialize_with = "id")]
    _id: String,
    text: String,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct AnswerLine {
    #[serde(deserialize_with = "id")]
    _id: String,
    answers: Vec<String>,
    answer: Option<String>,
}

/// Loads a split judged by documents; the corpus is the folder's `corpus.jsonl`.
///
/// # Errors
/// A file that is missing or malformed, with its line; a judged question that has no text.
pub fn load(dir: &Path, split: &str) -> Result<Dataset> {
    let files = qrels::splits(dir)?;
    let Some(path) = files.get(split) else {
        let known: Vec<&str> = files.keys().map(String::as_str).collect();
        return Err(Error::format(
            dir.join("qrels").join(format!("{split}.tsv")),
            format!("there is no such split; the folder has: {}", known.join(", ")),
        ));
    };
    let judged = qrels::read(path)?;
    let mut elsewhere = BTreeSet::new();
    for other in files.values().filter(|other| *other != path) {
        elsewhere.extend(qrels::read(other)?.qrels.into_keys());
    }
    let mut answers = read_answers(&dir.join("answers.jsonl"))?;
    let mut queries = Vec::new();
    for line in read_queries(&dir.join("queries.jsonl"))? {
        let here = judged.qrels.contains_key(&line._id);
        let named = line.metadata["split"].as_str();
        if here || !elsewhere.contains(&line._id) && named.is_none_or(|named| named == split) {
            let answers = answers.remove(&line._id);
            queries.push(question(line, answers, &judged.qrels));
        }
    }
    let known: BTreeSet<&str> = queries.iter().map(|query| query.id.as_str()).collect();
    if let Some((id, at)) = judged.lines.iter().find(|(id, _)| !known.contains(id.as_str())) {
        let message = format!("query `{id}` is judged here but is not in queries.jsonl");
        return Err(files::at_line(&judged.path, *at, message));
    }
    let meta = Meta::read(dir)?;
    Ok(Dataset {
        name: meta.name.clone().unwrap_or_else(|| folder_name(dir)),
        split: split.to_owned(),
        queries,
        qrels: judged.qrels,
        corpus: Some(dir.to_owned()),
        meta,
    })
}

/// True if the folder has gold spans of whole documents, `spans.jsonl` and `corpora/`.
pub fn has_spans(dir: &Path) -> bool {
    dir.join("spans.jsonl").is_file() && dir.join("corpora").is_dir()
}

/// Loads a split judged by gold spans, which hold under every chunking; the corpus is the
/// folder's `corpora`, and a document is relevant if it holds a gold span.
///
/// # Errors
/// As [`load`]; a span that does not hold the text it should.
pub fn load_spans(dir: &Path, split: &str) -> Result<Dataset> {
    let mut dataset = load(dir, split)?;
    let mut gold = spans::read(dir)?;
    dataset.qrels.clear();
    for query in &mut dataset.queries {
        query.gold = gold.remove(&query.id).unwrap_or_default();
        let relevant: BTreeMap<String, i64> =
            query.gold.iter().map(|gold| (gold.document.to_string(), 1)).collect();
        if !relevant.is_empty() {
            dataset.qrels.insert(query.id.clone(), relevant);
        }
    }
    dataset.corpus = Some(dir.join("corpora"));
    Ok(dataset)
}

fn question(line: QueryLine, answers: Option<AnswerLine>, qrels: &Qrels) -> Question {
    let relevant = qrels.get(&line._id).is_some_and(|docs| docs.values().any(|grade| *grade > 0));
    let answerable = match (line.metadata["answerable"].as_bool(), &answers) {
        (Some(said), _) => Some(said),
        (None, Some(found)) => Some(relevant || !found.answers.is_empty()),
        (None, None) => None,
    };
    let class = line.metadata["class"].as_str().map(str::to_owned);
    let (answers, answer) = answers.map_or_else(Default::default, |a| (a.answers, a.answer));
    Question { id: line._id, text: line.text, class, answers, gold: vec![], answerable, answer }
}

fn read_queries(path: &Path) -> Result<Vec<QueryLine>> {
    let mut seen = BTreeSet::new();
    let mut queries = Vec::new();
    for (at, line) in files::json_lines::<QueryLine>(path)? {
        if !seen.insert(line._id.clone()) {
            return Err(files::at_line(path, at, format!("the id `{}` comes twice", line._id)));
        }
        queries.push(line);
    }
    Ok(queries)
}

/// Answers by question; none where the folder has no such file.
fn read_answers(path: &Path) -> Result<BTreeMap<String, AnswerLine>> {
    let mut answers = BTreeMap::new();
    if !path.exists() {
        return Ok(answers);
    }
    for (at, line) in files::json_lines::<AnswerLine>(path)? {
        let id = line._id.clone();
        if answers.insert(id.clone(), line).is_some() {
            return Err(files::at_line(path, at, format!("the id `{id}` comes twice")));
        }
    }
    Ok(answers)
}
