//! Byte-level BPE of our own two forms of `tokenizer.json`, read and run leanly.
//!
//! The tokenizers crate reads the file in some five milliseconds and counts at a few megabytes a
//! second; a command that answers in tens of milliseconds reads this much smaller part of it
//! instead, and remembers the tokens of each distinct word. Ids and offsets are the crate's
//! (`tests/it/tokenizer.rs` compares them).

use std::{borrow::Cow, cmp::Reverse, collections::BinaryHeap, ops::Range, sync::Mutex};

use ahash::AHashMap;
use serde::Deserialize;

use super::{cache::Cache, uncased::Uncased, words::words};

/// What is read of `tokenizer.json`; a file of another form fails to deserialise or to match.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    added_tokens: Vec<Added<'a>>,
    normalizer: Option<serde_json::Value>,
    pre_tokenizer: serde_json::Value,
    #[serde(borrow)]
    model: Model<'a>,
}

#[derive(Deserialize)]
struct Added<'a> {
    id: u32,
    #[serde(borrow)]
    content: Cow<'a, str>,
    special: bool,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(rename = "type")]
    kind: String,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(borrow)]
    vocab: AHashMap<Cow<'a, str>, u32>,
    #[serde(borrow)]
    merges: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl File<'_> {
    fn is_ours(&self) -> bool {
        let model = &self.model;
        let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
        model.kind == "BPE"
            && model.dropout.is_none()
            && model.unk_token.is_none()
            && affixes.iter().all(|affix| affix.as_ref().is_none_or(String::is_empty))
            && !model.byte_fallback
            && !model.ignore_merges
            && self.added_tokens.iter().all(|token| token.special)
    }
}

/// How a text becomes the words that pairs are merged within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    /// As it is, GPT-2's words with single digits (`words`).
    Cased,
    /// NFKC and lower case, runs of letters and digits or of marks (`uncased`).
    Uncased,
}

impl Split {
    /// The split that normaliser and pre-tokenizer of a file describe, if it is one of ours.
    fn of(file: &File<'_>) -> Option<Self> {
        let pre_tokenizer = &file.pre_tokenizer;
        let [first, bytes] = pre_tokenizer["pretokenizers"].as_array()?.as_slice() else {
            return None;
        };
        if pre_tokenizer["type"] != "Sequence"
            || bytes["type"] != "ByteLevel"
            || bytes["add_prefix_space"] != false
        {
            return None;
        }
        let regex = bytes["use_regex"] != false;
        match &file.normalizer {
            None if first["type"] == "Digits" && first["individual_digits"] == true && regex => {
                Some(Self::Cased)
            }
            Some(normalizer) if first["type"] == "Whitespace" && !regex => {
                let steps = normalizer["normalizers"].as_array()?.as_slice();
                let [nfkc, lowercase] = steps else { return None };
                let ours = normalizer["type"] == "Sequence"
                    && nfkc["type"] == "NFKC"
                    && lowercase["type"] == "Lowercase";
                ours.then_some(Self::Uncased)
            }
            _ => None,
        }
    }
}

/// A byte-level BPE model.
pub(super) struct ByteBpe {
    /// The token of each byte.
    bytes: [u32; 256],
    /// Two neighbours to their rank (lower merges first) and the token they become.
    merges: AHashMap<(u32, u32), (u32, u32)>,
    /// The bytes of every token, by id; `None` for a special token and for an id without token.
    tokens: Vec<Option<Box<[u8]>>>,
    /// Special tokens by their text.
    special: AHashMap<String, u32>,
    split: Split,
    /// What threads that are done with a text leave for the next that starts one.
    idle: Mutex<Vec<State>>,
}

/// What a thread remembers from text to text.
#[derive(Default)]
struct State {
    cache: Cache,
    uncased: Uncased,
}

