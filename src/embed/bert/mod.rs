//! A BERT-family bi-encoder: a sentence-transformers folder (all-MiniLM-L6-v2, bge, e5, ...), or a
//! plain transformers one.
//!
//! Texts come in, are given the folder's prompt, tokenised by its tokenizer with its special
//! tokens, cut to its longest sequence (what is cut off is counted), run without padding, pooled
//! and brought through its further modules. An empty text gives zeros.

mod folder;
mod weights;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use candle_core::Tensor;
use rayon::prelude::*;
use sha2::Digest;

use crate::{
    embed::{Embedder, Truncated},
    error::{Error, Result},
    nn::{
        bert::{BertConfig, Encoded, FusedBert, Pooling, Sequence, encoder_tensors},
        bi_encoder::dense,
        kernels, params,
    },
    tokenizer::{ModelInput, Tokenizer},
    types::Vectors,
};
use folder::{Settings, Step};

/// A network with its tokenizer and settings.
pub struct BertEmbedder {
    settings: Settings,
    tokenizer: Tokenizer,
    network: FusedBert,
    fingerprint: String,
    cut_texts: AtomicU64,
    cut_tokens: AtomicU64,
}

/// What training goes on from.
pub struct BertParts {
    /// The network's shape.
    pub config: BertConfig,
    /// How tokens become a vector.
    pub pooling: Pooling,
    /// Tokens of the longest text, special ones among them.
    pub max_tokens: usize,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The parameters by the names of the network's plan.
    pub tensors: BTreeMap<String, Tensor>,
    /// Where network and tokenizer are.
    pub network: PathBuf,
}

impl BertEmbedder {
    /// Reads the parts of a folder that training goes on from.
    ///
    /// # Errors
    /// As [`BertEmbedder::open`]; a folder with prompts, dense modules, several poolings side by
    /// side or `do_lower_case`, which training would not follow.
    pub fn parts(folder: &Path) -> Result<BertParts> {
        let settings = Settings::read(folder)?;
        let dense = settings.steps.iter().any(|step| matches!(step, Step::Dense(..)));
        let prompts = !(settings.query_prompt.is_empty() && settings.passage_prompt.is_empty());
        let [pooling] = settings.pooling[..] else {
            return Err(Error::format(folder, "pools in several ways, which is not trained here"));
        };
        let hindrances = [
            (dense, "a Dense module"),
            (prompts, "prompts"),
            (settings.lower_case, "do_lower_case"),
        ];
        if let Some((_, what)) = hindrances.into_iter().find(|(is, _)| *is) {
            return Err(Error::format(folder, format!("has {what}, which training cannot follow")));
        }
        let (tensors, _) = weights::read(&settings.network)?;
        Ok(BertParts {
            pooling,
            max_tokens: settings.max_tokens,
            tokenizer: Tokenizer::load(settings.network.join("tokenizer.json"))?,
            tensors: encoder_tensors(tensors),
            config: settings.config,
            network: settings.network,
        })
    }

