//! Measures against trec_eval and SQuAD's script, their bounds, and runs on disk.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, ops::Range};

use minirag::{
    eval::{
        dataset::{GoldSpan, Qrels},
        metrics::{
            Judged, Measure, Outcome, Refusals, answer_relevance, auroc, citation_precision,
            citation_recall, contains, document_precision, exact_match, f1, word_overlap,
        },
        trec,
    },
    types::DocumentId,
};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct TrecCase {
    name: String,
    qrels: Qrels,
    run: BTreeMap<String, BTreeMap<String, f32>>,
    figures: BTreeMap<String, BTreeMap<String, f64>>,
}

#[test]
fn retrieval_measures_agree_with_trec_eval() {
    let cases: Vec<TrecCase> =
        serde_json::from_str(include_str!("../data/metrics_trec.json")).unwrap();
    assert_eq!(cases.len(), 3);
    let mut compared = 0;
    for TrecCase { name, qrels, run, figures } in cases {
        for (query, relevance) in &qrels {
            let documents: Vec<(&String, f32)> =
                run.get(query).into_iter().flatten().map(|(id, score)| (id, *score)).collect();
            let judged = Judged::documents(&documents, relevance).unwrap();
            for (theirs, expected) in &figures[query] {
                let measure = match theirs.rsplit_once('_') {
                    Some(("ndcg_cut", k)) => Measure::Ndcg(k.parse().unwrap()),
                    Some(("recall", k)) => Measure::Recall(k.parse().unwrap()),
                    Some(("P", k)) => Measure::Precision(k.parse().unwrap()),
                    Some(("success", k)) => Measure::Hit(k.parse().unwrap()),
                    _ if theirs == "map" => Measure::Map,
                    _ => Measure::Mrr(usize::MAX),
                };
                let got = measure.of(&judged);
                assert!(
                    (got - expected).abs() <= 1e-6,
                    "{name}: {query} {theirs}: {got}, {expected}"
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, (9 + 8 + 11) * 18);
}

#[test]
fn exact_match_and_f1_agree_with_squad() {
    #[derive(Deserialize)]
    struct Case {
        answer: String,
        gold: Vec<String>,
        exact_match: f64,
        f1: f64,
    }
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../data/metrics_squad.json")).unwrap();
    for case in cases {
        let got = (exact_match(&case.answer, &case.gold), f1(&case.answer, &case.gold));
        assert_eq!(got.0, Some(case.exact_match), "{}", case.answer);
        assert!((got.1.unwrap() - case.f1).abs() < 1e-12, "{}", case.answer);
    }
    assert_eq!((exact_match("x", &[]), f1("x", &[]), contains("x", &[])), (None, None, None));
}

#[test]
fn an_answer_contains_whole_tokens_of_a_gold_form() {
    let gold = |forms: &[&str]| forms.iter().map(|form| (*form).to_owned()).collect::<Vec<_>>();
    let sentence = "The price rose to nearly $12 (a barrel) [#1].";
    assert_eq!(contains(sentence, &gold(&["nearly $12 barrel"])), Some(1.0));
    assert_eq!(contains(sentence, &gold(&["ric", "$1", "12 nearly"])), Some(0.0));
    assert_eq!(contains(sentence, &gold(&["the"])), Some(0.0));
    assert_eq!(contains("黑豹队丢了308分。", &gold(&["308分"])), Some(1.0));
    assert_eq!(contains("", &gold(&["x"])), Some(0.0));
}

#[test]
fn faulty_runs_are_refused() {
    let relevance = BTreeMap::from([("a".to_owned(), 1)]);
    assert!(Judged::documents(&[("a", 1.0), ("a", 0.5)], &relevance).is_err());
    assert!(Judged::documents(&[("a", f32::NAN)], &relevance).is_err());
}

fn gold(document: &str, span: Range<usize>) -> GoldSpan {
    GoldSpan { document: document.into(), span, quote: String::new() }
}

#[test]
fn a_chunk_hits_the_gold_spans_that_it_overlaps() {
    let (a, b): (DocumentId, DocumentId) = ("a".into(), "b".into());
    let spans = [gold("a", 10..20), gold("a", 30..40), gold("b", 0..5)];
    // Touching is not overlapping; the second chunk holds two spans, the third one of them again.
    let ranked = [(&a, 0..10), (&a, 19..31), (&a, 19..25), (&b, 9..12), (&b, 4..9)];
    let judged = Judged::chunks(&ranked, &spans);
    let of = |measure: Measure| measure.of(&judged);
    assert_eq!(of(Measure::Recall(1)), 0.0);
    assert_eq!(of(Measure::Recall(2)), 2.0 / 3.0);
    assert_eq!(of(Measure::Recall(5)), 1.0);
    assert_eq!(of(Measure::Mrr(10)), 0.5);
    assert_eq!(of(Measure::Precision(4)), 0.5);
    assert_eq!(of(Measure::Hit(1)), 0.0);
    assert_eq!(of(Measure::Map), (0.5 + 0.5 + 0.6) / 3.0);
    // Both spans in the first chunk beat the ideal of one a rank.
    assert_eq!(Measure::Ndcg(10).of(&Judged::chunks(&[(&a, 0..50)], &spans[..2])), 1.0);
}

#[test]
fn citations_are_held_against_gold_bytes() {
    let (a, b): (DocumentId, DocumentId) = ("a".into(), "b".into());
    let spans = [gold("a", 10..20), gold("b", 0..5)];
    let cited = [(&a, 15..18), (&b, 5..9), (&a, 0..12)];
    assert_eq!(citation_precision(&cited, &spans), Some(2.0 / 3.0));
    assert_eq!(citation_recall(&cited, &spans), Some(0.5));
    assert_eq!((citation_precision(&[], &spans), citation_recall(&[], &spans)), (None, Some(0.0)));
    assert_eq!((citation_precision(&cited, &[]), citation_recall(&cited, &[])), (None, None));
    let relevance = BTreeMap::from([("b".to_owned(), 1), ("a".to_owned(), 0)]);
    assert_eq!(document_precision(&cited, &relevance), Some(1.0 / 3.0));
}

#[test]
fn overlaps_count_content_words() {
    let question = "What is the past participle of eat?";
    assert_eq!(answer_relevance(question, "The participle of eat is eaten [#1]."), Some(2.0 / 3.0));
    assert_eq!(answer_relevance("What is the?", "Eaten."), None);
    assert_eq!(word_overlap(question, ["| eat | ate |", "the past"]), Some(2.0 / 3.0));
    assert_eq!(word_overlap(question, []), None);
}

fn outcomes(counts: [(bool, bool, usize); 4]) -> Vec<Outcome> {
    let of = |(answerable, refused, n)| vec![Outcome { answerable, refused, score: None }; n];
    counts.into_iter().flat_map(of).collect()
}

#[test]
fn refusals_are_counted_raw_and_balanced() {
    // 90 answerable, 9 of them refused; 10 unanswerable, 8 of them refused.
    let outcomes =
        outcomes([(true, true, 9), (true, false, 81), (false, true, 8), (false, false, 2)]);
    let raw = Refusals::count(&outcomes, &[1; 100]);
    assert_eq!(raw.precision(), Some(8.0 / 17.0));
    assert_eq!(raw.recall(), Some(0.8));
    assert!((raw.f1().unwrap() - 16.0 / 27.0).abs() < 1e-12);
    // Ten against ten: one wrong refusal beside eight right ones.
    let balanced = raw.balanced().unwrap();
    assert!((balanced.precision().unwrap() - 8.0 / 9.0).abs() < 1e-12);
    assert!((balanced.f1().unwrap() - 16.0 / 19.0).abs() < 1e-12);
}

#[test]
fn refusal_figures_that_mean_nothing_are_absent() {
    let never = Refusals::count(&outcomes_of(&[(true, false), (false, false)]), &[1, 1]);
    assert_eq!((never.precision(), never.recall(), never.f1()), (None, Some(0.0), Some(0.0)));
    let answerable = Refusals::count(&outcomes_of(&[(true, true)]), &[1]);
    assert_eq!((answerable.precision(), answerable.recall(), answerable.f1()), (None, None, None));
    assert!(answerable.balanced().is_none());
}

fn outcomes_of(cases: &[(bool, bool)]) -> Vec<Outcome> {
    let of = |(answerable, refused): &(bool, bool)| Outcome {
        answerable: *answerable,
        refused: *refused,
        score: None,
    };
    cases.iter().map(of).collect()
}

proptest! {
    #[test]
    fn auroc_is_the_share_of_pairs_in_order(
        cases in prop::collection::vec((any::<bool>(), prop::option::of(0..6_i32)), 0..40)
    ) {
        let outcomes: Vec<Outcome> = cases
            .iter()
            .map(|(answerable, score)| {
                Outcome { answerable: *answerable, refused: false, score: score.map(f64::from) }
            })
            .collect();
        let (mut pairs, mut above) = (0.0, 0.0);
        for (_, yes) in cases.iter().filter(|(answerable, _)| *answerable) {
            for (_, no) in cases.iter().filter(|(answerable, _)| !answerable) {
                // Nothing found is below any score.
                pairs += 1.0;
                above += if yes > no { 1.0 } else if yes == no { 0.5 } else { 0.0 };
            }
        }
        let got = auroc(&outcomes, &vec![1; outcomes.len()]);
        match got {
            Some(area) => prop_assert!((area - above / pairs).abs() < 1e-9),
            None => prop_assert_eq!(pairs, 0.0),
        }
    }

    #[test]
    fn measures_stay_between_0_and_1(
        run in prop::collection::btree_map("[a-h]", -2.0..2.0_f32, 0..8),
        relevance in prop::collection::btree_map("[a-h]", -2..4_i64, 0..8),
        chunks in prop::collection::vec((0..60_usize, 1..30_usize), 0..8),
        spans in prop::collection::vec((0..60_usize, 1..30_usize), 0..5),
    ) {
        let run: Vec<(String, f32)> = run.into_iter().collect();
        let document: DocumentId = "d".into();
        let chunks: Vec<_> = chunks.into_iter().map(|(at, n)| (&document, at..at + n)).collect();
        let spans: Vec<_> = spans.into_iter().map(|(at, n)| gold("d", at..at + n)).collect();
        let documents = Judged::documents(&run, &relevance).unwrap();
        for judged in [documents, Judged::chunks(&chunks, &spans)] {
            for measure in Measure::at(&[1, 2, 5, 100]) {
                let value = measure.of(&judged);
                prop_assert!((0.0..=1.0).contains(&value), "{measure} {value}");
            }
        }
    }

    #[test]
    fn runs_read_back_bit_for_bit(
        run in prop::collection::btree_map(
            "[a-z#:./]{1,8}",
            prop::collection::btree_map(
                "[a-zé#:./]{1,8}",
                any::<f32>().prop_filter("finite", |x| x.is_finite()),
                1..6,
            ),
            0..4,
        )
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.run");
        let run: trec::Run =
            run.into_iter().map(|(query, docs)| (query, docs.into_iter().collect())).collect();
        trec::write(&path, &run, "tag").unwrap();
        let read = trec::read(&path).unwrap();
        for (query, mut documents) in run {
            documents.sort_by(|a, b| trec::order((&a.0, a.1), (&b.0, b.1)));
            let bits = |(id, score): &(String, f32)| (id.clone(), score.to_bits());
            let [expected, got] = [&documents, &read[&query]];
            prop_assert!(expected.iter().map(bits).eq(got.iter().map(bits)));
        }
    }
}

#[test]
fn malformed_runs_are_errors_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.run");
    for (text, expected) in [
        ("q Q0 d 1 0.5 t\nq Q0 e 2\n", "a.run:2: expected 6 fields"),
        ("q Q0 d 1 high t\n", "a.run:1: `high` is not a finite score"),
        ("q Q0 d 1 NaN t\n", "a.run:1: `NaN`"),
        ("q Q0 d 1 1e99 t\n", "a.run:1: `1e99`"),
        ("q Q0 d 1 1 t\nq Q0 d 2 1 t\n", "a.run:2: document `d` comes twice"),
    ] {
        std::fs::write(&path, text).unwrap();
        let message = trec::read(&path).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let run = trec::Run::from([("q".to_owned(), vec![("my notes.md".to_owned(), 1.0)])]);
    let message = trec::write(&path, &run, "t").unwrap_err().to_string();
    assert!(message.contains("`my notes.md`"), "{message}");
}

#[test]
fn a_document_scores_as_its_best_chunk() {
    let chunks = [("a", 0.3), ("b", 0.5), ("a", 0.5), ("c", 0.1)];
    let documents = trec::documents(chunks);
    assert_eq!(documents, [("b".to_owned(), 0.5), ("a".to_owned(), 0.5), ("c".to_owned(), 0.1)]);
}
