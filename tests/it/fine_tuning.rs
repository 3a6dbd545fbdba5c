//! Pretrained encoders of the BERT family, trained further.

use std::path::Path;

use candle_core::DType;
use minirag::{
    embed::{self, BertEmbedder, Embedder},
    nn::{AdamWSettings, loss::InfoNce, ops::l2_normalize},
    train::{
        BertBiEncoder, RunSettings,
        bi_encoder::{Contrastive, ContrastiveSettings, Model, TextEncoder},
        pairs::{Example, Pairs},
    },
};
use serde_json::{Map, Value, json};

use crate::{
    minilm::compose,
    nn_bert::values,
    training::{checkpoint, go, logged, same},
};

/// A folder as sentence-transformers writes it, with that pooling and those modules after it.
fn files(pooling: Value, more: &[&str]) -> Value {
    let names = ["Transformer", "Pooling"].iter().chain(more).enumerate();
    let module = |(place, name): (usize, &&str)| {
        let path = if place == 0 { String::new() } else { format!("{place}_{name}") };
        json!({ "idx": place, "name": place.to_string(), "path": path,
            "type": format!("sentence_transformers.models.{name}") })
    };
    json!({
        "modules.json": names.map(module).collect::<Vec<_>>(),
        "1_Pooling/config.json": { "embedding_dimension": 24, "pooling_mode": pooling },
        "sentence_bert_config.json": { "max_seq_length": 6 },
    })
}

fn folder(pooling: &str) -> tempfile::TempDir {
    compose(&files(json!(pooling), &["Normalize"]))
}

fn open(folder: &Path) -> BertBiEncoder {
    BertBiEncoder::open(folder, DType::F32).unwrap()
}

/// Pairs that nothing but training can know of: `x y` belongs to `y' x'`.
struct Words(Vec<Example>);

fn pairs() -> Words {
    let example = |n: u32| Example {
        anchor: vec![5 + n % 9, 5 + n / 9],
        positive: vec![14 + n / 9, 22 - n % 9],
        negatives: Vec::new(),
        anchor_group: n.into(),
        positive_group: n.into(),
    };
    Words((0..27).map(example).collect())
}

impl Pairs for Words {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example> {
        let start = (seed + step) as usize * 5;
        (0..size).map(|n| self.0[(start + 2 * n) % self.0.len()].clone()).collect()
    }

    fn dev(&self) -> &[Example] {
        &self.0
    }
}

const RUN: RunSettings = RunSettings {
    steps: 20,
    warmup: 2,
    eval_every: 10,
    optimiser: AdamWSettings {
        lr: 0.003,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.01,
        clip: 1.0,
    },
};

fn task<'a>(encoder: &'a BertBiEncoder, pairs: &'a Words) -> Contrastive<'a> {
    let settings = ContrastiveSettings {
        batch_size: 12,
        cache_chunk: 5,
        matryoshka: Vec::new(),
        loss: InfoNce::default(),
        seed: 1,
    };
    Contrastive { encoder, pairs, settings, arguments: Map::new() }
}

#[test]
fn what_is_trained_is_what_is_run() {
    // Short, at the limit of 6 with the special tokens, and beyond it.
    let texts = ["dog", "the cat sat on", "the cat sat on the mat, and the dogs"];
    for pooling in ["mean", "cls", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"] {
        let folder = folder(pooling);
        let model = open(folder.path());
        let ids: Vec<Vec<u32>> =
            texts.iter().map(|text| model.tokenizer().encode(text).unwrap().ids).collect();
        let ids: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        let trained = values(&l2_normalize(&model.embed(&ids).unwrap()).unwrap());
        let run = BertEmbedder::open(folder.path()).unwrap().embed_passages(&texts).unwrap();
        let apart = |(x, y): (&f32, &f32)| (x - y).abs();
        let apart = run.rows().flatten().zip(&trained).map(apart).fold(0.0, f32::max);
        assert!(apart < 1e-5, "{pooling}: {apart} apart");
    }
}

