//! The index on disk: the same bytes each time, whole or not at all, damage never unnoticed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use minirag::{
    corpus::load,
    embed::HashingEmbedder,
    index::{ChunkChoice, FILE, FORMAT, Index, Report, Request, Tools, update, verify},
    rng::Rng,
    tokenizer::Tokenizer,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{models, shared};

const EAT: &str = "# Eat\n\n| base | past | participle |\n|---|---|---|\n| eat | ate | eaten |\n";

fn folder() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("docs")).unwrap();
    for (name, text) in [("eat.md", EAT), ("go.txt", "Go, went, gone.\n"), ("empty.md", "")] {
        fs::write(root.path().join("docs").join(name), text).unwrap();
    }
    root
}

fn request(corpus: &Path, dir: &Path) -> Request {
    Request {
        corpus: Some(corpus.to_owned()),
        dir: dir.to_owned(),
        dry_run: false,
        strict: false,
        chunks: ChunkChoice::default(),
        embedder: "hashing".into(),
    }
}

#[track_caller]
fn run_request(request: &Request) -> minirag::Result<Report> {
    let tokenizer = Tokenizer::load(models().join("tokenizer")).unwrap();
    let embedder = HashingEmbedder::default();
    update(request, &Tools::new(&tokenizer, &embedder), &|_| ())
}

/// Indexes `root/docs` in `root/index`.
#[track_caller]
fn make(root: &Path) -> (PathBuf, Report) {
    let dir = root.join("index");
    let report = run_request(&request(&root.join("docs"), &dir)).unwrap();
    (dir, report)
}

#[track_caller]
fn assert_same(a: &Index, b: &Index) {
    assert_eq!(a.manifest, b.manifest);
    assert_eq!(a.documents, b.documents);
    assert_eq!(a.chunks, b.chunks);
    assert_eq!(a.vectors, b.vectors);
    assert_eq!(a.lexical.serialize(), b.lexical.serialize());
}

#[test]
fn what_is_saved_is_opened() {
    let tokenizer = Tokenizer::load(models().join("tokenizer")).unwrap();
    let embedder = HashingEmbedder::default();
    let root = folder();
    let documents = load(&root.path().join("docs")).unwrap().documents;
    let origin = minirag::index::Origin {
        path: "docs".into(),
        kind: minirag::corpus::Kind::Folder,
        arguments: vec!["--corpus".into(), "docs".into()],
    };
    let tools = Tools::new(&tokenizer, &embedder);
    let (index, _) = Index::build(documents, origin, Default::default(), &tools).unwrap();
    assert_eq!((index.documents.len(), index.chunks.len()), (3, 2));
    let dir = root.path().join("new/index");
    let bytes = index.save(&dir).unwrap();
    assert_eq!(fs::metadata(dir.join(FILE)).unwrap().len(), bytes);
    assert_same(&Index::open(&dir).unwrap(), &index);
    assert_eq!(Index::manifest(&dir).unwrap(), index.manifest);
}

#[test]
fn indexing_twice_changes_nothing() {
    let root = folder();
    let (dir, first) = make(root.path());
    let bytes = fs::read(dir.join(FILE)).unwrap();
    assert_eq!((first.found, first.read, first.changes.documents.added.len()), (3, 3, 3));
    let (_, second) = make(root.path());
    assert_eq!(second.changes.documents.unchanged, 3);
    let chunks = second.changes.chunks;
    assert_eq!((chunks.added, chunks.kept, chunks.removed), (0, first.changes.chunks.added, 0));
    assert!(fs::read(dir.join(FILE)).unwrap() == bytes, "the bytes differ");
    let elsewhere = root.path().join("elsewhere");
    run_request(&request(&root.path().join("docs"), &elsewhere)).unwrap();
    assert!(fs::read(elsewhere.join(FILE)).unwrap() == bytes, "the bytes differ elsewhere");
}

