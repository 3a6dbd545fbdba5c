//! What a folder gives: every file is read or skipped with its reason, never lost.

use std::{fs, path::Path};

use minirag::corpus::{Corpus, Kind, MAX_FILE_BYTES, decode, load};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::shared;

#[track_caller]
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    root
}

fn ids(corpus: &Corpus) -> Vec<&str> {
    corpus.documents.iter().map(|document| &*document.id.0).collect()
}

fn skipped(corpus: &Corpus) -> Vec<(&str, &str)> {
    corpus.skipped.iter().map(|skip| (&*skip.path, &*skip.reason)).collect()
}

#[track_caller]
fn check_sums(corpus: &Corpus) {
    assert_eq!(corpus.documents.len() + corpus.skipped.len(), corpus.found);
    assert!(corpus.documents.is_sorted_by(|a, b| a.id < b.id));
    assert!(corpus.skipped.iter().all(|skip| !skip.reason.is_empty()));
}

#[test]
fn a_badly_encoded_file_does_not_abort_the_run() {
    let utf_16: Vec<u8> = "\u{feff}Ate.\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let root = folder(&[
        ("good.md", b"# Eat\n\neat, ate, eaten"),
        ("good.txt", "naïve ﬁnd".as_bytes()),
        ("sub/Makefile", b"all:\n\techo\n"),
        ("latin1.txt", b"pass\xe9 compos\xe9, \xe0 la fran\xe7aise, d\xe9j\xe0 vu"),
        ("utf16.txt", &utf_16),
        ("nul.txt", b"before\0after"),
    ]);
    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!((corpus.found, corpus.kind), (6, Kind::Folder));
    assert_eq!(ids(&corpus), ["good.md", "good.txt", "latin1.txt", "sub/Makefile", "utf16.txt"]);
    assert_eq!(skipped(&corpus), [("nul.txt", "not text: a zero byte at offset 6")]);
    let field = |at: usize, key: &str| corpus.documents[at].metadata[key].as_str();
    assert_eq!((field(0, "format"), field(0, "encoding")), ("markdown", "UTF-8"));
    assert_eq!((field(2, "format"), field(2, "encoding")), ("text", "windows-1252"));
    assert_eq!(&*corpus.documents[0].title, "Eat");
    assert_eq!(corpus.documents[1].text, "naïve ﬁnd", "the raw text keeps its ligature");
    assert_eq!(corpus.documents[2].text, "passé composé, à la française, déjà vu");
    assert_eq!(corpus.documents[4].text, "Ate.\n");
    assert_eq!(load(root.path()).unwrap(), corpus);
}

#[cfg(unix)]
#[test]
fn dot_files_ignored_files_and_links_stay_outside() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret.md", b"# Secret")]);
    let root = folder(&[
        ("a.md", b"# A"),
        (".DS_Store", b"\0\0\0\x01Bud1"),
        (".git/config", b"[core]"),
        ("deep/.hidden/x.md", b"# X"),
        (".gitignore", b"*.log\nbuild/\n"),
        ("run.log", b"noise"),
        ("build/out.md", b"# Out"),
        ("notes.md~", b"old"),
        ("odd\\..\\name.md", b"# Odd"),
    ]);
    symlink(root.path(), root.path().join("loop")).unwrap();
    symlink("..", root.path().join("deep/up")).unwrap();
    symlink(outside.path().join("secret.md"), root.path().join("out.md")).unwrap();
    symlink("a.md", root.path().join("again.md")).unwrap();
    symlink("nowhere", root.path().join("broken.md")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status();
    assert!(pipe.unwrap().success());

    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!(ids(&corpus), ["a.md", "odd\\..\\name.md"]);
    let reasons = skipped(&corpus);
    assert_eq!(
        reasons,
        [
            ("again.md", "a link to ./a.md, not followed"),
            ("broken.md", "a broken link"),
            ("deep/up", "a link to ./, not followed"),
            ("loop", "a link to ./, not followed"),
            ("notes.md~", "an editor's backup copy"),
            ("out.md", "a link that leads out of the folder, not followed"),
            ("pipe", "not a regular file"),
        ]
    );
    // The root itself may be a link, and may be hidden.
    let link = outside.path().join(".link");
    symlink(root.path(), &link).unwrap();
    assert_eq!(load(&link).unwrap(), corpus);
}

