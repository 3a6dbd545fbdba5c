//! Reports made of records, compared with each other and held against gates.
#![allow(clippy::unwrap_used)]

use minirag::eval::{
    compare, gate,
    report::{self, Heading, PerQuery, Report},
};

fn records() -> Vec<PerQuery> {
    let record = |i: usize, class: &str, hit: Option<f64>, answerable, refused| PerQuery {
        id: format!("q{i}"),
        class: Some(class.to_owned()),
        metrics: [("recall@5".to_owned(), hit), ("exact_match".to_owned(), None)].into(),
        latency_ms: [("total".to_owned(), i as f64)].into(),
        answerable: Some(answerable),
        refused: Some(refused),
        score: Some(if answerable { 0.9 } else { 0.1 }),
        ..PerQuery::default()
    };
    let answerable =
        (0..20).map(|i| record(i, "literal", Some(if i < 15 { 1.0 } else { 0.0 }), true, i < 2));
    let unanswerable = (20..30).map(|i| record(i, "unanswerable-far", None, false, i < 28));
    answerable.chain(unanswerable).collect()
}

fn heading(reranker: &str) -> Heading {
    let condition = serde_json::json!({"retriever": "hybrid", "reranker": reranker});
    Heading {
        dataset: "grammar".into(),
        split: "test".into(),
        condition: condition.as_object().unwrap().clone(),
        queries_per_second: Some(12.5),
        seed: 0,
    }
}

#[test]
fn a_report_holds_means_over_what_applies() {
    let report = Report::new(heading("none"), &records()).unwrap();
    assert_eq!((report.n, report.metrics["recall@5"]), (30, 0.75));
    assert_eq!(report.n_by_metric["recall@5"], 20);
    let [low, high] = report.ci95["recall@5"];
    assert!(low < 0.75 && 0.75 < high, "{low} {high}");
    assert!(!report.metrics.contains_key("exact_match"), "it applied to no question");
    assert_eq!(report.metrics["refusal_precision"], 0.8);
    assert_eq!(report.metrics["refusal_recall"], 0.8);
    assert_eq!(report.metrics["refusal_auroc"], 1.0);
    let far = &report.slices["class"]["unanswerable-far"];
    // 10 against 20 weighed as 10: one wrong refusal beside eight right ones.
    assert!((far.metrics["refusal_f1_balanced"] - 16.0 / 19.0).abs() < 1e-12);
    assert_eq!((far.n, far.n_by_metric["refusal_f1_balanced"]), (10, 30));
    assert!(!far.metrics.contains_key("recall@5"));
    let literal = &report.slices["class"]["literal"];
    assert!(!literal.metrics.contains_key("refusal_recall"), "{:?}", literal.metrics);
    assert_eq!(report.latency_ms["total"].p50, 14.5);
    assert_eq!(Report::new(heading("none"), &records()).unwrap(), report);
}

#[test]
fn a_report_has_the_fields_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let made = Report::new(heading("none"), &records()).unwrap();
    report::write(dir.path(), &made, &records()).unwrap();
    assert_eq!(report::read(dir.path()).unwrap(), (made.clone(), records()));
    let json: serde_json::Value = serde_json::from_str(&made.json().unwrap()).unwrap();
    for field in ["dataset", "split", "n", "condition", "metrics", "ci95", "queries_per_second"] {
        assert!(!json[field].is_null(), "{field}");
    }
    assert_eq!(json["slices"]["class"]["literal"]["n"], 20);
    assert_eq!(json["latency_ms"]["total"]["p95"].as_f64().unwrap().round(), 28.0);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 2, "no temporary file is left");
}

#[test]
fn a_value_that_is_not_finite_is_refused() {
    let mut records = records();
    records[3].metrics.insert("ndcg@10".into(), Some(f64::NAN));
    let message = Report::new(heading("none"), &records).unwrap_err().to_string();
    assert!(message.contains("`q3`: ndcg@10 is NaN"), "{message}");
}

#[test]
fn no_questions_give_no_figures() {
    let report = Report::new(heading("none"), &[]).unwrap();
    assert!(report.metrics.is_empty() && report.slices.is_empty() && report.n == 0);
    assert!(report.table().starts_with("grammar test, n 0\n"));
}

#[test]
fn tables_show_every_figure_with_its_interval_and_n() {
    let report = Report::new(heading("none"), &records()).unwrap();
    let table = report.table();
    assert!(!table.contains('\u{1b}'));
    let line = table.lines().find(|line| line.starts_with("recall@5")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((cells[1], cells[3], cells[5]), ("0.750", "to", "20"), "{table}");
    assert!(table.find("recall@5") < table.find("refusal_precision"), "{table}");
    let other = Report::new(heading("overlap"), &records()).unwrap();
    let markdown = report::markdown(&[report, other]);
    assert!(
        markdown.starts_with("| metric | reranker=none | reranker=overlap |\n|---|---:|---:|\n")
    );
    assert!(markdown.contains("| recall@5 | 0.750 ["), "{markdown}");
}

#[test]
fn two_runs_are_compared_on_the_questions_they_share() {
    let before = records();
    let mut after = records();
    after.truncate(20);
    after.iter_mut().for_each(|r| _ = r.metrics.insert("recall@5".into(), Some(1.0)));
    let differences = compare::compare(&before, &after, 0).unwrap();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!((differences[0].before, differences[0].after), (0.75, 1.0));
    assert_eq!(differences[0].test.n, 20);
    // Five changes of one sign: 2 of the 32 flips are as far from 0.
    assert!((differences[0].test.p_value - 0.0625).abs() < 0.01);
    assert!(compare::table(&differences).contains("+0.250"));
    assert!(compare::table(&differences).contains("p < 0.05, uncorrected"));
    let other = [PerQuery { id: "x".into(), ..PerQuery::default() }];
    assert!(compare::compare(&before, &other, 0).is_err());
}

#[test]
fn the_shipped_gates_can_be_read_and_fail_an_empty_report() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/expected");
    let empty = Report::new(heading("none"), &[]).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        for shipped in gate::read(&entry.unwrap().path()).unwrap() {
            let verdicts = gate::check(&shipped, &empty);
            assert!(!verdicts.is_empty() && verdicts.iter().all(|verdict| !verdict.ok));
        }
    }
}

