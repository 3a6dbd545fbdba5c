//! Texts as a transformer reads them: with the special tokens that the tokenizer's own
//! post-processor puts around, cut to what the model can read.

use tokenizers::{
    Encoding, PostProcessor, TruncationDirection, TruncationParams, TruncationStrategy,
    utils::truncation::truncate_encodings,
};

use super::{Engine, Tokenizer, cannot_encode};
use crate::error::{Error, Result};

/// A text, or a pair of them, ready for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInput {
    /// The tokens, special ones among them.
    pub ids: Vec<u32>,
    /// The segment of each.
    pub types: Vec<u32>,
    /// How many of them are special.
    pub special: usize,
    /// Tokens that were cut off.
    pub cut: usize,
}

impl Tokenizer {
    /// The special tokens that stand before a text and after it.
    ///
    /// # Errors
    /// A tokenizer that cannot encode a letter, or does more than frame it.
    pub fn frame(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        let probe = "a";
        let framed = self.encode_for_model(probe, None, usize::MAX)?.ids;
        let mut plain = Vec::new();
        self.encode_ids_into(probe, &mut plain)?;
        match framed.windows(plain.len().max(1)).position(|ids| ids == plain) {
            Some(at) => Ok((framed[..at].to_vec(), framed[at + plain.len()..].to_vec())),
            None => {
                let message = "the tokenizer's post-processor changes a text's own tokens";
                Err(Error::Setting(message.to_owned()))
            }
        }
    }

    /// The tokens of `text`, or of the pair that it forms with a second one, at most `max` with
    /// the special ones; of a pair the longer text is cut first.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; a `max` that the special tokens alone exceed; a pair and a
    /// tokenizer without post-processor.
    pub fn encode_for_model(
        &self,
        text: &str,
        pair: Option<&str>,
        max: usize,
    ) -> Result<ModelInput> {
        let library = match (&self.engine, pair) {
            (Engine::Library(library), _) => library,
            (_, None) => {
                let mut ids = Vec::new();
                self.encode_ids_into(text, &mut ids)?;
                let cut = ids.len().saturating_sub(max);
                ids.truncate(max);
                return Ok(ModelInput { types: vec![0; ids.len()], ids, special: 0, cut });
            }
            (_, Some(_)) => {
                let message = "the tokenizer has no post-processor, which pairs of texts need";
                return Err(Error::Setting(message.to_owned()));
            }
        };
        let special = library.get_post_processor().map_or(0, |p| p.added_tokens(pair.is_some()));
        let Some(max_length) = max.checked_sub(special) else {
            let message =
                format!("a limit of {max} tokens is less than the {special} special ones");
            return Err(Error::Setting(message));
        };
        let plain = |text| library.encode_fast(text, false).map_err(cannot_encode);
        let (first, second) = (plain(text)?, pair.map(plain).transpose()?);
        let count = |first: &Encoding, second: &Option<Encoding>| {
            first.len() + second.as_ref().map_or(0, Encoding::len)
        };
        let before = count(&first, &second);
        let settings = TruncationParams {
            max_length,
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
            direction: TruncationDirection::Right,
        };
        let (first, second) =
            truncate_encodings(first, second, &settings).map_err(cannot_encode)?;
        let cut = before - count(&first, &second);
        let encoding = library.post_process(first, second, true).map_err(cannot_encode)?;
        let (ids, types) = (encoding.get_ids().to_vec(), encoding.get_type_ids().to_vec());
        Ok(ModelInput { ids, types, special, cut })
    }
}
