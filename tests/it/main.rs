//! All integration tests, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may panic, also outside of `#[test]`.

mod chunk;
mod tokenizer;

use std::path::{Path, PathBuf};

/// The shipped models.
fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The folder of shared data, if this machine has it.
fn shared() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let path = std::env::var_os("MINIRAG_SHARED").map_or_else(default, PathBuf::from);
    let found = path.join("data").is_dir();
    if !found {
        eprintln!("skipped: no shared data at {}; MINIRAG_SHARED names the folder", path.display());
    }
    found.then_some(path)
}

/// The files of a folder, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}