const GATES: &str = r#"
    [[gate]]
    condition = { dataset = "grammar", top-k = 3 }
    bounds = [
        { metric = "recall@5", min = 0.9 },
        { metric = "recall@5", slice = "class=rule", min = 0.9 },
        { metric = "mrr@10", expect = 0.8, tolerance = 0.01 },
        { metric = "f1", max = 0.5 },
    ]
"#;

fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

fn good() -> Report {
    report(
        r#"{"dataset": "grammar", "split": "test", "n": 2, "condition": {"top-k": 3},
            "metrics": {"recall@5": 0.95, "mrr@10": 0.805, "f1": 0.5}, "ci95": {},
            "n_by_metric": {}, "latency_ms": {}, "slices": {"class": {"rule":
            {"n": 1, "metrics": {"recall@5": 0.9}, "ci95": {}, "n_by_metric": {}}}}}"#,
    )
}

fn parse(text: &str) -> minirag::Result<Vec<gate::Gate>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.toml");
    std::fs::write(&path, text).unwrap();
    gate::read(&path)
}

fn failures(gates: &str, report: &Report) -> Vec<String> {
    let gates = parse(gates).unwrap();
    let verdicts = gates.iter().flat_map(|gate| gate::check(gate, report));
    verdicts.filter(|verdict| !verdict.ok).map(|verdict| verdict.to_string()).collect()
}

#[test]
fn figures_on_their_bounds_pass() {
    assert_eq!(failures(GATES, &good()), Vec::<String>::new());
}

#[test]
fn a_faulty_report_fails_and_says_where() {
    let mut faulty = good();
    faulty.metrics.insert("recall@5".into(), 0.8999);
    faulty.metrics.insert("mrr@10".into(), 0.82);
    faulty.metrics.remove("f1");
    faulty.slices.clear();
    let failed = failures(GATES, &faulty);
    assert_eq!(
        failed,
        [
            "FAIL recall@5 0.8999, bound >= 0.9",
            "FAIL recall@5 [class=rule] no value, bound >= 0.9: the report has no slice \
             `class=rule`",
            "FAIL mrr@10 0.8200, bound 0.8 +- 0.01",
            "FAIL f1 no value, bound <= 0.5: the report does not have it: it applied to no \
             question",
        ]
    );
    faulty.metrics.insert("mrr@10".into(), f64::NAN);
    assert!(failures(GATES, &faulty)[2].starts_with("FAIL mrr@10 NaN"));
}

#[test]
fn what_cannot_be_evaluated_fails() {
    let unknown = GATES.replace("\"f1\"", "\"f_1\"");
    assert!(failures(&unknown, &good())[0].ends_with("no metric is called `f_1`"));
    let deeper = GATES.replace("mrr@10", "mrr@20");
    assert!(failures(&deeper, &good())[0].ends_with("not measured (see --k)"));
    let gates = parse(&deeper).unwrap();
    assert_eq!(gates[0].cut_offs().collect::<Vec<_>>(), [5, 5, 20]);
    let other = GATES.replace("top-k = 3", "top-k = 5");
    let failed = failures(&other, &good());
    assert_eq!(failed.len(), 4);
    assert!(failed[0].ends_with("it is for top-k `5`, the report's is `3`"), "{}", failed[0]);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let message = parse(text).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn malformed_files_are_errors_with_their_line() {
    check_error("[[gate]]\ncondition = {", "g.toml:2: ");
    check_error("gate = []", "g.toml: a gate without bounds");
    check_error("[[gate]]\ncondition = {}\nbounds = []", "g.toml: a gate without bounds");
    check_error(
        "[[gate]]\ncondition = {}\nbounds = [\n{ metric = \"f1\" }]",
        "g.toml:4: the bound of `f1` needs",
    );
    check_error(
        "[[gate]]\ncondition = {}\n\n[[gate.bounds]]\nmetric = \"f1\"\nminimum = 1",
        "g.toml:6: unknown field `minimum`",
    );
    for bounds in ["min = nan", "expect = 1.0", "min = 0.5, max = 0.4", "min = 1.0, expect = 1.0"] {
        let text = format!("[[gate]]\ncondition = {{}}\nbounds = [{{metric=\"f1\", {bounds}}}]");
        check_error(&text, "g.toml:3: the bound of `f1`");
    }
}