    /// Reads a folder.
    ///
    /// # Errors
    /// A file that is missing, cut short or of other sizes; a network, module or pooling that
    /// cannot be run.
    pub fn open(folder: &Path) -> Result<Self> {
        let settings = Settings::read(folder)?;
        let (tensors, mut hash) = weights::read(&settings.network)?;
        let tensors = encoder_tensors(tensors);
        params::check(&settings.config.plan(""), &tensors, &settings.network)?;
        let network = FusedBert::new(&settings.config, &|name| match tensors.get(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => Err(Error::Setting(format!("the network has no parameter `{name}`"))),
        })?;
        let tokenizer = Tokenizer::load(settings.network.join("tokenizer.json"))?;
        let (expected, got) = (settings.config.vocab_size, tokenizer.vocab_size());
        if got > expected {
            let message = format!("the tokenizer has {got} tokens, the network {expected}");
            return Err(Error::format(folder, message));
        }
        hash.update(format!("{settings:?}").replace(&format!("{:?}", settings.network), ""));
        hash.update(tokenizer.fingerprint());
        let hex: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            fingerprint: format!("bert-{hex}"),
            settings,
            tokenizer,
            network,
            cut_texts: AtomicU64::new(0),
            cut_tokens: AtomicU64::new(0),
        })
    }

    /// Tokens of the longest text, special ones among them.
    pub fn max_tokens(&self) -> usize {
        self.settings.max_tokens
    }

    /// The network.
    pub fn network(&self) -> &FusedBert {
        &self.network
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Embeds lists of token ids, special ones among them, shape `(n, dim)`; the first `skip`
    /// tokens do not count in the pooling.
    ///
    /// # Errors
    /// A list that the network cannot run.
    pub fn embed_ids(&self, ids: &[&[u32]], skip: usize) -> Result<Vec<f32>> {
        let sequences: Vec<Sequence<'_>> = ids.iter().map(|ids| Sequence::from(*ids)).collect();
        self.network.encode(&sequences, self.dim(), &|encoded, row| self.finish(encoded, skip, row))
    }

    /// Pools the vectors of a sequence's tokens, and what follows.
    fn finish(&self, encoded: Encoded<'_>, skip: usize, row: &mut [f32]) {
        let hidden = self.settings.config.hidden_size;
        let mut x = vec![0.0; self.settings.pooling.len() * hidden];
        for (pooling, out) in self.settings.pooling.iter().zip(x.chunks_exact_mut(hidden)) {
            pooling.pool(encoded.tokens, skip, out);
        }
        for step in &self.settings.steps {
            match step {
                Step::Dense(layer, weight, bias) => x = dense(&x, weight, bias, layer.activation),
                Step::Normalize => kernels::normalize(&mut x),
            }
        }
        row.copy_from_slice(&x);
    }

    fn input(&self, text: &str) -> Result<ModelInput> {
        let lower: String;
        let text = match self.settings.lower_case {
            true => {
                lower = text.chars().flat_map(char::to_lowercase).collect();
                &lower
            }
            false => text,
        };
        self.tokenizer.encode_for_model(text, None, self.settings.max_tokens)
    }

    fn embed(&self, texts: &[&str], prompt: &str) -> Result<Vectors> {
        let input = |text: &&str| match text.trim().is_empty() {
            true => Ok(ModelInput::default()),
            false if prompt.is_empty() => self.input(text),
            false => self.input(&format!("{prompt}{text}")),
        };
        let mut inputs: Vec<ModelInput> = texts.par_iter().map(input).collect::<Result<_>>()?;
        let mut skip = 0;
        if !prompt.is_empty() && !self.settings.include_prompt {
            skip = self.prompt_tokens(prompt)?;
        }
        for input in &mut inputs {
            if input.ids.len() == input.special {
                input.ids.clear(); // nothing but special tokens
            }
            self.cut_texts.fetch_add(u64::from(input.cut > 0), Ordering::Relaxed);
            self.cut_tokens.fetch_add(input.cut as u64, Ordering::Relaxed);
        }
        let some: Vec<&[u32]> =
            inputs.iter().map(|input| &input.ids[..]).filter(|ids| !ids.is_empty()).collect();
        let embedded = self.embed_ids(&some, skip)?;
        let dim = self.dim();
        let mut data = vec![0.0; texts.len() * dim];
        let filled = data.chunks_exact_mut(dim).zip(&inputs).filter(|(_, i)| !i.ids.is_empty());
        for ((out, _), row) in filled.zip(embedded.chunks_exact(dim)) {
            out.copy_from_slice(row);
        }
        Vectors::new(dim, data)
    }

    /// The tokens before a text's own: the prompt's, and the special one before them.
    fn prompt_tokens(&self, prompt: &str) -> Result<usize> {
        let with_special = self.input(prompt)?;
        let plain = self.tokenizer.count(prompt)?;
        Ok(with_special.ids.len() - usize::from(with_special.ids.len() > plain))
    }
}

impl Embedder for BertEmbedder {
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn dim(&self) -> usize {
        self.settings.dim()
    }

    fn embed_passages(&self, passages: &[&str]) -> Result<Vectors> {
        self.embed(passages, &self.settings.passage_prompt)
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Vectors> {
        self.embed(queries, &self.settings.query_prompt)
    }

    fn truncated(&self) -> Truncated {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Truncated { texts: count(&self.cut_texts), tokens: count(&self.cut_tokens) }
    }
}
