//! Texts to postings: words are read in parallel in blocks of fixed size and numbered on the way,
//! so that every distinct word is stemmed once and counting is done on numbers.

use rayon::prelude::*;

use super::{
    bm25::{Bm25, Bm25Settings, Lists, Posting},
    vocabulary::Vocabulary,
};
use crate::{error::Result, text::Analyzer};

/// Passages a thread reads at a time.
const BLOCK: usize = 128;

/// The words of a block of passages.
struct Block {
    words: Vocabulary,
    /// For each passage, the numbers of its words.
    passages: Vec<Vec<u32>>,
}

impl Bm25 {
    /// Indexes `texts`, whose places become their rows.
    ///
    /// # Errors
    /// A `k1` below 0 or a `b` outside 0 to 1.
    pub fn build<T: AsRef<str> + Sync>(
        texts: &[T],
        analyzer: Analyzer,
        settings: Bm25Settings,
    ) -> Result<Self> {
        let settings = settings.check()?;
        let blocks: Vec<Block> =
            texts.par_chunks(BLOCK).map(|texts| Block::read(texts, &analyzer)).collect();
        let (terms, maps) = number_terms(&blocks, &analyzer);
        let counted: Vec<Vec<(u32, u32)>> = blocks
            .into_par_iter()
            .zip(maps)
            .flat_map_iter(|(block, map)| {
                block.passages.into_iter().map(move |words| count(words, &map))
            })
            .collect();
        let length = |terms: &Vec<(u32, u32)>| terms.iter().map(|(_, count)| count).sum();
        let lengths = counted.iter().map(length).collect();
        Ok(Self::assemble(settings, analyzer, lengths, invert(terms, &counted)))
    }
}

impl Block {
    fn read<T: AsRef<str>>(texts: &[T], analyzer: &Analyzer) -> Self {
        let mut words = Vocabulary::default();
        let read = |text: &T| {
            let mut passage = Vec::new();
            analyzer.words(text.as_ref(), |word| passage.push(words.intern(word)));
            passage
        };
        let passages = texts.iter().map(read).collect();
        Self { words, passages }
    }
}

/// Numbers the terms in ascending order; for each block, the term of each of its words.
fn number_terms(blocks: &[Block], analyzer: &Analyzer) -> (Vocabulary, Vec<Vec<Option<u32>>>) {
    let mut words = Vocabulary::default();
    let maps: Vec<Vec<u32>> = blocks
        .iter()
        .map(|block| block.words.iter().map(|word| words.intern(word)).collect())
        .collect();
    let term_of: Vec<Option<String>> = (0..words.len() as u32)
        .into_par_iter()
        .map(|word| analyzer.term(words.get(word)).map(|term| term.into_owned()))
        .collect();
    let mut sorted: Vec<&str> = term_of.iter().flatten().map(String::as_str).collect();
    sorted.par_sort_unstable();
    sorted.dedup();
    let mut terms = Vocabulary::with_capacity(sorted.len());
    sorted.into_iter().for_each(|term| _ = terms.intern(term));
    let number: Vec<Option<u32>> =
        term_of.iter().map(|term| terms.find(term.as_deref()?)).collect();
    let maps = maps.into_iter().map(|map| map.into_iter().map(|word| number[word as usize]));
    (terms, maps.map(Iterator::collect).collect())
}

/// The distinct terms of a passage with their counts.
fn count(mut words: Vec<u32>, map: &[Option<u32>]) -> Vec<(u32, u32)> {
    words.retain_mut(|word| map[*word as usize].map(|term| *word = term).is_some());
    words.sort_unstable();
    words.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

fn invert(terms: Vocabulary, counted: &[Vec<(u32, u32)>]) -> Lists {
    let mut starts = vec![0; terms.len() + 1];
    for (term, _) in counted.iter().flatten() {
        starts[*term as usize + 1] += 1;
    }
    for term in 0..terms.len() {
        starts[term + 1] += starts[term];
    }
    let mut next = starts.clone();
    let mut counts = vec![0; starts[terms.len()]];
    let mut postings = vec![Posting { row: 0, impact: 0.0 }; counts.len()];
    for (passage, row) in counted.iter().zip(0..) {
        for (term, count) in passage {
            let at = &mut next[*term as usize];
            counts[*at] = *count;
            postings[*at].row = row;
            *at += 1;
        }
    }
    Lists { terms, starts, counts, postings }
}
