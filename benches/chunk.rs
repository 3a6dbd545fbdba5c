//! Megabytes per second of each strategy on the default corpus, and of counting tokens.

#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a benchmark may panic.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use minirag::{
    chunk::{Chunker, Length},
    corpus,
    tokenizer::Tokenizer,
};

fn chunking(criterion: &mut Criterion) {
    let documents = corpus::embedded().unwrap().documents;
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    let json = std::fs::read("models/tokenizer/tokenizer.json").unwrap();
    let tokenizer = Tokenizer::from_bytes(&json).unwrap();

    let mut group = criterion.benchmark_group("tokenizer");
    group.bench_function("load", |b| b.iter(|| Tokenizer::from_bytes(black_box(&json)).unwrap()));
    group.throughput(Throughput::Bytes(bytes as u64));
    let count = || documents.iter().map(|d| tokenizer.count(&d.text).unwrap()).sum::<usize>();
    group.bench_function("count", |b| b.iter(count));
    group.finish();

    let lengths = [("chars:600:80", Length::Chars), ("tokens:150:20", Length::Tokens(&tokenizer))];
    for (name, length) in lengths {
        let (unit, sizes) = name.split_once(':').unwrap();
        let mut group = criterion.benchmark_group(format!("chunk by {unit}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        for strategy in ["token-window", "sentence", "recursive", "markdown"] {
            let settings = format!("{strategy}:{sizes}").parse().unwrap();
            let chunker = Chunker::new(settings, length, None).unwrap();
            let split = || documents.iter().map(|d| chunker.split(d).unwrap().len()).sum::<usize>();
            group.bench_function(strategy, |b| b.iter(split));
        }
        group.finish();
    }
}

criterion_group!(benches, chunking);
criterion_main!(benches);
