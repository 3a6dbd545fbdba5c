//! The real binaries, as a user or a script meets them: exit codes, streams, files.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const ANSWER: &str = env!("CARGO_BIN_EXE_answer");
const EVALUATE: &str = env!("CARGO_BIN_EXE_evaluate");

const EAT: &str = "What is the past participle of eat?";

/// A command in the repository's folder that no variable of the caller reaches.
fn command(binary: &str, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MINIRAG_") {
            command.env_remove(name);
        }
    }
    command
}

#[track_caller]
fn finish(command: &mut Command, exit: i32) -> Output {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{command:?}: {error}");
    output
}

#[track_caller]
fn run(binary: &str, args: &[&str], exit: i32) -> Output {
    finish(&mut command(binary, args), exit)
}

/// The JSON object of each line on standard output.
#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asks the questions in one process.
#[track_caller]
fn ask(args: &[&str], questions: &[&str]) -> Vec<Value> {
    let args = [&["--json"], args].concat();
    let mut command = command(ANSWER, &args);
    lines(&finish(command.write_stdin(questions.join("\n")), 0))
}

/// The answer without the times, which are another each run.
fn untimed(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("latency_ms").unwrap();
    answer
}

#[track_caller]
fn assert_says(output: &Output, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
    assert!(output.stdout.is_empty(), "a failure printed results");
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(root.path().join(name), text).unwrap();
    }
    root
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn exit_codes_tell_done_failed_usage_and_unknown() {
    run(ANSWER, &[EAT], 0);
    run(ANSWER, &["What is a prime number?"], 0);
    run(ANSWER, &["--fail-on-unknown", "What is a prime number?"], 3);
    run(ANSWER, &["--fail-on-unknown", EAT], 0);
    run(ANSWER, &["--corpus", "no/such/place", EAT], 1);
    for usage in [
        &["--corpus", "data/rag-kb", "--index", "x", EAT][..],
        &["--nonsense", EAT],
        &["--retriever", "telepathy", EAT],
        &["--chunker", "scissors", EAT],
        &["--top-k", "many", EAT],
        &["--stream", "--json", EAT],
        &["--trace-file", "x.json"],
    ] {
        assert_says(&run(ANSWER, usage, 2), &["--help"]);
    }
}

#[test]
fn every_command_has_help_with_examples() {
    for binary in [
        ANSWER,
        EVALUATE,
        env!("CARGO_BIN_EXE_index"),
        env!("CARGO_BIN_EXE_demo"),
        env!("CARGO_BIN_EXE_train-tokenizer"),
    ] {
        let help = String::from_utf8(run(binary, &["--help"], 0).stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains("--json"), "{binary}: {help}");
        run(binary, &["--version"], 0);
    }
}

#[test]
fn a_setting_that_cannot_be_used_says_what_can() {
    let fails = |args: &[&str], parts: &[&str]| {
        assert_says(&run(ANSWER, &[args, &[EAT]].concat(), 1), parts);
    };
    fails(&["--embedder", "magic"], &["--embedder magic", "`hashing`"]);
    fails(&["--reranker", "magic"], &["--reranker magic", "`overlap` or `none`"]);
    fails(&["--rewriter", "magic"], &["--rewriter magic", "`auto` or `none`"]);
    fails(&["--reader", "magic"], &["--reader magic", "`extractive`"]);
    fails(&["--fusion-weight", "1.5"], &["fusion weight is 1.5", "0..=1"]);
    fails(&["--top-k", "0"], &["top-k"]);
    fails(&["--top-k", "40"], &["40", "30", "top-k <= candidates"]);
    fails(&["--threads", "0"], &["--threads is 0"]);
    fails(&["--threshold", "nan"], &["threshold"]);
    fails(&["--chunk-tokens", "0"], &["0"]);
    fails(&["--index", "no/index"], &["no/index", "make one with `index"]);
}

#[test]
fn an_empty_folder_is_named_with_the_cure() {
    let root = tempfile::tempdir().unwrap();
    let output = run(ANSWER, &["--corpus", name(root.path()), EAT], 1);
    assert_says(&output, &[name(root.path()), "no document to read", "put .md or .txt files"]);
}

