//! Quotes the best supported sentence of at most two passages.
//!
//! The first is the sentence or table row with the best score over all passages, of equals the
//! shorter, then the better ranked. A second, from another passage, is added only when it holds
//! words of the question that the first lacks and scores nearly as well: that is what a question
//! about two things needs, and what keeps a question about one thing from being answered twice.

use std::collections::BTreeSet;

use crate::{
    error::Result,
    reader::Reader,
    text::Analyzer,
    types::{Draft, Evidence, Prompt, Source},
};

/// The reader that writes nothing of its own.
#[derive(Debug, Clone, Copy)]
pub struct Extractive {
    /// How words become terms.
    pub analyzer: Analyzer,
    /// The share of the best sentence's score that a second one must reach.
    pub second: f32,
}

impl Default for Extractive {
    fn default() -> Self {
        Self { analyzer: Analyzer::default(), second: 0.8 }
    }
}

impl Reader for Extractive {
    fn name(&self) -> &str {
        "extractive"
    }

    fn read(&self, prompt: &Prompt, on_text: &mut dyn FnMut(&str)) -> Result<Draft> {
        let mut draft = Draft::default();
        let Some(first) = best(&prompt.sources, |_| true) else { return Ok(draft) };
        self.quote(first, &prompt.question, &mut draft);
        let question = self.analyzer.content(&prompt.question);
        let covered = self.analyzer.content(&context(first));
        let missing: BTreeSet<&String> = question.difference(&covered).collect();
        let second = best(&prompt.sources, |candidate| {
            candidate.0.marker != first.0.marker
                && candidate.1.score >= self.second * first.1.score
                && self
                    .analyzer
                    .content(&context(candidate))
                    .iter()
                    .any(|term| missing.contains(term))
        });
        if let Some(second) = second {
            draft.text.push(' ');
            self.quote(second, &prompt.question, &mut draft);
        }
        on_text(&draft.text);
        Ok(draft)
    }
}

type Candidate<'a> = (&'a Source, &'a Evidence);

impl Extractive {
    /// Writes the sentence, its marker, and the value if it is a table row.
    fn quote(&self, (source, evidence): Candidate<'_>, question: &str, draft: &mut Draft) {
        // A document's own `[#2]` is text, not a citation.
        draft.text.push_str(&evidence.text.replace("[#", "[ #"));
        draft.text.push_str(&format!(" [#{}]", source.marker));
        draft.used.push((source.marker, evidence.span.clone()));
        if draft.value.is_none() {
            draft.value = self.cell(question, &evidence.cells);
        }
    }

    /// The cell that a question asks for: not one that it names, under the column header that
    /// shares most words with it, the leftmost of equals.
    fn cell(&self, question: &str, cells: &[(String, String)]) -> Option<String> {
        let question = terms(self.analyzer, question);
        let mut best: Option<(usize, &String)> = None;
        for (header, cell) in cells {
            let words = terms(self.analyzer, cell);
            if words.is_empty() || words.is_subset(&question) {
                continue;
            }
            let shared = terms(self.analyzer, header).intersection(&question).count();
            if best.is_none_or(|(most, _)| shared > most) {
                best = Some((shared, cell));
            }
        }
        best.map(|(_, cell)| cell.clone())
    }
}

fn terms(analyzer: Analyzer, text: &str) -> BTreeSet<String> {
    analyzer.terms(text).into_iter().collect()
}

/// The sentence with the headings that it stands under.
fn context((source, evidence): Candidate<'_>) -> String {
    format!("{} {} {} {}", source.chunk.title, evidence.section, evidence.asked, evidence.text)
}

/// The best scored evidence that passes `wanted`; of equals the shorter, which says it with less
/// besides, then the better ranked.
fn best(sources: &[Source], wanted: impl Fn(Candidate<'_>) -> bool) -> Option<Candidate<'_>> {
    let mut best: Option<Candidate<'_>> = None;
    for source in sources {
        for evidence in &source.evidence {
            let order = |(source, evidence): Candidate<'_>| (evidence.text.len(), source.marker);
            let better = best.is_none_or(|held| {
                evidence.score > held.1.score
                    || evidence.score == held.1.score && order((source, evidence)) < order(held)
            });
            if better && evidence.score > 0.0 && wanted((source, evidence)) {
                best = Some((source, evidence));
            }
        }
    }
    best
}
