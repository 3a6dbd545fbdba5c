//! All integration tests, linked once.

#![allow(clippy::unwrap_used)]

mod grammar;
mod layers;

use std::path::PathBuf;

/// The folder of test collections beside the checkout, where there is one.
fn shared() -> Option<PathBuf> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("MINIRAG_SHARED").map_or_else(default, PathBuf::from);
    if folder.join("data").is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no test collections at {} (set MINIRAG_SHARED)", folder.display());
    None
}
