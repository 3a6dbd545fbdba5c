//! BERT's two forms, and the operations they are made of, against candle's slow ones.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use candle_core::{D, Device, Tensor, Var};
use minirag::{
    nn::{
        Params,
        bert::{
            Batch, Bert, BertConfig, BertEncoder, FusedBert, Pooling, Sequence, encoder_tensors,
        },
        ops,
    },
    rng::Rng,
};

const TINY: &str = r#"{"model_type": "bert", "vocab_size": 50, "hidden_size": 24, "dtype": "float32",
    "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 40,
    "max_position_embeddings": 30, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}"#;

fn config(replace: &[(&str, &str)]) -> BertConfig {
    let json = replace.iter().fold(TINY.to_owned(), |json, (from, to)| json.replace(from, to));
    BertConfig::parse(&json, Path::new("config.json")).unwrap()
}

/// Parameters with large enough values that every part of the network matters.
fn params(config: &BertConfig, prefix: &str) -> Params {
    let mut plan = config.plan(prefix);
    for (name, param) in &mut plan {
        let mut rng = minirag::rng::derive(7, name);
        let count = param.shape.iter().product();
        let base = if name.contains("LayerNorm.weight") { 1.0 } else { 0.0 };
        let values = (0..count).map(|_| base + 0.3 * rng.normal()).collect();
        param.init = minirag::nn::Init::Values(values);
    }
    Params::new(&plan, 0).unwrap()
}

pub(super) fn tensor(rng: &mut Rng, shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| 2.0 * rng.normal()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

pub(super) fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

#[track_caller]
pub(super) fn close(got: &Tensor, expected: &Tensor, bound: f32) {
    assert_eq!(got.dims(), expected.dims());
    for (got, expected) in values(got).iter().zip(values(expected)) {
        let apart = (got - expected).abs() / (1.0 + expected.abs());
        assert!(apart <= bound, "{got} is not {expected}");
    }
}

/// The value and all gradients of an operation and of its slow twin.
#[track_caller]
pub(super) fn twins(
    arguments: &[Var],
    fast: impl Fn(&[Var]) -> Tensor,
    slow: impl Fn(&[Var]) -> Tensor,
) {
    let (fast, slow) = (fast(arguments), slow(arguments));
    close(&fast, &slow, 1e-5);
    let upstream = tensor(&mut Rng::new(5), fast.dims());
    let gradients =
        |out: &Tensor| (out * &upstream).unwrap().sum_all().unwrap().backward().unwrap();
    let (fast, slow) = (gradients(&fast), gradients(&slow));
    for argument in arguments {
        close(fast.get(argument).unwrap(), slow.get(argument).unwrap(), 1e-4);
    }
}

#[test]
fn layer_norm_agrees_with_its_slow_twin() {
    let mut rng = Rng::new(1);
    for (rows, d) in [(1, 1), (3, 5), (70, 16), (130, 33), (2, 384)] {
        let shapes = [vec![rows, d], vec![d], vec![d]];
        let arguments = shapes.map(|shape| Var::from_tensor(&tensor(&mut rng, &shape)).unwrap());
        let slow = |a: &[Var]| candle_nn::ops::layer_norm_slow(&a[0], &a[1], &a[2], 1e-3).unwrap();
        twins(&arguments, |a| ops::layer_norm(&a[0], &a[1], &a[2], 1e-3).unwrap(), slow);
    }
    // A mean that drowns the deviation.
    let x = Tensor::new(&[[10_000.0_f32, 10_001.0, 10_002.0, 10_003.0]], &Device::Cpu).unwrap();
    let (one, zero) = (Tensor::ones_like(&x).unwrap(), Tensor::zeros_like(&x).unwrap());
    let (one, zero) = (one.squeeze(0).unwrap(), zero.squeeze(0).unwrap());
    let y = values(&ops::layer_norm(&x, &one, &zero, 1e-12).unwrap());
    assert!((y[0] + 1.341_640_8).abs() < 1e-5 && (y[3] - 1.341_640_8).abs() < 1e-5, "{y:?}");
}

#[test]
fn masked_softmax_agrees_with_its_slow_twin() {
    let mut rng = Rng::new(2);
    for (heads, queries, keys, lengths) in
        [(1, 1, 1, [1, 1]), (2, 3, 5, [5, 2]), (3, 17, 40, [33, 40]), (2, 64, 64, [1, 64])]
    {
        let scores = tensor(&mut rng, &[2, heads, queries, keys]);
        let mask: Vec<f32> = lengths
            .iter()
            .flat_map(|length| {
                (0..keys).map(move |key| if key < *length { 0.0 } else { f32::NEG_INFINITY })
            })
            .collect();
        let mask = Tensor::from_vec(mask, (2, 1, 1, keys), &Device::Cpu).unwrap();
        let slow = |a: &[Var]| {
            let masked = (a[0].as_tensor() * 0.25).unwrap().broadcast_add(&mask).unwrap();
            candle_nn::ops::softmax(&masked, D::Minus1).unwrap()
        };
        let fast = |a: &[Var]| ops::masked_softmax(&a[0], Arc::new(lengths), 0.25).unwrap();
        twins(&[Var::from_tensor(&scores).unwrap()], fast, slow);
    }
}

#[test]
fn what_is_fully_masked_is_zero_and_not_nan() {
    let scores = Var::from_tensor(&tensor(&mut Rng::new(3), &[2, 1, 3, 4])).unwrap();
    let shares = ops::masked_softmax(&scores, Arc::new([0, 4]), 1.0).unwrap();
    assert_eq!(values(&shares)[..12], [0.0; 12]);
    let gradients = shares.sqr().unwrap().sum_all().unwrap().backward().unwrap();
    let gradient = values(gradients.get(&scores).unwrap());
    assert_eq!(gradient[..12], [0.0; 12]);
    assert!(gradient.iter().all(|g| g.is_finite()));
    assert!(
        ops::masked_softmax(&scores, Arc::new([5, 4]), 1.0).is_err(),
        "more keys than there are"
    );
}

/// Sequences of several lengths, some with segments.
fn sequences(config: &BertConfig, count: usize) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut rng = Rng::new(11);
    let sequence = |index: usize| {
        let length = 1 + rng.below(config.max_positions());
        let ids = (0..length).map(|_| rng.below(config.vocab_size) as u32).collect();
        let segment = |place| u32::from(2 * place > length);
        let types =
            if index.is_multiple_of(3) { (0..length).map(segment).collect() } else { vec![] };
        (ids, types)
    };
    (0..count).map(sequence).collect()
}

