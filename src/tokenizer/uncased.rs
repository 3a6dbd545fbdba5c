//! The uncased pre-tokenizer: text to words in NFKC and lower case.
//!
//! As the tokenizers crate runs `Sequence[NFKC, Lowercase]` and `Whitespace` (`\w+|[^\w\s]+`,
//! blanks dropped). ASCII is split as it stands, one table lookup a byte, and put in lower case
//! with the lookup of the word. A word that touches another character is normalised together
//! with all that follows up to the next ASCII blank: nothing composes across one, and an ASCII
//! character before the word was of another class, which normalising its neighbours cannot change.

use std::{ops::Range, sync::LazyLock};

// The crate that tokenizers normalises with: another's tables may be of another Unicode version.
use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::words::CharSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Mark,
    /// Not ASCII: to be normalised first.
    Wide,
}

static WORD: LazyLock<CharSet> = LazyLock::new(|| CharSet::of(r"\w"));

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Wide; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'\t'..=b'\r' | b' ' => Class::Blank,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => Class::Word,
            _ => Class::Mark,
        };
        byte += 1;
    }
    classes
};

/// Splits texts; holds the normalised part of one.
#[derive(Debug, Default)]
pub(super) struct Uncased {
    normal: String,
}

impl Uncased {
    /// Calls `on_word` with some bytes and the range of a word in them; letters A to Z may still
    /// be in upper case.
    pub(super) fn words(&mut self, text: &str, mut on_word: impl FnMut(&[u8], Range<usize>)) {
        let bytes = text.as_bytes();
        let class_at = |at: usize| bytes.get(at).map(|&byte| CLASSES[usize::from(byte)]);
        let mut at = 0;
        while let Some(class) = class_at(at) {
            let start = at;
            at += 1;
            if class == Class::Blank {
                continue;
            }
            while class_at(at) == Some(class) {
                at += 1;
            }
            if class != Class::Wide && class_at(at) != Some(Class::Wide) {
                on_word(bytes, start..at);
                continue;
            }
            while class_at(at).is_some_and(|class| class != Class::Blank) {
                at += 1;
            }
            self.wide(&text[start..at], &mut on_word);
        }
    }

    /// The words of a part that is not ASCII alone.
    fn wide(&mut self, part: &str, mut on_word: impl FnMut(&[u8], Range<usize>)) {
        let normal = &mut self.normal;
        normal.clear();
        let mut push = |c: char| match c.is_ascii() {
            true => normal.push(c), // lower case comes with the lookup
            false => normal.extend(c.to_lowercase()),
        };
        match is_nfkc_quick(part.chars()) {
            IsNormalized::Yes => part.chars().for_each(&mut push),
            _ => part.nfkc().for_each(|(c, _)| push(c)),
        }
        let word = &*WORD;
        let class = |c: char| match CLASSES.get(c as usize).copied().unwrap_or(Class::Wide) {
            Class::Wide if word.contains(c) => Class::Word,
            Class::Wide if c.is_whitespace() => Class::Blank,
            Class::Wide => Class::Mark,
            class => class,
        };
        let mut start = 0;
        let mut last = Class::Blank;
        for (at, c) in normal.char_indices() {
            let now = class(c);
            if now != last {
                if last != Class::Blank {
                    on_word(normal.as_bytes(), start..at);
                }
                (start, last) = (at, now);
            }
        }
        if last != Class::Blank {
            on_word(normal.as_bytes(), start..normal.len());
        }
    }
}
