//! What the documents say is so: paths exist, commands run, printed output is the program's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Output},
};

use regex::Regex;

const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

const BINARIES: [(&str, &str); 6] = [
    ("answer", env!("CARGO_BIN_EXE_answer")),
    ("index", env!("CARGO_BIN_EXE_index")),
    ("evaluate", env!("CARGO_BIN_EXE_evaluate")),
    ("demo", env!("CARGO_BIN_EXE_demo")),
    ("train-biencoder", env!("CARGO_BIN_EXE_train-biencoder")),
    ("train-tokenizer", env!("CARGO_BIN_EXE_train-tokenizer")),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// The fenced blocks of a language, without their fences.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// What stands between backticks in a line, and what links lead to.
fn named(text: &str) -> Vec<String> {
    let pattern = regex(r"`([^`\n]+)`|\]\(([^)\s]+)\)");
    let name = |found: regex::Captures<'_>| {
        found.get(1).or(found.get(2)).map(|name| name.as_str().to_owned())
    };
    pattern.captures_iter(text).filter_map(name).collect()
}

/// True for what claims to be a path of the repository.
fn is_path(name: &str) -> bool {
    const FOLDERS: [&str; 9] =
        [".ci", "benches", "data", "examples", "models", "notebooks", "scripts", "src", "tests"];
    let plain = regex(r"^[\w.*-]+(/[\w.*-]+)*/?$").is_match(name);
    let inside = name.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder));
    plain
        && (inside
            || regex(r"^[\w-]+\.(md|rs|toml)$").is_match(name)
            || name.starts_with("LICENSE"))
}

/// True if `folder` holds the path, or at least one file that the path's `*` stand for.
fn matches(folder: &Path, path: &str) -> bool {
    let (first, rest) = path.trim_end_matches('/').split_once('/').unwrap_or((path, ""));
    let first = first.trim_end_matches('/');
    let pattern = regex(&format!("^{}$", regex::escape(first).replace(r"\*", "[^/]*")));
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    entries
        .filter(|entry| pattern.is_match(&entry.file_name().to_string_lossy()))
        .any(|entry| rest.is_empty() || matches(&entry.path(), rest))
}

#[test]
fn paths_that_are_named_exist() {
    let mut seen = 0;
    for document in DOCUMENTS {
        for name in named(&read(document)).into_iter().filter(|name| is_path(name)) {
            let places = [root().to_owned(), root().join("src")];
            let found = places.iter().any(|place| matches(place, &name));
            assert!(found, "{document}: there is no {name}");
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} paths were looked at");
    assert!(matches(root(), "src/*/mod.rs") && !matches(root(), "src/*.py"));
    assert!(is_path("src/nothing.rs") && is_path("nothing.md") && !is_path("~/notes"));
}

/// A command of the program: the binary's name and the words after `--`.
fn command(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("cargo run")?;
    let (cargo, arguments) = rest.split_once(" -- ").unwrap_or((rest, ""));
    let binary = cargo.split_once("--bin ").map_or("answer", |(_, name)| name);
    let binary = binary.split(|c: char| c.is_whitespace() || c == '`').next().unwrap();
    Some((binary, arguments.split(['`', '#']).next().unwrap().trim()))
}

#[test]
fn commands_name_binaries_and_options_that_exist() {
    let cargo: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
    let declared: BTreeSet<&str> =
        cargo["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
    assert_eq!(declared, BINARIES.map(|(name, _)| name).into(), "BINARIES above is not complete");
    let help: BTreeMap<&str, String> = BINARIES
        .iter()
        .map(|(name, path)| {
            let output = Command::new(path).arg("--help").output().unwrap();
            (*name, String::from_utf8(output.stdout).unwrap())
        })
        .collect();
    let option = regex(r"(^|\s)(--[a-z][a-z0-9-]*|-[a-z])\b");
    let mut commands = 0;
    for document in DOCUMENTS {
        for (binary, arguments) in read(document).lines().filter_map(command) {
            commands += 1;
            let help = help.get(binary);
            let help = help.unwrap_or_else(|| panic!("{document}: there is no command {binary}"));
            for found in option.captures_iter(arguments) {
                let name = &found[2];
                let listed = regex(&format!(r"(?m)(^|\s){name}\b")).is_match(help);
                assert!(listed, "{document}: {binary} has no option {name}");
            }
        }
    }
    assert!(commands > 10, "only {commands} commands were looked at");
    let readme = read("README.md");
    for name in declared {
        assert!(readme.contains(&format!("| `{name}` |")), "README.md: no row for {name}");
    }
}

/// Runs a line of the README as a shell does, in a folder where the repository's files are.
#[cfg(unix)]
fn shell(line: &str, folder: &Path) -> Output {
    let (binary, arguments) = command(line).unwrap();
    let path = BINARIES.iter().find(|(name, _)| *name == binary).unwrap().1;
    let before = line.split("cargo run").next().unwrap();
    let mut shell = Command::new("sh");
    shell.current_dir(folder).arg("-c").arg(format!("{before}'{path}' {arguments}"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MINIRAG_") {
            shell.env_remove(name);
        }
    }
    shell.output().unwrap()
}

#[cfg(unix)]
#[test]
fn every_command_of_the_readme_runs() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data", "models", "README.md", "ARCHITECTURE.md"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    // Links are not followed, so `--corpus .` needs a file of its own.
    fs::copy(root().join("ARCHITECTURE.md"), folder.path().join("copy.md")).unwrap();
    let readme = read("README.md");
    let blocks = blocks(&readme, "sh");
    let lines: Vec<&str> = blocks.iter().flat_map(|block| block.lines()).collect();
    let mut run = 0;
    for line in lines.into_iter().filter(|line| line.contains("cargo run")) {
        let output = shell(line, folder.path());
        let error = String::from_utf8_lossy(&output.stderr);
        // Whether figures reach their bounds is the gate's own question.
        let measures = line.contains("--gate") || line.contains("--bin demo");
        let ok = output.status.success() || measures && output.status.code() == Some(1);
        assert!(ok && !error.contains("error") && !output.stdout.is_empty(), "{line}\n{error}");
        run += 1;
    }
    assert!(run > 8, "only {run} commands were run");
}

#[cfg(unix)]
#[test]
fn the_first_screen_shows_what_the_program_prints() {
    let readme = read("README.md");
    let screen: Vec<&str> = readme.lines().take(20).collect();
    let line = r#"cargo run --bin answer -- "What is the past participle of eat?""#;
    assert!(screen.contains(&line) && screen.contains(&"cargo test"));
    let printed = String::from_utf8(shell(line, root()).stdout).unwrap();
    assert_eq!(blocks(&readme, "text")[0].trim_end(), printed.trim_end(), "README.md is stale");
}

#[test]
fn the_figures_have_their_place() {
    let readme = read("README.md");
    let place = |marker: &str| {
        assert_eq!(readme.matches(marker).count(), 1, "{marker}");
        readme.find(marker).unwrap()
    };
    assert!(place("<!-- figures:begin -->") < place("<!-- figures:end -->"));
}

#[test]
fn nothing_names_a_place_of_one_machine() {
    let absolute = regex(r"(^|[\s`(\x22'])/(home|root|tmp|usr|var|work|Users|mnt|opt)\b|[A-Z]:\\");
    for document in DOCUMENTS.into_iter().chain(["CHANGELOG.md"]) {
        let text = read(document);
        let found: Vec<&str> = text.lines().filter(|line| absolute.is_match(line)).collect();
        assert!(found.is_empty(), "{document}: {found:?}");
    }
    assert!(absolute.is_match("see /home/me/x") && !absolute.is_match("and/or"));
}
