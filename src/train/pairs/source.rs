//! A document in, its sentences as token ids and its passages out; made once, before training.
//!
//! A document that is longer than a passage may be is cut into passages of whole sentences, at a
//! heading where the passage is half full already. Table rows are spelt out and markdown marks
//! taken off what is to stand for a question, as the index and its users do.

use std::ops::Range;

use super::definition;
use crate::{
    error::Result,
    text::{Unit, UnitKind, plain, spell_row, table_cells, units},
    tokenizer::Tokenizer,
    types::Document,
};

/// A sentence or a line of code of fewer bytes is joined with the next.
const SHORT_BYTES: usize = 20;
/// Tokens without which a sentence asks nothing.
const ANCHOR_TOKENS: usize = 3;
/// Tokens from which the only sentence of a passage can be cut in two.
const DIVISIBLE_TOKENS: usize = 12;

/// Some of a [`Source`]'s token ids.
pub(super) type Span = Range<u32>;

/// A document, tokenised.
#[derive(Debug, Default)]
pub(super) struct Source {
    tokens: Vec<u32>,
    pub(super) title: Span,
    /// The first is what stands before any heading.
    pub(super) sections: Vec<Section>,
    pub(super) sentences: Vec<Sentence>,
    pub(super) passages: Vec<Passage>,
}

/// A heading and what it stands for.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The heading alone.
    pub(super) heading: Span,
    /// The headings from the outermost on, as [`Chunk::heading`](crate::types::Chunk) has them.
    pub(super) path: Span,
}

/// A unit of text.
#[derive(Debug)]
pub(super) struct Sentence {
    /// As it is searched.
    pub(super) text: Span,
    /// As somebody may ask with it; empty where nobody would.
    pub(super) anchor: Span,
    /// The question that it answers; empty for most.
    pub(super) question: Span,
    pub(super) section: u32,
    pub(super) is_heading: bool,
    /// Bytes of the document.
    bytes: Range<usize>,
}

/// A run of sentences that is found as one.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) sentences: Range<usize>,
    /// Sentences that can be anchors.
    pub(super) anchors: Vec<usize>,
    /// Sentences that answer a question.
    pub(super) questions: Vec<usize>,
    /// Sections whose heading is above some of the sentences.
    pub(super) sections: Vec<u32>,
    /// The only sentence, if it is long enough to ask with one part for the other.
    pub(super) divisible: bool,
    /// As [`near_duplicates`](super::near_duplicates) says.
    pub(super) group: u64,
}

/// A part of a document that is to be a [`Sentence`].
struct Piece {
    bytes: Range<usize>,
    kind: UnitKind,
    section: u32,
    /// A table row spelt out; other pieces are their bytes.
    spelt: Option<String>,
}

impl Source {
    /// Tokenises `document` and cuts it into passages of at most `passage_tokens`.
    pub(super) fn new(
        document: &Document,
        tokenizer: &Tokenizer,
        passage_tokens: usize,
    ) -> Result<Self> {
        let mut source = Self::default();
        source.title = source.push(&document.title, tokenizer)?;
        for piece in source.pieces(document, tokenizer)? {
            source.sentence(document, piece, tokenizer, passage_tokens)?;
        }
        source.cut(passage_tokens);
        Ok(source)
    }

    pub(super) fn ids(&self, span: &Span) -> &[u32] {
        &self.tokens[span.start as usize..span.end as usize]
    }

    /// Bytes of the document that a passage is made of.
    pub(super) fn bytes(&self, passage: &Passage) -> Range<usize> {
        let sentences = &self.sentences[passage.sentences.clone()];
        let start = sentences.first().map_or(0, |sentence| sentence.bytes.start);
        start..sentences.last().map_or(start, |sentence| sentence.bytes.end)
    }

    fn push(&mut self, text: &str, tokenizer: &Tokenizer) -> Result<Span> {
        let start = self.tokens.len() as u32;
        if !text.trim().is_empty() {
            // A cased tokenizer has other tokens for the first word of a text, which hardly any is.
            tokenizer.encode_ids_into(&format!(" {}", text.trim_start()), &mut self.tokens)?;
        }
        Ok(start..self.tokens.len() as u32)
    }

    /// The units of the text, short ones joined, each with its section.
    fn pieces(&mut self, document: &Document, tokenizer: &Tokenizer) -> Result<Vec<Piece>> {
        let text = document.text.as_str();
        let has_headings = document.metadata.get("format").is_some_and(|f| f == "markdown");
        self.sections.push(Section::default());
        let mut pieces: Vec<Piece> = Vec::new();
        let mut path: Vec<(usize, String)> = Vec::new();
        let mut header = Vec::new();
        for Unit { span, kind } in units(text) {
            let content = &text[span.clone()];
            let section = self.sections.len() as u32 - 1;
            let mut piece = Piece { bytes: span, kind, section, spelt: None };
            match kind {
                UnitKind::Heading if has_headings => {
                    let depth = content.bytes().take_while(|&byte| byte == b'#').count();
                    let heading = plain(content);
                    if *heading == *document.title {
                        continue; // the title stands in front of every passage already
                    }
                    path.retain(|(above, _)| *above < depth);
                    path.push((depth, heading.clone()));
                    let names: Vec<&str> = path.iter().map(|(_, name)| name.as_str()).collect();
                    let path = self.push(&names.join(" > "), tokenizer)?;
                    let heading = self.push(&heading, tokenizer)?;
                    self.sections.push(Section { heading, path });
                    piece.section += 1;
                }
                UnitKind::Heading => piece.kind = UnitKind::Sentence,
                UnitKind::TableHeader => {
                    header = table_cells(content);
                    continue;
                }
                UnitKind::TableRow => {
                    piece.spelt = Some(spell_row(&header, &table_cells(content)));
                }
                UnitKind::Sentence | UnitKind::Code => {}
            }
            match pieces.last_mut() {
                Some(last) if last.takes(&piece) => last.bytes.end = piece.bytes.end,
                _ => pieces.push(piece),
            }
        }
        Ok(pieces)
    }

