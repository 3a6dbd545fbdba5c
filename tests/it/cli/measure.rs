//! `evaluate`, `demo` and `train-tokenizer` as processes.

use std::{collections::BTreeMap, fs};

use serde_json::Value;

use super::{EVALUATE, assert_says, command, folder, name, run};

#[track_caller]
fn report(args: &[&str], exit: i32) -> Value {
    let output = run(EVALUATE, &[&["--json", "-q"], args].concat(), exit);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn figures(report: &Value) -> BTreeMap<String, f64> {
    serde_json::from_value(report["metrics"].clone()).unwrap()
}

#[test]
fn a_written_run_scores_as_it_was_measured() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("all.run");
    let some = ["--queries", "60"];
    let run_it = [&["--stage", "retrieval", "--run", name(&file)], &some[..]].concat();
    let measured = figures(&report(&run_it, 0));
    let scored = figures(&report(&[&["--from-run", name(&file)], &some[..]].concat(), 0));
    assert!(scored.len() > 5, "{scored:?}");
    for (metric, value) in &scored {
        let expected = measured[&format!("doc_{metric}")];
        assert!((value - expected).abs() < 1e-9, "{metric}: {value} for {expected}");
    }
}

#[test]
fn a_gate_that_is_not_reached_names_the_metric() {
    let root = folder(&[
        (
            "high.toml",
            "[[gate]]\ncondition = { dataset = \"grammar\", split = \"smoke\" }\nbounds = [\n\
             { metric = \"recall@5\", min = 1.5 }, { metric = \"recal@5\", min = 0.0 },\n\
             { metric = \"mrr@10\", min = 0.0 } ]\n",
        ),
        (
            "write.toml",
            "[[gate]]\ncondition = { run = \"out.trec\" }\n\
             bounds = [ { metric = \"mrr@10\", min = 0.0 } ]\n",
        ),
        ("torn.toml", "[[gate]]\ncondition = {}\nbounds = [ { metric = \"recall@5\" } ]\n"),
    ]);
    let gate = root.path().join("high.toml");
    let output = run(EVALUATE, &["--gate", name(&gate)], 1);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["FAIL recall@5", "FAIL recal@5", "OK   mrr@10", "3 bounds, 2 failed"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let verdicts = report(&["--gate", name(&gate)], 1);
    assert_eq!(verdicts[0]["metric"], "recall@5");
    assert_eq!(verdicts[0]["ok"], false);
    let write = root.path().join("write.toml");
    assert_says(&run(EVALUATE, &["--gate", name(&write)], 1), &["write.toml", "`run`"]);
    let torn = root.path().join("torn.toml");
    assert_says(&run(EVALUATE, &["--gate", name(&torn)], 1), &["torn.toml:3", "recall@5"]);
}

#[test]
fn a_gate_runs_its_settings_and_its_cut_offs() {
    let gates = folder(&[(
        "g.toml",
        "[[gate]]\ncondition = { split = \"smoke\", chunker = \"markdown\", embedder = \"hashing\", \
         stage = \"rerank\" }\nbounds = [ { metric = \"reranked_recall@60\", min = 0.5 } ]\n",
    )]);
    let gate = gates.path().join("g.toml");
    run(EVALUATE, &["--gate", name(&gate)], 0);
}

#[test]
fn reranked_figures_go_as_deep_as_the_search() {
    let args = ["--split", "smoke", "--stage", "rerank", "--candidates", "3", "--k", "100"];
    let report = report(&args, 0);
    let figures = figures(&report);
    assert_eq!(figures["reranked_recall@100"], figures["recall@100"]);
    assert_eq!(report["condition"]["template"], "tutor");
    assert_eq!(report["condition"]["bm25-k1"], 1.2);
    assert_eq!(report["condition"]["corpus"].as_str().unwrap().len(), 12);
}

#[test]
fn the_grammar_set_goes_out_as_a_beir_folder_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("grammar-beir");
    run(EVALUATE, &["--export-beir", name(&out)], 0);
    for file in ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let some = ["--dataset", name(&out), "--queries", "40"];
    let args = [&some[..], &["--retriever", "bm25", "--k", "10"]].concat();
    let report = report(&[&args[..], &["--output", name(root.path())]].concat(), 0);
    assert_eq!((&report["split"], &report["n"]), (&"test".into(), &40.into()));
    assert!(figures(&report)["recall@10"] > 0.5, "{report}");
    assert!(root.path().join("report.json").is_file());
    let compared = run(EVALUATE, &[&args[..], &["--compare", name(root.path())]].concat(), 0);
    assert!(String::from_utf8(compared.stdout).unwrap().contains("+0.000"));
}

