//! Judged pairs in, as JSON lines or as a split of a BEIR folder; numbered texts out.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::near_duplicates;
use crate::{
    corpus,
    error::{Error, Result},
    eval::{dataset::beir, files},
};

/// Pairs that people judged, before they are tokenised.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledTexts {
    /// Where they come from, for messages.
    pub path: PathBuf,
    /// The texts to ask with, none twice.
    pub anchors: Vec<String>,
    /// The texts to find, none twice in a file of pairs; all documents of a BEIR folder.
    pub passages: Vec<String>,
    /// The near-duplicates among the passages, as of [`near_duplicates`].
    pub groups: Vec<u64>,
    /// What belongs together.
    pub pairs: Vec<TextPair>,
    /// Judgements of a BEIR folder that nothing can be learnt from: of a query or a document without text.
    pub without_text: usize,
}

/// An anchor and its passages, by their places in [`LabelledTexts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPair {
    /// The anchor.
    pub anchor: usize,
    /// The passage that it is to find.
    pub positive: usize,
    /// Passages known to be wrong.
    pub negatives: Vec<usize>,
}

const EXPECTED: &str = "expected {\"anchor\": TEXT, \"positive\": TEXT} and optionally \
                        \"negative\": TEXT or [TEXT, ...]";

#[derive(Deserialize)]
struct Line {
    anchor: String,
    positive: String,
    #[serde(default)]
    negative: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Numbers texts in the order in which they first come.
#[derive(Default)]
struct Numbers(HashMap<String, usize>);

impl Numbers {
    fn of(&mut self, text: &str) -> usize {
        let next = self.0.len();
        match self.0.get(text) {
            Some(&known) => known,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        }
    }

    fn texts(self) -> Vec<String> {
        let mut texts: Vec<(String, usize)> = self.0.into_iter().collect();
        texts.sort_unstable_by_key(|(_, number)| *number);
        texts.into_iter().map(|(text, _)| text).collect()
    }
}

impl LabelledTexts {
    /// Reads lines of `{"anchor", "positive", "negative"}`, the last optional, a text or a list;
    /// blank lines and other keys are passed over.
    ///
    /// # Errors
    /// A file that cannot be read or has no pair; a line that is no pair or has an empty text.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read(path)?;
        let (mut anchors, mut passages) = (Numbers::default(), Numbers::default());
        let mut pairs = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let fail = |message: String| files::at_line(path, at + 1, message);
            let line: Line = serde_json::from_str(line).map_err(|e| {
                // "at line 1", which serde adds, is the first line of this line.
                let reason = e.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default();
                fail(format!("{reason}; {EXPECTED}"))
            })?;
            let negatives = match line.negative {
                None => Vec::new(),
                Some(OneOrMany::One(negative)) => vec![negative],
                Some(OneOrMany::Many(negatives)) => negatives,
            };
            let named = [("anchor", &line.anchor), ("positive", &line.positive)];
            let named = named.into_iter().chain(negatives.iter().map(|n| ("negative", n)));
            for (name, text) in named {
                if text.trim().is_empty() {
                    return Err(fail(format!("the {name} is empty: fill it in or drop the line")));
                }
            }
            pairs.push(TextPair {
                anchor: anchors.of(&line.anchor),
                positive: passages.of(&line.positive),
                negatives: negatives.iter().map(|negative| passages.of(negative)).collect(),
            });
        }
        if pairs.is_empty() {
            return Err(Error::format(path, format!("holds no pair; {EXPECTED}, one a line")));
        }
        Ok(Self::new(path, anchors.texts(), passages.texts(), pairs))
    }

    /// A number for all that they hold, so that a resumed run sees whether they changed.
    pub fn hash(&self) -> String {
        let mut key = super::Key::default();
        for text in self.anchors.iter().chain(&self.passages) {
            key.add(text.bytes().chain([0xff]));
        }
        for pair in &self.pairs {
            let places = [&pair.anchor, &pair.positive].into_iter().chain(&pair.negatives);
            key.add(places.flat_map(|place| place.to_le_bytes()));
        }
        format!("{:016x}", key.0)
    }

    /// Reads a split of a BEIR folder: what is judged above 0 is a positive, what is judged 0 or
    /// less a hard negative; a passage is title and text of a document.
    ///
    /// # Errors
    /// A file that is missing or malformed, a split without a positive, a judged document that
    /// is not there.
    pub fn beir(dir: &Path, split: &str) -> Result<Self> {
        let dataset = beir::load(dir, split)?;
        let documents = corpus::load(dir)?.documents;
        let rows: HashMap<&str, usize> =
            documents.iter().enumerate().map(|(row, document)| (&*document.id.0, row)).collect();
        let passages: Vec<String> = documents
            .iter()
            .map(|document| format!("{} {}", document.title, document.text).trim().to_owned())
            .collect();
        let qrels = dir.join("qrels").join(format!("{split}.tsv"));
        let mut anchors = Numbers::default();
        let (mut pairs, mut without_text) = (Vec::new(), 0);
        for query in &dataset.queries {
            let asks = !query.text.trim().is_empty();
            let (mut positives, mut negatives) = (Vec::new(), Vec::new());
            for (document, grade) in dataset.qrels.get(&query.id).into_iter().flatten() {
                let Some(&row) = rows.get(document.as_str()) else {
                    let id = &query.id;
                    let message =
                        format!("query `{id}` judges `{document}`, which corpus.jsonl lacks");
                    return Err(Error::format(&qrels, message));
                };
                match *grade > 0 {
                    _ if !asks || passages[row].is_empty() => without_text += 1,
                    true => positives.push(row),
                    false => negatives.push(row),
                }
            }
            pairs.extend(positives.into_iter().map(|positive| {
                let (anchor, negatives) = (anchors.of(&query.text), negatives.clone());
                TextPair { anchor, positive, negatives }
            }));
        }
        if pairs.is_empty() {
            return Err(Error::format(&qrels, "judges no document above 0: nothing to learn"));
        }
        let texts = Self::new(&qrels, anchors.texts(), passages, pairs);
        Ok(Self { without_text, ..texts })
    }

    fn new(path: &Path, anchors: Vec<String>, passages: Vec<String>, pairs: Vec<TextPair>) -> Self {
        let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
        let groups = near_duplicates(&texts);
        let path = path.to_owned();
        let mut texts = Self { path, anchors, passages, groups, pairs, without_text: 0 };
        for pair in &mut texts.pairs {
            // A near-duplicate of what is right is right.
            let right = texts.groups[pair.positive];
            pair.negatives.retain(|negative| texts.groups[*negative] != right);
        }
        texts
    }
}
