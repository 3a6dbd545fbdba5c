//! Documents in, chunks out: one pass over the text, spans carried along, never searched for.
//!
//! `document.text[chunk.span] == chunk.text`; starts and ends grow from chunk to chunk; nothing
//! but blank space lies outside of all chunks, so that chunks and the overlap that each records
//! reassemble the document. Lengths are counted in tokens of one tokenizer or in characters. A chunk may be 10% longer than the target,
//! and twice as long to keep code or a table whole.

mod breaks;
mod markdown;
mod outline;
mod pack;
mod recursive;
mod ruler;
mod semantic;
mod sentence;
mod settings;
mod token_window;

use std::sync::Arc;

use rayon::prelude::*;

pub use settings::{ChunkSettings, Strategy};

use crate::{
    error::{Error, Result},
    tokenizer::Tokenizer,
    types::{Chunk, ChunkId, Document, Vectors},
};
use markdown::Markdown;
use pack::{Layout, Piece};
use ruler::Ruler;

/// What lengths are counted in.
#[derive(Debug, Clone, Copy)]
pub enum Length<'a> {
    /// Tokens of this tokenizer.
    Tokens(&'a Tokenizer),
    /// Unicode characters.
    Chars,
}

/// Embeds sentences for [`Strategy::Semantic`].
pub type EmbedFn<'a> = dyn Fn(&[&str]) -> Result<Vectors> + Sync + 'a;

/// Cuts documents.
#[derive(Clone, Copy)]
pub struct Chunker<'a> {
    settings: ChunkSettings,
    length: Length<'a>,
    embed: Option<&'a EmbedFn<'a>>,
}

impl<'a> Chunker<'a> {
    /// A chunker; `embed` is needed by [`Strategy::Semantic`] alone.
    ///
    /// # Errors
    /// Settings that cannot be met; `semantic` without `embed`.
    pub fn new(
        settings: ChunkSettings,
        length: Length<'a>,
        embed: Option<&'a EmbedFn<'a>>,
    ) -> Result<Self> {
        settings.check()?;
        if settings.strategy == Strategy::Semantic && embed.is_none() {
            let message = "the chunker `semantic` needs an embedder for sentences: pass one, or \
                           choose another chunker";
            return Err(Error::Setting(message.into()));
        }
        Ok(Self { settings, length, embed })
    }

    /// The chunks of one document, in order; none for a blank one.
    ///
    /// # Errors
    /// The tokenizer or the embedder fails; a text of 4 GiB or more.
    pub fn split(&self, document: &Document) -> Result<Vec<Chunk>> {
        let text = document.text.as_str();
        if text.trim_start().is_empty() {
            return Ok(Vec::new());
        }
        let ruler = Ruler::new(text, self.length)?;
        let strategy = self.settings.strategy.resolve(document);
        let pieces = self.pieces(strategy, document, &ruler)?;
        Ok(self.chunks(document, strategy, &ruler, pieces))
    }

    /// The chunks of all documents, in their order, on all threads.
    ///
    /// # Errors
    /// As [`Chunker::split`], of the first document that fails.
    pub fn split_all(&self, documents: &[Document]) -> Result<Vec<Chunk>> {
        let chunks: Vec<Result<Vec<Chunk>>> =
            documents.par_iter().map(|document| self.split(document)).collect();
        let mut all = Vec::new();
        for chunks in chunks {
            all.append(&mut chunks?);
        }
        Ok(all)
    }

    /// The whole document as one chunk, even a blank one: the unit of a BEIR corpus.
    ///
    /// # Errors
    /// As [`Chunker::split`].
    pub fn whole(&self, document: &Document) -> Result<Chunk> {
        let tokens = match self.length {
            Length::Tokens(tokenizer) => tokenizer.count(&document.text)?,
            Length::Chars => document.text.chars().count(),
        };
        Ok(Chunk {
            id: ChunkId::new(&document.id, 0),
            document: document.id.clone(),
            title: document.title.clone(),
            ordinal: 0,
            token_offset: 0,
            tokens,
            overlap: 0,
            span: 0..document.text.len(),
            text: document.text.clone(),
            heading: String::new(),
            table_header: String::new(),
            chunker: Strategy::Whole.name().into(),
        })
    }

    /// What is written into the chunks that `strategy` cuts.
    fn name(&self, strategy: Strategy) -> Arc<str> {
        let settings = ChunkSettings { strategy, ..self.settings };
        match self.length {
            Length::Tokens(_) => settings.to_string().into(),
            Length::Chars => format!("{settings}:chars").into(),
        }
    }

    fn pieces(
        &self,
        strategy: Strategy,
        document: &Document,
        ruler: &Ruler<'_>,
    ) -> Result<Vec<Piece>> {
        let text = document.text.as_str();
        let ChunkSettings { tokens: target, overlap, .. } = self.settings;
        let layout = |breaks, fixed| Layout { text, ruler, target, overlap, breaks, fixed };
        let plain = || layout(breaks::breaks(text, ruler), Vec::new());
        Ok(match (strategy, self.embed) {
            (Strategy::TokenWindow, _) => token_window::split(&plain()),
            (Strategy::Sentence, _) => sentence::split(&plain()),
            (Strategy::Semantic, Some(embed)) => semantic::split(&plain(), embed)?,
            (Strategy::Markdown, _) => {
                let markdown = Markdown::parse(text);
                let layout = layout(markdown.breaks(text, ruler), markdown.fixed());
                markdown.split(&layout, &document.title)
            }
            (Strategy::Whole, _) => vec![Piece { span: 0..text.len(), ..Default::default() }],
            (Strategy::Recursive | Strategy::Auto | Strategy::Semantic, _) => {
                recursive::split(&plain())
            }
        })
    }

    fn chunks(
        &self,
        document: &Document,
        strategy: Strategy,
        ruler: &Ruler<'_>,
        pieces: Vec<Piece>,
    ) -> Vec<Chunk> {
        let chunker = self.name(strategy);
        let mut chunks: Vec<Chunk> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let text = document.text[piece.span.clone()].trim_end();
            if text.trim_start().is_empty() {
                continue;
            }
            let span = piece.span.start..piece.span.start + text.len();
            let before = chunks.last().map_or(0, |chunk| chunk.span.end);
            let token_offset = ruler.rank(span.start);
            chunks.push(Chunk {
                id: ChunkId::new(&document.id, token_offset),
                document: document.id.clone(),
                title: document.title.clone(),
                ordinal: chunks.len(),
                token_offset,
                tokens: ruler.size(span.start, span.end),
                overlap: ruler.size(span.start, before.max(span.start)),
                text: text.to_owned(),
                span,
                heading: piece.heading,
                table_header: document.text[piece.table_header].trim().to_owned(),
                chunker: chunker.clone(),
            });
        }
        chunks
    }
}
