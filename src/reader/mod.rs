//! A prompt in, a draft with citation markers out.

mod extractive;

pub use extractive::Extractive;

use crate::{
    error::Result,
    types::{Draft, Prompt},
};

/// Writes an answer from a prompt.
pub trait Reader: Send + Sync {
    /// The model's name in traces.
    fn name(&self) -> &str;

    /// A draft whose `[#n]` markers are those of `prompt.sources`; empty for a refusal. `on_text`
    /// gets each piece as it is written; the pieces joined are the draft's text.
    fn read(&self, prompt: &Prompt, on_text: &mut dyn FnMut(&str)) -> Result<Draft>;
}
