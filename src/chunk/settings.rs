//! How documents are cut.

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, Result},
    types::Document,
};

/// Where chunks begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Windows of the target's length.
    TokenWindow,
    /// Whole sentences.
    Sentence,
    /// Blocks, else lines, else sentences.
    Recursive,
    /// Sections of markdown, code and tables whole.
    Markdown,
    /// Where neighbouring sentences are least alike.
    Semantic,
    /// [`Strategy::Markdown`] for markdown, [`Strategy::Recursive`] for everything else.
    Auto,
    /// One chunk a document.
    Whole,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 7] = [
        Self::TokenWindow,
        Self::Sentence,
        Self::Recursive,
        Self::Markdown,
        Self::Semantic,
        Self::Auto,
        Self::Whole,
    ];

    /// The name on the command line and in chunks.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenWindow => "token-window",
            Self::Sentence => "sentence",
            Self::Recursive => "recursive",
            Self::Markdown => "markdown",
            Self::Semantic => "semantic",
            Self::Auto => "auto",
            Self::Whole => "whole",
        }
    }

    /// What `auto` means for `document`, whose `format` is in its metadata.
    pub fn resolve(self, document: &Document) -> Self {
        let is_markdown = || document.metadata.get("format").is_some_and(|f| f == "markdown");
        match self {
            Self::Auto if is_markdown() => Self::Markdown,
            Self::Auto => Self::Recursive,
            chosen => chosen,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Setting(format!("no chunker is called `{name}`: choose among {names}"))
        })
    }
}

/// A strategy with its sizes; written `markdown:150:20`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkSettings {
    /// Where chunks begin and end.
    pub strategy: Strategy,
    /// Tokens that a chunk aims at.
    pub tokens: usize,
    /// Tokens that a chunk shares with the one before, where no boundary forbids it.
    pub overlap: usize,
}

impl Default for ChunkSettings {
    fn default() -> Self {
        Self { strategy: Strategy::Auto, tokens: 150, overlap: 20 }
    }
}

impl ChunkSettings {
    /// # Errors
    /// Sizes that no cutting can meet.
    pub(super) fn check(&self) -> Result<()> {
        let Self { tokens, overlap, .. } = *self;
        if tokens == 0 {
            return Err(Error::Setting("chunks of 0 tokens hold nothing: ask for more".into()));
        }
        if overlap > tokens / 2 {
            return Err(Error::Setting(format!(
                "an overlap of {overlap} tokens is too much for chunks of {tokens}: ask for at \
                 most {}",
                tokens / 2
            )));
        }
        Ok(())
    }
}

impl fmt::Display for ChunkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strategy {
            // Sizes mean nothing to a document that stays whole.
            Strategy::Whole => f.write_str(Strategy::Whole.name()),
            strategy => write!(f, "{strategy}:{}:{}", self.tokens, self.overlap),
        }
    }
}

impl FromStr for ChunkSettings {
    type Err = Error;

    /// Reads `STRATEGY[:TOKENS[:OVERLAP]]`.
    fn from_str(written: &str) -> Result<Self> {
        let mut parts = written.split(':');
        let strategy = parts.next().unwrap_or_default().parse()?;
        let mut settings = Self { strategy, ..Self::default() };
        for size in [&mut settings.tokens, &mut settings.overlap] {
            if let Some(part) = parts.next() {
                *size = part.parse().map_err(|_| {
                    Error::Setting(format!("`{part}` in the chunker `{written}` is no number"))
                })?;
            }
        }
        if parts.next().is_some() {
            let message = format!("the chunker `{written}` is not `STRATEGY:TOKENS:OVERLAP`");
            return Err(Error::Setting(message));
        }
        settings.check()?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        for strategy in Strategy::ALL {
            let settings = ChunkSettings { strategy, ..Default::default() };
            assert_eq!(settings, settings.to_string().parse().unwrap());
        }
        assert_eq!("auto:150:20", ChunkSettings::default().to_string());
        assert_eq!("sentence:80:20", "sentence:80".parse::<ChunkSettings>().unwrap().to_string());
        for wrong in ["", "words", "auto:x", "auto:0:0", "auto:30:16", "auto:150:20:1"] {
            assert!(wrong.parse::<ChunkSettings>().is_err(), "{wrong}");
        }
    }
}
