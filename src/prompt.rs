//! Ranked chunks and a question in, the reader's prompt out.
//!
//! Evidence first: of each passage the prompt shows the sentence or table row that the reranker
//! scores best, with its heading, unless whole chunks are asked for. Each passage stands between
//! its marker and its marker again. Documents are data: a marker inside one is defused and every
//! line of it is indented, so that it can't pose as a line of the template.

use crate::{
    text::{UnitKind, plain, spell_row, table_cells, units},
    types::{Chunk, Evidence, Prompt, Source},
};

/// What a prompt shows of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Show {
    /// The best sentence or table row, with its heading.
    Sentence,
    /// The whole chunk.
    Chunk,
}

/// Where the best passage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// First, as ranked.
    BestFirst,
    /// Last, next to the question.
    BestLast,
}

/// The words around passages and question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// Grammar tutor: answer by the rules alone.
    Tutor,
    /// Snippets of any documents.
    Snippets,
}

impl Template {
    /// The template's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tutor => "tutor",
            Self::Snippets => "snippets",
        }
    }

    /// What a reader says that does not find the answer.
    pub fn refusal(self) -> &'static str {
        match self {
            Self::Tutor => "I don't know — not in the rules I have.",
            Self::Snippets => "I do not know.",
        }
    }

    fn instructions(self) -> &'static str {
        match self {
            Self::Tutor => {
                "You are an English grammar tutor. Work from the numbered rules below and from \
                 nothing else.\n\
                 - Give the answer in one or two sentences.\n\
                 - After each sentence put the marker of the rule it rests on, like [#1].\n\
                 - If the rules do not hold the answer, say exactly: I don't know — not in the \
                 rules I have."
            }
            Self::Snippets => {
                "Answer the question with the numbered snippets below and with nothing else.\n\
                 - Keep to what the snippets say; add no knowledge of your own.\n\
                 - After each sentence put the marker of the snippet it rests on, like [#1].\n\
                 - If the snippets do not hold the answer, say exactly: I do not know."
            }
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Tutor => "Rules",
            Self::Snippets => "Snippets",
        }
    }
}

/// Counts the tokens of a text.
pub type CountFn<'a> = dyn Fn(&str) -> usize + 'a;

/// How a prompt is put together.
#[derive(Clone, Copy)]
pub struct PromptSettings<'a> {
    /// The words around it.
    pub template: Template,
    /// What it shows of a passage.
    pub show: Show,
    /// Where the best passage stands.
    pub order: Order,
    /// The most tokens that the prompt may have, and how they are counted; `None` for a reader
    /// without a window.
    pub budget: Option<(usize, &'a CountFn<'a>)>,
}

/// The sentences and table rows of `chunk`, unscored, in the order of the text; lines of code come
/// after them, so that of two that fit equally well the sentence is quoted. A question is no
/// evidence: what follows it is, and keeps it as its `asked`.
pub fn evidence(chunk: &Chunk) -> Vec<Evidence> {
    let mut header = match chunk.table_header.is_empty() {
        true => Vec::new(),
        false => table_cells(&chunk.table_header),
    };
    let mut section = chunk.heading.clone();
    let mut asked = String::new();
    let mut evidence = Vec::new();
    let mut lines_of_code = Vec::new();
    let front_matter = if chunk.span.start == 0 { front_matter(&chunk.text) } else { 0 };
    for unit in units(&chunk.text).into_iter().filter(|unit| unit.span.start >= front_matter) {
        let raw = &chunk.text[unit.span.clone()];
        let span = chunk.span.start + unit.span.start..chunk.span.start + unit.span.end;
        let (text, cells) = match unit.kind {
            UnitKind::TableRow => table_row(&header, raw),
            _ => (plain(raw), Vec::new()),
        };
        match unit.kind {
            UnitKind::Heading if text != *chunk.title => section = text,
            UnitKind::Heading => {}
            UnitKind::TableHeader => header = table_cells(raw),
            UnitKind::Sentence if text.ends_with('?') => asked = text,
            UnitKind::Sentence | UnitKind::TableRow | UnitKind::Code => {
                let is_code = unit.kind == UnitKind::Code;
                let list = if is_code { &mut lines_of_code } else { &mut evidence };
                if text.contains(char::is_alphanumeric) {
                    let (section, asked) = (section.clone(), std::mem::take(&mut asked));
                    list.push(Evidence { span, text, cells, section, asked, score: 0.0 });
                }
            }
        }
    }
    evidence.append(&mut lines_of_code);
    evidence
}

/// Length of the YAML between `---` lines at the start of a document.
fn front_matter(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("---\n") else { return 0 };
    rest.find("\n---\n").map_or(0, |at| "---\n".len() + at + "\n---\n".len())
}

/// A table row spelt out, and its cells by their column headers.
fn table_row(header: &[String], raw: &str) -> (String, Vec<(String, String)>) {
    let cells = table_cells(raw);
    let text = spell_row(header, &cells);
    let name = |at: usize| header.get(at).cloned().unwrap_or_default();
    (text, cells.into_iter().enumerate().map(|(at, cell)| (name(at), cell)).collect())
}

/// Writes the prompt: instructions, passages, question. Instructions and question are never cut;
/// passages that do not fit are dropped whole, lowest rank first, and reported.
pub fn build(question: &str, mut sources: Vec<Source>, settings: &PromptSettings<'_>) -> Prompt {
    for source in &mut sources {
        source.shown = shown(source, settings.show);
    }
    let mut dropped = Vec::new();
    let mut dropped_tokens = 0;
    let mut text = write(question, &sources, settings);
    if let Some((window, count)) = settings.budget {
        while count(&text) > window
            && let Some(source) = sources.pop()
        {
            dropped.push(source.marker);
            dropped_tokens += count(&source.shown);
            text = write(question, &sources, settings);
        }
    }
    if settings.order == Order::BestLast {
        sources.reverse();
    }
    Prompt { question: question.to_owned(), sources, text, dropped, dropped_tokens }
}

fn shown(source: &Source, show: Show) -> String {
    let chunk = &source.chunk;
    let best = source.evidence.iter().reduce(|a, b| if b.score > a.score { b } else { a });
    match (show, best) {
        (Show::Sentence, Some(best)) => {
            let heading = if best.section.is_empty() { &*chunk.title } else { &best.section };
            format!("{heading}: {}", best.text)
        }
        _ => chunk.text.trim().to_owned(),
    }
}

fn write(question: &str, sources: &[Source], settings: &PromptSettings<'_>) -> String {
    let template = settings.template;
    let mut text = format!("{}\n\n{}:\n", template.instructions(), template.noun());
    if sources.is_empty() {
        text.push_str("(none)\n");
    }
    let mut passages: Vec<String> = sources
        .iter()
        .map(|source| {
            let body = source.shown.replace("[#", "[ #").replace('\n', "\n  ");
            format!("[#{0}] {body} [#{0}]\n", source.marker)
        })
        .collect();
    if settings.order == Order::BestLast {
        passages.reverse();
    }
    text.extend(passages);
    let question = question.split_whitespace().collect::<Vec<_>>().join(" ");
    text.push_str(&format!("\nQuestion: {question}\nAnswer:"));
    text
}
