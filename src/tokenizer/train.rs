//! Texts in, a byte-level BPE tokenizer out (Sennrich et al. 2016, on bytes as in GPT-2).
//!
//! Same texts and settings, same bytes, whatever the threads and hash seeds of the process: the
//! crate orders candidate merges by count and then by pair, and writes vocabulary and merges in
//! the order of their ids.

use std::{collections::HashSet, fmt, path::Path};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokenizers::{
    AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    TokenizerImpl,
    models::bpe::{BPE, BpeTrainer},
    normalizers::{self, Lowercase, NFKC},
    pre_tokenizers::{
        byte_level::ByteLevel, digits::Digits, sequence::Sequence, whitespace::Whitespace,
    },
};

use super::{Tokenizer, byte_bpe::alphabet};
use crate::error::{Error, Result};

/// What a training aims at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainSettings {
    /// Number of tokens: 256 bytes, the special tokens, and merges for the rest.
    pub vocab_size: usize,
    /// Merges seen less often are not made; the vocabulary then stays smaller.
    pub min_frequency: u64,
    /// Tokens with the first ids that no text is ever encoded into.
    pub special_tokens: Vec<String>,
    /// The uncased form: texts in NFKC and lower case, cut at blanks and marks (what a retriever
    /// wants); otherwise every byte of a text comes back by decoding (what a writer needs).
    pub lowercase: bool,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            vocab_size: 4096,
            min_frequency: 2,
            special_tokens: vec!["<|endoftext|>".into()],
            lowercase: false,
        }
    }
}

/// What `train.json` says beside a trained tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainReport {
    /// The settings asked for.
    pub settings: TrainSettings,
    /// Number of texts.
    pub texts: usize,
    /// Their length.
    pub bytes: usize,
    /// sha256 over length and bytes of each text in order.
    pub data_sha256: String,
    /// Tokens in the vocabulary reached.
    pub vocab_size: usize,
    /// Tokens of the texts, encoded by the result.
    pub tokens: usize,
    /// Bytes per token of the texts.
    pub bytes_per_token: f64,
    /// The tokenizer's fingerprint.
    pub fingerprint: String,
    /// Wall clock of the training.
    pub seconds: f64,
    /// Version of this crate.
    pub version: &'static str,
}

impl TrainReport {
    /// Writes `train.json` into the folder `dir`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let path = dir.as_ref().join("train.json");
        let json = serde_json::to_string_pretty(self)
            .map_err(|e| Error::format(&path, format!("cannot be written as JSON: {e}")))?;
        super::replace(&path, json + "\n")
    }
}

impl fmt::Display for TrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tokens from {} texts, {:.2} bytes per token, fingerprint {}, {:.1} s",
            self.vocab_size, self.texts, self.bytes_per_token, self.fingerprint, self.seconds
        )
    }
}

type Trainee = TokenizerImpl<
    BPE,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// Trains a tokenizer on `texts`.
///
/// # Errors
/// A vocabulary smaller than the bytes and special tokens need; texts without any content.
pub fn train(texts: &[&str], settings: &TrainSettings) -> Result<(Tokenizer, TrainReport)> {
    let smallest = 256 + settings.special_tokens.len();
    if settings.vocab_size < smallest {
        return Err(Error::Setting(format!(
            "a vocabulary of {} cannot hold the 256 bytes and {} special tokens: ask for at least \
             {smallest}",
            settings.vocab_size,
            settings.special_tokens.len(),
        )));
    }
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(Error::Setting("there is no text to train a tokenizer on".into()));
    }
    let start = std::time::Instant::now();
    let failed = |e: tokenizers::Error| Error::Setting(format!("training a tokenizer: {e}"));
    let mut trainer = BpeTrainer::builder()
        .vocab_size(settings.vocab_size)
        .min_frequency(settings.min_frequency)
        .initial_alphabet(HashSet::from(alphabet()))
        .special_tokens(
            settings.special_tokens.iter().map(|token| AddedToken::from(token, true)).collect(),
        )
        .show_progress(false)
        .build();
    let mut trainee = trainee(settings.lowercase).map_err(failed)?;
    trainee.train(&mut trainer, texts.iter()).map_err(failed)?;
    let tokenizer = Tokenizer::from_bytes(trainee.to_string(false).map_err(failed)?.as_bytes())?;
    let seconds = start.elapsed().as_secs_f64();
    let report = report(&tokenizer, texts, settings, seconds)?;
    Ok((tokenizer, report))
}

/// A model without a merge, in the cased or in the uncased form.
fn trainee(lowercase: bool) -> tokenizers::Result<Trainee> {
    let mut trainee = Trainee::new(BPE::default());
    let steps = if lowercase {
        let steps = normalizers::Sequence::new(vec![NFKC.into(), Lowercase.into()]);
        trainee.with_normalizer(Some(NormalizerWrapper::Sequence(steps)))?;
        vec![Whitespace.into(), ByteLevel::new(false, true, false).into()]
    } else {
        // Single digits: a merged number would tie its tokens to the years and sums of one corpus.
        vec![Digits::new(true).into(), ByteLevel::new(false, false, true).into()]
    };
    trainee.with_pre_tokenizer(Some(PreTokenizerWrapper::Sequence(Sequence::new(steps))));
    trainee.with_decoder(Some(DecoderWrapper::ByteLevel(ByteLevel::default())));
    Ok(trainee)
}

fn report(
    tokenizer: &Tokenizer,
    texts: &[&str],
    settings: &TrainSettings,
    seconds: f64,
) -> Result<TrainReport> {
    let mut hash = Sha256::new();
    let (mut bytes, mut tokens) = (0, 0);
    for text in texts {
        // The length keeps two texts apart from the same bytes in one.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
        bytes += text.len();
        tokens += tokenizer.count(text)?;
    }
    Ok(TrainReport {
        settings: settings.clone(),
        texts: texts.len(),
        bytes,
        data_sha256: super::hex(&hash.finalize()),
        vocab_size: tokenizer.vocab_size(),
        tokens,
        bytes_per_token: bytes as f64 / tokens as f64,
        fingerprint: tokenizer.fingerprint().to_owned(),
        seconds,
        version: env!("CARGO_PKG_VERSION"),
    })
}
