//! The index as bytes, for a file that holds it.
//!
//! A magic number and a hash of the rest, then the settings, the length of each passage, and
//! for each term its UTF-8, the number of its postings and for each of them the distance to the
//! row before (to -1 for the first) and the count. Whole numbers are LEB128: a posting takes about two bytes, which
//! are read faster than eight would be fetched from disk. Impacts follow from these.

use super::{
    bm25::{Bm25, Bm25Settings, Lists, Posting},
    vocabulary::{Vocabulary, hash},
};
use crate::{
    error::{Error, Result},
    text::Analyzer,
};

const MAGIC: [u8; 8] = *b"mrbm25\0\x01";

/// What a damaged index answers with.
fn damaged(what: &str) -> Error {
    Error::format("lexical index", format!("{what}: build the index again"))
}

impl Bm25 {
    /// The whole index as bytes.
    pub fn serialize(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(3 * self.postings.len() + 64);
        body.extend(self.settings.k1.to_le_bytes());
        body.extend(self.settings.b.to_le_bytes());
        body.extend([u8::from(self.analyzer.stem), u8::from(self.analyzer.stop_words)]);
        write(&mut body, self.lengths.len() as u64);
        self.lengths.iter().for_each(|length| write(&mut body, u64::from(*length)));
        write(&mut body, self.terms.len() as u64);
        write(&mut body, self.postings.len() as u64);
        for (number, term) in self.terms.iter().enumerate() {
            let list = self.starts[number]..self.starts[number + 1];
            write(&mut body, term.len() as u64);
            body.extend(term.as_bytes());
            write(&mut body, list.len() as u64);
            let mut next = 0;
            for (posting, count) in self.postings[list.clone()].iter().zip(&self.counts[list]) {
                write(&mut body, u64::from(posting.row) - next + 1);
                write(&mut body, u64::from(*count));
                next = u64::from(posting.row) + 1;
            }
        }
        [&MAGIC[..], &hash(&body).to_le_bytes(), &body].concat()
    }

    /// The index that [`Bm25::serialize`] wrote.
    ///
    /// # Errors
    /// Bytes that it did not write: cut off, damaged, or of another version.
    pub fn deserialize(bytes: &[u8]) -> Result<Self> {
        let Some((magic, bytes)) = bytes.split_first_chunk::<8>() else {
            return Err(damaged("it is cut off"));
        };
        if *magic != MAGIC {
            return Err(damaged("it is none, or one of another version"));
        }
        let mut bytes = Bytes(bytes);
        let sum = u64::from_le_bytes(bytes.array()?);
        if hash(bytes.0) != sum {
            return Err(damaged("its bytes have changed since they were written"));
        }
        let k1 = f32::from_le_bytes(bytes.array()?);
        let settings = Bm25Settings { k1, b: f32::from_le_bytes(bytes.array()?) }.check()?;
        let [stem, stop_words] = bytes.array()?;
        let analyzer = Analyzer { stem: stem != 0, stop_words: stop_words != 0 };
        // Each passage takes a byte at least: no size is believed before.
        let passages = bytes.count(bytes.0.len())?;
        let lengths = (0..passages).map(|_| Ok(bytes.count(u32::MAX as usize)? as u32));
        let lengths = lengths.collect::<Result<Vec<_>>>()?;
        let lists = bytes.lists(&lengths)?;
        Ok(Self::assemble(settings, analyzer, lengths, lists))
    }
}

fn write(body: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

/// Bytes still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("it is cut off"))?;
        self.0 = rest;
        Ok(*array)
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number does not end"))
    }

    /// A number that is at most `limit`.
    fn count(&mut self, limit: usize) -> Result<usize> {
        let number = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if number > limit {
            return Err(damaged("a number is too large"));
        }
        Ok(number)
    }

    fn text(&mut self) -> Result<&'a str> {
        let length = self.count(self.0.len())?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        str::from_utf8(text).map_err(|_| damaged("a term is not UTF-8"))
    }

    /// All terms with their postings, which must add up to the length of each passage.
    fn lists(&mut self, lengths: &[u32]) -> Result<Lists> {
        let terms = self.count(self.0.len() / 2)?;
        let total = self.count(self.0.len() / 2)?;
        let mut lists = Lists {
            terms: Vocabulary::with_capacity(terms),
            starts: vec![0],
            counts: Vec::with_capacity(total),
            postings: Vec::with_capacity(total),
        };
        let mut left = lengths.to_vec();
        let mut before = "";
        for term in 0..terms {
            let text = self.text()?;
            if term > 0 && text <= before {
                return Err(damaged("its terms are out of order"));
            }
            before = text;
            lists.terms.intern(text);
            self.postings(&mut lists, &mut left)?;
        }
        if lists.postings.len() != total || !self.0.is_empty() || left.iter().any(|n| *n > 0) {
            return Err(damaged("its parts do not add up"));
        }
        Ok(lists)
    }

    fn postings(&mut self, lists: &mut Lists, left: &mut [u32]) -> Result<()> {
        let mut next = 0;
        for _ in 0..self.count(self.0.len() / 2)? {
            let step = self.count(left.len())?;
            let count = self.count(u32::MAX as usize)? as u32;
            let row = (next + step).wrapping_sub(1);
            let left = left.get_mut(row).filter(|left| step > 0 && (1..=**left).contains(&count));
            let left = left.ok_or_else(|| damaged("a posting is out of order"))?;
            *left -= count;
            lists.postings.push(Posting { row: row as u32, impact: 0.0 });
            lists.counts.push(count);
            next = row + 1;
        }
        lists.starts.push(lists.postings.len());
        Ok(())
    }
}
