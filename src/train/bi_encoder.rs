//! Contrastive training of a bi-encoder: the task that [`run`](super::run()) trains.

use std::path::Path;

use candle_core::{Tensor, Var};
use serde_json::{Map, Value, json};

use super::{
    Task,
    pairs::{Example, Pairs},
};
use crate::{
    embed::Embedder,
    error::{Error, Result},
    nn::{
        Gradients, Params,
        adamw::Group,
        loss::{Groups, InfoNce},
        ops::l2_normalize,
    },
    tokenizer::Tokenizer,
};

/// A network that turns token ids into vectors, and can be trained.
pub trait TextEncoder: Sync {
    /// Its parameters.
    fn params(&self) -> &Params;

    /// Embeds texts, shape `(texts, dim)`, not yet of unit length.
    ///
    /// # Errors
    /// Those of the network.
    fn embed(&self, texts: &[&[u32]]) -> Result<Tensor>;

    /// Values of an embedded text.
    fn dim(&self) -> usize;

    /// How the optimiser treats a parameter.
    fn group(&self, name: &str) -> Group;

    /// Writes the folder that the inference side loads.
    ///
    /// # Errors
    /// A file that cannot be written.
    fn save(&self, folder: &Path) -> Result<()>;
}

/// A text encoder with the tokenizer that its texts are read by.
pub trait Model: TextEncoder {
    /// The tokenizer.
    fn tokenizer(&self) -> &Tokenizer;

    /// Its sizes and its tokenizer, for the record of a run.
    fn describe(&self) -> Value;

    /// The network that training starts from, ready to embed.
    ///
    /// # Errors
    /// Those of the network.
    fn embedder(&self) -> Result<Box<dyn Embedder>>;
}

/// How a batch becomes a loss.
#[derive(Debug, Clone, PartialEq)]
pub struct ContrastiveSettings {
    /// Pairs of a step; each is a negative for the others.
    pub batch_size: usize,
    /// Embed a batch in parts of so many texts and walk back part by part, with the gradient of
    /// the whole batch and the memory of a part (GradCache, Gao et al. 2021). 0: all at once.
    pub cache_chunk: usize,
    /// Shorter prefixes of a vector that are to be vectors of their own (Kusupati et al. 2022).
    pub matryoshka: Vec<usize>,
    /// The loss.
    pub loss: InfoNce,
    /// Where the batches come from.
    pub seed: u64,
}

/// Training of one encoder on one source of pairs.
pub struct Contrastive<'a> {
    /// The network.
    pub encoder: &'a dyn TextEncoder,
    /// What it learns from.
    pub pairs: &'a dyn Pairs,
    /// How.
    pub settings: ContrastiveSettings,
    /// What the run depends on besides: data, tokenizer.
    pub arguments: Map<String, Value>,
}

impl Contrastive<'_> {
    /// Refuses what cannot be trained.
    ///
    /// # Errors
    /// A batch of one pair, which has no negatives; a prefix that is no prefix.
    pub fn check(&self) -> Result<()> {
        let ContrastiveSettings { batch_size, matryoshka, .. } = &self.settings;
        if *batch_size < 2 {
            return Err(Error::Setting(format!(
                "--batch-size {batch_size}: a pair's negatives are the others of its batch, so \
                 at least 2 are needed"
            )));
        }
        let dim = self.encoder.dim();
        match matryoshka.iter().find(|prefix| **prefix == 0 || **prefix > dim) {
            Some(prefix) => Err(Error::Setting(format!(
                "--matryoshka {prefix}: a prefix of {dim} values has between 1 and {dim}"
            ))),
            None => Ok(()),
        }
    }

    /// The loss of embedded anchors, positives and hard negatives, one after the other.
    fn loss(&self, rows: &Tensor, batch: &Batch<'_>) -> Result<Tensor> {
        let dim = self.encoder.dim();
        let shorter = self.settings.matryoshka.iter().copied().filter(|prefix| *prefix < dim);
        let prefixes: Vec<usize> = std::iter::once(dim).chain(shorter).collect();
        let n = batch.anchor_groups.len();
        let mut total: Option<Tensor> = None;
        for prefix in &prefixes {
            let rows = l2_normalize(&rows.narrow(1, 0, *prefix)?.contiguous()?)?;
            let negatives = match batch.texts.len() - 2 * n {
                0 => None,
                m => Some(rows.narrow(0, 2 * n, m)?),
            };
            let groups = Groups {
                anchors: &batch.anchor_groups,
                positives: &batch.positive_groups,
                negatives: &batch.negative_groups,
            };
            let (anchors, positives) = (rows.narrow(0, 0, n)?, rows.narrow(0, n, n)?);
            let loss = self.settings.loss.loss(&anchors, &positives, negatives.as_ref(), groups)?;
            total = Some(match total {
                None => loss,
                Some(total) => (total + loss)?,
            });
        }
        let total = total.ok_or_else(|| Error::Setting("a loss of no dimensions".to_owned()))?;
        Ok((total / prefixes.len() as f64)?)
    }

    fn step_at_once(&self, batch: &Batch<'_>) -> Result<(f64, Gradients)> {
        let loss = self.loss(&self.encoder.embed(&batch.texts)?, batch)?;
        let gradients = self.params().gradients(&loss)?;
        Ok((f64::from(loss.to_scalar::<f32>()?), gradients))
    }

    /// The loss and its gradients with only one part of the batch in memory: vectors first, then
    /// the gradient of each vector, then each part once more, walked back with those.
    fn step_in_parts(&self, batch: &Batch<'_>) -> Result<(f64, Gradients)> {
        let parts = || batch.texts.chunks(self.settings.cache_chunk);
        let rows: Vec<Tensor> =
            parts().map(|texts| Ok(self.encoder.embed(texts)?.detach())).collect::<Result<_>>()?;
        let rows = Var::from_tensor(&Tensor::cat(&rows, 0)?)?;
        let loss = self.loss(rows.as_tensor(), batch)?;
        let store = loss.backward()?;
        let Some(gradient) = store.get(&rows) else {
            return Err(Error::Setting("the loss does not depend on its batch".to_owned()));
        };
        let mut total = Gradients::new();
        let mut done = 0;
        for texts in parts() {
            let upstream = gradient.narrow(0, done, texts.len())?;
            done += texts.len();
            let surrogate = (self.encoder.embed(texts)? * upstream)?.sum_all()?;
            for (name, part) in self.encoder.params().gradients(&surrogate)? {
                let sum = match total.get(&name) {
                    Some(sum) => (sum + part)?,
                    None => part,
                };
                total.insert(name, sum);
            }
        }
        Ok((f64::from(loss.to_scalar::<f32>()?), total))
    }

    /// Embeds texts in parts, unit rows.
    fn embed_all(&self, texts: &[&[u32]]) -> Result<Tensor> {
        const PART: usize = 256;
        let part = |texts| Ok(l2_normalize(&self.encoder.embed(texts)?.detach())?);
        let rows: Vec<Tensor> = texts.chunks(PART).map(part).collect::<Result<_>>()?;
        Ok(Tensor::cat(&rows, 0)?)
    }
}