#[test]
fn changes_are_counted() {
    let root = folder();
    let (dir, _) = make(root.path());
    let docs = root.path().join("docs");
    fs::write(docs.join("go.txt"), "Go, goes, went.\n").unwrap();
    fs::write(docs.join("see.md"), "# See\n\nsee, saw, seen\n").unwrap();
    fs::remove_file(docs.join("empty.md")).unwrap();
    let embedder = HashingEmbedder::default();
    let stale = verify(&dir, None, &embedder).unwrap();
    assert!(!stale.is_ok() && stale.faults.is_empty(), "{stale:?}");
    let (_, report) = make(root.path());
    let documents = &report.changes.documents;
    assert_eq!(documents, stale.corpus.as_ref().unwrap());
    assert_eq!(documents.added, ["see.md"]);
    assert_eq!(documents.changed, ["go.txt"]);
    assert_eq!((&documents.removed[..], documents.unchanged), (&["empty.md".to_owned()][..], 1));
    let chunks = report.changes.chunks;
    assert_eq!((chunks.added, chunks.kept, chunks.removed), (2, 1, 1));
    assert!(verify(&dir, None, &embedder).unwrap().is_ok());
    let other = verify(&dir, Some(&docs), &HashingEmbedder::new(64)).unwrap();
    assert!(!other.is_ok() && other.faults[0].contains("hashing-64"), "{other:?}");
}

#[test]
fn an_index_inside_the_documents_is_left_out() {
    let root = folder();
    let docs = root.path().join("docs");
    let inside = request(&docs, &docs.join("index"));
    let first = run_request(&inside).unwrap();
    let second = run_request(&inside).unwrap();
    assert_eq!((first.found, second.found, second.skipped.len()), (3, 3, 0));
    // A folder that was there keeps its own documents, whatever its `.gitignore` says of the index.
    for (name, ignore) in [("old", None), ("ruled", Some("*.log\n"))] {
        let dir = docs.join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("own.md"), "# Own\n").unwrap();
        if let Some(ignore) = ignore {
            fs::write(dir.join(".gitignore"), ignore).unwrap();
        }
        let strict = Request { strict: true, ..request(&docs, &dir) };
        let first = run_request(&strict).unwrap();
        let second = run_request(&strict).unwrap();
        assert!(second.bytes.is_some() && second.skipped.is_empty(), "{:?}", second.skipped);
        assert_eq!((second.found, second.read), (first.found, first.found));
        assert!(Index::open(&dir).unwrap().documents.iter().any(|d| d.id.0.ends_with("own.md")));
        fs::remove_dir_all(dir).unwrap();
    }
    let error = run_request(&request(&docs, &docs)).unwrap_err().to_string();
    assert!(error.contains("one folder"), "{error}");
    assert!(!docs.join(FILE).exists());
}

#[track_caller]
fn check_refused(dir: &Path, parts: &[&str]) {
    let message = Index::open(dir).unwrap_err().to_string();
    for part in [FILE].iter().chain(parts) {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn what_is_no_index_is_named_with_the_cure() {
    let root = folder();
    check_refused(&root.path().join("nowhere"), &["no index there", "--corpus PATH"]);
    let (dir, _) = make(root.path());
    let bytes = fs::read(dir.join(FILE)).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        fs::write(dir.join(FILE), bytes).unwrap();
    };
    with(&|bytes| bytes.truncate(bytes.len() - 4096));
    check_refused(&dir, &["bytes and should have", "run `index`"]);
    with(&|bytes| bytes[63] = 9);
    check_refused(&dir, &["format 9", &format!("reads {FORMAT}"), "update minirag"]);
    with(&|bytes| bytes[68..72].fill(0));
    check_refused(&dir, &["not one that `index` has made"]);
    with(&|bytes| *bytes = b"my notes".to_vec());
    check_refused(&dir, &["not an index"]);
    // A file that is not ours is not ours to replace.
    let error = run_request(&request(&root.path().join("docs"), &dir)).unwrap_err().to_string();
    assert!(error.contains("remove the file"), "{error}");
    assert_eq!(fs::read(dir.join(FILE)).unwrap(), b"my notes");
}

#[test]
fn a_damaged_index_never_answers_otherwise() {
    let root = folder();
    let (dir, _) = make(root.path());
    let (path, index) = (dir.join(FILE), Index::open(&dir).unwrap());
    let bytes = fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(509) {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(Index::open(&dir).is_err(), "cut off at {length}");
    }
    let mut rng = Rng::new(7);
    let mut noticed = 0;
    for _ in 0..1500 {
        let mut damaged = bytes.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(damaged.len());
            damaged[at] ^= 1 + rng.below(255) as u8;
        }
        fs::write(&path, &damaged).unwrap();
        match Index::open(&dir) {
            Ok(opened) => assert_same(&opened, &index), // It hit a byte that holds nothing.
            Err(_) => noticed += 1,
        }
        let _ = Index::manifest(&dir);
    }
    assert!(noticed > 100, "{noticed}");
    // Whatever it is, the next run replaces it, and says why it could not compare.
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (_, report) = make(root.path());
    let reason = report.unreadable.unwrap();
    assert!(reason.contains("damaged") && reason.contains("`auto:150:20` is used"), "{reason}");
    assert_same(&Index::open(&dir).unwrap(), &index);
}