#[test]
fn evaluate_says_what_it_cannot_read() {
    let fails = |args: &[&str], parts: &[&str]| assert_says(&run(EVALUATE, args, 1), parts);
    fails(&["--split", "nonsense"], &["nonsense", "test"]);
    fails(&["--from-run", "Cargo.lock"], &["Cargo.lock:"]);
    let empty = folder(&[
        ("none.trec", ""),
        ("corpus.jsonl", "{\"_id\": \"d\", \"title\": \"\", \"text\": \"x\"}\n"),
        ("queries.jsonl", "{\"_id\": \"q\", \"text\": \"x\"}\n"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n"),
    ]);
    let none = empty.path().join("none.trec");
    fails(&["--from-run", name(&none)], &["none of the run's 0 queries"]);
    fails(&["--dataset", name(empty.path())], &["none of its 1 questions"]);
    fails(&["--dataset", "no/such/set"], &["no/such/set"]);
    fails(&["--sweep", "fusion-weight"], &["OPTION=A,B,C"]);
    fails(&["--sweep", "nonsense=1,2"], &["nonsense=1"]);
    run(EVALUATE, &["--gate", "x", "--sweep", "top-k=1"], 2);
    run(EVALUATE, &["--run", "x", "--sweep", "top-k=1"], 2);
    run(EVALUATE, &["--run", "x", "--gate", "x"], 2);
    run(EVALUATE, &["--metrics", "recall@5"], 2);
    run(EVALUATE, &["--by-class", "--metrics", "recal@5"], 2);
    run(EVALUATE, &["--json", "--compare", "x"], 2);
}

#[test]
fn the_demo_ends_by_itself_and_begins_with_the_chunker() {
    let mut demo = command(env!("CARGO_BIN_EXE_demo"), &[]);
    let output = demo.write_stdin("").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("chunker   auto:150:20"), "{text}");
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL ")).collect();
    assert_eq!(output.status.code(), Some(i32::from(!failed.is_empty())), "{text}");
    assert!(text.contains("recall@5 [class=conjugation]") && text.contains("latency"), "{text}");

    let docs = folder(&[("gate.md", "The gate closes at nine.\n")]);
    let args = ["--corpus", name(docs.path()), "--question", "When does the gate close?"];
    let output = run(env!("CARGO_BIN_EXE_demo"), &args, 0);
    assert!(String::from_utf8(output.stdout).unwrap().contains("gate.md"));
}

#[test]
fn the_tokenizer_is_trained_alike_twice() {
    let root = tempfile::tempdir().unwrap();
    let train = |out: &str| {
        let out = root.path().join(out);
        let args = ["--output", name(&out), "--vocab-size", "400", "--json"];
        let output = run(env!("CARGO_BIN_EXE_train-tokenizer"), &args, 0);
        serde_json::from_slice::<Value>(&output.stdout).unwrap();
        fs::read(out.join("tokenizer.json")).unwrap()
    };
    assert!(train("a") == train("b"), "two trainings differ");
    let args = ["--output", "x", "--corpus", "no/such/place"];
    assert_says(&run(env!("CARGO_BIN_EXE_train-tokenizer"), &args, 1), &["no/such/place"]);
}
