//! All integration tests, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::path::{Path, PathBuf};

mod lexical;
mod stores;

/// The folder of data sets that is not part of the repository, where it is present.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("MINIRAG_SHARED").map_or(beside, PathBuf::from);
    folder.join("data").is_dir().then_some(folder)
}
