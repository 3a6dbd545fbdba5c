//! BM25: cases for every lexical index, scores computed by hand, and the saved form.

use minirag::{
    lexical::{Bm25, Bm25Settings, LexicalIndex},
    text::{Analyzer, TermStats, idf},
    types::{Row, Scale},
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
    texts: Vec<String>,
    query: String,
    #[serde(default = "ten")]
    k: usize,
    found: Vec<u32>,
}

fn ten() -> usize {
    10
}

fn build(texts: &[&str]) -> Bm25 {
    Bm25::build(texts, Analyzer::default(), Bm25Settings::default()).unwrap()
}

fn rows(index: &impl LexicalIndex, query: &str, k: usize) -> Vec<u32> {
    index.search(query, k).unwrap().hits().iter().map(|hit| hit.row.0).collect()
}

#[test]
fn indexes_pass_the_cases() {
    let cases: Cases = toml::from_str(include_str!("../data/lexical.toml")).unwrap();
    for case in cases.case {
        let index = Bm25::build(&case.texts, Analyzer::default(), Bm25Settings::default()).unwrap();
        let saved = Bm25::deserialize(&index.serialize()).unwrap();
        for index in [index, saved] {
            assert_eq!(index.len(), case.texts.len(), "{}", case.name);
            assert_eq!(rows(&index, &case.query, case.k), case.found, "{}", case.name);
        }
    }
}

/// The idf of a term in an index.
fn known(index: &Bm25, term: &str) -> f32 {
    idf(index.passages(), index.holding(term))
}

const TEXTS: [&str; 4] =
    ["Cats purr; cats sleep.", "Dogs bark.", "A cat and a dog play in a garden.", ""];

#[test]
fn scores_are_those_computed_by_hand() {
    // Lengths 4, 2, 4, 0 (stop words do not count), average 2.5. "cat": 2 of 4 passages.
    let idf = (1.0_f64 + (4.0 - 2.0 + 0.5) / (2.0 + 0.5)).ln();
    let tf = |count: f64, length: f64| count / (count + 1.2 * (1.0 - 0.75 + 0.75 * length / 2.5));
    let index = build(&TEXTS);
    let ranking = index.search("cat", 10).unwrap();
    assert_eq!(ranking.scale(), Scale::Bm25);
    let expected = [(0, idf * tf(2.0, 4.0)), (2, idf * tf(1.0, 4.0))];
    assert_eq!(ranking.hits().len(), 2);
    for (hit, (row, score)) in ranking.hits().iter().zip(expected) {
        assert_eq!(hit.row, Row(row));
        assert!((f64::from(hit.score) - score).abs() < 1e-6, "{hit:?} {score}");
    }
    // A word that comes twice in the query counts twice.
    let twice = index.search("cats, cat", 10).unwrap();
    assert!((twice.best().unwrap() - 2.0 * ranking.best().unwrap()).abs() < 1e-6);
}

#[test]
fn idf_is_highest_for_unknown_terms() {
    let index = build(&TEXTS);
    let expected = |n: f64| (1.0 + (4.0 - n + 0.5) / (n + 0.5)).ln() as f32;
    assert_eq!(known(&index, "cat"), expected(2.0));
    assert_eq!(known(&index, "garden"), expected(1.0));
    assert_eq!(known(&index, "unheard"), expected(0.0));
    assert!(known(&build(&[]), "any").is_finite());
}

#[test]
fn settings_change_the_saturation_and_the_lengths() {
    let settings = Bm25Settings { k1: 0.0, b: 0.75 };
    let index = Bm25::build(&TEXTS, Analyzer::default(), settings).unwrap();
    // Without k1 only presence counts, so both passages tie.
    assert_eq!(rows(&index, "cat", 10), [0, 2]);
    assert_eq!(index.search("cat", 1).unwrap().best(), Some(known(&index, "cat")));
    let refused = |k1, b| {
        let settings = Bm25Settings { k1, b };
        Bm25::build(&TEXTS, Analyzer::default(), settings).unwrap_err().to_string()
    };
    assert!(refused(-1.0, 0.5).contains("k1"));
    assert!(refused(f32::NAN, 0.5).contains("k1"));
    assert!(refused(1.2, 1.5).contains("1.5"));
}

#[test]
fn the_parts_of_an_explanation_make_the_score() {
    let index = build(&TEXTS);
    let query = "Do cats, dogs and cats play?";
    let ranking = index.search(query, 10).unwrap();
    assert_eq!(ranking.hits().len(), 3);
    for hit in ranking.hits() {
        let tree = index.explain(query, hit.row);
        assert_eq!(tree.value, hit.score);
        assert_eq!(tree.parts.iter().map(|term| term.value).sum::<f32>(), hit.score);
        for term in &tree.parts {
            let product: f32 = term.parts.iter().map(|part| part.value).product();
            assert!((product - term.value).abs() < 1e-6, "{term:?}");
        }
    }
    let terms: Vec<String> =
        index.explain(query, Row(2)).parts.into_iter().map(|term| term.what).collect();
    assert_eq!(terms, ["cat", "dog", "play"]);
    // A row that holds none of the terms, and one that there is not.
    for row in [3, 99] {
        let tree = index.explain(query, Row(row));
        assert!(tree.value == 0.0 && tree.parts.is_empty());
    }
}

#[test]
fn the_vocabulary_is_sorted_and_counted() {
    let index = build(&TEXTS);
    let terms: Vec<(&str, usize)> = index.vocabulary().collect();
    assert!(terms.is_sorted());
    assert!(terms.contains(&("cat", 2)) && terms.contains(&("bark", 1)));
}