    fn sentence(
        &mut self,
        document: &Document,
        piece: Piece,
        tokenizer: &Tokenizer,
        passage_tokens: usize,
    ) -> Result<()> {
        let content = piece.spelt.as_deref().unwrap_or(&document.text[piece.bytes.clone()]);
        let text = self.push(content, tokenizer)?;
        if text.len() > passage_tokens
            && let Some((left, right)) = piece.halves(document)
        {
            self.tokens.truncate(text.start as usize);
            self.sentence(document, left, tokenizer, passage_tokens)?;
            return self.sentence(document, right, tokenizer, passage_tokens);
        }
        let is_heading = piece.kind == UnitKind::Heading;
        let (mut anchor, mut question) = (text.clone(), 0..0);
        if piece.kind == UnitKind::Sentence {
            // Taking marks off is slow, and most sentences have none.
            let bare = match content.contains(['*', '_', '`', '[', '<', '~', '\\', '&', '\n']) {
                true => plain(content),
                false => content.to_owned(),
            };
            if bare != content {
                anchor = self.push(&bare, tokenizer)?;
            }
            if let Some(asked) = definition::question(&bare) {
                question = self.push(&asked, tokenizer)?;
            }
        }
        if is_heading || anchor.len() < ANCHOR_TOKENS {
            anchor = 0..0;
        }
        let Piece { bytes, section, .. } = piece;
        self.sentences.push(Sentence { text, anchor, question, section, is_heading, bytes });
        Ok(())
    }

    fn cut(&mut self, passage_tokens: usize) {
        let mut left: usize = self.sentences.iter().map(|sentence| sentence.text.len()).sum();
        let (mut start, mut tokens) = (0, 0);
        for at in 0..self.sentences.len() {
            let sentence = &self.sentences[at];
            let len = sentence.text.len();
            // At a heading, unless all that is left goes into one passage.
            let section = sentence.is_heading
                && tokens > passage_tokens / 2
                && tokens + left > passage_tokens;
            if at > start && (section || tokens + len > passage_tokens) {
                self.passage(start..at);
                (start, tokens) = (at, 0);
            }
            tokens += len;
            left -= len;
        }
        if start < self.sentences.len() {
            self.passage(start..self.sentences.len());
        }
    }

    fn passage(&mut self, sentences: Range<usize>) {
        let which = |wanted: &dyn Fn(&Sentence) -> bool| -> Vec<usize> {
            sentences.clone().filter(|&at| wanted(&self.sentences[at])).collect()
        };
        let anchors = which(&|sentence| !sentence.anchor.is_empty());
        let questions = which(&|sentence| !sentence.question.is_empty());
        let body = which(&|sentence| !sentence.is_heading);
        let mut sections: Vec<u32> = body.iter().map(|&at| self.sentences[at].section).collect();
        sections.dedup();
        sections.retain(|&section| !self.sections[section as usize].heading.is_empty());
        let divisible = matches!(body[..], [only]
            if self.sentences[only].text.len() >= DIVISIBLE_TOKENS);
        let passage = Passage { sentences, anchors, questions, sections, divisible, group: 0 };
        self.passages.push(passage);
    }
}

impl Piece {
    /// True if `next` goes on with this piece, because one of the two is no sentence by itself.
    fn takes(&self, next: &Self) -> bool {
        self.bytes.len() < SHORT_BYTES
            && self.kind == next.kind
            && self.section == next.section
            && matches!(self.kind, UnitKind::Sentence | UnitKind::Code)
    }

    /// The piece cut in two, at the blank nearest to the middle if there is one; a table row, which
    /// is no run of bytes, stays whole.
    fn halves(&self, document: &Document) -> Option<(Self, Self)> {
        let content = &document.text[self.bytes.clone()];
        if self.spelt.is_some() {
            return None;
        }
        let middle = crate::text::char_floor(content, content.len() / 2);
        let blank = content[..middle].rfind(char::is_whitespace).filter(|&at| at > 0);
        let next = content.chars().next().map_or(0, char::len_utf8);
        let at = self.bytes.start + blank.unwrap_or(middle).max(next);
        let part = |bytes: Range<usize>| Self { bytes, spelt: None, ..*self };
        let two = at < self.bytes.end;
        two.then(|| (part(self.bytes.start..at), part(at..self.bytes.end)))
    }
}
