//! The overlap reranker's numbers by hand, and what reranking does with them.

use std::sync::Arc;

use minirag::{
    rerank::{self, Overlap, Reranker},
    text::{Analyzer, TermStats, idf},
    types::{Chunk, ChunkId, DocumentId, Explanation, Row, Scale, ScoredChunk},
};

/// A corpus of 1,000 passages: `common` is in 600 of them, `rare` in 2, no other word in any.
struct Corpus;

impl TermStats for Corpus {
    fn passages(&self) -> usize {
        1000
    }

    fn holding(&self, term: &str) -> usize {
        match term {
            "common" => 600,
            "rare" => 2,
            _ => 0,
        }
    }
}

fn overlap() -> Overlap {
    Overlap { analyzer: Analyzer::default(), stats: Arc::new(Corpus) }
}

#[track_caller]
fn check(question: &str, passage: &str, expected: f32) {
    let score = overlap().score(question, &[passage]).unwrap()[0];
    assert!((score - expected).abs() < 1e-5, "{question} / {passage}: {score}, not {expected}");
    let tree = overlap().explain(question, passage).unwrap();
    assert_eq!(tree.value, score, "an explanation has the score that it explains");
}

/// In units of a word that the corpus has never seen.
fn weight(holding: usize) -> f32 {
    idf(1000, holding) / idf(1000, 0)
}

#[test]
fn a_passage_that_holds_the_whole_question_scores_one() {
    check("Common and rare?", "A rare one, and common.", 1.0);
}

#[test]
fn words_count_by_their_rarity_and_twice_when_one_sentence_holds_them() {
    let (common, rare) = (weight(600), weight(2));
    let total = common + rare;
    check("common rare", "Rare.", rare / total);
    check("common rare", "Common.", common / total);
    // The whole passage holds both, its best sentence only the rare one.
    check("common rare", "It is common. Then rare.", (total + rare) / 2.0 / total);
}

#[test]
fn words_that_the_corpus_lacks_lower_every_score() {
    let (rare, unseen) = (weight(2), 1.0);
    let known = rare / (rare + unseen);
    check("rare zyzzyva", "Rare.", known * rare / (rare + unseen));
    check("zyzzyva", "Rare.", 0.0);
}

#[test]
fn a_question_without_content_holds_nothing_against_anything() {
    check("What of it?", "What of it?", 0.0);
    check("", "Rare.", 0.0);
}

#[test]
fn an_explanation_names_what_is_held_and_what_is_missing() {
    fn find<'a>(tree: &'a Explanation, what: &str) -> Option<&'a Explanation> {
        let here = tree.what.contains(what).then_some(tree);
        here.or_else(|| tree.parts.iter().find_map(|part| find(part, what)))
    }
    let tree = overlap().explain("common zyzzyva", "A common thing.").unwrap();
    assert!(find(&tree, "holds \"common\"").unwrap().value > 0.0);
    assert_eq!(find(&tree, "lacks \"zyzzyva\"").unwrap().value, 0.0);
}

/// Gives each passage the number that it holds.
struct Read(Scale);

impl Reranker for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn scale(&self) -> Scale {
        self.0
    }

    fn score(&self, _: &str, passages: &[&str]) -> minirag::Result<Vec<f32>> {
        Ok(passages.iter().map(|p| p.trim().parse().unwrap_or(f32::NAN)).collect())
    }

    fn explain(&self, _: &str, _: &str) -> minirag::Result<Explanation> {
        Ok(Explanation::leaf("read", 0.0))
    }
}

/// The rows after reranking candidates of the given (search score, passage), and their scores.
fn reranked(scale: Scale, weight: f32, candidates: &[(f32, &str)]) -> Vec<(u32, f32)> {
    let document = DocumentId::from("");
    let chunk = |(at, (_, text)): (usize, &(f32, &str))| Chunk {
        id: ChunkId::new(&document, at),
        document: document.clone(),
        title: "".into(),
        ordinal: at,
        token_offset: at,
        tokens: 1,
        overlap: 0,
        span: 0..text.len(),
        text: (*text).to_owned(),
        heading: String::new(),
        table_header: String::new(),
        chunker: "whole".into(),
    };
    let chunks: Vec<Chunk> = candidates.iter().enumerate().map(chunk).collect();
    let scored: Vec<ScoredChunk<'_>> = (0..)
        .zip(&chunks)
        .zip(candidates)
        .map(|((row, chunk), (score, _))| ScoredChunk { row: Row(row), chunk, score: *score })
        .collect();
    let ranking = rerank::rerank(&Read(scale), "?", &scored, weight).unwrap();
    assert_eq!(ranking.scale(), scale);
    ranking.hits().iter().map(|hit| (hit.row.0, hit.score)).collect()
}

#[test]
fn equal_scores_keep_the_order_of_the_search() {
    let rows = reranked(Scale::Overlap, 0.0, &[(9.0, "0.5"), (8.0, "0.5"), (7.0, "0.75")]);
    assert_eq!(rows, [(2, 0.75), (0, 0.5), (1, 0.5)]);
}

#[test]
fn the_search_keeps_a_say() {
    let candidates = [(8.0, "0.5"), (4.0, "0.6"), (-2.0, "0.9")];
    assert_eq!(reranked(Scale::Overlap, 0.5, &candidates)[0], (0, 0.5));
    assert_eq!(reranked(Scale::Overlap, 0.0, &candidates)[0], (2, 0.9));
    let all_search = reranked(Scale::Overlap, 1.0, &candidates);
    assert_eq!(all_search, [(0, 0.5), (1, 0.3), (2, 0.0)]);
}

#[test]
fn logits_are_not_multiplied() {
    let rows = reranked(Scale::Rerank, 0.5, &[(8.0, "-4"), (1.0, "-5"), (0.5, "12")]);
    assert_eq!(rows, [(2, 12.0), (0, -4.0), (1, -5.0)]);
}

#[test]
fn a_score_that_is_no_number_is_refused() {
    let document = DocumentId::from("");
    let chunk = Chunk {
        id: ChunkId::new(&document, 0),
        document,
        title: "".into(),
        ordinal: 0,
        token_offset: 0,
        tokens: 1,
        overlap: 0,
        span: 0..1,
        text: "x".into(),
        heading: String::new(),
        table_header: String::new(),
        chunker: "whole".into(),
    };
    let candidates = [ScoredChunk { row: Row(0), chunk: &chunk, score: 1.0 }];
    assert!(rerank::rerank(&Read(Scale::Overlap), "?", &candidates, 0.0).is_err());
}