fn views(sequences: &[(Vec<u32>, Vec<u32>)]) -> Vec<Sequence<'_>> {
    sequences.iter().map(|(ids, types)| Sequence { ids, types }).collect()
}

/// The first token's vector of each sequence.
fn first_tokens(network: &FusedBert, sequences: &[Sequence<'_>]) -> Vec<f32> {
    let d = network.config().hidden_size;
    network.encode(sequences, d, &|e, row| row.copy_from_slice(&e.tokens[..d])).unwrap()
}

#[test]
fn both_forms_agree_and_padding_changes_nothing() {
    let relu = [("\"gelu\"", "\"relu\"")];
    let tanh = [("\"gelu\"", "\"gelu_new\"")];
    let roberta = [("\"bert\"", "\"roberta\", \"pad_token_id\": 1")];
    for replaced in [&[][..], &relu, &tanh, &roberta] {
        let config = config(replaced);
        let params = params(&config, "");
        let fused = FusedBert::new(&config, &|name| params.get(name)).unwrap();
        let bert = Bert::new(&config, &params, "").unwrap();
        let texts = sequences(&config, 40);
        let batch = Batch::new(&config, &views(&texts)).unwrap();
        let slow = bert.forward(&batch).unwrap().narrow(1, 0, 1).unwrap().squeeze(1).unwrap();
        let fast = first_tokens(&fused, &views(&texts));
        let fast = Tensor::from_vec(fast, slow.shape(), &Device::Cpu).unwrap();
        close(&fast, &slow, 2e-5);
    }
}

#[test]
fn a_sequence_has_the_same_bits_alone_in_a_batch_and_on_any_number_of_threads() {
    let config = config(&[("30,", "900,")]);
    let params = params(&config, "");
    let network = FusedBert::new(&config, &|name| params.get(name)).unwrap();
    let texts = sequences(&config, 30);
    let texts = views(&texts);
    let all = first_tokens(&network, &texts);
    for (text, row) in texts.iter().zip(all.chunks_exact(config.hidden_size)) {
        assert_eq!(first_tokens(&network, std::slice::from_ref(text)), row);
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| first_tokens(&network, &texts)), all, "{threads} threads");
        assert_eq!(pool.install(|| first_tokens(&network, &texts[..1])), all[..config.hidden_size]);
    }
    assert_eq!(first_tokens(&network, &[]), [0.0; 0]);
}

