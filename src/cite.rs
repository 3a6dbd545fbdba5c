//! A draft's markers in, an answer with verified citations out.
//!
//! Only `[#n]` is a marker: `a[1]` in code is none. A marker of no source is taken out of the
//! text and reported. A citation's quote is cut from the chunk's own bytes, never searched for.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    error::{Error, Result},
    text::{Analyzer, units},
    types::{Answer, Citation, Draft, Prompt, Reason, Source},
};

/// The least share of a sentence's content words that its quote must hold.
pub const MIN_SUPPORT: f32 = 0.5;

/// An answer, and what was wrong with its draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Cited {
    /// The answer.
    pub answer: Answer,
    /// Markers in the draft that no source has.
    pub unknown_markers: Vec<usize>,
    /// Sentences of the draft that no citation supports.
    pub unsupported: usize,
}

/// Resolves the markers of `draft` against the prompt's sources.
///
/// An empty draft is a refusal; a draft none of whose citations carries its sentence is refused
/// as not supported. A passage quoted for several sentences is cited once, with the least support
/// that it gives. `best` and `threshold` are reported with a refusal.
pub fn cite(
    draft: Draft,
    prompt: &Prompt,
    analyzer: Analyzer,
    (best, threshold): (Option<f32>, Option<f32>),
) -> Result<Cited> {
    let unknown = |reason| Answer::Unknown { reason, best, threshold };
    if draft.text.trim().is_empty() {
        let answer = unknown(Reason::ReaderRefused);
        return Ok(Cited { answer, unknown_markers: Vec::new(), unsupported: 0 });
    }
    let mut unknown_markers = Vec::new();
    let mut citations: Vec<Citation> = Vec::new();
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    let mut claims = Claims::default();
    let mut text = String::with_capacity(draft.text.len());
    let mut rest = 0;
    for (marker, span) in markers(&draft.text) {
        claims.read(&draft.text[rest..span.start]);
        text.push_str(&draft.text[rest..span.start]);
        rest = span.end;
        let Some(source) = prompt.sources.iter().find(|source| source.marker == marker) else {
            unknown_markers.push(marker);
            text.truncate(text.trim_end().len());
            continue;
        };
        text.push_str(&draft.text[span]);
        let nth = uses.entry(marker).or_default();
        let citation = citation(source, used(&draft, marker, *nth), claims.open, analyzer)?;
        *nth += 1;
        claims.supported |= citation.supported;
        let same = |c: &&mut Citation| c.marker == marker && c.span == citation.span;
        match citations.iter_mut().find(same) {
            Some(before) => {
                before.support = before.support.min(citation.support);
                before.supported &= citation.supported;
            }
            None => citations.push(citation),
        }
    }
    claims.read(&draft.text[rest..]);
    text.push_str(&draft.text[rest..]);
    let answer = match citations.iter().any(|citation| citation.supported) {
        true => Answer::Cited { text, value: draft.value, citations },
        false => unknown(Reason::NotSupported),
    };
    Ok(Cited { answer, unknown_markers, unsupported: claims.finish() })
}

/// The sentences of a draft, read piece by piece between its markers.
#[derive(Default)]
struct Claims<'a> {
    /// The sentence that the next marker belongs to.
    open: &'a str,
    /// Whether a citation supports it.
    supported: bool,
    /// Sentences before it that none supports.
    unsupported: usize,
}

impl<'a> Claims<'a> {
    /// Reads what stands before a marker, or after the last. The full stop after a marker and the
    /// blank between two begin no sentence: the marker that follows belongs to the one before.
    fn read(&mut self, piece: &'a str) {
        let sentences = units(piece).into_iter().map(|unit| &piece[unit.span]);
        for sentence in sentences.filter(|s| s.contains(char::is_alphanumeric)) {
            self.unsupported += usize::from(!self.open.is_empty() && !self.supported);
            (self.open, self.supported) = (sentence, false);
        }
    }

    fn finish(mut self) -> usize {
        self.unsupported += usize::from(!self.open.is_empty() && !self.supported);
        self.unsupported
    }
}

/// The bytes that the reader used for the `nth` place of a marker; of fewer the last.
fn used(draft: &Draft, marker: usize, nth: usize) -> Option<Range<usize>> {
    let spans = draft.used.iter().filter(|(m, _)| *m == marker).map(|(_, span)| span);
    spans.take(nth + 1).last().cloned()
}

/// Every `[#n]` of `text` with its bytes, in order; `n` is nothing but digits.
pub fn markers(text: &str) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    text.match_indices("[#").filter_map(|(at, open)| {
        let start = at + open.len();
        let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
        let end = start + digits;
        let number = text[end..].starts_with(']').then(|| text[start..end].parse().ok())??;
        Some((number, at..end + 1))
    })
}

/// `text` without its markers and the blanks before them.
pub fn strip_markers(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut rest = 0;
    for (_, span) in markers(text) {
        stripped.push_str(text[rest..span.start].trim_end());
        rest = span.end;
    }
    stripped.push_str(&text[rest..]);
    stripped
}

fn citation(
    source: &Source,
    used: Option<Range<usize>>,
    sentence: &str,
    analyzer: Analyzer,
) -> Result<Citation> {
    let chunk = &source.chunk;
    let best = || source.evidence.iter().reduce(|a, b| if b.score > a.score { b } else { a });
    let span = used.or_else(|| best().map(|e| e.span.clone())).unwrap_or(chunk.span.clone());
    let inside = |at: usize| at.checked_sub(chunk.span.start);
    let quote = match (inside(span.start), inside(span.end)) {
        (Some(start), Some(end)) => chunk.text.get(start..end),
        _ => None,
    };
    let Some(quote) = quote else {
        let anchor = chunk.anchor();
        let message = format!("bytes {span:?} are cited from {anchor}, which has {:?}", chunk.span);
        return Err(Error::Mismatch(message));
    };
    // A table row says what its header makes of it: the spelt-out row stands beside the bytes.
    let spelt = source.evidence.iter().find(|e| e.span == span).map_or("", |e| &e.text);
    let support = support(sentence, &format!("{quote} {spelt}"), analyzer);
    Ok(Citation {
        marker: source.marker,
        chunk: chunk.id,
        document: chunk.document.clone(),
        anchor: chunk.anchor(),
        section: source
            .evidence
            .iter()
            .find(|e| e.span == span)
            .map_or(&chunk.heading, |e| &e.section)
            .clone(),
        quote: quote.to_owned(),
        span,
        supported: support >= MIN_SUPPORT,
        support,
    })
}

/// Share of the distinct content words of `claim` that `quote` holds, 0 to 1.
pub fn support(claim: &str, quote: &str, analyzer: Analyzer) -> f32 {
    let (claim, quote) = (analyzer.content(claim), analyzer.content(quote));
    match claim.len() {
        0 => 0.0,
        n => claim.intersection(&quote).count() as f32 / n as f32,
    }
}
