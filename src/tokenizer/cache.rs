//! The tokens of words seen before: one lookup instead of the merges.
//!
//! Nearly all words of nearly all texts are short: up to 15 bytes are packed, with their length,
//! into one number, which is both the key and the whole comparison. Longer words go to a map.

use std::ops::Range;

use ahash::AHashMap;

/// Words that a cache holds before it starts anew.
const WORDS: usize = 1 << 16;
/// Bytes of the longest word that is packed into a number.
const PACKED_BYTES: usize = 15;
/// Bytes of the longest word worth remembering.
const CACHED_BYTES: usize = 48;

/// A word of up to [`PACKED_BYTES`] bytes and the place of its tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The bytes, and their number in the last byte; 0 for an empty slot.
    word: u128,
    place: Place,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: u32,
    len: u32,
    /// The first token, which for most words is the only one: nothing else need be looked at.
    first: (u32, u32),
}

/// Words with the id and the length in bytes of each of their tokens.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Open addressing, linear probing; a power of two, at most half full.
    slots: Vec<Slot>,
    packed: usize,
    long: AHashMap<Box<[u8]>, Place>,
    tokens: Vec<(u32, u32)>,
    /// A long word in lower case.
    lowered: Vec<u8>,
}

impl Cache {
    /// Calls `on_token` with id and length of the tokens of `bytes[word]`, which `merge` finds
    /// for a word that is new; `lowercase` puts the letters A to Z in lower case first.
    pub(super) fn tokens(
        &mut self,
        bytes: &[u8],
        word: Range<usize>,
        lowercase: bool,
        merge: impl FnOnce(&[u8]) -> Vec<(u32, u32)>,
        mut on_token: impl FnMut(u32, u32),
    ) {
        let place = match word.len() {
            0..=PACKED_BYTES => {
                let packed = pack(bytes, word);
                self.packed(if lowercase { lower(packed) } else { packed }, merge)
            }
            _ => {
                let mut lowered = std::mem::take(&mut self.lowered);
                lowered.clear();
                lowered.extend_from_slice(&bytes[word]);
                if lowercase {
                    lowered.make_ascii_lowercase();
                }
                let place = self.long(&lowered, merge, &mut on_token);
                self.lowered = lowered;
                place
            }
        };
        match place.len {
            0 => {}
            1 => on_token(place.first.0, place.first.1),
            len => {
                let tokens = &self.tokens[place.start as usize..(place.start + len) as usize];
                tokens.iter().for_each(|&(id, length)| on_token(id, length));
            }
        }
    }

    /// The tokens of a packed word.
    fn packed(&mut self, word: u128, merge: impl FnOnce(&[u8]) -> Vec<(u32, u32)>) -> Place {
        if let Some(mask) = self.slots.len().checked_sub(1) {
            let mut at = hash(word) & mask;
            loop {
                let slot = &self.slots[at];
                if slot.word == word {
                    return slot.place;
                }
                if slot.word == 0 {
                    break;
                }
                at = (at + 1) & mask;
            }
        }
        let bytes = word.to_le_bytes();
        let place = self.remember(&merge(&bytes[..usize::from(bytes[PACKED_BYTES])]));
        if 2 * (self.packed + 1) > self.slots.len() {
            let larger = vec![Slot::default(); (2 * self.slots.len()).max(1 << 10)];
            let smaller = std::mem::replace(&mut self.slots, larger);
            smaller.into_iter().filter(|slot| slot.word != 0).for_each(|slot| self.insert(slot));
        }
        self.insert(Slot { word, place });
        self.packed += 1;
        place
    }

    /// Puts a word that is not there into a table that has room.
    fn insert(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash(slot.word) & mask;
        while self.slots[at].word != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// The tokens of a long word; those of one too long to remember go to `on_token` at once.
    fn long(
        &mut self,
        word: &[u8],
        merge: impl FnOnce(&[u8]) -> Vec<(u32, u32)>,
        mut on_token: impl FnMut(u32, u32),
    ) -> Place {
        if word.len() > CACHED_BYTES {
            merge(word).into_iter().for_each(|(id, length)| on_token(id, length));
            return Place::default();
        }
        if let Some(&known) = self.long.get(word) {
            return known;
        }
        let place = self.remember(&merge(word));
        self.long.insert(word.into(), place);
        place
    }

    fn remember(&mut self, tokens: &[(u32, u32)]) -> Place {
        if self.packed + self.long.len() >= WORDS {
            *self = Self::default();
        }
        // At most 65,536 words of 48 bytes, so both numbers are small.
        let start = self.tokens.len() as u32;
        self.tokens.extend_from_slice(tokens);
        let first = tokens.first().copied().unwrap_or_default();
        Place { start, len: tokens.len() as u32, first }
    }
}

/// Up to 15 bytes as a number, with their length in the last byte.
fn pack(bytes: &[u8], word: Range<usize>) -> u128 {
    let len = word.len();
    let packed = match bytes[word.start..].first_chunk::<16>() {
        Some(window) => u128::from_le_bytes(*window) & ((1 << (8 * len)) - 1),
        None => {
            let mut window = [0; 16];
            window[..len].copy_from_slice(&bytes[word]);
            u128::from_le_bytes(window)
        }
    };
    packed | (len as u128) << 120
}

/// Puts each byte of A to Z in lower case, all at once.
fn lower(packed: u128) -> u128 {
    const EACH: u128 = u128::MAX / 255; // 0x0101...
    // The sums cannot carry into the next byte; their top bits answer the comparisons.
    let low = packed & (0x7f * EACH);
    let from_a = low + (0x80 - u128::from(b'A')) * EACH;
    let after_z = low + (0x7f - u128::from(b'Z')) * EACH;
    let upper = (from_a ^ after_z) & !packed & (0x80 * EACH);
    packed | upper >> 2
}

/// Two halves multiplied and folded; speed matters here, an adversary's collisions do not:
/// they cost time on the adversary's own text.
fn hash(packed: u128) -> usize {
    let low = packed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let high = (packed >> 64) as u64 ^ 0xd1b5_4a32_d192_ed03;
    let product = u128::from(low) * u128::from(high);
    (product as u64 ^ (product >> 64) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_word_is_its_bytes_and_their_number() {
        let text = b"The quick brown fox";
        for start in 0..text.len() {
            for end in start..=text.len().min(start + PACKED_BYTES) {
                let packed = pack(text, start..end).to_le_bytes();
                assert_eq!(&text[start..end], &packed[..end - start]);
                assert_eq!(end - start, usize::from(packed[15]));
                assert!(packed[end - start..15].iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn lower_changes_the_letters_a_to_z_alone() {
        for byte in 0..=u8::MAX {
            for at in [0, 7, 8, 14] {
                let mut bytes = [b'Q'; 16];
                bytes[at] = byte;
                bytes[15] = 15;
                let lowered = lower(u128::from_le_bytes(bytes)).to_le_bytes();
                assert_eq!(bytes.to_ascii_lowercase(), lowered, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_full_cache_starts_anew_and_stays_right() {
        let mut cache = Cache::default();
        let mut merged = 0;
        for word in (0..3 * WORDS).map(|n| (n % (WORDS + 9)).to_string()) {
            let mut got = Vec::new();
            let merge = |word: &[u8]| {
                merged += 1;
                word.iter().map(|&byte| (u32::from(byte), 1)).collect()
            };
            let bytes = word.as_bytes();
            cache.tokens(bytes, 0..bytes.len(), false, merge, |id, _| got.push(id as u8));
            assert_eq!(bytes, got);
        }
        assert!(merged > WORDS + 9 && cache.packed <= WORDS);
    }
}
