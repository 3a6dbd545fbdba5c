//! Exact vector search: cases for every store, and agreement with the plainest of loops.

use minirag::{
    Error,
    nn::kernels::normalize,
    rng::Rng,
    store::{FlatStore, VectorStore},
    types::{Row, Scale, Vectors},
};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    rows: Vec<Vec<f32>>,
    query: Vec<f32>,
    k: usize,
    found: Vec<u32>,
    scores: Vec<f32>,
}

#[test]
fn stores_pass_the_cases() {
    let cases: Cases = toml::from_str(include_str!("../data/store.toml")).unwrap();
    for case in cases.case {
        let rows = Vectors::new(case.query.len(), case.rows.concat()).unwrap();
        let stores: [Box<dyn VectorStore>; 1] = [Box::new(FlatStore::new(rows))];
        for store in stores {
            assert_eq!(store.len(), case.rows.len(), "{}", case.name);
            let ranking = store.search(&case.query, case.k).unwrap();
            assert_eq!(ranking.scale(), Scale::Cosine);
            let found: Vec<u32> = ranking.hits().iter().map(|hit| hit.row.0).collect();
            assert_eq!(found, case.found, "{}", case.name);
            for (hit, score) in ranking.hits().iter().zip(&case.scores) {
                assert!((hit.score - score).abs() < 1e-6, "{}: {hit:?} {score}", case.name);
            }
        }
    }
}

fn random(rng: &mut Rng, rows: usize, dim: usize) -> Vectors {
    let mut data: Vec<f32> = (0..rows * dim).map(|_| rng.uniform() as f32 - 0.5).collect();
    data.chunks_exact_mut(dim).for_each(normalize);
    Vectors::new(dim, data).unwrap()
}

fn naive(rows: &Vectors, query: &[f32], k: usize) -> Vec<(u32, f64)> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let norm = dot(query, query).sqrt();
    let scores = rows.rows().map(|row| dot(row, query) / norm);
    let mut best: Vec<(u32, f64)> = (0..).zip(scores).collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    best.truncate(k);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flat_equals_naive(
        seed: u64, rows in 1_usize..2000, dim in 1_usize..70, k in 0_usize..130, many in 1_usize..20
    ) {
        let mut rng = Rng::new(seed);
        let vectors = random(&mut rng, rows, dim);
        let queries = random(&mut rng, many, dim);
        let store = FlatStore::new(vectors.clone());
        let batch = store.search_batch(&queries, k).unwrap();
        for (query, ranking) in queries.rows().zip(batch) {
            prop_assert_eq!(&store.search(query, k).unwrap(), &ranking);
            let expected = naive(&vectors, query, k);
            prop_assert_eq!(ranking.hits().len(), expected.len());
            // Rows whose scores differ by less than rounding may change places.
            for (hit, (_, score)) in ranking.hits().iter().zip(expected) {
                prop_assert!((f64::from(hit.score) - score).abs() < 1e-5);
                let own = naive(&vectors, query, rows).iter().find(|n| n.0 == hit.row.0).unwrap().1;
                prop_assert!((own - score).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut rng = Rng::new(5);
    // Coarse values, so that many rows tie, and enough of them to be shared among threads.
    let data = (0..30_000 * 40).map(|_| rng.below(3) as f32 - 1.0).collect();
    let store = FlatStore::new(Vectors::new(40, data).unwrap());
    let queries = random(&mut rng, 9, 40);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| store.search_batch(&queries, 50).unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(7));
    for (query, ranking) in queries.rows().zip(&one) {
        assert_eq!(store.search(query, 50).unwrap(), *ranking);
    }
}

#[test]
fn many_ties_are_cut_by_row() {
    let store = FlatStore::new(Vectors::new(2, [1.0, 0.0].repeat(100_000)).unwrap());
    let ranking = store.search(&[1.0, 0.0], 75).unwrap();
    let rows: Vec<Row> = ranking.hits().iter().map(|hit| hit.row).collect();
    assert_eq!(rows, (0..75).map(Row).collect::<Vec<_>>());
}

#[test]
fn many_queries_and_a_huge_k() {
    let mut rng = Rng::new(9);
    let store = FlatStore::new(random(&mut rng, 50, 3));
    let queries = random(&mut rng, 600, 3);
    let batch = store.search_batch(&queries, usize::MAX).unwrap();
    for (query, ranking) in queries.rows().zip(&batch) {
        assert_eq!(ranking.hits().len(), 50);
        assert_eq!(store.search(query, usize::MAX).unwrap(), *ranking);
    }
}

#[test]
fn rows_are_scaled_to_unit_length() {
    let store = FlatStore::new(Vectors::new(2, vec![3.0, 4.0, 1e-30, 0.0]).unwrap());
    let ranking = store.search(&[1.0, 0.0], 2).unwrap();
    let scores: Vec<f32> = ranking.hits().iter().map(|hit| hit.score).collect();
    assert_eq!(scores, [1.0, 0.6]);
}

#[test]
fn a_wrong_length_names_both_sizes() {
    let store = FlatStore::new(Vectors::new(3, vec![1.0, 0.0, 0.0]).unwrap());
    let error = store.search(&[1.0, 0.0], 1).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 3, got: 2, .. }), "{error}");
    let queries = Vectors::new(2, vec![1.0, 0.0]).unwrap();
    let error = store.search_batch(&queries, 1).unwrap_err().to_string();
    assert!(error.contains('3') && error.contains('2'), "{error}");
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let store = FlatStore::new(Vectors::new(2, vec![1.0, 0.0]).unwrap());
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = store.search(&[1.0, value], 1).unwrap_err().to_string();
        assert!(error.contains("query vector"), "{error}");
    }
}

#[test]
fn queries_of_zeros_keep_their_place_in_a_batch() {
    let store = FlatStore::new(Vectors::new(2, vec![1.0, 0.0, 0.0, 1.0]).unwrap());
    let queries = Vectors::new(2, vec![0.0, 0.0, 0.0, 2.0]).unwrap();
    let rankings = store.search_batch(&queries, 1).unwrap();
    assert!(rankings[0].hits().is_empty());
    assert_eq!(rankings[1].hits()[0].row, Row(1));
    let none = Vectors::new(2, vec![]).unwrap();
    assert!(store.search_batch(&none, 1).unwrap().is_empty());
}