impl ByteBpe {
    /// The model in `json`; `None` where the file is of another form, which is not an error.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let file: File<'_> = serde_json::from_slice(json).ok().filter(File::is_ours)?;
        let split = Split::of(&file)?;
        let vocab = &file.model.vocab;
        let alphabet = alphabet();
        let mut bytes = [0; 256];
        for (byte, c) in alphabet.iter().enumerate() {
            bytes[byte] = *vocab.get(c.encode_utf8(&mut [0; 4]) as &str)?;
        }
        let size = vocab.values().chain(file.added_tokens.iter().map(|token| &token.id)).max()? + 1;
        // Ids are dense in any honest file; one that is not would make the table huge.
        if size as usize > vocab.len() + file.added_tokens.len() {
            return None;
        }
        let byte_of: AHashMap<char, u8> = (0..=255).map(|b| (alphabet[b as usize], b)).collect();
        let mut tokens = vec![None; size as usize];
        for (token, &id) in vocab {
            // A token with a character outside the alphabet can only be a special one.
            tokens[id as usize] = token.chars().map(|c| byte_of.get(&c).copied()).collect();
        }
        let special = file.added_tokens.into_iter().map(|token| {
            tokens[token.id as usize] = None;
            (token.content.into_owned(), token.id)
        });
        let special = special.collect();
        let mut merges = AHashMap::with_capacity(file.model.merges.len());
        let mut joined = String::new();
        for (rank, (left, right)) in file.model.merges.iter().enumerate() {
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let pair = (*vocab.get(left)?, *vocab.get(right)?);
            merges.insert(pair, (u32::try_from(rank).ok()?, *vocab.get(joined.as_str())?));
        }
        Some(Self { bytes, merges, tokens, special, split, idle: Mutex::default() })
    }

    /// Number of ids.
    pub(super) fn vocab_size(&self) -> usize {
        self.tokens.len()
    }

    /// The id of the special token `text`.
    pub(super) fn special_id(&self, text: &str) -> Option<u32> {
        self.special.get(text).copied()
    }

    /// The bytes of token `id`: empty for a special token, `None` for an id without token.
    pub(super) fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        match self.tokens.get(id as usize)? {
            Some(bytes) => Some(bytes),
            None => self.special.values().any(|&special| special == id).then_some(&[]),
        }
    }

    /// True if texts are normalised, so that tokens do not tile the text.
    pub(super) fn is_uncased(&self) -> bool {
        self.split == Split::Uncased
    }

    /// Calls `on_token` with the id and the length, in bytes of the text as normalised, of each
    /// token of `text`.
    pub(super) fn tokens(&self, text: &str, mut on_token: impl FnMut(u32, u32)) {
        // A poisoned lock only means that another thread panicked between a push and a pop.
        let lock = || self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut state = lock().pop().unwrap_or_default();
        let State { cache, uncased } = &mut state;
        let mut on_word = |bytes: &[u8], word: Range<usize>, lowercase: bool| {
            cache.tokens(bytes, word, lowercase, |word| self.merge(word), &mut on_token);
        };
        match self.split {
            Split::Cased => words(text, |word| on_word(text.as_bytes(), word, false)),
            Split::Uncased => uncased.words(text, |bytes, word| on_word(bytes, word, true)),
        }
        lock().push(state);
    }

    /// Id and length in bytes of the tokens of one word: the pair of lowest rank merges first,
    /// the leftmost of equal ones, until no pair is left.
    fn merge(&self, word: &[u8]) -> Vec<(u32, u32)> {
        // A linked list of symbols; a symbol of length 0 is one that its left neighbour took in.
        let mut symbols: Vec<(u32, u32)> =
            word.iter().map(|&byte| (self.bytes[byte as usize], 1)).collect();
        let mut queue = BinaryHeap::with_capacity(word.len());
        let pair_at = |symbols: &[(u32, u32)], left: usize, right: usize| {
            let &(rank, id) = self.merges.get(&(symbols[left].0, symbols[right].0))?;
            Some(Reverse((rank, left, right, id)))
        };
        queue.extend((1..word.len()).filter_map(|right| pair_at(&symbols, right - 1, right)));
        // The place before each symbol, to find the left neighbour after merges.
        let mut before: Vec<usize> = (0..word.len()).map(|at| at.saturating_sub(1)).collect();
        while let Some(Reverse((rank, left, right, id))) = queue.pop() {
            let alive = symbols[left].1 > 0
                && symbols[right].1 > 0
                && left + symbols[left].1 as usize == right
                && self.merges.get(&(symbols[left].0, symbols[right].0)) == Some(&(rank, id));
            if !alive {
                continue;
            }
            symbols[left] = (id, symbols[left].1 + symbols[right].1);
            symbols[right].1 = 0;
            if left > 0 {
                queue.extend(pair_at(&symbols, before[left], left));
            }
            let next = left + symbols[left].1 as usize;
            if next < word.len() {
                before[next] = left;
                queue.extend(pair_at(&symbols, left, next));
            }
        }
        symbols.retain(|&(_, length)| length > 0);
        symbols
    }
}

/// The character that stands for each byte in the file (GPT-2's table): printable ones stand for
/// themselves, the others are moved above U+0100.
pub(super) fn alphabet() -> [char; 256] {
    let mut moved = (0x100..).filter_map(char::from_u32);
    std::array::from_fn(|byte| match byte as u8 {
        printable @ (b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) => char::from(printable),
        _ => moved.next().unwrap_or('\u{100}'),
    })
}
