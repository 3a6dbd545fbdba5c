//! Times a BERT folder on batches of equal length, for `scripts/compare_minilm.py`.
//!
//! `bench_minilm FOLDER` reads lines `TOKENS BATCH REPEATS` and answers each with the seconds that
//! the repeats took together. `RAYON_NUM_THREADS` sets the threads.

#![allow(clippy::print_stdout)]

use std::{io::BufRead, path::Path, time::Instant};

use minirag::embed::BertEmbedder;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_default();
    let embedder = BertEmbedder::open(Path::new(&folder))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let numbers: Vec<usize> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [tokens, batch, repeats] = numbers[..] else { anyhow::bail!("three numbers: {line}") };
        // The same made-up tokens as the script's.
        let id = |text: usize, place: usize| match place {
            0 => 101,
            place if place + 1 == tokens => 102,
            place => 1000 + ((text * 7919 + place * 104_729) % 28_000) as u32,
        };
        let ids: Vec<Vec<u32>> =
            (0..batch).map(|text| (0..tokens).map(|place| id(text, place)).collect()).collect();
        let ids: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        let start = Instant::now();
        let mut sum = 0.0;
        for _ in 0..repeats {
            sum += embedder.embed_ids(&ids, 0)?[0];
        }
        println!("{} {sum}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
