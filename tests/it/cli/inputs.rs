//! `answer` on hard documents and questions: the same answer each time, cut from the file.

use std::{fs, path::Path};

use serde_json::Value;

use super::{ANSWER, EAT, ask, assert_says, command, finish, folder, lines, name, run, untimed};

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
fn a_span_counts_the_bytes_of_the_decoded_text() {
    let docs = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8], &str); 2] = [
        ("bom.md", "\u{feff}# Gate\n\nThe gate closes at nine.\n".as_bytes(), "UTF-8"),
        (
            "latin.txt",
            b"El pret\xe9rito de \xabcomer\xbb es irregular en ingl\xe9s: ate.\n",
            "windows-1252",
        ),
    ];
    files.iter().for_each(|(name, bytes, _)| fs::write(docs.path().join(name), bytes).unwrap());
    let asked = ["When does the gate close?", "pretérito de comer irregular en inglés?"];
    let answers = ask(&["--corpus", name(docs.path())], &asked);
    for (answer, (document, bytes, encoding)) in answers.iter().zip(files) {
        let citation = &answer["citations"][0];
        assert_eq!(citation["document"], document, "{answer}");
        assert_eq!(citation["encoding"], encoding);
        let text = minirag::corpus::decode(bytes.to_vec()).unwrap().text;
        let at = |end: usize| citation["span"][end].as_u64().unwrap() as usize;
        assert_eq!(citation["quote"], text[at(0)..at(1)]);
    }
}

#[cfg(unix)]
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let docs = folder(&[
        (
            "a\x1b[2J\nb.md",
            "# Gate \x1b]0;x\x07\n\nThe gate closes \u{9b}31m at nine.\r\nIt is made of oak \
             and iron, and was painted green when the bridge was built.\r\n",
        ),
        ("b\x1b.pdf", "x"),
    ]);
    let args =
        ["-v", "--trace", "--explain", "--corpus", name(docs.path()), "When does the gate close?"];
    for args in [&args[..], &[&["--stream"], &args[3..]].concat()] {
        let output = run(ANSWER, args, 0);
        for text in [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()) {
            let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            assert_eq!(raw, None, "{text}");
            assert!(!text.contains("\nb.md"), "a name became two lines: {text}");
        }
    }
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
    let mut latin = command(ANSWER, &["--json"]);
    let answers = lines(&finish(latin.write_stdin(b"caf\xe9\n".to_vec()), 0));
    assert_eq!(answers[0]["question"], "caf\u{fffd}");
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
    // By words alone: a title is the file's name here, and the dense search tells names apart.
    let args = ["--index", name(&index), "--top-k", "10", "--retriever", "bm25"];
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
fn a_line_that_is_not_utf8_costs_no_other_its_answer() {
    let mut command = command(ANSWER, &["--json"]);
    let questions: &[u8] =
        b"\xef\xbb\xbfWhat is the past participle of eat?\n\xff\xfe bad\n\nWhat is a prime number?";
    let answers = lines(&finish(command.write_stdin(questions), 0));
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["question"], "What is the past participle of eat?");
    assert_eq!(answers[0]["status"], "answered");
    assert_eq!(answers[2]["status"], "unknown");
}

#[test]
fn an_empty_question_and_too_many_threads_are_refused() {
    assert_says(&run(ANSWER, &[" "], 2), &["the question is empty"]);
    assert_says(&run(ANSWER, &["--threads", "100000", "x"], 1), &["100000", "at most 1024"]);
}

#[test]
fn an_io_failure_is_told_once() {
    let output =
        run(ANSWER, &["--corpus", "README.md", "--trace-file", "README.md/t.json", EAT], 1);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.matches("os error").count(), 1, "{error}");
}