#[test]
fn a_damaged_index_keeps_its_settings_where_they_can_be_read() {
    let root = folder();
    let dir = root.path().join("index");
    let mut asked = request(&root.path().join("docs"), &dir);
    asked.chunks.tokens = Some(60);
    run_request(&asked).unwrap();
    let mut bytes = fs::read(dir.join(FILE)).unwrap();
    let text = b"Go, went, gone.";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] = b'N';
    fs::write(dir.join(FILE), bytes).unwrap();
    let report = run_request(&request(&root.path().join("docs"), &dir)).unwrap();
    let reason = report.unreadable.unwrap();
    assert!(reason.contains("documents") && !reason.contains("is used"), "{reason}");
    assert_eq!(Index::manifest(&dir).unwrap().chunker, "auto:60:20");
}

#[test]
fn two_writers_leave_one_whole_index() {
    let root = folder();
    let (dir, _) = make(root.path());
    let index = Index::open(&dir).unwrap();
    std::thread::scope(|scope| {
        let save = || (0..20).filter(|_| index.save(&dir).is_err()).count();
        let writers = [scope.spawn(save), scope.spawn(save)];
        (0..20).for_each(|_| assert_same(&Index::open(&dir).unwrap(), &index));
        let failed: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        assert!(failed < 40, "no save ever succeeds");
    });
    assert_same(&Index::open(&dir).unwrap(), &index);
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_index"));
    command.args(args).env("MINIRAG_HOME", env!("CARGO_MANIFEST_DIR"));
    command
}

#[track_caller]
fn run(args: &[&str], exit: i32) -> Output {
    let output = command(args).output().unwrap();
    assert_eq!(output.status.code(), Some(exit), "{output:?}");
    output
}

#[track_caller]
fn run_json(args: &[&str], exit: i32) -> Value {
    let output = run(&[args, &["--json"]].concat(), exit);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_command_prints_what_the_interface_promises() {
    let root = folder();
    fs::write(root.path().join("docs/page.html"), "<p>no reader</p>").unwrap();
    let (docs, dir) = (root.path().join("docs"), root.path().join("index"));
    let (docs, dir) = (docs.to_str().unwrap(), dir.to_str().unwrap());
    let args = ["--corpus", docs, "--index", dir];
    let strict = [&args[..], &["--strict"]].concat();
    let dry = [&args[..], &["--dry-run"]].concat();
    run_json(&dry, 0);
    let error = run(&strict, 1).stderr;
    assert!(String::from_utf8(error).unwrap().contains("1 of 4 files were skipped"));
    assert!(!Path::new(dir).exists());

    let json = run_json(&[&args[..], &["--chunk-tokens", "60"]].concat(), 0);
    let keys: Vec<&String> = json["documents"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["found", "read", "skipped", "added", "changed", "removed", "unchanged"]);
    assert_eq!(json["documents"]["skipped"][0]["path"], "page.html");
    assert_eq!(json["documents"]["skipped"][0]["reason"], "no reader for .html files yet");
    assert_eq!((&json["documents"]["found"], &json["documents"]["read"]), (&4.into(), &3.into()));
    for stage in ["read", "chunk", "embed", "lexical", "write", "total"] {
        assert!(json["seconds"][stage].is_f64(), "{json}");
    }
    assert!(json["tokens"].as_u64().unwrap() > 10);

    // The next run keeps the settings that the index was made with.
    run(&args, 0);
    assert_eq!(run_json(&["--index", dir, "--stats"], 0)["manifest"]["chunker"], "auto:60:20");
    assert_eq!(run_json(&["--index", dir, "--verify"], 0)["ok"], true);
    fs::write(root.path().join("docs/new.md"), "# New\n").unwrap();
    assert_eq!(run_json(&["--index", dir, "--verify"], 1)["documents"]["added"][0], "new.md");
    run(&["--corpus", docs], 2);
    run(&[&args[..], &["--chunker", "words"]].concat(), 2);
    run(&["--corpus", "/no/such/folder", "--index", dir], 1);
}

#[test]
fn a_killed_run_leaves_the_old_index_or_the_new() {
    let root = folder();
    let (dir, _) = make(root.path());
    let old = Index::open(&dir).unwrap();
    let docs = root.path().join("docs");
    (0..200).for_each(|i| fs::write(docs.join(format!("{i}.md")), EAT.repeat(20)).unwrap());
    let args = ["--corpus", docs.to_str().unwrap(), "--index", dir.to_str().unwrap()];
    let start = std::time::Instant::now();
    run(&[&args[..], &["--dry-run"]].concat(), 0);
    let whole = start.elapsed();
    let mut rng = Rng::new(1);
    for _ in 0..12 {
        let mut child = command(&args).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(0.5 + rng.uniform()));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = Index::open(&dir).unwrap().documents.len();
        assert!([old.documents.len(), 203].contains(&found), "{found} documents");
    }
    run(&args, 0);
    let names: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "the leftovers of killed runs are gone: {names:?}");
    assert_eq!(Index::open(&dir).unwrap().documents.len(), 203);
}

