//! The grammar set: `questions.jsonl` and `meta.json` to [`Dataset`]s, and out again as BEIR.
//!
//! A line is `{"id", "split", "class", "question", "gold": [{"document", "quote"}], "answer",
//! "values"}`. Gold bytes are found from the quote, so that they survive every re-chunking. The
//! questions are frozen: `SHA256SUMS` beside them holds their hash.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Dataset, GoldSpan, Meta, Qrels, Question};
use crate::{
    error::{Error, Result},
    eval::files,
    types::Document,
};

/// Classes that begin so have no answer in the corpus.
const UNANSWERABLE: &str = "unanswerable";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    split: String,
    class: String,
    question: String,
    gold: Vec<Quote>,
    answer: String,
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quote {
    document: String,
    quote: String,
}

/// All questions of the set.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionSet {
    /// What the set says about itself.
    pub meta: Meta,
    /// Each question with its split, in the order of the file.
    pub questions: Vec<(String, Question)>,
}

impl QuestionSet {
    /// Reads `dir/questions.jsonl` against the corpus that it asks about.
    ///
    /// # Errors
    /// A malformed line; a quote that its document does not hold exactly once; a question whose
    /// class and gold disagree on whether it can be answered.
    pub fn read(dir: &Path, documents: &[Document]) -> Result<Self> {
        let texts: BTreeMap<&str, &Document> = documents.iter().map(|d| (&*d.id.0, d)).collect();
        let path = dir.join("questions.jsonl");
        let mut seen = BTreeSet::new();
        let mut questions = Vec::new();
        for (at, line) in files::json_lines::<Line>(&path)? {
            let id = line.id.clone();
            let fail = |message| files::at_line(&path, at, format!("question `{id}`: {message}"));
            if !seen.insert(line.id.clone()) {
                return Err(fail("the id comes twice".to_owned()));
            }
            questions.push((line.split.clone(), question(line, &texts).map_err(fail)?));
        }
        let meta = Meta::read(dir)?;
        let chosen = meta.subsets.iter().flat_map(|(name, ids)| ids.iter().map(move |i| (name, i)));
        for (name, id) in chosen {
            if !seen.contains(id) {
                let message = format!("the subset `{name}` names the unknown question `{id}`");
                return Err(Error::format(dir.join("meta.json"), message));
            }
        }
        Ok(Self { meta, questions })
    }

    /// The questions of a split, or of a subset that `meta.json` names.
    ///
    /// # Errors
    /// A name that is neither.
    pub fn split(&self, split: &str) -> Result<Dataset> {
        let subset = self.meta.subsets.get(split);
        let chosen = |(own, question): &&(String, Question)| match subset {
            Some(ids) => ids.contains(&question.id),
            None => own == split,
        };
        let queries: Vec<Question> =
            self.questions.iter().filter(chosen).map(|(_, question)| question.clone()).collect();
        if queries.is_empty() {
            let splits = self.questions.iter().map(|(split, _)| split.as_str());
            let known: BTreeSet<&str> =
                splits.chain(self.meta.subsets.keys().map(String::as_str)).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::Setting(format!(
                "the question set has no split `{split}`; it has: {known}"
            )));
        }
        Ok(Dataset {
            name: self.meta.name.clone().unwrap_or_else(|| "grammar".to_owned()),
            split: split.to_owned(),
            qrels: qrels(&queries),
            queries,
            corpus: None,
            meta: self.meta.clone(),
        })
    }

    /// Writes the set as a BEIR folder: corpus.jsonl, queries.jsonl, answers.jsonl and
    /// qrels/SPLIT.tsv for each split.
    ///
    /// # Errors
    /// An id that holds a tab or a line break; a file that cannot be written.
    pub fn export_beir(&self, out: &Path, documents: &[Document]) -> Result<()> {
        let ids = self.questions.iter().map(|(_, question)| question.id.as_str());
        let mut ids = ids.chain(documents.iter().map(|document| &*document.id.0));
        if let Some(id) = ids.find(|id| id.contains(['\t', '\n', '\r'])) {
            let message = format!("qrels cannot hold the id {id:?}: it has a tab or a line break");
            return Err(Error::format(out, message));
        }
        let corpus = documents.iter().map(|d| {
            json!({"_id": &*d.id.0, "title": &*d.title, "text": d.text, "metadata": d.metadata})
        });
        files::write(&out.join("corpus.jsonl"), &lines(corpus))?;
        let queries = self.questions.iter().map(|(split, q)| {
            let metadata = json!({"class": q.class, "split": split, "answerable": q.answerable});
            json!({"_id": q.id, "text": q.text, "metadata": metadata})
        });
        files::write(&out.join("queries.jsonl"), &lines(queries))?;
        let answers = self
            .questions
            .iter()
            .map(|(_, q)| json!({"_id": q.id, "answers": q.answers, "answer": q.answer}));
        files::write(&out.join("answers.jsonl"), &lines(answers))?;
        let splits: BTreeSet<&str> =
            self.questions.iter().map(|(split, _)| split.as_str()).collect();
        for split in splits {
            let mut text = "query-id\tcorpus-id\tscore\n".to_owned();
            for (query, documents) in self.split(split)?.qrels {
                documents.iter().for_each(|(document, grade)| {
                    text.push_str(&format!("{query}\t{document}\t{grade}\n"));
                });
            }
            files::write(&out.join("qrels").join(format!("{split}.tsv")), &text)?;
        }
        Ok(())
    }
}