#[cfg(target_os = "linux")]
#[test]
fn names_equal_after_normalisation_and_names_that_are_not_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let root = folder(&[("caf\u{e9}.md", b"# One"), ("cafe\u{301}.md", b"# Two")]);
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "# Three").unwrap();
    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!(ids(&corpus), ["%FF.md", "café.md"]);
    assert_eq!(&*corpus.documents[1].title, "Two", "the first in the order of the raw names");
    assert!(corpus.skipped[0].reason.contains("NFC"), "{:?}", corpus.skipped);
}

#[test]
fn too_large_a_file_is_skipped() {
    let root = folder(&[("a.md", b"# A")]);
    let large = fs::File::create(root.path().join("large.txt")).unwrap();
    large.set_len(MAX_FILE_BYTES + 1).unwrap();
    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!(skipped(&corpus), [("large.txt", "larger than 64 MiB: split it")]);
}

#[track_caller]
fn check_error(path: &Path, parts: &[&str]) {
    let message = load(path).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn an_empty_or_missing_place_is_an_error_that_names_it() {
    let empty = folder(&[(".hidden", b"x")]);
    check_error(empty.path(), &[&empty.path().display().to_string(), "no file", "put .md"]);
    let missing = empty.path().join("missing");
    check_error(&missing, &["missing", "no such folder or file"]);
    let pages = folder(&[("a.html", b"<p>"), ("b.html", b"<p>")]);
    check_error(pages.path(), &["all 2 files were skipped", "a.html", "no reader for .html"]);
}

#[test]
fn one_file_is_a_corpus() {
    let root = folder(&[("sub/one.md", b"# One\n")]);
    let corpus = load(&root.path().join("sub/one.md")).unwrap();
    check_sums(&corpus);
    assert_eq!((ids(&corpus), corpus.found), (vec!["one.md"], 1));
}

#[test]
fn a_beir_folder_gives_its_lines() {
    let lines = "{\"_id\": \"b\", \"title\": \"B\", \"text\": \"two\\u0000\", \"metadata\": {\"n\": 1}}\r\n\
                 \n{\"_id\": 7, \"text\": \"\"}";
    let root = folder(&[("corpus.jsonl", lines.as_bytes()), ("queries.jsonl", b"{}")]);
    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!((ids(&corpus), corpus.kind), (vec!["7", "b"], Kind::Beir));
    assert_eq!(&*corpus.documents[1].title, "B");
    assert_eq!(corpus.documents[1].text, "two\0");
    assert_eq!(corpus.documents[1].metadata["n"], "1");
    assert_eq!(load(&root.path().join("corpus.jsonl")).unwrap(), corpus);
}

#[test]
fn a_wrong_beir_line_is_named() {
    let line = |id: &str| format!("{{\"_id\": \"{id}\", \"text\": \"t\"}}\n");
    let check = |text: String, parts: &[&str]| {
        let root = folder(&[("corpus.jsonl", text.as_bytes())]);
        check_error(root.path(), parts);
    };
    check(line("a") + &line("b") + "\n" + &line("a"), &["corpus.jsonl:4:", "\"a\"", "line 1"]);
    check(line("a") + "{\"_id\": \"b\"}\n", &["corpus.jsonl:2:", "text"]);
    check(line("a") + "{\"_id\": \"b\", \"text\": \"\\ud800\"}\n", &["corpus.jsonl:2:"]);
    check("\n\n".into(), &["corpus.jsonl", "no document"]);
}

/// What Python's codecs make of the file, by the first 16 hex digits of
/// `sha256(open(path, "rb").read().decode(codec).lstrip("\ufeff").encode())`.
const PYTHON: [(&str, &str, &str); 28] = [
    ("Big5___ude_1.txt", "Big5", "21dc7f119f3902dc"),
    ("CP932__y-moto.com.xml", "Shift_JIS", "4b640f0a291bdd36"),
    ("EUC-KR__chisato.info.xml", "EUC-KR", "36b64915a2d49a83"),
    ("GB2312___chromium_gb18030_with_no_encoding_specified.html.xml", "GBK", "f10d2b6c9e7b0d79"),
    (
        "SHIFT_JIS___chromium_Shift-JIS_with_no_encoding_specified.html",
        "Shift_JIS",
        "52373ac56ad18c9e",
    ),
    ("TIS-620__trickspot.boxchart.com.xml", "windows-874", "22c414b3427c4c8a"),
    ("UTF-16BE__plane1-utf-16be.html", "UTF-16BE", "d3f9b4b4dc73b57e"),
    ("UTF-16LE__plane1-utf-16le.html", "UTF-16LE", "d3f9b4b4dc73b57e"),
    ("UTF-16__bom-utf-16-le.srt", "UTF-16LE", "2011a14cd87b990a"),
    ("UTF-32LE__plane1-utf-32le.html", "UTF-32LE", "d3f9b4b4dc73b57e"),
    ("UTF-32__bom-utf-32-le.srt", "UTF-32LE", "2011a14cd87b990a"),
    ("iso-2022-jp___ude_1.txt", "ISO-2022-JP", "abc4089f790009fe"),
    ("iso-8859-1___ude_4.txt", "windows-1252", "e3f920bee7cbf22d"),
    ("iso-8859-2-croatian___ude_1.txt", "ISO-8859-2", "f3404163922dc1db"),
    ("iso-8859-2-hungarian__saraspatak.hu.xml", "ISO-8859-2", "2a61dc76a042135e"),
    ("iso-8859-2-slovak___ude_1.txt", "ISO-8859-2", "c3c1e465051a122f"),
    ("iso-8859-5-bulgarian__bpm.cult.bg.4.xml", "ISO-8859-5", "129f90716297cb0a"),
    (
        "iso-8859-6-arabic___chromium_ISO-8859-6_with_no_encoding_specified.html",
        "ISO-8859-6",
        "0fa57c2723cf7c2a",
    ),
    ("iso-8859-9-turkish__wikitop_tr_ISO-8859-9.txt", "windows-1254", "c4c782ba34d64049"),
    ("utf-8-sig__bom-utf-8.srt", "UTF-8", "2011a14cd87b990a"),
    ("utf-8__balatonblog.typepad.com.xml", "UTF-8", "8f1978127a306baf"),
    ("windows-1250-czech___ude_1.txt", "windows-1250", "2276a7c87e84d443"),
    ("windows-1250-polish___ude_1.txt", "windows-1250", "521cfc381f58b02f"),
    ("windows-1250-slovak___ude_1.txt", "windows-1250", "2d79239abb427ffe"),
    ("windows-1251-bulgarian__doncho.net.comments.xml", "windows-1251", "b380d83c0a5ed4fb"),
    ("windows-1252___ude_2.txt", "windows-1252", "0bb38dc428a3e620"),
    ("windows-1254-turkish___ude_1.txt", "windows-1254", "7b2c8663a72c2e24"),
    ("windows-1255-hebrew__carshops.co.il.xml", "windows-1255", "19476212ac118301"),
];

#[test]
fn encodings_are_told_as_python_decodes_them() {
    let Some(root) = shared("data/hard-inputs/encodings") else { return };
    for (name, encoding, expected) in PYTHON {
        let decoded = decode(fs::read(root.join(name)).unwrap()).unwrap();
        let hash = format!("{:x}", Sha256::digest(&decoded.text));
        assert_eq!((name, &*decoded.encoding, &hash[..16]), (name, encoding, expected));
    }
}

#[test]
fn hard_inputs_are_read_or_skipped_one_by_one() {
    let Some(root) = shared("data/hard-inputs") else { return };
    let corpus = load(&root).unwrap();
    check_sums(&corpus);
    let files = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let inner = |path: std::path::PathBuf| fs::read_dir(path).map_or(1, Iterator::count);
    assert_eq!(corpus.found, files.map(inner).sum::<usize>());
    let reason =
        |path: &str| corpus.skipped.iter().find(|skip| skip.path == path).map(|skip| &*skip.reason);
    let text = |id: &str| {
        corpus.documents.iter().find(|document| &*document.id.0 == id).map(|doc| &*doc.text)
    };
    assert_eq!(reason("pdf/irs-f1040nr.pdf"), Some("no reader for .pdf files yet"));
    assert_eq!(reason("generated/nul-bytes.txt"), Some("not text: a zero byte at offset 6"));
    assert_eq!(text("generated/bom-only.md"), Some(""));
    assert_eq!(text("generated/empty.md"), Some(""));
    assert_eq!(text("generated/lone-surrogate-utf8.txt"), Some("x \u{fffd} y\n"));
    assert_eq!(text("generated/one-word-1MB.txt").map(str::len), Some(1_000_000));
    assert!(text("markdown/commonmark-spec.txt").is_some());
}

proptest! {
    #[test]
    fn decoding_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(bytes);
    }

    #[test]
    fn text_survives_decoding(text in "[ -~\\PC]{0,80}") {
        prop_assume!(!text.starts_with('\u{feff}'));
        let decoded = decode(text.clone().into_bytes()).unwrap();
        prop_assert_eq!(decoded.text, text);
    }
}