#[cfg(unix)]
#[test]
fn a_failing_write_leaves_the_old_index() {
    let root = folder();
    let (dir, _) = make(root.path());
    let before = fs::read(dir.join(FILE)).unwrap();
    let docs = root.path().join("docs");
    fs::write(docs.join("long.txt"), "One long text.\n".repeat(20_000)).unwrap();
    // A limit on the size of files stands for a full disk: writes fail with an error.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\"";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_index")])
        .args(["--corpus", docs.to_str().unwrap(), "--index", dir.to_str().unwrap()])
        .env("MINIRAG_HOME", env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(FILE), "{error}");
    assert!(fs::read(dir.join(FILE)).unwrap() == before, "the old index has changed");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "the new file is gone");
}

#[test]
fn hard_inputs_are_indexed_and_verified() {
    let Some(docs) = shared("data/hard-inputs") else { return };
    let root = tempfile::tempdir().unwrap();
    let report = run_request(&request(&docs, root.path())).unwrap();
    assert_eq!(report.read + report.skipped.len(), report.found);
    let found = verify(root.path(), None, &HashingEmbedder::default()).unwrap();
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn a_beir_folder_has_one_chunk_a_document() {
    let root = tempfile::tempdir().unwrap();
    let lines =
        "{\"_id\": \"2\", \"text\": \"One. Two.\"}\n{\"_id\": \"1\", \"text\": \"Three.\"}\n";
    fs::write(root.path().join("corpus.jsonl"), lines).unwrap();
    let dir = root.path().join("index");
    run_request(&request(root.path(), &dir)).unwrap();
    let index = Index::open(&dir).unwrap();
    let texts: Vec<&str> = index.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!((&texts[..], &*index.manifest.chunker), (&["Three.", "One. Two."][..], "whole"));
}

#[test]
fn writers_in_one_folder_wait_for_each_other() {
    let root = folder();
    let (dir, _) = make(root.path());
    let index = Index::open(&dir).unwrap();
    fs::write(dir.join("index.db.0123456789abcdef.tmp"), "of a killed run").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..10).for_each(|_| assert!(index.save(&dir).unwrap() > 0)));
        }
    });
    let docs = root.path().join("docs");
    let args = ["--corpus", docs.to_str().unwrap(), "--index", dir.to_str().unwrap()];
    let children: Vec<_> = (0..8)
        .map(|_| command(&args).stdout(std::process::Stdio::null()).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut names: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".gitignore", ".index.db.lock", FILE], "no leftover");
    assert_same(&Index::open(&dir).unwrap(), &index);
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error() {
    use crate::{in_time, make_pipe};
    let root = folder();
    let (dir, _) = make(root.path());
    let index = Index::open(&dir).unwrap();
    let check = |name: &str, error: fn(Index, PathBuf) -> minirag::Error, part: &str| {
        fs::remove_file(dir.join(name)).unwrap();
        make_pipe(&dir.join(name));
        let (index, folder) = (index.clone(), dir.clone());
        let message = in_time(move || error(index, folder)).to_string();
        assert!(message.contains(name) && message.contains(part), "{message}");
    };
    check(".index.db.lock", |index, dir| index.save(&dir).unwrap_err(), "not a regular file");
    fs::remove_file(dir.join(".index.db.lock")).unwrap();
    check(FILE, |_, dir| Index::open(&dir).unwrap_err(), "not an index");
    check(FILE, |_, dir| Index::manifest(&dir).unwrap_err(), "not an index");
    check(FILE, |index, dir| index.save(&dir).unwrap_err(), "name another folder");

    let tokenizer = root.path().join("tokenizer.json");
    make_pipe(&tokenizer);
    for path in [root.path().to_owned(), tokenizer] {
        let message = in_time(|| Tokenizer::load(path).unwrap_err()).to_string();
        assert!(message.contains("tokenizer.json: not a regular file"), "{message}");
    }
}
