//! The default corpus and its question sets keep what they promise.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use crate::shared;

fn knowledge_base() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/rag-kb");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// The forms in a table cell: `**burned** / burnt (mainly British)` holds two.
fn forms(cell: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut depth = 0;
    for c in cell.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '*' | '_' | '`' => {}
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let forms = plain.split(['/', ',', ';']).flat_map(|form| form.split(" or "));
    forms.map(|form| form.trim().to_lowercase()).filter(|form| !form.is_empty()).collect()
}

/// Every (file, base, past forms, participle forms) of the tables headed base, past, participle.
fn verb_rows() -> Vec<(String, String, Vec<String>, Vec<String>)> {
    let mut rows = Vec::new();
    for (file, text) in knowledge_base() {
        let mut in_verb_table = false;
        for line in text.lines() {
            let Some(row) = line.trim().strip_prefix('|') else {
                in_verb_table = false;
                continue;
            };
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            if cells.len() < 3 {
                continue;
            }
            let head = cells[..3].join("|").to_lowercase();
            if head.starts_with("base") && head.contains("|past") && head.contains("participle") {
                in_verb_table = true;
            } else if in_verb_table && !cells[0].starts_with(['-', ':']) {
                let base = forms(cells[0]).remove(0);
                rows.push((file.clone(), base, forms(cells[1]), forms(cells[2])));
            }
        }
    }
    rows
}

#[test]
fn the_corpus_has_its_files_in_their_sizes() {
    let files = knowledge_base();
    assert!((50..=60).contains(&files.len()), "{} files", files.len());
    for (file, text) in files {
        let words = text.split_whitespace().count();
        assert!((300..=1200).contains(&words), "{file} has {words} words");
        assert!(text.starts_with("# "), "{file} has no title");
    }
}

#[test]
fn the_tables_hold_250_irregular_verbs_each_once() {
    let rows = verb_rows();
    let mut seen = BTreeMap::new();
    for (file, base, ..) in rows.iter().filter(|row| row.0.starts_with("irregular-")) {
        if let Some(other) = seen.insert(base, file) {
            assert_eq!(other, file, "{base} is in two families");
        }
    }
    assert!(seen.len() >= 250, "{} verbs", seen.len());
}

#[test]
fn every_form_is_one_that_the_verb_sources_know() {
    let Some(verbs) = shared("data/grammar") else { return };
    let mut past: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut participle = past.clone();
    let mut read = |file: &str, past_columns: &[usize], participle_columns: &[usize]| {
        let table = fs::read_to_string(verbs.join(file)).unwrap();
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            for (known, columns) in
                [(&mut past, past_columns), (&mut participle, participle_columns)]
            {
                let known = known.entry(cells[0].to_owned()).or_default();
                for &column in columns {
                    let forms = cells[column].split('/').filter(|form| !form.is_empty());
                    known.extend(forms.map(str::to_owned));
                }
            }
        }
    };
    read("irregular_verbs.tsv", &[1, 3, 5], &[2, 4, 6]);
    read("all_verbs.tsv", &[3], &[4]);
    let mut checked = 0;
    for (file, base, pasts, participles) in verb_rows() {
        for (form, known) in
            pasts.iter().map(|f| (f, &past)).chain(participles.iter().map(|f| (f, &participle)))
        {
            let Some(known) = known.get(&base) else { continue };
            checked += 1;
            assert!(known.contains(form), "{file}: {base}: {form} is none of {known:?}");
        }
    }
    assert!(checked > 500, "only {checked} forms were checked");
}

#[test]
fn the_question_sets_are_frozen_and_keep_documents_apart() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/eval");
    minirag::eval::dataset::grammar::check_frozen(&root).unwrap();
    let questions = fs::read_to_string(root.join("questions.jsonl")).unwrap();
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut split_of: BTreeMap<String, String> = BTreeMap::new();
    for line in questions.lines() {
        let question: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| question[name].as_str().unwrap().to_owned();
        *counts.entry((text("split"), text("class"))).or_default() += 1;
        for gold in question["gold"].as_array().unwrap() {
            let document = gold["document"].as_str().unwrap().to_owned();
            let split = split_of.entry(document.clone()).or_insert_with(|| text("split"));
            assert_eq!(*split, text("split"), "{document} is gold in two splits");
        }
    }
    assert!(counts.values().sum::<usize>() >= 450);
    let of = |class: &str| counts.get(&("test".to_owned(), class.to_owned())).copied().unwrap_or(0);
    assert_eq!(of("conjugation"), 30);
    for class in
        ["literal", "paraphrase", "rule", "multi-topic", "unanswerable-near", "unanswerable-far"]
    {
        assert!(of(class) >= 40, "{class}: {} test questions", of(class));
    }
}
