//! Guards the speed of the bi-encoder: a query, passages, a step of training.
//! `scripts/compare_biencoder.py` and `scripts/compare_training.py` compare it with its peers.

#![allow(missing_docs, clippy::unwrap_used)] // Criterion's macros; a bench may fail as a test does.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use minirag::{
    chunk::{Chunker, Length},
    corpus,
    embed::Embedder,
    nn::{AdamW, AdamWSettings, adamw::global_norm, loss::InfoNce},
    tokenizer::Tokenizer,
    train::{
        MiniBiEncoder, Task,
        bi_encoder::{Contrastive, ContrastiveSettings},
        pairs::{Example, Pairs},
    },
};
use serde_json::Map;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 256;

fn passages(tokenizer: &Tokenizer) -> Vec<String> {
    let chunker = Chunker::new("auto".parse().unwrap(), Length::Tokens(tokenizer), None).unwrap();
    let documents = corpus::embedded().unwrap().documents;
    let chunks = documents.iter().flat_map(|document| chunker.split(document).unwrap());
    chunks.map(|chunk| chunk.index_text()).collect()
}

/// One batch: the passages in turn, each with its first words as the anchor.
struct InMemory(Vec<Example>);

impl InMemory {
    fn new(passages: &[String], tokenizer: &Tokenizer) -> Self {
        let ids = passages.iter().map(|passage| tokenizer.encode(passage).unwrap().ids);
        let ids: Vec<Vec<u32>> = ids.collect();
        let example = |(group, ids): (u64, &Vec<u32>)| Example {
            anchor: ids[..ids.len().min(12)].to_vec(),
            positive: ids.clone(),
            anchor_group: group,
            positive_group: group,
            ..Example::default()
        };
        Self((0..).zip(ids.iter().cycle().take(BATCH)).map(example).collect())
    }
}

impl Pairs for InMemory {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, _: u64, _: u64, _: usize) -> Vec<Example> {
        self.0.clone()
    }

    fn dev(&self) -> &[Example] {
        &[]
    }
}

fn bi_encoder(criterion: &mut Criterion) {
    let tokenizer = Arc::new(Tokenizer::load("models/tokenizer").unwrap());
    let passages = passages(&tokenizer);
    let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
    let encoder = MiniBiEncoder::new(tokenizer.clone(), 64, &texts, 1).unwrap();
    let embedder = encoder.static_embedder().unwrap();
    let pairs = InMemory::new(&passages, &tokenizer);
    let mut group = criterion.benchmark_group("bi-encoder");
    let query = ["When do we use the past perfect continuous?"];
    group.bench_function("query", |b| b.iter(|| embedder.embed_queries(&query).unwrap()));
    group.throughput(Throughput::Elements(64));
    group.bench_function("passages", |b| b.iter(|| embedder.embed_passages(&texts[..64]).unwrap()));

    let settings = ContrastiveSettings {
        batch_size: BATCH,
        cache_chunk: 0,
        matryoshka: Vec::new(),
        loss: InfoNce::default(),
        seed: 1,
    };
    let task = Contrastive { encoder: &encoder, pairs: &pairs, settings, arguments: Map::new() };
    let mut optimiser =
        AdamW::new(task.params(), AdamWSettings::default(), |name| task.group(name));
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("step", |b| {
        b.iter(|| {
            let (_, gradients) = task.step(0).unwrap();
            let norm = global_norm(&gradients).unwrap();
            optimiser.step(task.params(), &gradients, (1.0, norm)).unwrap();
        });
    });
}

criterion_group!(benches, bi_encoder);
criterion_main!(benches);
