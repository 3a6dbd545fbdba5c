//! The real binaries, as a user or a script meets them: exit codes, streams, files.

mod inputs;
mod measure;
mod training;

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use assert_cmd::Command;
use minirag::chunk::ChunkSettings;
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
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
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
        &["--threads", "0", EAT],
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
        env!("CARGO_BIN_EXE_train-biencoder"),
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
        "marker", "chunk_id", "document", "encoding", "anchor", "section", "span", "quote",
        "supported", "support",
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
    with(&[("MINIRAG_QUIET", "1"), ("MINIRAG_VERBOSE", "0"), ("MINIRAG_THREADS", "1")], &[]);
    let help = String::from_utf8(run(ANSWER, &["--help"], 0).stdout).unwrap();
    let shared = help.split("Documents:\n").nth(1).unwrap().split("Examples:").next();
    let shared = shared.unwrap().lines();
    let flags = shared
        .clone()
        .filter(|line| line.trim_start().starts_with('-') && line.contains("--"))
        .count();
    let variables = shared.filter(|line| line.contains("[env: MINIRAG_")).count();
    assert_eq!(flags, variables, "a shared option is no variable:\n{help}");
    let default = ChunkSettings::default();
    for number in [default.tokens, default.overlap] {
        assert!(help.contains(&format!("[default: {number}]")), "{help}");
    }
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
    assert!(text.contains("most relevant, ") && text.contains("   cited"), "{text}");

    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("trace.json");
    let args = ["--json", "--trace", "--explain", "--trace-file", name(&file), EAT];
    let output = run(ANSWER, &args, 0);
    let mut answers = lines(&output);
    assert_eq!(answers.len(), 1, "the trace and the explanation go to standard error");
    assert!(String::from_utf8(output.stderr).unwrap().contains("most relevant, "));
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
