//! TREC run files, read and written, and the order of `trec_eval`.
//!
//! A line is `query Q0 document rank score tag`. As in `trec_eval` the rank is ignored: the order
//! is by score, descending, then by document id, descending. A document whose id equals the
//! query's is kept like any other. Scores are written with the fewest digits that read back to
//! the same 32 bits.

use std::{cmp::Ordering, collections::BTreeMap, collections::HashSet, fmt::Write, path::Path};

use crate::{
    error::{Error, Result},
    eval::files,
};

/// For each query its documents and their scores, in any order.
pub type Run = BTreeMap<String, Vec<(String, f32)>>;

/// The order of `trec_eval`: score, then document id, both descending; scores must be finite.
pub fn order(a: (&str, f32), b: (&str, f32)) -> Ordering {
    b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then_with(|| b.0.cmp(a.0))
}

/// The documents of ranked chunks, each with its best chunk's score.
pub fn documents<'a>(chunks: impl IntoIterator<Item = (&'a str, f32)>) -> Vec<(String, f32)> {
    let mut best: BTreeMap<&str, f32> = BTreeMap::new();
    for (document, score) in chunks {
        best.entry(document).and_modify(|kept| *kept = kept.max(score)).or_insert(score);
    }
    let mut documents: Vec<_> =
        best.into_iter().map(|(id, score)| (id.to_owned(), score)).collect();
    documents.sort_by(|a, b| order((&a.0, a.1), (&b.0, b.1)));
    documents
}

/// Reads a run.
///
/// # Errors
/// A line without six fields, a score that is not a finite number, a document listed twice for
/// one query.
pub fn read(path: &Path) -> Result<Run> {
    let text = files::read(path)?;
    let mut run = Run::new();
    let mut seen = HashSet::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fail = |message: String| files::at_line(path, at + 1, message);
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [query, _, document, _, score, _] = fields[..] else {
            let found = fields.len();
            return Err(fail(format!(
                "expected 6 fields (query Q0 document rank score tag), found {found}"
            )));
        };
        let score = match score.parse::<f32>() {
            Ok(value) if value.is_finite() => value,
            _ => return Err(fail(format!("`{score}` is not a finite score"))),
        };
        if !seen.insert((query, document)) {
            return Err(fail(format!("document `{document}` comes twice for query `{query}`")));
        }
        run.entry(query.to_owned()).or_default().push((document.to_owned(), score));
    }
    Ok(run)
}

/// Writes a run, each query's documents in order, ranks from 1.
///
/// # Errors
/// A query, document or tag that is empty or holds a blank, which the format cannot express.
pub fn write(path: &Path, run: &Run, tag: &str) -> Result<()> {
    let documents = run.values().flatten().map(|(document, _)| document.as_str());
    let mut names = run.keys().map(String::as_str).chain(documents).chain([tag]);
    if let Some(name) = names.find(|name| name.is_empty() || name.contains(char::is_whitespace)) {
        return Err(Error::format(
            path,
            format!("a TREC run separates its fields by blanks, so it cannot hold the id `{name}`"),
        ));
    }
    let mut text = String::new();
    for (query, documents) in run {
        let mut documents: Vec<&(String, f32)> = documents.iter().collect();
        documents.sort_by(|a, b| order((&a.0, a.1), (&b.0, b.1)));
        for (at, (document, score)) in documents.into_iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{query} Q0 {document} {} {score} {tag}", at + 1);
        }
    }
    files::write(path, &text)
}
