//! Cuts the texts below a folder once and prints how long it took, as JSON.
//!
//! `bench_chunk FOLDER [STRATEGY:TOKENS:OVERLAP] [chars]`; `scripts/compare_chunkers.py` runs it
//! beside LangChain's splitter.

#![allow(clippy::print_stdout)] // Results belong there.

use std::{path::Path, time::Instant};

use anyhow::{Context, Result};
use minirag::{
    chunk::{Chunker, Length},
    corpus,
    tokenizer::Tokenizer,
};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().context("usage: bench_chunk FOLDER [SETTINGS] [chars]")?;
    let settings = args.next().unwrap_or_else(|| "auto".into()).parse()?;
    let chars = args.next().is_some_and(|unit| unit == "chars");
    let documents = corpus::load(Path::new(&folder))?.documents;
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    let start = Instant::now();
    let tokenizer = Tokenizer::load("models/tokenizer")?;
    let load = start.elapsed().as_secs_f64();
    let length = if chars { Length::Chars } else { Length::Tokens(&tokenizer) };
    let chunker = Chunker::new(settings, length, None)?;
    let start = Instant::now();
    // One thread: CPU time is then wall clock, which needs no extra dependency to read.
    let mut chunks = 0;
    for document in &documents {
        chunks += chunker.split(document)?.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    let result = serde_json::json!({
        "chunker": settings.to_string(), "documents": documents.len(), "bytes": bytes,
        "chunks": chunks, "load_seconds": load, "seconds": seconds,
        "mb_per_second": bytes as f64 / 1e6 / seconds,
    });
    println!("{result}");
    Ok(())
}
