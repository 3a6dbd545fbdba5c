//! The pre-tokenizer: text to the words that byte pairs are merged within.
//!
//! GPT-2's pattern (Radford et al. 2019) with every digit a word of its own, as the tokenizers
//! crate runs `Sequence[Digits(individual), ByteLevel]`:
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. Scanned by hand, since
//! the crate's regex engine takes longer than the whole rest of counting.

use std::{ops::Range, sync::LazyLock};

use regex_syntax::hir::{Class as HirClass, HirKind};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Other,
}

/// A class of characters, from the very tables that the tokenizers crate's patterns use.
pub(super) struct CharSet {
    /// One bit a code point of the basic plane.
    basic: Vec<u64>,
    /// Ranges beyond it, ascending.
    beyond: Vec<Range<u32>>,
}

static LETTERS: LazyLock<CharSet> = LazyLock::new(|| CharSet::of(r"\p{L}"));

impl CharSet {
    /// The characters that match `pattern`, a class such as `\w`.
    pub(super) fn of(pattern: &str) -> Self {
        let mut set = Self { basic: vec![0; 0x1_0000 / 64], beyond: Vec::new() };
        let hir = regex_syntax::parse(pattern).map(regex_syntax::hir::Hir::into_kind);
        let Ok(HirKind::Class(HirClass::Unicode(class))) = hir else { return set };
        for range in class.iter() {
            let (start, end) = (range.start() as u32, range.end() as u32);
            for code in start..=end.min(0xffff) {
                set.basic[code as usize / 64] |= 1 << (code % 64);
            }
            if end > 0xffff {
                set.beyond.push(start.max(0x1_0000)..end + 1);
            }
        }
        set
    }

    pub(super) fn contains(&self, c: char) -> bool {
        let code = c as u32;
        match self.basic.get(code as usize / 64) {
            Some(bits) => bits >> (code % 64) & 1 == 1,
            None => {
                let at = self.beyond.partition_point(|range| range.end <= code);
                self.beyond.get(at).is_some_and(|range| range.contains(&code))
            }
        }
    }
}

fn class(c: char, letters: &CharSet) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Digit,
        '\t'..='\r' | ' ' => Class::Space,
        '\0'..='\x7f' => Class::Other,
        _ if letters.contains(c) => Class::Letter,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_whitespace() => Class::Space,
        _ => Class::Other,
    }
}

/// Calls `on_word` with the bytes of each word; together they are the text.
pub(super) fn words(text: &str, mut on_word: impl FnMut(Range<usize>)) {
    let letters = &*LETTERS;
    let first = |at: usize| text[at..].chars().next().map(|c| (c, class(c, letters)));
    let mut at = 0;
    while let Some((c, now)) = first(at) {
        let end = match now {
            Class::Digit => at + c.len_utf8(),
            Class::Letter => run_end(text, at, now, letters),
            Class::Other => {
                contraction(&text[at..]).map_or_else(|| run_end(text, at, now, letters), |n| at + n)
            }
            Class::Space => {
                let end = run_end(text, at, now, letters);
                match first(end) {
                    // The pattern never sees past a digit, so blanks before one are blanks at an end.
                    None | Some((_, Class::Digit)) => end,
                    Some((_, next)) => {
                        let last = text[at..end].char_indices().next_back();
                        let last = last.map_or(at, |(offset, _)| at + offset);
                        if last > at {
                            on_word(at..last);
                        }
                        at = last;
                        // One space belongs to the word it precedes.
                        let joins = text.as_bytes()[last] == b' ';
                        if joins { run_end(text, end, next, letters) } else { end }
                    }
                }
            }
        };
        on_word(at..end);
        at = end;
    }
}

/// The end of the run of characters of one class that begins at `at`.
fn run_end(text: &str, at: usize, wanted: Class, letters: &CharSet) -> usize {
    let rest = &text[at..];
    let ends = rest.char_indices().find(|&(_, c)| class(c, letters) != wanted);
    ends.map_or(text.len(), |(offset, _)| at + offset)
}

/// The length of an English contraction at the start of `text`.
fn contraction(text: &str) -> Option<usize> {
    let tail = text.strip_prefix('\'')?;
    ["s", "t", "re", "ve", "m", "ll", "d"]
        .iter()
        .find(|t| tail.starts_with(**t))
        .map(|t| 1 + t.len())
}
