//! Guards the speed of the two searches on sizes that take seconds; `scripts/compare_search.py`
//! compares them with their peers on large ones.

#![allow(missing_docs, clippy::unwrap_used)] // Criterion's macros; a bench may fail as a test does.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use minirag::{
    lexical::{Bm25, Bm25Settings, LexicalIndex},
    rng::Rng,
    store::{FlatStore, VectorStore},
    text::Analyzer,
    types::Vectors,
};

fn vectors(rng: &mut Rng, rows: usize, dim: usize) -> Vectors {
    let data = (0..rows * dim).map(|_| rng.uniform() as f32 - 0.5).collect();
    Vectors::new(dim, data).unwrap()
}

fn flat(criterion: &mut Criterion) {
    let mut rng = Rng::new(1);
    for (rows, dim) in [(2_000, 256), (20_000, 384)] {
        let store = FlatStore::new(vectors(&mut rng, rows, dim));
        let queries = vectors(&mut rng, 32, dim);
        let mut group = criterion.benchmark_group(format!("flat/{rows}x{dim}/{}", store.kernel()));
        group.throughput(Throughput::Bytes((rows * dim * size_of::<f32>()) as u64));
        group.bench_function("one", |b| b.iter(|| store.search(queries.row(0), 10)));
        group.throughput(Throughput::Elements(32));
        group.bench_function("batch", |b| b.iter(|| store.search_batch(&queries, 10)));
    }
}

fn bm25(criterion: &mut Criterion) {
    let mut rng = Rng::new(2);
    // Word frequencies fall off as in language (Zipf).
    let mut text = |words: usize| -> String {
        (0..words).map(|_| format!("w{} ", 20_000_f64.powf(rng.uniform()) as usize)).collect()
    };
    let texts: Vec<String> = (0..5_000).map(|_| text(80)).collect();
    let queries: Vec<String> = (0..100).map(|_| text(8)).collect();
    let build = || Bm25::build(&texts, Analyzer::default(), Bm25Settings::default()).unwrap();
    let index = build();
    let bytes = index.serialize();
    let mut group = criterion.benchmark_group("bm25");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(texts.iter().map(String::len).sum::<usize>() as u64));
    group.bench_function("build", |b| b.iter(build));
    group.bench_function("open", |b| b.iter(|| Bm25::deserialize(&bytes)));
    group.throughput(Throughput::Elements(queries.len() as u64));
    for k in [10, 100] {
        group.bench_function(format!("search/{k}"), |b| {
            b.iter(|| queries.iter().map(|q| index.search(q, k)).collect::<Vec<_>>());
        });
    }
}

criterion_group!(benches, flat, bm25);
criterion_main!(benches);