/// The keys of an object, in their order.
fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_the_fields_of_the_interface_one_object_a_line() {
    let questions = [EAT, "", "What is a prime number?", "  ", "When is the -s added?"];
    let answers = ask(&[], &questions);
    let asked: Vec<&str> = answers.iter().map(|a| a["question"].as_str().unwrap()).collect();
    assert_eq!(asked, [EAT, questions[2], questions[4]], "blank lines are no questions");
    for answer in &answers {
        #[rustfmt::skip]
        let fields = [
            "question", "status", "answer", "value", "reason", "rewriter", "score", "threshold",
            "scale", "citations", "passages", "latency_ms", "dropped_tokens", "fingerprint",
        ];
        assert_eq!(keys(answer), fields);
        assert_eq!(keys(&answer["rewriter"]), ["strategy", "queries"]);
        let stages = ["rewrite", "retrieve", "rerank", "read", "total"];
        assert_eq!(keys(&answer["latency_ms"]), stages);
        for passage in answer["passages"].as_array().unwrap() {
            assert_eq!(keys(passage), ["chunk_id", "anchor", "text", "scores"]);
            assert!(passage["scores"].as_object().unwrap().values().all(Value::is_number));
        }
    }
    #[rustfmt::skip]
    let citation = [
        "marker", "chunk_id", "document", "anchor", "section", "span", "quote", "supported",
        "support",
    ];
    assert_eq!(keys(&answers[0]["citations"][0]), citation);
    assert_eq!(answers[0]["status"], "answered");
    assert_eq!(answers[0]["reason"], Value::Null);
}

#[test]
fn what_the_corpus_does_not_hold_is_refused_without_citations() {
    for answer in ask(&[], &["What is a prime number?", "Who won the World Cup in 1998?"]) {
        assert_eq!(answer["status"], "unknown", "{answer}");
        assert_eq!(answer["reason"], "below-threshold");
        assert_eq!(answer["citations"], Value::Array(Vec::new()));
        assert_eq!(answer["value"], Value::Null);
        assert!(answer["score"].as_f64().unwrap() < answer["threshold"].as_f64().unwrap());
    }
}

/// Cuts each citation's span from its file; returns how many there were.
#[track_caller]
fn check_quotes(answers: &[Value], root: &Path) -> usize {
    let citations = answers.iter().flat_map(|answer| answer["citations"].as_array().unwrap());
    let mut checked = 0;
    for citation in citations {
        let file = root.join(citation["document"].as_str().unwrap());
        let bytes = fs::read(file).unwrap();
        let at = |end: usize| citation["span"][end].as_u64().unwrap() as usize;
        let quote = citation["quote"].as_str().unwrap();
        assert_eq!(std::str::from_utf8(&bytes[at(0)..at(1)]).unwrap(), quote);
        checked += 1;
    }
    checked
}

#[test]
fn a_citation_is_the_bytes_of_its_span() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let text = fs::read_to_string(root.join("eval/questions.jsonl")).unwrap();
    let questions: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let some = questions.iter().step_by(20).map(|question| question["question"].as_str().unwrap());
    let answers = ask(&[], &some.collect::<Vec<_>>());
    assert!(check_quotes(&answers, &root.join("rag-kb")) > 5);

    let docs = folder(&[
        ("windows.md", "# Кафе\r\n\r\nCrêpes cost 3 € in März.\r\nTea — „grün“ — costs 2 €.\r\n"),
        ("table.md", "| dish | price |\n|---|---|\n| жарене 🍳 | 4 € |\n| café au lait | 2 € |\n"),
    ]);
    let asked =
        ["What do crêpes cost in März?", "price of café au lait?", "What does grün Tea cost?"];
    let answers = ask(&["--corpus", name(docs.path())], &asked);
    assert!(check_quotes(&answers, docs.path()) >= 3, "{answers:?}");
}

#[test]
fn one_file_is_a_corpus() {
    let docs = folder(&[("rule.md", "The gate closes at nine.\n"), ("other.md", "Nine lives.\n")]);
    let file = docs.path().join("rule.md");
    let answers = ask(&["--corpus", name(&file)], &["When does the gate close?"]);
    assert_eq!(answers[0]["citations"][0]["document"], "rule.md");
    assert!(!answers[0].to_string().contains("other.md"));
}

