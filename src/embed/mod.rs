//! Text in, vectors out.

mod bert;
mod bi_encoder;
mod hashing;

use std::path::Path;

pub use bert::{BertEmbedder, BertParts};
pub use bi_encoder::BiEncoder;
pub use hashing::HashingEmbedder;

use crate::{
    error::{Error, Result},
    types::Vectors,
};
use bi_encoder::{Module, read_json};

/// What did not fit the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truncated {
    /// Texts that were longer than the model's limit.
    pub texts: u64,
    /// Tokens of them that were left out.
    pub tokens: u64,
}

/// Turns texts into vectors whose dot product is their similarity.
pub trait Embedder: Send + Sync {
    /// Names the embedder and everything that its vectors depend on.
    fn fingerprint(&self) -> String;

    /// Values per vector.
    fn dim(&self) -> usize;

    /// Shape `(passages, dim)`; rows of unit length, or all zeros for a text without words.
    fn embed_passages(&self, passages: &[&str]) -> Result<Vectors>;

    /// Shape `(queries, dim)`, as [`Embedder::embed_passages`].
    fn embed_queries(&self, queries: &[&str]) -> Result<Vectors>;

    /// What was left out of all texts embedded so far; most embedders have no limit.
    fn truncated(&self) -> Truncated {
        Truncated::default()
    }

    /// Adapts the embedder to the corpus whose stored passage vectors are given, and returns
    /// those vectors adapted alike; called once when an index is opened. Most embedders know
    /// nothing of the corpus and change nothing.
    fn fit(&mut self, stored: Vectors) -> Result<Vectors> {
        Ok(stored)
    }
}

/// The embedder of a checkpoint folder.
///
/// # Errors
/// A folder that is not there, or holds no embedder.
pub fn open(folder: &Path) -> Result<Box<dyn Embedder>> {
    if !folder.is_dir() {
        return Err(Error::format(
            folder,
            "there is no such folder: --embedder is `hashing` or a \
             checkpoint folder, which train-biencoder makes",
        ));
    }
    Ok(match is_static(folder)? {
        true => Box::new(BiEncoder::open(folder)?),
        false => Box::new(BertEmbedder::open(folder)?),
    })
}

/// Whether the checkpoint of a folder is a static model, and not a transformer.
///
/// # Errors
/// A `modules.json` that holds no list of modules.
pub fn is_static(folder: &Path) -> Result<bool> {
    let path = folder.join("modules.json");
    let modules: Vec<Module> = if path.exists() { read_json(&path)? } else { Vec::new() };
    Ok(modules.first().is_some_and(|module| module.class() == "StaticEmbedding"))
}
