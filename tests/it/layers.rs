//! The map of the rooms is enforced: who may import whom.

use std::{collections::BTreeSet, fs, path::Path};

/// What every room may use.
const GROUND: &[&str] = &["error", "types", "text", "rng", "tokenizer", "nn"];

/// The rooms: they use the ground and themselves, never a sibling.
const ROOMS: &[&str] = &[
    "corpus", "chunk", "embed", "store", "lexical", "rewrite", "fuse", "rerank", "prompt",
    "reader", "cite",
];

/// Modules that `module` may name after `crate::`, or `None` if it is not on the map.
fn allowed(module: &str) -> Option<Vec<&'static str>> {
    let ground = |names: &[&'static str]| Some(names.to_vec());
    match module {
        "error" | "rng" | "text" => ground(&["error"]),
        "types" => ground(&["error", "text"]),
        "tokenizer" => ground(&["error", "types", "text", "rng"]),
        // Networks know numbers only.
        "nn" => ground(&["error", "rng"]),
        "index" => Some([GROUND, ROOMS].concat()),
        "pipeline" => Some([GROUND, ROOMS, &["index"]].concat()),
        "eval" => Some([GROUND, ROOMS, &["index", "pipeline"]].concat()),
        // Of eval its metrics and the reading of its data sets.
        "train" => Some([GROUND, ROOMS, &["eval"]].concat()),
        "cli" => Some([GROUND, ROOMS, &["index", "pipeline", "eval", "train"]].concat()),
        "lib" | "bin" => {
            Some([GROUND, ROOMS, &["index", "pipeline", "eval", "train", "cli"]].concat())
        }
        room if ROOMS.contains(&room) => Some(GROUND.to_vec()),
        _ => None,
    }
}

#[test]
fn modules_import_only_what_the_map_allows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut files = 0;
    visit(&root, &mut |path| {
        files += 1;
        let relative = path.strip_prefix(&root).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some(allowed) = allowed(module) else {
            wrong.push(format!("{}: `{module}` is not on the map", relative.display()));
            return;
        };
        for used in modules_named_in(&fs::read_to_string(path).unwrap()) {
            if used != module && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: `{module}` may not use `{used}`", relative.display()));
            }
        }
    });
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(files > 20, "only {files} source files were looked at");
}

#[test]
fn a_forbidden_import_is_seen() {
    let source = "use crate::{error::Result, store::{FlatStore, VectorStore}};\nlet x = crate::cite::cite();";
    let expected: BTreeSet<String> = ["cite", "error", "store"].map(String::from).into();
    assert_eq!(modules_named_in(source), expected);
}

/// The first path segments after `crate::`, from plain paths and from `use crate::{...}` groups.
fn modules_named_in(source: &str) -> BTreeSet<String> {
    let name = |item: &str| -> String {
        item.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut modules = BTreeSet::new();
    for rest in source.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            modules.insert(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    modules.insert(name(&item));
                    item.clear();
                    continue;
                }
                _ => {}
            }
            item.push(c);
        }
        modules.insert(name(&item));
    }
    // `crate::Error` and macros are no modules.
    modules.retain(|module| module.chars().next().is_some_and(char::is_lowercase));
    modules
}

fn visit(folder: &Path, on_file: &mut dyn FnMut(&Path)) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            visit(&path, on_file);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            on_file(&path);
        }
    }
}
