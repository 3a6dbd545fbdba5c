//! What every embedder promises, and the hashing embedder's own numbers.

use minirag::{
    embed::{Embedder, HashingEmbedder},
    types::Vectors,
};

fn every_embedder() -> Vec<Box<dyn Embedder>> {
    vec![Box::new(HashingEmbedder::default()), Box::new(HashingEmbedder::new(64))]
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn rows_are_unit_or_zero() {
    for embedder in every_embedder() {
        let vectors = embedder.embed_passages(&["The cat sat.", "", "🙂 …", "the of and"]).unwrap();
        let norms: Vec<f32> = vectors.rows().map(|row| dot(row, row)).collect();
        assert!((norms[0] - 1.0).abs() < 1e-6);
        assert_eq!(norms[1..], [0.0, 0.0, 0.0]);
    }
}

#[test]
fn a_text_has_one_vector_whatever_stands_beside_it() {
    for embedder in every_embedder() {
        let long = "word and another word ".repeat(400);
        let alone = embedder.embed_passages(&["to eat out"]).unwrap();
        let beside = embedder.embed_passages(&[&long, "to eat out", "x"]).unwrap();
        assert_eq!(alone.row(0), beside.row(1));
    }
}

#[test]
fn the_vector_of_work_is_the_same_on_every_machine() {
    let vectors = HashingEmbedder::default().embed_queries(&["work"]).unwrap();
    let set: Vec<(usize, f32)> =
        vectors.row(0).iter().copied().enumerate().filter(|(_, x)| *x != 0.0).collect();
    assert_eq!(set, [(WORK_BUCKET, WORK_SIGN)]);
}
/// Where the stem `work` falls; a change of these numbers makes every saved index wrong.
const WORK_BUCKET: usize = 214;
const WORK_SIGN: f32 = 1.0;

#[test]
fn fitting_equals_embedding_with_the_corpus_known() {
    let texts = ["eat ate eaten", "go went gone", "eat and go", ""];
    let mut embedder = HashingEmbedder::default();
    let stored = embedder.embed_passages(&texts).unwrap();
    let fitted = embedder.fit(stored).unwrap();
    let fresh = embedder.embed_passages(&texts).unwrap();
    for (a, b) in fitted.data().iter().zip(fresh.data()) {
        assert!((a - b).abs() < 1e-6);
    }
}

#[test]
fn vectors_of_another_length_are_refused_with_both_sizes() {
    let stored = Vectors::new(3, vec![0.0; 6]).unwrap();
    let error = HashingEmbedder::new(4).fit(stored).unwrap_err();
    assert_eq!(error.to_string(), "stored vector length: expected 4, got 3");
}
