//! `train-biencoder` as a process: from documents to a folder that answers.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use super::{ANSWER, EVALUATE, ask, assert_says, command, finish, folder, keys, name, run};
use crate::training::{checkpoint, documents};

const TRAIN: &str = env!("CARGO_BIN_EXE_train-biencoder");

fn corpus() -> TempDir {
    let files = documents(40);
    let named: Vec<(String, &str)> =
        (files.iter().enumerate()).map(|(n, (_, text))| (format!("{n:02}.md"), &**text)).collect();
    folder(&named.iter().map(|(name, text)| (&**name, *text)).collect::<Vec<_>>())
}

fn tiny<'a>(corpus: &'a TempDir, output: &'a Path) -> Vec<&'a str> {
    vec!["--preset", "tiny", "--corpus", name(corpus.path()), "--output", name(output)]
}

#[test]
fn a_model_trained_on_documents_answers_and_is_measured() {
    let (corpus, root) = (corpus(), tempfile::tempdir().unwrap());
    let model = root.path().join("deep/model");
    let output = run(TRAIN, &tiny(&corpus, &model), 0);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(name(&model)) && said.contains("60 steps"), "{said}");
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(progress.contains("step 60/60") && progress.contains("dev mrr"), "{progress}");

    let with = ["--corpus", name(corpus.path()), "--embedder", name(&model)];
    let answers = ask(&with, &["Where is bor1ak?"]);
    let fingerprint = answers[0]["fingerprint"].to_string();
    assert_ne!(fingerprint, ask(&with[..2], &["Where is bor1ak?"])[0]["fingerprint"].to_string());
    assert!(!answers[0]["passages"].as_array().unwrap().is_empty());
    let measured = ["--json", "-q", "--stage", "retrieval", "--queries", "20"];
    let output = run(EVALUATE, &[&measured, &with[2..]].concat(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["metrics"].as_object().unwrap().len() > 5, "{report}");

    let again = run(TRAIN, &tiny(&corpus, &model), 1);
    assert_says(&again, &[name(&model), "trained model", "--output"]);
    let further = root.path().join("further");
    let from = ["--init", name(&model), "--steps", "5", "--json", "--half"];
    let output = run(TRAIN, &[&tiny(&corpus, &further)[..], &from].concat(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["steps"], &report["arguments"]["steps"]), (&5.into(), &5.into()));
    let size = |model: &Path| fs::metadata(model.join("model.safetensors")).unwrap().len();
    assert!(size(&further) * 2 < size(&model) + 200);
}

#[test]
fn a_pretrained_encoder_is_adapted_to_documents() {
    let (corpus, root) = (corpus(), tempfile::tempdir().unwrap());
    let model = root.path().join("model");
    let bert = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bert-tiny");
    let args = ["--corpus", name(corpus.path()), "--output", name(&model)];
    let more = ["--init", name(&bert), "--steps", "3", "--batch-size", "4", "--json"];
    let output = run(TRAIN, &[&args[..], &more].concat(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["arguments"]["network"]["dim"], 24);
    assert_eq!(report["arguments"]["init"][0], name(&bert));
    let with = ["--corpus", name(corpus.path()), "--embedder", name(&model)];
    let answer = &ask(&with, &["Where is bor1ak?"])[0];
    assert!(answer["fingerprint"]["embedder"].as_str().unwrap().starts_with("bert-"), "{answer}");
    let mut large = args.to_vec();
    large.extend(["--init", name(&bert), "--preset", "default"]);
    assert_says(&run(TRAIN, &large, 1), &["--preset", name(&bert)]);
}

#[test]
fn what_cannot_be_trained_is_told_as_usage_or_failure() {
    let (corpus, root) = (corpus(), tempfile::tempdir().unwrap());
    let model = root.path().join("model");
    let output = ["--output", name(&model)];
    assert_says(&run(TRAIN, &output, 2), &["--corpus", "--help"]);
    let both = [&tiny(&corpus, &model)[..], &["--init", "x", "--dim", "8"]].concat();
    assert_says(&run(TRAIN, &both, 2), &["--init", "--dim"]);
    let fails = |more: &[&str], parts: &[&str]| {
        assert_says(&run(TRAIN, &[&tiny(&corpus, &model), more].concat(), 1), parts);
    };
    fails(&["--resume"], &["no unfinished run"]);
    fails(&["--steps", "0"], &["--steps"]);
    fails(&["--lr", "nan"], &["--lr"]);
    fails(&["--batch-size", "1"], &["--batch-size 1"]);
    fails(&["--matryoshka", "64"], &["--matryoshka 64", "32"]);
    fails(&["--temperature", "0"], &["--temperature 0"]);
    fails(&["--device", "cuda"], &["--device"]);
    fails(&["--init", "no/model"], &["no/model"]);
    fails(&["--pairs", "no/pairs.jsonl"], &["no/pairs.jsonl"]);
    let few = folder(&[("one.md", "One sentence.\n")]);
    let result = run(TRAIN, &tiny(&few, &model), 1);
    assert!(result.stdout.is_empty());
    let kept = if model.exists() { fs::read_dir(&model).unwrap().count() } else { 0 };
    assert!(kept < 3 && !model.join("train.json").exists(), "a failure left a model");
}

#[test]
fn json_is_one_document_and_threads_change_no_byte() {
    let (corpus, root) = (corpus(), tempfile::tempdir().unwrap());
    let train = |folder: &str, threads: &str| {
        let model = root.path().join(folder);
        let more = ["--steps", "12", "--eval-every", "5", "--json", "-q", "--threads", threads];
        let args = [&tiny(&corpus, &model)[..], &more].concat();
        let output = finish(command(TRAIN, &args).env("RAYON_NUM_THREADS", threads), 0);
        assert!(output.stderr.is_empty(), "quiet, but: {:?}", String::from_utf8(output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = ["arguments", "steps", "minutes", "loss", "dev", "version"];
        assert_eq!(keys(&report), expected);
        assert_eq!(output.stdout, fs::read(model.join("train.json")).unwrap());
        checkpoint(&model)
    };
    assert!(train("1", "1") == train("2", "3"));
}

/// Ctrl-C after the first evaluation.
#[cfg(unix)]
#[test]
fn an_interrupted_run_is_saved_and_resumed() {
    use std::io::{BufRead, BufReader};

    let (corpus, root) = (corpus(), tempfile::tempdir().unwrap());
    let (stopped, straight) = (root.path().join("1"), root.path().join("2"));
    let more = ["--steps", "400", "--eval-every", "10"];
    let args = [&tiny(&corpus, &stopped)[..], &more].concat();
    let mut child = std::process::Command::new(TRAIN)
        .args(&args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("step 10/400")), "it says nothing");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(output.stdout.is_empty());
    assert!(rest.iter().any(|line| line.contains("--resume")), "{rest:?}");
    assert!(stopped.join("training/state.safetensors").exists());
    run(ANSWER, &["--corpus", name(corpus.path()), "--embedder", name(&stopped), "bor1ak?"], 0);

    assert_says(&run(TRAIN, &args, 1), &["unfinished run", "--resume"]);
    let other = [&args[..], &["--resume", "--seed", "7"]].concat();
    assert_says(&run(TRAIN, &other, 1), &["seed was 0 and is 7"]);
    run(TRAIN, &[&args[..], &["--resume"]].concat(), 0);
    run(TRAIN, &[&tiny(&corpus, &straight)[..], &more].concat(), 0);
    assert!(checkpoint(&stopped) == checkpoint(&straight));
}