#[test]
fn every_parameter_gets_a_finite_gradient() {
    let config = config(&[]);
    let params = params(&config, "");
    let encoder = BertEncoder::new(&config, &params, Pooling::Mean, true).unwrap();
    let long: Vec<u32> = (0..30).collect();
    let short: Vec<u32> = (30..50).chain([3, 3]).collect();
    let vectors = encoder.encode(&[&long, &short, &[7]]).unwrap();
    for row in vectors.to_vec2::<f32>().unwrap() {
        assert!((row.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let target = tensor(&mut Rng::new(4), &[3, 24]);
    let loss = (vectors * target).unwrap().sum_all().unwrap();
    let gradients = params.gradients(&loss).unwrap();
    for (name, var) in params.iter() {
        let gradient = values(gradients.get(name).unwrap_or_else(|| panic!("none for {name}")));
        assert_eq!(gradient.len(), var.elem_count());
        assert!(gradient.iter().all(|g| g.is_finite()), "{name}");
        // A key's bias moves all scores of a query alike; without pairs one segment is unused.
        let moves = gradient.iter().any(|g| g.abs() > 1e-6);
        assert!(moves || name.ends_with("key.bias"), "{name}");
    }
    // Finite differences along a few values of each parameter.
    let value = || {
        let vectors = encoder.encode(&[&long, &short, &[7]]).unwrap();
        let target = tensor(&mut Rng::new(4), &[3, 24]);
        f64::from((vectors * target).unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap())
    };
    let mut rng = Rng::new(9);
    for (name, var) in params.iter() {
        let at = rng.below(var.elem_count());
        let (old, step) = (values(var), 5e-3);
        let shifted = |by: f32| {
            let mut new = old.clone();
            new[at] += by;
            var.set(&Tensor::from_vec(new, var.shape(), &Device::Cpu).unwrap()).unwrap();
            value()
        };
        let slope = (shifted(step) - shifted(-step)) / f64::from(2.0 * step);
        shifted(0.0);
        let gradient = f64::from(values(&gradients[name])[at]);
        let apart = (slope - gradient).abs() / (1.0 + gradient.abs());
        assert!(apart < 2e-2, "{name}[{at}]: {gradient} by the walk, {slope} by differences");
    }
}

#[test]
fn a_network_that_cannot_be_run_is_named() {
    let parse = |json: &str| BertConfig::parse(json, Path::new("folder/config.json"));
    for (from, to, expected) in [
        ("\"bert\"", "\"mpnet\"", "model_type `mpnet`"),
        ("\"gelu\"", "\"silu\"", "silu"),
        ("\"gelu\"", "\"gelu\", \"position_embedding_type\": \"relative_key\"", "`relative_key`"),
        ("\"num_attention_heads\": 3", "\"num_attention_heads\": 5", "24 is not shared out by 5"),
        ("\"hidden_size\"", "\"d_model\"", "hidden_size"),
        ("\"gelu\"", "\"gelu\", \"is_decoder\": true", "is_decoder"),
    ] {
        let message = parse(&TINY.replace(from, to)).unwrap_err().to_string();
        assert!(
            message.starts_with("folder/config.json: ") && message.contains(expected),
            "{message}"
        );
    }
    for old in ["\"torch_dtype\": \"float16\"", "\"position_embedding_type\": \"absolute\""] {
        parse(&TINY.replace("\"dtype\": \"float32\"", old)).unwrap();
    }
    let config = parse(TINY).unwrap();
    for (ids, types) in
        [(vec![], vec![]), (vec![50], vec![]), (vec![1], vec![2]), (vec![1; 31], vec![])]
    {
        assert!(config.check(&Sequence { ids: &ids, types: &types }).is_err(), "{ids:?} {types:?}");
    }
}

#[test]
fn the_names_of_published_files_are_brought_to_the_plan() {
    let config = config(&[]);
    let x = Tensor::zeros(1, candle_core::DType::F32, &Device::Cpu).unwrap();
    let mut published = BTreeMap::new();
    for name in config.plan("bert.").keys() {
        let (norm, kind) = name.rsplit_once('.').unwrap();
        let kind = match (norm.contains("LayerNorm"), kind) {
            (true, "weight") => "gamma",
            (true, _) => "beta",
            (false, kind) => kind,
        };
        published.insert(format!("{norm}.{kind}"), x.clone());
    }
    for unused in
        ["bert.embeddings.position_ids", "bert.pooler.dense.weight", "cls.predictions.bias"]
    {
        published.insert(unused.to_owned(), x.clone());
    }
    let names: Vec<String> = encoder_tensors(published).into_keys().collect();
    assert_eq!(names, config.plan("").into_keys().collect::<Vec<_>>());
}