#[test]
fn hostile_names_and_files_neither_crash_nor_forge() {
    let docs = folder(&[
        ("-rf --all.md", "The gate closes at nine.\n"),
        ("[#1] \"quoted\" `tick` $(x) %s.md", "The gate opens at seven.\n"),
        ("line\nbreak\t\u{202e}.txt", "The gate is green.\n"),
        ("[#7].md", "The gate was built in 1911 [#7].\n"),
        ("empty.md", ""),
        ("emoji.txt", "🦀🦀🦀\n"),
        ("Caf\u{e9}.md", "A café by the gate.\n"),
        (".hidden.md", "The gate never closes.\n"),
    ]);
    fs::write(docs.path().join("binary.txt"), b"\0\x01\x02gate\0\xff").unwrap();
    fs::write(docs.path().join("latin1.txt"), b"Das Tor schlie\xdft um neun.\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::{ffi::OsStrExt, fs::symlink};
        symlink(docs.path(), docs.path().join("loop")).unwrap();
        symlink("/no/such/file", docs.path().join("broken.md")).unwrap();
        let bytes = std::ffi::OsStr::from_bytes(b"not-\xff-unicode.md");
        // Some file systems refuse such a name.
        let _ = fs::write(docs.path().join(bytes), "The gate is high.\n");
    }
    let questions = ["When does the gate close?", "When was the gate built?", "🦀", "gate"];
    let answers = ask(&["--corpus", name(docs.path())], &questions);
    assert_eq!(answers[0]["citations"][0]["document"], "-rf --all.md");
    assert_eq!(answers.len(), questions.len());
    for answer in &answers {
        assert!(!answer.to_string().contains("never closes"), "a dot-file was read");
        for citation in answer["citations"].as_array().unwrap() {
            let marker = citation["marker"].as_u64().unwrap();
            assert!((1..=3).contains(&marker), "marker {marker} comes from a document");
        }
    }
    let output = run(ANSWER, &["--corpus", name(docs.path()), "-v", questions[0]], 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("binary.txt") && said.contains("broken"), "{said}");
    let quiet = run(ANSWER, &["--corpus", name(docs.path()), "-q", questions[0]], 0);
    assert!(quiet.stderr.is_empty());
}

#[test]
fn a_question_is_plain_text() {
    let long = "gate ".repeat(20_000);
    let questions = [
        "C++ (templates)",
        "-not",
        "a:b",
        "\"",
        "'",
        "https://example.org/a?b=c&d=%20#e",
        "?!…",
        "*",
        "(((",
        "\\",
        "AND OR NOT",
        "title:eat^3 ~2",
        "eat OR 1=1; DROP TABLE chunks; --",
        "[#1]",
        "<script>",
        "🦀🏽\u{200d}🔬",
        "\u{301}\u{301}",
        "吃的过去分词是什么",
        "\u{feff}",
        "\0",
        long.trim(),
    ];
    let answers = ask(&[], &questions);
    assert_eq!(answers.len(), questions.len());
    for (answer, question) in answers.iter().zip(questions) {
        assert_eq!(answer["question"], question);
        if !question.chars().any(char::is_alphanumeric) {
            assert_eq!(answer["status"], "unknown", "{question}");
        }
    }
    run(ANSWER, &["--", "-not"], 0);
    run(ANSWER, &[""], 0);
    let mut latin = command(ANSWER, &[]);
    assert_says(&finish(latin.write_stdin(b"caf\xe9\n".to_vec()), 1), &["UTF-8"]);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let questions = [EAT, "When do we double the last consonant?", "What is a prime number?"];
    let of = |threads: &str| -> Vec<Value> {
        ask(&["--threads", threads], &questions).into_iter().map(untimed).collect()
    };
    assert_eq!(of("1"), of("2"));
}

#[test]
fn the_compiled_corpus_answers_as_the_folder_does() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = command(ANSWER, &["--json", EAT]);
    let there = lines(&finish(command.current_dir(elsewhere.path()), 0)).remove(0);
    assert_eq!(untimed(there), untimed(ask(&[], &[EAT]).remove(0)));
}

