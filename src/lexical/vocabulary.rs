//! Distinct strings numbered from 0 in the order in which they come.

const EMPTY: u32 = u32::MAX;

/// A set of strings: text to number and back.
///
/// One string holds them all and an open-addressing table their numbers, so that a million terms
/// are three allocations.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    text: String,
    /// Where each string ends in `text`.
    ends: Vec<usize>,
    /// Numbers, at the place of the string's hash or soon after it; at most half full.
    table: Vec<u32>,
}

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
        let found = self.table[self.place(word)];
        (found != EMPTY).then_some(found)
    }

    /// The number of `word`, which is added if it is new.
    pub(super) fn intern(&mut self, word: &str) -> u32 {
        if self.table.len() <= 2 * self.len() + 1 {
            self.grow(2 * self.len());
        }
        let place = self.place(word);
        if self.table[place] == EMPTY {
            self.table[place] = self.len() as u32;
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
        self.table[place]
    }

    /// Where the table has the number of `word`, or would have it.
    fn place(&self, word: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(word.as_bytes()) as usize & mask;
        while self.table[place] != EMPTY && self.get(self.table[place]) != word {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self, room: usize) {
        self.table = vec![EMPTY; (2 * room + 1).next_power_of_two().max(64)];
        for number in 0..self.len() as u32 {
            let place = self.place(self.get(number));
            self.table[place] = number;
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
