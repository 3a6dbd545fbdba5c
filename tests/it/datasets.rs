//! BEIR folders, gold spans and the grammar set: read, refused with their line, written out.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use minirag::{
    eval::dataset::{
        beir,
        grammar::{QuestionSet, check_frozen},
    },
    types::Document,
};
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

const QUERIES: &str = r#"{"_id": "q1", "text": "one", "metadata": {"class": "rule"}}
{"_id": "q2", "text": "two", "metadata": null}

{"_id": "q3", "text": "three", "metadata": {"answerable": false}}
{"_id": "q4", "text": "four", "metadata": {"split": "dev"}}
{"_id": "q5", "text": "five"}
{"_id": "q6", "text": "six"}
"#;
const ANSWERS: &str = r#"{"_id": "q1", "answers": ["a", "b"]}
{"_id": "q5", "answers": []}
"#;
const TEST: &str = "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t-1\n";
const DEV: &str = "q2 0 d2 1\r\nq2 0 d3 0\r\n";

#[test]
fn a_beir_folder_is_read_by_split() {
    let dir = folder(&[
        ("queries.jsonl", QUERIES),
        ("answers.jsonl", ANSWERS),
        ("qrels/test.tsv", TEST),
        ("qrels/dev.qrels", DEV),
        ("meta.json", r#"{"name": "mine", "chunker": "markdown:150:20", "more": 1}"#),
    ]);
    let test = beir::load(dir.path(), "test").unwrap();
    let ids: Vec<&str> = test.queries.iter().map(|query| query.id.as_str()).collect();
    assert_eq!(ids, ["q1", "q3", "q5", "q6"], "q2 and q4 belong to dev");
    let answerable: Vec<_> = test.queries.iter().map(|query| query.answerable).collect();
    assert_eq!(answerable, [Some(true), Some(false), Some(false), None]);
    assert_eq!(test.queries[0].class.as_deref(), Some("rule"));
    assert_eq!(test.queries[0].answers, ["a", "b"]);
    assert_eq!(test.qrels.len(), 1);
    assert_eq!(test.qrels["q1"]["d 1"], 2);
    assert_eq!(test.qrels["q1"]["d2"], -1);
    assert_eq!((test.name.as_str(), test.split.as_str()), ("mine", "test"));
    assert!(test.chunker_mismatch("markdown:150:20").is_none());
    assert!(test.chunker_mismatch("sentence:150:20").unwrap().contains("`sentence:150:20`"));

    let mut dev = beir::load(dir.path(), "dev").unwrap();
    assert_eq!(dev.qrels["q2"].len(), 2);
    dev.limit(1);
    assert_eq!((dev.queries.len(), dev.qrels.len()), (1, 1));
}

#[test]
fn queries_may_be_numbered() {
    let dir = folder(&[
        ("queries.jsonl", "{\"_id\": 7, \"text\": \"seven\"}\n"),
        ("answers.jsonl", "{\"_id\": 7, \"answers\": [\"a\"]}\n"),
        ("qrels/test.tsv", "7\td\t1\n"),
    ]);
    let test = beir::load(dir.path(), "test").unwrap();
    assert_eq!((test.queries[0].id.as_str(), test.queries[0].answers.len()), ("7", 1));
    check_error(
        "queries.jsonl",
        "{\"_id\": [1], \"text\": \"\"}",
        "queries.jsonl:1: the _id is [1]",
    );
}

#[track_caller]
fn check_error(name: &str, content: &str, expected: &str) {
    let mut files = vec![("queries.jsonl", QUERIES), ("qrels/test.tsv", TEST)];
    files.retain(|(other, _)| *other != name);
    files.push((name, content));
    let dir = folder(&files);
    let message = beir::load(dir.path(), "test").unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn malformed_folders_are_errors_with_their_line() {
    check_error("queries.jsonl", "{\"_id\": \"q1\"}\n", "queries.jsonl:1: missing field `text`");
    check_error("queries.jsonl", "\n{\"_id\"\n", "queries.jsonl:2: ");
    let twice = format!("{QUERIES}{{\"_id\": \"q1\", \"text\": \"\"}}\n");
    check_error("queries.jsonl", &twice, "queries.jsonl:8: the id `q1` comes twice");
    check_error("qrels/test.tsv", "q1\td1\n", "test.tsv:1: expected query-id, corpus-id, score");
    check_error("qrels/test.tsv", "q1\td1\t1\nq1\td2\tyes\n", "test.tsv:2: the relevance `yes`");
    check_error("qrels/test.tsv", "q1\td1\tyes\n", "test.tsv:1: the relevance `yes`");
    check_error("qrels/test.tsv", "q1\td1\t1\nq1\td1\t2\n", "test.tsv:2: query `q1` judges");
    check_error("qrels/test.tsv", "q1\td1\t1\nq9\td1\t1\n", "test.tsv:2: query `q9` is judged");
    check_error("qrels/dev.tsv", "x\n", "dev.tsv:1: ");
    check_error("answers.jsonl", "{\"_id\": \"q1\", \"answers\": 3}\n", "answers.jsonl:1: ");
    check_error("meta.json", "{", "meta.json: ");
    let dir = folder(&[("queries.jsonl", QUERIES), ("qrels/dev.tsv", DEV), ("qrels/a.tsv", TEST)]);
    let message = beir::load(dir.path(), "test").unwrap_err().to_string();
    assert!(message.ends_with("test.tsv: there is no such split; the folder has: a, dev"));
}

#[test]
fn character_spans_become_byte_spans() {
    let spans = r#"{"_id": "q1", "corpus_id": "a", "references": [{"content": "für", "start_index": 2, "end_index": 5}]}"#;
    let files = [
        ("queries.jsonl", QUERIES),
        ("qrels/test.tsv", TEST),
        ("corpora/a.md", "é für ü"),
        ("spans.jsonl", spans),
    ];
    let dir = folder(&files);
    assert!(beir::has_spans(dir.path()));
    let dataset = beir::load_spans(dir.path(), "test").unwrap();
    let gold = &dataset.queries[0].gold;
    assert_eq!((gold.len(), gold[0].span.clone(), &*gold[0].document.0), (1, 3..7, "a.md"));
    assert_eq!(dataset.qrels["q1"]["a.md"], 1);
    assert_eq!(dataset.corpus.as_deref(), Some(&*dir.path().join("corpora")));
    for wrong in [spans.replace(": 5", ": 6"), spans.replace(": 5", ": 99")] {
        fs::write(dir.path().join("spans.jsonl"), wrong).unwrap();
        let message = beir::load_spans(dir.path(), "test").unwrap_err().to_string();
        assert!(message.contains("spans.jsonl:1: characters 2.."), "{message}");
    }
}

fn document(id: &str, text: &str) -> Document {
    Document {
        id: id.into(),
        title: id.into(),
        text: text.to_owned(),
        metadata: [("format".to_owned(), "markdown".to_owned())].into(),
    }
}

const LINE: &str = r#"{"id": "g1", "split": "test", "class": "conjugation", "question": "Past of eat?", "gold": [{"document": "eat.md", "quote": "*ate*"}], "answer": "It is ate.", "values": ["ate"]}"#;
const FAR: &str = r#"{"id": "g2", "split": "test", "class": "unanswerable-far", "question": "Prime?", "gold": [], "answer": "", "values": []}"#;

fn documents() -> [Document; 2] {
    [document("eat.md", "é: the past is *ate*."), document("run.md", "ran, ran")]
}

#[test]
fn gold_bytes_are_found_from_the_quote() {
    let more = LINE.replace("g1", "g3").replace("test", "dev");
    let meta = r#"{"subsets": {"smoke": ["g2", "g3"]}}"#;
    let dir =
        folder(&[("questions.jsonl", &format!("{LINE}\n{FAR}\n{more}\n")), ("meta.json", meta)]);
    let set = QuestionSet::read(dir.path(), &documents()).unwrap();
    let test = set.split("test").unwrap();
    assert_eq!((test.queries.len(), test.qrels.len()), (2, 1));
    assert_eq!(test.queries[0].gold[0].span, 16..21);
    assert_eq!(test.queries[1].answerable, Some(false));
    let smoke = set.split("smoke").unwrap();
    let ids: Vec<&str> = smoke.queries.iter().map(|query| query.id.as_str()).collect();
    assert_eq!(ids, ["g2", "g3"]);
    let message = set.split("tset").unwrap_err().to_string();
    assert!(message.ends_with("it has: dev, smoke, test"), "{message}");
}

#[test]
fn faulty_questions_are_errors_that_name_them() {
    for (line, expected) in [
        (LINE.replace("*ate*", "*eaten*"), "question `g1`: `eat.md` does not hold the quote"),
        (LINE.replace("*ate*", "a"), "`eat.md` holds the quote \"a\" more than once"),
        (LINE.replace("eat.md", "sit.md"), "the corpus has no document `sit.md`"),
        (LINE.replace("conjugation", "unanswerable-near"), "with 1 gold quotes and 1 values"),
        (FAR.replace("unanswerable-far", "rule"), "with 0 gold quotes and 0 values"),
        (LINE.replace("\"answer\"", "\"antwort\""), "unknown field `antwort`"),
        (format!("{LINE}\n{LINE}"), "questions.jsonl:2: question `g1`: the id comes twice"),
    ] {
        let dir = folder(&[("questions.jsonl", &line)]);
        let message = QuestionSet::read(dir.path(), &documents()).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("questions.jsonl:"), "{message}");
    }
}

#[test]
fn the_grammar_set_survives_its_export() {
    let dir = folder(&[("questions.jsonl", &format!("{LINE}\n{FAR}\n"))]);
    let set = QuestionSet::read(dir.path(), &documents()).unwrap();
    let out = tempfile::tempdir().unwrap();
    set.export_beir(out.path(), &documents()).unwrap();
    let mut expected = set.split("test").unwrap();
    let got = beir::load(out.path(), "test").unwrap();
    // A BEIR folder judges documents, not bytes.
    expected.queries.iter_mut().for_each(|query| query.gold.clear());
    assert_eq!((got.queries, got.qrels), (expected.queries, expected.qrels));
    let corpus = fs::read_to_string(out.path().join("corpus.jsonl")).unwrap();
    assert_eq!(corpus.lines().count(), 2);
}

#[test]
fn frozen_questions_may_not_change() {
    let hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let sums = format!("{hash}  questions.jsonl\n");
    let dir = folder(&[("questions.jsonl", "foo"), ("SHA256SUMS", &sums)]);
    check_frozen(dir.path()).unwrap();
    fs::write(dir.path().join("questions.jsonl"), "foo\n").unwrap();
    let message = check_frozen(dir.path()).unwrap_err().to_string();
    assert!(message.contains("was frozen with sha256 2c26b4"), "{message}");
    fs::write(dir.path().join("SHA256SUMS"), "").unwrap();
    assert!(check_frozen(dir.path()).unwrap_err().to_string().contains("no hash of questions"));
    fs::remove_file(dir.path().join("SHA256SUMS")).unwrap();
    assert!(check_frozen(dir.path()).is_err());
}

#[track_caller]
fn check_shared(root: &Path, name: &str, split: &str, counts: [usize; 4]) {
    let dataset = beir::load(&root.join("data/beir").join(name), split).unwrap();
    let said = |value| dataset.queries.iter().filter(|q| q.answerable == Some(value)).count();
    let got = [dataset.queries.len(), dataset.qrels.len(), said(true), said(false)];
    assert_eq!(got, counts, "{name}/{split}: questions, judged, answerable, unanswerable");
}

#[test]
fn the_shared_sets_have_the_counts_of_their_sources() {
    let Some(root) = crate::shared("") else {
        eprintln!("skipped: no folder of shared data");
        return;
    };
    check_shared(&root, "squad-dev-v2.0", "test", [11873, 5928, 5928, 5945]);
    check_shared(&root, "scifact", "test", [300, 300, 188, 0]);
    check_shared(&root, "mlquestions", "dev", [1500, 1500, 0, 0]);
    check_shared(&root, "wikiqa", "test", [633, 243, 243, 0]);
    check_shared(&root, "wikiqa", "dev", [296, 126, 126, 0]);
    check_shared(&root, "cranfield", "graded", [225, 225, 0, 0]);
    check_shared(&root, "xquad-th", "test", [1190, 1190, 1190, 0]);
    let chroma = root.join("data/beir/chroma-chunking");
    let spans = beir::load_spans(&chroma, "test").unwrap();
    let gold: usize = spans.queries.iter().map(|query| query.gold.len()).sum();
    assert_eq!((spans.queries.len(), gold, spans.qrels.len()), (472, 790, 472));
}
