//! Our side of `scripts/compare_training.py`: holds a fresh bi-encoder and trains it on command.
//!
//! `train_peer IDS PARAMS VOCABULARY DIM BATCH` reads the token ids of anchors and positives, by
//! turns, each a length and so many ids, all little-endian u32, and writes the fresh parameters
//! to PARAMS, so that the peer can start from the very same. Then each line on stdin, `train K`,
//! takes K steps and is answered by a line: their losses. The script holds the watch.

use std::{
    fs,
    io::{BufRead, Write},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use candle_core::Tensor;
use minirag::{
    error,
    nn::{
        AdamW, AdamWSettings, BiEncoder, Params,
        adamw::{Group, global_norm},
        bi_encoder::BiEncoderConfig,
        loss::InfoNce,
        ops::Bags,
        params::{CHECKPOINT, write_tensors},
    },
    train::{
        Task,
        bi_encoder::{Contrastive, ContrastiveSettings, TextEncoder},
        pairs::{Example, Pairs},
    },
};
use serde_json::{Map, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The network without a tokenizer.
struct Encoder {
    config: BiEncoderConfig,
    params: Params,
    network: BiEncoder,
}

impl TextEncoder for Encoder {
    fn params(&self) -> &Params {
        &self.params
    }

    fn embed(&self, texts: &[&[u32]]) -> error::Result<Tensor> {
        self.network.forward(Arc::new(texts.iter().copied().collect::<Bags>()))
    }

    fn dim(&self) -> usize {
        self.config.dim()
    }

    fn group(&self, _: &str) -> Group {
        Group { lr: 1.0, decay: true }
    }

    fn save(&self, _: &Path) -> error::Result<()> {
        Ok(())
    }
}

/// Examples in memory, one batch after the other.
struct InMemory(Vec<Example>);

impl Pairs for InMemory {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, _: u64, step: u64, size: usize) -> Vec<Example> {
        let batches = self.0.chunks_exact(size);
        let step = step as usize % batches.len();
        batches.into_iter().nth(step).unwrap_or_default().to_vec()
    }

    fn dev(&self) -> &[Example] {
        &[]
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ids, params, sizes @ ..] = &arguments[..] else {
        bail!("usage: train_peer IDS PARAMS VOCABULARY DIM BATCH")
    };
    let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [vocabulary, dim, batch_size] = sizes[..] else { bail!("three sizes are needed") };
    let pairs = InMemory(read_examples(ids.as_ref())?);
    let encoder = fresh(vocabulary, dim)?;
    write_tensors(params.as_ref(), &encoder.params.snapshot()?, CHECKPOINT)?;
    let settings = ContrastiveSettings {
        batch_size,
        cache_chunk: 0,
        matryoshka: Vec::new(),
        loss: InfoNce::default(),
        seed: 1,
    };
    let task = Contrastive { encoder: &encoder, pairs: &pairs, settings, arguments: Map::new() };
    task.check()?;
    serve(&task)
}

fn fresh(vocabulary: usize, dim: usize) -> Result<Encoder> {
    let config = BiEncoderConfig::mini(vocabulary, dim);
    let params = Params::new(&config.plan(&vec![1.0; vocabulary]), 1)?;
    let network = BiEncoder::new(&config, &params)?;
    Ok(Encoder { config, params, network })
}

fn serve(task: &dyn Task) -> Result<()> {
    let settings = AdamWSettings::default();
    let mut optimiser = AdamW::new(task.params(), settings, |name| task.group(name));
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    let mut step = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let steps: u64 = line.strip_prefix("train ").context("a line is `train K`")?.parse()?;
        let mut losses = Vec::new();
        for _ in 0..steps {
            // As the loop of `minirag::train::run` does it.
            let (loss, gradients) = task.step(step)?;
            let norm = global_norm(&gradients)?;
            optimiser.step(task.params(), &gradients, (1.0, norm))?;
            losses.push(loss);
            step += 1;
        }
        writeln!(out, "{}", json!(losses))?;
    }
    Ok(())
}

fn read_examples(path: &Path) -> Result<Vec<Example>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let mut words = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let mut examples = Vec::new();
    while let Some(length) = words.next() {
        let anchor = words.by_ref().take(length as usize).collect();
        let length = words.next().context("an anchor without a positive")?;
        let positive = words.by_ref().take(length as usize).collect();
        let group = examples.len() as u64;
        let groups = Example { anchor_group: group, positive_group: group, ..Example::default() };
        examples.push(Example { anchor, positive, ..groups });
    }
    Ok(examples)
}