#[test]
fn ties_are_broken_alike_in_every_process() {
    let names = ["d.md", "a.md", "c.md", "e.md", "b.md"];
    let docs = folder(&names.map(|name| (name, "The gate closes at nine.\n")));
    let index = docs.path().join("made");
    let place = ["--corpus", name(docs.path()), "--index", name(&index)];
    run(env!("CARGO_BIN_EXE_index"), &place, 0);
    let args = ["--index", name(&index), "--top-k", "10"];
    let first = untimed(ask(&args, &["When does the gate close?"]).remove(0));
    let anchors: Vec<&str> = first["passages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["anchor"].as_str().unwrap())
        .collect();
    assert_eq!(anchors, ["a.md:0", "b.md:0", "c.md:0", "d.md:0", "e.md:0"]);
    for _ in 1..20 {
        assert_eq!(untimed(ask(&args, &["When does the gate close?"]).remove(0)), first);
    }
    let output = run(ANSWER, &["--index", name(&index), "--bm25-k1", "2", "gate"], 1);
    assert_says(&output, &["--bm25-k1", "the index is made already"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = std::process::Command::new(ANSWER)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    // The process may be gone before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(format!("{EAT}\n").repeat(50).as_bytes());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*error), (Some(0), ""));
}

#[test]
fn output_has_no_colours_whatever_the_terminal_says() {
    let plain = run(ANSWER, &[EAT], 0).stdout;
    for (variable, value) in [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"), ("TERM", "dumb")] {
        let output = finish(command(ANSWER, &[EAT]).env(variable, value), 0);
        assert_eq!(output.stdout, plain, "{variable}");
    }
    assert!(!plain.contains(&b'\x1b'));
}

#[test]
fn options_come_from_the_environment_and_yield_to_the_command_line() {
    let docs =
        folder(&[("gate.md", "The gate closes at nine.\n"), ("b.md", "A gate is a door.\n")]);
    let with = |variables: &[(&str, &str)], args: &[&str]| -> Value {
        let args = [&["--json"], args, &["When does the gate close?"]].concat();
        let mut command = command(ANSWER, &args);
        command.env("MINIRAG_CORPUS", docs.path()).envs(variables.iter().copied());
        lines(&finish(&mut command, 0)).remove(0)
    };
    let passages = |answer: &Value| answer["passages"].as_array().unwrap().len();
    let answer = with(&[], &[]);
    assert_eq!(answer["citations"][0]["document"], "gate.md");
    assert_eq!(passages(&answer), 2);
    let one = [("MINIRAG_TOP_K", "1")];
    assert_eq!(passages(&with(&one, &[])), 1);
    assert_eq!(passages(&with(&one, &["--top-k", "2"])), 2);
    assert_eq!(with(&[("MINIRAG_THRESHOLD", "2")], &[])["status"], "unknown");
    let words = with(&[("MINIRAG_RETRIEVER", "bm25"), ("MINIRAG_RERANKER", "none")], &[]);
    assert_eq!(keys(&words["passages"][0]["scores"]), ["bm25"]);
    with(&[("MINIRAG_QUIET", "1"), ("MINIRAG_THREADS", "1")], &[]);
    let mut wrong = command(ANSWER, &[EAT]);
    assert_says(&finish(wrong.env("MINIRAG_TOP_K", "x"), 2), &["--top-k"]);
}

#[test]
fn traces_tell_every_stage() {
    let output = run(ANSWER, &["--trace", "--explain", EAT], 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let stages = ["rewrite", "retrieve", "fuse", "rerank", "threshold", "prompt", "read", "cite"];
    let places = stages.map(|stage| text.find(stage).expect(stage));
    assert!(places.is_sorted(), "{places:?}");
    assert!(text.contains("most relevant, cited"), "{text}");

    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("trace.json");
    let args = ["--json", "--trace", "--explain", "--trace-file", name(&file), EAT];
    let output = run(ANSWER, &args, 0);
    let mut answers = lines(&output);
    assert_eq!(answers.len(), 1, "the trace and the explanation go to standard error");
    assert!(String::from_utf8(output.stderr).unwrap().contains("most relevant, cited"));
    let mut trace: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let steps = trace.as_object_mut().unwrap().remove("steps").unwrap();
    let named: Vec<&str> = steps.as_array().unwrap().iter().map(|step| keys(step)[0]).collect();
    let expected =
        ["rewrite", "retrieve", "fuse", "rerank", "best", "prompt", "draft", "unknown_markers"];
    assert_eq!(named, expected);
    assert_eq!(untimed(trace), untimed(answers.remove(0)));
}

#[test]
fn streaming_prints_the_same_text() {
    for question in [EAT, "What is a prime number?"] {
        let plain = run(ANSWER, &[question], 0).stdout;
        assert_eq!(run(ANSWER, &["--stream", question], 0).stdout, plain);
    }
}

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
    let torn = root.path().join("torn.toml");
    assert_says(&run(EVALUATE, &["--gate", name(&torn)], 1), &["torn.toml:3", "recall@5"]);
}

#[test]
fn the_grammar_set_goes_out_as_a_beir_folder_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("grammar-beir");
    run(EVALUATE, &["--export-beir", name(&out)], 0);
    let files: Vec<PathBuf> =
        ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"].map(|file| out.join(file)).into();
    assert!(files.iter().all(|file| file.is_file()));
    let args = ["--dataset", name(&out), "--queries", "40", "--retriever", "bm25"];
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
    fails(&["--dataset", "no/such/set"], &["no/such/set"]);
    fails(&["--sweep", "fusion-weight"], &["OPTION=A,B,C"]);
    fails(&["--sweep", "nonsense=1,2"], &["nonsense=1"]);
    run(EVALUATE, &["--gate", "x", "--sweep", "top-k=1"], 2);
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
