//! Distinct strings numbered from 0 in the order in which they come.

/// A set of strings: text to number and back.
///
/// One string holds them all and an open-addressing table their numbers, so that a million terms
/// are three allocations.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    text: String,
    /// Where each string ends in `text`.
    ends: Vec<usize>,
    /// At the place of a string's hash or soon after it; at most half full.
    table: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    number: u32,
}

const EMPTY: Entry = Entry { hash: 0, number: u32::MAX };

impl Vocabulary {
    /// An empty set with room for `len` strings.
    pub(super) fn with_capacity(len: usize) -> Self {
        let mut fresh = Self { ends: Vec::with_capacity(len), ..Self::default() };
        fresh.grow(len);
        fresh
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.get(number))
    }

    pub(super) fn find(&self, word: &str) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        let found = self.table[self.place(word, hash(word.as_bytes()) as u32)].number;
        (found != EMPTY.number).then_some(found)
    }

    /// The number of `word`, which is added if it is new.
    pub(super) fn intern(&mut self, word: &str) -> u32 {
        if self.table.len() <= 2 * self.len() + 1 {
            self.grow(2 * self.len());
        }
        let hash = hash(word.as_bytes()) as u32;
        let place = self.place(word, hash);
        if self.table[place].number == EMPTY.number {
            self.table[place] = Entry { hash, number: self.len() as u32 };
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
        self.table[place].number
    }

    /// Where the table has `word`, or would have it.
    fn place(&self, word: &str, hash: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let Entry { hash: other, number } = self.table[place];
            if number == EMPTY.number || (other == hash && self.get(number) == word) {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self, room: usize) {
        let table = vec![EMPTY; (2 * room + 1).next_power_of_two().max(64)];
        let mask = table.len() - 1;
        for entry in std::mem::replace(&mut self.table, table) {
            let mut place = entry.hash as usize & mask;
            if entry.number != EMPTY.number {
                while self.table[place].number != EMPTY.number {
                    place = (place + 1) & mask;
                }
                self.table[place] = entry;
            }
        }
    }
}

/// A hash of `bytes`, the same on every machine: folded multiplications, 8 bytes at a time.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mix = |x: u64| {
        let wide = u128::from(x) * 0x9e37_79b9_7f4a_7c15;
        wide as u64 ^ (wide >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let start = mix(bytes.len() as u64 + 1);
    let hash = words.iter().fold(start, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
    mix(hash ^ u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_arrival() {
        let mut vocabulary = Vocabulary::default();
        assert_eq!(vocabulary.find("a"), None);
        for round in 0..2 {
            for n in 0..1000_u32 {
                assert_eq!(vocabulary.intern(&format!("word{n}")), n, "round {round}");
            }
        }
        assert_eq!(vocabulary.intern(""), 1000);
        assert_eq!(vocabulary.find("word999"), Some(999));
        assert_eq!(vocabulary.find("word1000"), None);
        assert_eq!(vocabulary.get(0), "word0");
        assert_eq!(vocabulary.iter().count(), 1001);
    }
}