impl Task for Contrastive<'_> {
    fn params(&self) -> &Params {
        self.encoder.params()
    }

    fn group(&self, name: &str) -> Group {
        self.encoder.group(name)
    }

    fn batch_size(&self) -> usize {
        self.settings.batch_size
    }

    fn step(&self, step: u64) -> Result<(f64, Gradients)> {
        let ContrastiveSettings { seed, batch_size, cache_chunk, .. } = self.settings;
        let examples = self.pairs.batch(seed, step, batch_size);
        let batch = Batch::new(&examples);
        // On a thread of the pool, which need not be woken for each operation then.
        rayon::scope(|_| match cache_chunk > 0 && cache_chunk < batch.texts.len() {
            true => self.step_in_parts(&batch),
            false => self.step_at_once(&batch),
        })
    }

    fn metric(&self) -> &'static str {
        "mrr"
    }

    /// The mean reciprocal rank of each held-out anchor's positive among all held-out positives
    /// but its false negatives; NaN for a network whose vectors are no numbers.
    fn evaluate(&self) -> Result<f64> {
        let batch = Batch::new(self.pairs.dev());
        let n = batch.anchor_groups.len();
        let anchors = self.embed_all(&batch.texts[..n])?;
        let positives = self.embed_all(&batch.texts[n..2 * n])?;
        let scores = anchors.matmul(&positives.t()?)?.to_vec2::<f32>()?;
        if scores.iter().flatten().any(|score| score.is_nan()) {
            // Nothing is above what is no number: a broken network would look perfect.
            return Ok(f64::NAN);
        }
        let mut sum = 0.0;
        for (i, row) in scores.iter().enumerate() {
            let rival = |j: usize| {
                batch.anchor_groups[i] != batch.anchor_groups[j]
                    && batch.positive_groups[i] != batch.positive_groups[j]
            };
            // A tie counts against it: a network that embeds all texts alike must not look good.
            let above = (0..n).filter(|j| rival(*j) && row[*j] >= row[i]).count();
            sum += 1.0 / (1 + above) as f64;
        }
        Ok(sum / n.max(1) as f64)
    }

    fn save(&self, folder: &Path) -> Result<()> {
        self.encoder.save(folder)
    }

    fn arguments(&self) -> Map<String, Value> {
        let ContrastiveSettings { batch_size, cache_chunk, matryoshka, loss, seed } =
            &self.settings;
        let settings = json!({
            "batch_size": batch_size, "cache_chunk": cache_chunk, "matryoshka": matryoshka,
            "temperature": loss.temperature, "symmetric": loss.symmetric,
            "ceiling": loss.ceiling, "seed": seed,
        });
        let mut arguments = self.arguments.clone();
        if let Value::Object(settings) = settings {
            arguments.extend(settings);
        }
        arguments
    }
}

/// A batch as the network takes it: anchors, then positives, then hard negatives.
struct Batch<'a> {
    texts: Vec<&'a [u32]>,
    anchor_groups: Vec<u64>,
    positive_groups: Vec<u64>,
    negative_groups: Vec<u64>,
}

impl<'a> Batch<'a> {
    fn new(examples: &'a [Example]) -> Self {
        let negatives = || examples.iter().flat_map(|example| &example.negatives);
        let texts = (examples.iter().map(|example| &example.anchor))
            .chain(examples.iter().map(|example| &example.positive))
            .chain(negatives().map(|negative| &negative.ids))
            .map(Vec::as_slice);
        Self {
            texts: texts.collect(),
            anchor_groups: examples.iter().map(|example| example.anchor_group).collect(),
            positive_groups: examples.iter().map(|example| example.positive_group).collect(),
            negative_groups: negatives().map(|negative| negative.group).collect(),
        }
    }
}
