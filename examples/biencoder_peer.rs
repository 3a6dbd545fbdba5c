//! Our side of `scripts/compare_biencoder.py`: holds a bi-encoder and embeds passages on command.
//!
//! `biencoder_peer MODEL DOCUMENTS TEXTS VECTORS` cuts the documents of a folder, or those of a
//! BEIR folder, into passages and writes them to TEXTS as a JSON list, so that the peers embed the
//! very same, and their vectors to VECTORS as little-endian f32. Then each line on stdin, `embed
//! K`, embeds all of them K times and is answered by a line: how many values came out. The script
//! holds the watch.

use std::{
    fs,
    io::{BufRead, Write},
    path::Path,
};

use anyhow::{Context, Result, bail};
use minirag::{
    chunk::{Chunker, Length},
    corpus,
    embed::{BiEncoder, Embedder},
};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, documents, texts, vectors] = &arguments[..] else {
        bail!("usage: biencoder_peer MODEL DOCUMENTS TEXTS VECTORS")
    };
    let embedder = BiEncoder::open(model.as_ref())?;
    let passages = passages(documents.as_ref(), &embedder)?;
    fs::write(texts, json!(passages).to_string())?;
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    let embedded = embedder.embed_passages(&passages)?;
    let bytes: Vec<u8> = embedded.rows().flatten().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(vectors, bytes)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let times: usize = line?.strip_prefix("embed ").context("a line is `embed K`")?.parse()?;
        let mut values = 0;
        for _ in 0..times {
            values += embedder.embed_passages(&passages)?.rows().flatten().count();
        }
        writeln!(out, "{values}")?;
    }
    Ok(())
}

fn passages(documents: &Path, embedder: &BiEncoder) -> Result<Vec<String>> {
    let documents = corpus::load(documents)?.documents;
    let length = Length::Tokens(embedder.tokenizer());
    let chunker = Chunker::new("auto".parse()?, length, None)?;
    let mut passages = Vec::new();
    for document in &documents {
        let chunks = chunker.split(document)?;
        passages.extend(chunks.iter().map(|chunk| chunk.index_text()));
    }
    Ok(passages)
}
