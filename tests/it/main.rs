//! All integration tests, linked once.

mod datasets;
mod metrics;
mod reports;

/// The folder of shared measuring data, where this machine has it: `MINIRAG_SHARED`, or `shared`
/// beside the repository.
fn shared() -> Option<std::path::PathBuf> {
    let beside = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("MINIRAG_SHARED").map_or(beside, Into::into);
    folder.is_dir().then_some(folder)
}