fn long_corpus(passages: usize) -> Vec<String> {
    let mut rng = minirag::rng::Rng::new(11);
    let mut word = || {
        let rare = 1 + rng.below(400);
        format!("w{} ", rng.below(rare))
    };
    (0..passages).map(|_| (0..30).map(|_| word()).collect()).collect()
}

#[test]
fn threads_and_history_change_nothing() {
    let texts = long_corpus(1500);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Bm25::build(&texts, Analyzer::default(), Bm25Settings::default())).unwrap()
    };
    let one = with(1);
    assert_eq!(one.serialize(), with(5).serialize());
    let first = one.search("w1 w7 w300", 20).unwrap();
    // A search on another index in between must leave no scores behind.
    build(&TEXTS).search("cat dog", 1).unwrap();
    one.search("w2 w3", 5).unwrap();
    assert_eq!(one.search("w1 w7 w300", 20).unwrap(), first);
    // The best few are the first of the best many.
    let all = one.search("w1 w7 w300", usize::MAX).unwrap();
    assert_eq!(all.hits()[..20], *first.hits());
    assert!(all.hits().len() < 1500);
}

#[test]
fn known_terms_find_what_their_text_finds() {
    let index = build(&TEXTS);
    let terms = Analyzer::default().terms("cats that play");
    let by_terms = index.search_terms(&terms, 10).unwrap();
    assert_eq!(by_terms, index.search("cats that play", 10).unwrap());
}

#[test]
fn saved_and_opened_is_the_same() {
    let texts = long_corpus(300);
    let analyzer = Analyzer { stem: false, stop_words: true };
    let index = Bm25::build(&texts, analyzer, Bm25Settings { k1: 0.9, b: 0.4 }).unwrap();
    let bytes = index.serialize();
    let opened = Bm25::deserialize(&bytes).unwrap();
    assert_eq!(opened.serialize(), bytes);
    assert_eq!(opened.settings(), index.settings());
    assert_eq!(opened.analyzer(), analyzer);
    assert_eq!(opened.search("w3 w5", 50).unwrap(), index.search("w3 w5", 50).unwrap());
    assert_eq!(opened.explain("w3", Row(4)), index.explain("w3", Row(4)));
}

#[test]
fn damage_is_an_error() {
    let bytes = build(&TEXTS).serialize();
    for end in 0..bytes.len() {
        assert!(Bm25::deserialize(&bytes[..end]).is_err(), "cut off at {end}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(Bm25::deserialize(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
    let error = Bm25::deserialize(b"").unwrap_err().to_string();
    assert!(error.contains("build the index again"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let mut whole = build(&TEXTS).serialize();
        prop_assert!(Bm25::deserialize(&bytes).is_err());
        whole.extend(&bytes);
        prop_assert_eq!(Bm25::deserialize(&whole).is_err(), !bytes.is_empty());
    }

    #[test]
    fn no_text_panics(text in "\\PC*", query in "\\PC*") {
        let index = build(&[&text, "cat"]);
        let ranking = index.search(&query, 10).unwrap();
        prop_assert!(ranking.hits().iter().all(|hit| hit.score > 0.0));
        let words = Analyzer::default().terms(&text);
        prop_assert_eq!(index.search(&text, 1).unwrap().hits().is_empty(), words.is_empty());
    }
}

/// nDCG@10 of passages (title and text) in a BEIR folder; queries without qrels are left out.
fn ndcg(folder: &std::path::Path) -> f64 {
    let lines = |name: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let corpus = lines("corpus.jsonl");
    let text = |passage: &serde_json::Value| {
        format!("{}\n{}", passage["title"].as_str().unwrap(), passage["text"].as_str().unwrap())
    };
    let texts: Vec<String> = corpus.iter().map(text).collect();
    let index = Bm25::build(&texts, Analyzer::default(), Bm25Settings::default()).unwrap();
    let mut qrels = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in std::fs::read_to_string(folder.join("qrels/test.tsv")).unwrap().lines().skip(1) {
        let [query, passage, gain] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        assert!(["0", "1"].contains(&gain), "graded qrels need another formula");
        if gain == "1" {
            qrels.entry(query.to_owned()).or_default().push(passage.to_owned());
        }
    }
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let (mut sum, mut n) = (0.0, 0);
    for query in lines("queries.jsonl") {
        let Some(gold) = qrels.get(query["_id"].as_str().unwrap()) else { continue };
        let ranking = index.search(query["text"].as_str().unwrap(), 10).unwrap();
        let id = |row: Row| corpus[row.0 as usize]["_id"].as_str().unwrap();
        let held = |hit: &minirag::types::Hit| gold.iter().any(|gold| gold == id(hit.row));
        let found = ranking.hits().iter().enumerate().filter(|(_, hit)| held(hit));
        let ideal: f64 = (0..gold.len().min(10)).map(discount).sum();
        sum += found.map(|(rank, _)| discount(rank)).sum::<f64>() / ideal;
        n += 1;
    }
    sum / f64::from(n)
}

#[test]
fn bm25_alone_keeps_its_bounds() {
    let Some(sets) = crate::shared("data/beir") else { return };
    let bounds = [
        ("scifact", 0.68),
        ("squad-dev-v2.0", 0.885),
        ("xquad-es", 0.945),
        ("xquad-zh", 0.93),
        ("xquad-th", 0.92),
        ("mlquestions", 0.42),
    ];
    for (name, bound) in bounds {
        let ndcg = ndcg(&sets.join(name));
        assert!(ndcg >= bound, "{name}: nDCG@10 {ndcg:.4}, bound {bound}");
    }
}