#[cfg(unix)]
#[test]
fn a_gitignore_that_is_no_small_file_shuts_its_folder() {
    use crate::{in_time, make_pipe};
    let root = folder(&[
        ("good/.gitignore", b"*.log\n"),
        ("good/a.md", b"# A"),
        ("good/a.log", b"noise"),
        ("large/a.md", b"# A"),
        ("pipe/a.md", b"# A"),
        ("pipe/below/b.md", b"# B"),
        ("zero/a.md", b"# A"),
    ]);
    make_pipe(&root.path().join("pipe/.gitignore"));
    std::os::unix::fs::symlink("/dev/zero", root.path().join("zero/.gitignore")).unwrap();
    let large = fs::File::create(root.path().join("large/.gitignore")).unwrap();
    large.set_len((1 << 20) + 1).unwrap();
    let path = root.path().to_owned();
    let corpus = in_time(move || load(&path).unwrap());
    check_sums(&corpus);
    assert_eq!(ids(&corpus), ["good/a.md"]);
    let reason = "its .gitignore is no regular file of at most 1 MiB, so none of it was read";
    assert_eq!(skipped(&corpus), [("large", reason), ("pipe", reason), ("zero", reason)]);

    make_pipe(&root.path().join(".gitignore"));
    let path = root.path().to_owned();
    let message = in_time(move || load(&path).unwrap_err()).to_string();
    assert!(message.ends_with(reason), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn different_names_that_are_not_unicode_stay_different() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let root = folder(&[("cafe\u{301}.md", b"# One"), ("caf\u{e9}.md", b"# Two")]);
    for name in [&b"\xfe\xe9.md"[..], b"\xff.md", b"\xc3.md"] {
        fs::write(root.path().join(OsStr::from_bytes(name)), "# Odd").unwrap();
    }
    let corpus = load(root.path()).unwrap();
    check_sums(&corpus);
    assert_eq!(ids(&corpus), ["%C3.md", "%FE%E9.md", "%FF.md", "caf\u{e9}.md"]);
    let reason = &corpus.skipped[0].reason;
    assert!(reason.contains("that of cafe\\u{301}.md after"), "{reason}");
}

/// The path is longer than the system takes, so each folder is entered by its name alone.
#[cfg(target_os = "linux")]
#[test]
fn a_very_deep_folder_gives_a_short_reason() {
    let root = folder(&[("a.md", b"# A")]);
    let script = |text: &str| {
        let mut bash = std::process::Command::new("bash");
        let status = bash.args(["-c", text]).current_dir(root.path()).status().unwrap();
        assert!(status.success());
    };
    script(
        "name=$(printf 'deep%.0s' {1..50}); for i in {1..30}; do mkdir $name && cd ./$name; done",
    );
    let corpus = load(root.path()).unwrap();
    script("rm -r deep*");
    check_sums(&corpus);
    assert_eq!((ids(&corpus), corpus.skipped.len()), (vec!["a.md"], 1));
    let skipped = &corpus.skipped[0];
    assert!(skipped.path.starts_with("deepdeep") && skipped.path.ends_with("deepdeep"));
    assert!(skipped.path.len() + skipped.reason.len() < 400, "{skipped:?}");
    assert!(skipped.reason.starts_with("could not be read: File name too long"), "{skipped:?}");
}
