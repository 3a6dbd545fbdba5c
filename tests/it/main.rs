//! All integration tests, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

mod bi_encoder;
mod chunk;
mod citations;
mod cli;
mod corpus;
mod datasets;
mod docs;
mod embedders;
mod fine_tuning;
mod grammar;
mod index;
mod layers;
mod lexical;
mod metrics;
mod minilm;
mod nn;
mod nn_bert;
mod pairs;
mod pipelines;
mod prompts;
mod reports;
mod rerankers;
mod stores;
mod tokenizer;
mod training;

/// A path below the shared measuring data; `None`, with a word about it, where there is none.
fn shared(relative: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MINIRAG_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join(relative);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no {} (set MINIRAG_SHARED)", path.display());
    None
}

/// The shipped models.
fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The files of a folder, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// What `work` gives; a failure, not a wait, if it hangs.
#[cfg(unix)]
#[track_caller]
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(std::time::Duration::from_secs(30)).expect("it hangs or has panicked")
}

/// Makes a named pipe, which nobody writes to.
#[cfg(unix)]
#[track_caller]
fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
