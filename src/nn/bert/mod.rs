//! BERT (Devlin et al. 2019): token ids in, a vector for each token out.
//!
//! The encoder under most bi-encoders and cross-encoders that are published as folders
//! (all-MiniLM-L6-v2, bge, e5, ...), with Hugging Face's names; RoBERTa and XLM-R differ in where
//! their positions start. [`Bert`] is the differentiable form, [`FusedBert`] the one for
//! inference; [`BertEncoder`] pools the former into a vector for each sequence.

mod config;
mod encoder;
mod fused;
mod network;
mod pooling;

pub use config::{BertConfig, HiddenAct, encoder_tensors};
pub use encoder::BertEncoder;
pub use fused::{Encoded, FusedBert};
pub use network::{Batch, Bert};
pub use pooling::Pooling;

/// A text, or a pair of them, as token ids.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// The tokens, special ones among them.
    pub ids: &'a [u32],
    /// The segment of each token; empty where all are in segment 0.
    pub types: &'a [u32],
}

impl<'a> From<&'a [u32]> for Sequence<'a> {
    fn from(ids: &'a [u32]) -> Self {
        Self { ids, types: &[] }
    }
}