/// Checks each file that `dir/SHA256SUMS` names (the format of `sha256sum`) against its hash.
///
/// # Errors
/// A file that is missing or differs; sums that don't name `questions.jsonl`.
pub fn check_frozen(dir: &Path) -> Result<()> {
    let sums = dir.join("SHA256SUMS");
    let mut questions = false;
    for (at, line) in files::read(&sums)?.lines().enumerate().filter(|(_, l)| !l.trim().is_empty())
    {
        let Some((expected, name)) = line.split_once(char::is_whitespace) else {
            return Err(files::at_line(&sums, at + 1, "expected a hash and a file name"));
        };
        let name = name.trim().trim_start_matches('*');
        let path = dir.join(name);
        let content = fs::read(&path).map_err(Error::io(&path))?;
        let got = Sha256::digest(&content).iter().map(|b| format!("{b:02x}")).collect::<String>();
        if !expected.eq_ignore_ascii_case(&got) {
            return Err(Error::format(
                &path,
                format!("the file was frozen with sha256 {expected} and now has {got}"),
            ));
        }
        questions |= name == "questions.jsonl";
    }
    match questions {
        true => Ok(()),
        false => Err(Error::format(&sums, "it holds no hash of questions.jsonl")),
    }
}

fn question(line: Line, texts: &BTreeMap<&str, &Document>) -> Result<Question, String> {
    let answerable = !line.class.starts_with(UNANSWERABLE);
    if answerable == line.gold.is_empty() || answerable == line.values.is_empty() {
        return Err(format!(
            "the class is `{}`, with {} gold quotes and {} values",
            line.class,
            line.gold.len(),
            line.values.len()
        ));
    }
    let gold = line.gold.into_iter().map(|quote| locate(quote, texts)).collect::<Result<_, _>>()?;
    Ok(Question {
        id: line.id,
        text: line.question,
        class: Some(line.class),
        answers: line.values,
        gold,
        answerable: Some(answerable),
        answer: Some(line.answer).filter(|answer| !answer.is_empty()),
    })
}

fn locate(gold: Quote, texts: &BTreeMap<&str, &Document>) -> Result<GoldSpan, String> {
    let Quote { document, quote } = gold;
    let Some(source) = texts.get(document.as_str()) else {
        return Err(format!("the corpus has no document `{document}`"));
    };
    let first = source.text.find(&quote).filter(|_| !quote.is_empty());
    let Some(start) = first else {
        return Err(format!("`{document}` does not hold the quote {quote:?}"));
    };
    let next = start + quote.chars().next().map_or(1, char::len_utf8);
    if source.text[next..].contains(&quote) {
        return Err(format!("`{document}` holds the quote {quote:?} more than once"));
    }
    Ok(GoldSpan { document: source.id.clone(), span: start..start + quote.len(), quote })
}

fn qrels(queries: &[Question]) -> Qrels {
    let judged = queries.iter().filter(|query| !query.gold.is_empty());
    judged
        .map(|query| {
            let relevant = query.gold.iter().map(|gold| (gold.document.to_string(), 1));
            (query.id.clone(), relevant.collect())
        })
        .collect()
}

fn lines(values: impl Iterator<Item = serde_json::Value>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}