#[test]
fn every_parameter_that_a_text_touches_is_trained() {
    let folder = folder("mean");
    let (model, pairs) = (open(folder.path()), pairs());
    let (_, gradients) = minirag::train::Task::step(&task(&model, &pairs), 0).unwrap();
    assert!(gradients.keys().eq(model.params().iter().map(|(name, _)| name)));
    for (name, gradient) in gradients {
        // The same for each key that a query sees: softmax does not feel it.
        let silent = name.ends_with("self.key.bias");
        let norm = values(&gradient.sqr().unwrap()).iter().sum::<f32>();
        assert!(norm.is_finite() && (silent || norm > 1e-12), "{name}: {norm}");
    }
}

#[test]
fn a_trained_folder_opens_where_the_first_did() {
    let (first, root) = (folder("mean"), tempfile::tempdir().unwrap());
    let (model, pairs) = (open(first.path()), pairs());
    let output = root.path().join("1");
    let summary = go(&task(&model, &pairs), &RUN, &output, false, None).unwrap();
    let lines = logged(&output);
    let loss = |line: &Value| line["loss"].as_f64().unwrap();
    assert!(loss(&lines[1]) < 0.8 * loss(&lines[0]), "{lines:?}");
    assert!(summary.best.unwrap().0 > 0.5, "{summary:?}");

    let (before, after) = (embed::open(first.path()).unwrap(), embed::open(&output).unwrap());
    assert_ne!(before.fingerprint(), after.fingerprint());
    let text = ["the cats sat"];
    let ids = model.tokenizer().encode(text[0]).unwrap().ids;
    let trained = values(&l2_normalize(&model.embed(&[&ids]).unwrap()).unwrap());
    let run = after.embed_passages(&text).unwrap();
    let apart = trained.iter().zip(run.row(0)).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-5, "{apart} apart");

    let resumed = root.path().join("2");
    let stop = go(&task(&open(first.path()), &pairs), &RUN, &resumed, false, Some(10)).unwrap();
    assert!(stop.interrupted);
    go(&task(&open(first.path()), &pairs), &RUN, &resumed, true, None).unwrap();
    same(&checkpoint(&output), &checkpoint(&resumed));
}

#[test]
fn half_of_the_numbers_is_half_of_the_file() {
    let (first, root) = (folder("cls"), tempfile::tempdir().unwrap());
    let save = |dtype, name: &str| {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        BertBiEncoder::open(first.path(), dtype).unwrap().save(&folder).unwrap();
        let size = std::fs::metadata(folder.join("model.safetensors")).unwrap().len();
        (embed::open(&folder).unwrap(), size)
    };
    let ((whole, size), (half, half_size)) = (save(DType::F32, "whole"), save(DType::F16, "half"));
    assert!(half_size * 2 < size + 8000, "{half_size} of {size}");
    let opened = BertEmbedder::open(first.path()).unwrap();
    let vector = |of: &dyn Embedder| of.embed_queries(&["where is the dog"]).unwrap();
    assert_eq!(vector(whole.as_ref()).row(0), vector(&opened).row(0), "nothing was trained");
    let cosine: f32 =
        vector(half.as_ref()).row(0).iter().zip(vector(&opened).row(0)).map(|(x, y)| x * y).sum();
    assert!(cosine > 0.9999 && cosine < 1.00001, "{cosine}");
}

#[test]
fn what_training_would_not_follow_is_refused() {
    let refused = |files: Value, expected: &str| {
        let folder = compose(&files);
        let Err(error) = BertBiEncoder::open(folder.path(), DType::F32) else {
            panic!("{expected}: opened")
        };
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(files(json!("max"), &[]), "maximum");
    refused(files(json!(["cls", "mean"]), &[]), "several ways");
    let prompts = json!({ "prompts": { "query": "query: " } });
    refused(json!({ "config_sentence_transformers.json": prompts }), "prompts");
    refused(json!({ "sentence_bert_config.json": { "do_lower_case": true } }), "do_lower_case");
    let mut dense = files(json!("mean"), &["Dense"]);
    dense["2_Dense/config.json"] = json!({ "in_features": 24, "out_features": 10, "bias": true,
        "activation_function": "torch.nn.modules.activation.Tanh" });
    refused(dense, "Dense");
}
