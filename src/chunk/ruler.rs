//! How long a piece of a document is, in tokens or in characters.

use super::Length;
use crate::{
    error::Result,
    text::{char_ceil, char_floor},
};

/// Bytes between two marks of the character count.
const BLOCK: usize = 256;

/// Translates between bytes of one text and units of length; made in one pass over the text.
pub(super) struct Ruler<'a> {
    text: &'a str,
    marks: Marks,
}

enum Marks {
    /// Every unit is one byte.
    Bytes,
    /// Characters before each block of bytes.
    Chars(Vec<u32>),
    /// The byte at which each token ends.
    Tokens(Vec<u32>),
}

impl<'a> Ruler<'a> {
    pub(super) fn new(text: &'a str, length: Length<'_>) -> Result<Self> {
        let marks = match length {
            Length::Tokens(tokenizer) => Marks::Tokens(tokenizer.ends(text)?),
            Length::Chars if text.is_ascii() => Marks::Bytes,
            Length::Chars => {
                let mut before = 0;
                let blocks = text.as_bytes().chunks(BLOCK).map(|block| {
                    let mark = before;
                    before += chars(block) as u32;
                    mark
                });
                Marks::Chars(blocks.collect())
            }
        };
        Ok(Self { text, marks })
    }

    /// Number of units that end at or before byte `at`.
    pub(super) fn rank(&self, at: usize) -> usize {
        match &self.marks {
            Marks::Bytes => at,
            Marks::Chars(blocks) if at == self.text.len() && at.is_multiple_of(BLOCK) => {
                let last = blocks.last().map_or(0, |&before| before as usize);
                last + chars(&self.text.as_bytes()[at - BLOCK.min(at)..])
            }
            Marks::Chars(blocks) => {
                let block = at / BLOCK;
                blocks[block] as usize + chars(&self.text.as_bytes()[block * BLOCK..at])
            }
            Marks::Tokens(ends) => ends.partition_point(|&end| end as usize <= at),
        }
    }

    /// The byte after the first `units` units.
    pub(super) fn select(&self, units: usize) -> usize {
        match &self.marks {
            Marks::Bytes => units.min(self.text.len()),
            Marks::Chars(blocks) => {
                let block = blocks.partition_point(|&before| before as usize <= units);
                let block = block.saturating_sub(1);
                let before = blocks.get(block).map_or(0, |&before| before as usize);
                // The block's first character may begin in the block before: it is counted there.
                let start = char_ceil(self.text, block * BLOCK);
                let rest = &self.text[start..];
                rest.char_indices()
                    .nth(units - before)
                    .map_or(self.text.len(), |(offset, _)| start + offset)
            }
            Marks::Tokens(ends) => match units.min(ends.len()) {
                0 => 0,
                units => char_floor(self.text, ends[units - 1] as usize),
            },
        }
    }

    /// Number of units from byte `start` to byte `end`.
    pub(super) fn size(&self, start: usize, end: usize) -> usize {
        self.rank(end).saturating_sub(self.rank(start))
    }
}

/// Number of characters that begin in `bytes`.
fn chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte as i8 >= -0x40).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_found_at_every_place() {
        for text in ["", "abc", &"é…x👍".repeat(200), &"x".repeat(512), &"é".repeat(256)] {
            let ruler = Ruler::new(text, Length::Chars).unwrap();
            for (count, (at, _)) in text.char_indices().enumerate() {
                assert_eq!((count, at), (ruler.rank(at), ruler.select(count)));
            }
            let count = text.chars().count();
            assert_eq!((count, text.len()), (ruler.rank(text.len()), ruler.select(count)));
            assert_eq!(text.len(), ruler.select(count + 9));
        }
    }
}
