//! The one error type of the library.
//!
//! Variants are grouped by what the reader of the message can do; a message names the path
//! first, then both sizes, then the cure when there is one.

use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason; said in the message, so no `source` to say it twice.
        reason: std::io::Error,
    },
    /// A file is there but does not hold what it should.
    #[error("{}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, where, and the cure.
        message: String,
    },
    /// A setting or argument that cannot be used.
    #[error("{0}")]
    Setting(String),
    /// Two parts that must agree on a size do not.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The quantity, e.g. `query vector length`.
        what: &'static str,
        /// The size that was required.
        expected: usize,
        /// The size that arrived.
        got: usize,
    },
    /// A search found a row that the index does not hold.
    #[error("the index has no chunk {row}: its vectors and its texts do not belong together")]
    UnknownRow {
        /// The row.
        row: u32,
    },
    /// A score was not finite, so no order exists.
    #[error("{stage} gave row {row} the score {score}, which has no place in an order")]
    NonFinite {
        /// The stage that computed the score.
        stage: &'static str,
        /// The row of the chunk.
        row: u32,
        /// The score.
        score: f32,
    },
    /// A tensor operation that could not be done.
    #[error("tensors: {0}")]
    Tensor(#[from] candle_core::Error),
    /// A training step whose loss or gradients are no numbers.
    #[error(
        "step {step}: the {what} is {value}; the same options would end here again: remove the \
         folder's `training` and begin anew with a lower --lr"
    )]
    Diverged {
        /// The step, counted from 1; nothing of it was saved.
        step: u64,
        /// `loss` or the like.
        what: &'static str,
        /// What was computed.
        value: f64,
    },
    /// The index and the settings do not belong together.
    #[error("{0}")]
    Mismatch(String),
}

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an I/O failure with the path it happened at.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |reason| Self::Io { path, reason }
    }

    /// A file whose content is wrong.
    pub fn format(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::Format { path: path.as_ref().to_owned(), message: message.into() }
    }
}
