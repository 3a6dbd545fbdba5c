//! Operations, parameters, optimiser and loss: against PyTorch, slow twins, finite differences.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, LazyLock},
};

use candle_core::{D, Device, Tensor, Var};
use minirag::{
    nn::{
        AdamW, AdamWSettings, BiEncoder, Gradients, Init, Param, Params, Plan, Schedule,
        adamw::{Group, global_norm},
        bi_encoder::{BiEncoderConfig, FusedBiEncoder, TABLE, TOKEN_WEIGHT},
        kernels,
        loss::{Groups, InfoNce},
        ops::{self, Bags},
        params::{CHECKPOINT, write_tensors},
    },
    rng::Rng,
};
use serde::Deserialize;

use crate::nn_bert::{close, tensor, twins, values};

/// Made by `scripts/reference/bi_encoder.py`, which says how.
#[derive(Deserialize)]
struct Golden {
    #[serde(flatten)]
    batch: Batch,
    start: BTreeMap<String, Vec<f32>>,
    gradients: BTreeMap<String, Vec<f64>>,
    losses: Vec<f64>,
    norms: Vec<f64>,
    end: BTreeMap<String, Vec<f64>>,
}

#[derive(Deserialize)]
struct Batch {
    anchors: Vec<Vec<u32>>,
    positives: Vec<Vec<u32>>,
    negatives: Vec<Vec<u32>>,
    anchor_groups: Vec<u64>,
    positive_groups: Vec<u64>,
    negative_groups: Vec<u64>,
}

static GOLDEN: LazyLock<Golden> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/bi_encoder_golden.json")).unwrap());

const LOSS: InfoNce = InfoNce { temperature: 0.1, symmetric: true, ceiling: 0.95 };

fn golden_params() -> (BiEncoderConfig, Params) {
    let config = BiEncoderConfig::mini(12, 4);
    let mut plan = config.plan(&[1.0; 12]);
    for (name, param) in &mut plan {
        param.init = Init::Values(GOLDEN.start[name].clone());
    }
    (config, Params::new(&plan, 0).unwrap())
}

fn loss(network: &BiEncoder, batch: &Batch) -> Tensor {
    let texts = [&batch.anchors, &batch.positives, &batch.negatives];
    let bags: Bags = texts.into_iter().flatten().map(Vec::as_slice).collect();
    let rows = ops::l2_normalize(&network.forward(Arc::new(bags)).unwrap()).unwrap();
    let (n, m) = (batch.anchors.len(), batch.negatives.len());
    let part = |from, count| rows.narrow(0, from, count).unwrap();
    let groups = Groups {
        anchors: &batch.anchor_groups,
        positives: &batch.positive_groups,
        negatives: &batch.negative_groups,
    };
    let negatives = (m > 0).then(|| part(2 * n, m));
    LOSS.loss(&part(0, n), &part(n, n), negatives.as_ref(), groups).unwrap()
}

fn number(tensor: &Tensor) -> f64 {
    f64::from(tensor.to_scalar::<f32>().unwrap())
}

/// `|got - expected| / |expected|`.
fn relative(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let apart: f64 = got.iter().zip(expected).map(|(g, e)| (f64::from(*g) - e).powi(2)).sum();
    (apart / expected.iter().map(|e| e * e).sum::<f64>()).sqrt()
}

#[test]
fn every_gradient_is_pytorchs() {
    let (config, params) = golden_params();
    let network = BiEncoder::new(&config, &params).unwrap();
    let gradients = params.gradients(&loss(&network, &GOLDEN.batch)).unwrap();
    assert!(gradients.keys().eq(GOLDEN.gradients.keys()), "a parameter has no gradient");
    for (name, expected) in &GOLDEN.gradients {
        let apart = relative(&values(&gradients[name]), expected);
        assert!(apart <= 1e-5, "{name}: {apart:e}");
    }
}

#[test]
fn ten_steps_are_pytorchs() {
    let (config, params) = golden_params();
    let network = BiEncoder::new(&config, &params).unwrap();
    let settings = AdamWSettings {
        lr: 0.03,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        weight_decay: 0.1,
        clip: 1.0,
    };
    let mut optimiser = AdamW::new(&params, settings, |name| match name {
        TABLE => Group { lr: 1.0, decay: false },
        TOKEN_WEIGHT => Group { lr: 0.2, decay: false },
        name => Group { lr: 0.5, decay: name.ends_with("weight") },
    });
    let schedule = Schedule { warmup: 3, steps: 10 };
    for (step, (expected, expected_norm)) in (0..).zip(GOLDEN.losses.iter().zip(&GOLDEN.norms)) {
        let loss = loss(&network, &GOLDEN.batch);
        let gradients = params.gradients(&loss).unwrap();
        let norm = global_norm(&gradients).unwrap();
        let (loss, norm_apart) = (number(&loss), (norm / expected_norm - 1.0).abs());
        assert!((loss - expected).abs() <= 1e-5, "step {step}: {loss} is not {expected}");
        assert!(norm_apart <= 1e-4, "step {step}: {norm} is not {expected_norm}");
        optimiser.step(&params, &gradients, (schedule.factor(step), norm)).unwrap();
    }
    for (name, var) in params.iter() {
        let apart = relative(&values(var), &GOLDEN.end[name]);
        assert!(apart <= 1e-5, "{name}: {apart:e}");
    }
}

#[test]
fn gradients_are_finite_differences_of_the_loss() {
    let config = BiEncoderConfig::mini(9, 5);
    let mut plan = config.plan(&[1.0; 9]);
    for (name, param) in &mut plan {
        let mut rng = minirag::rng::derive(2, name);
        let count: usize = param.shape.iter().product();
        param.init = Init::Values((0..count).map(|_| 0.5 * rng.normal()).collect());
    }
    let params = Params::new(&plan, 0).unwrap();
    let network = BiEncoder::new(&config, &params).unwrap();
    // One text is empty.
    let batch = Batch {
        anchors: vec![vec![0, 1], vec![2, 2, 3], vec![4]],
        positives: vec![vec![1, 5], vec![3, 6, 7], vec![]],
        negatives: vec![vec![5, 8]],
        anchor_groups: vec![1, 2, 3],
        positive_groups: vec![1, 2, 3],
        negative_groups: vec![9],
    };
    let gradients = params.gradients(&loss(&network, &batch)).unwrap();
    const STEP: f32 = 2e-3;
    for (name, var) in params.iter() {
        let start = values(var);
        for (at, gradient) in values(&gradients[name]).into_iter().enumerate() {
            let at_offset = |offset: f32| {
                let mut moved = start.clone();
                moved[at] += offset;
                var.set(&Tensor::from_vec(moved, var.dims(), &Device::Cpu).unwrap()).unwrap();
                number(&loss(&network, &batch))
            };
            let slope = (at_offset(STEP) - at_offset(-STEP)) / f64::from(2.0 * STEP);
            at_offset(0.0);
            let apart = (slope - f64::from(gradient)).abs() / (1.0 + slope.abs());
            assert!(apart < 5e-3, "{name}[{at}]: {gradient} is not {slope}");
        }
    }
}

fn vars<const N: usize>(shapes: [&[usize]; N]) -> [Var; N] {
    let mut rng = Rng::new(1);
    shapes.map(|shape| Var::from_tensor(&tensor(&mut rng, shape)).unwrap())
}

/// Rows, inputs, outputs: none a multiple of 16 alone, and more rows than a block of column sums.
const SIZES: [(usize, usize, usize); 4] = [(1, 1, 1), (3, 5, 7), (70, 17, 33), (1100, 3, 21)];

#[test]
fn linear_agrees_with_its_slow_twin() {
    for (n, from, to) in SIZES {
        let arguments = vars([&[n, from], &[to, from], &[to]]);
        let product = |a: &[Var]| a[0].matmul(&a[1].t().unwrap()).unwrap();
        let slow = |a: &[Var]| product(a).broadcast_add(&a[2]).unwrap();
        twins(&arguments, |a| ops::linear(&a[0], &a[1], Some(&a[2])).unwrap(), slow);
        twins(&arguments[..2], |a| ops::linear(&a[0], &a[1], None).unwrap(), product);
        let slow = |a: &[Var]| slow(a).gelu_erf().unwrap();
        twins(&arguments, |a| ops::linear_gelu(&a[0], &a[1], &a[2]).unwrap(), slow);
    }
}

#[test]
fn normalisation_agrees_with_its_slow_twin() {
    let slow = |a: &[Var]| {
        let norm = a[0].sqr().unwrap().sum_keepdim(1).unwrap().sqrt().unwrap();
        a[0].broadcast_div(&norm).unwrap()
    };
    for (n, d) in [(1, 1), (3, 5), (70, 33), (130, 16)] {
        twins(&vars([&[n, d]]), |a| ops::l2_normalize(&a[0]).unwrap(), slow);
    }
}

#[test]
fn a_row_of_zeros_stays_zeros_and_gets_no_gradient() {
    let x = Var::new(&[[0.0_f32; 3], [3.0, 0.0, 4.0]], &Device::Cpu).unwrap();
    let y = ops::l2_normalize(&x).unwrap();
    assert_eq!(values(&y), [0.0, 0.0, 0.0, 0.6, 0.0, 0.8]);
    let gradients = y.sum_all().unwrap().backward().unwrap();
    let gradient = values(gradients.get(&x).unwrap());
    assert_eq!(gradient[..3], [0.0; 3]);
    assert!(gradient[3..].iter().all(|g| g.is_finite()) && gradient[4] > 0.1);
}

/// So many bags of up to 9 tokens, some empty, some with a token twice.
fn bags(count: usize, vocabulary: usize) -> Bags {
    let mut rng = Rng::new(6);
    let mut bags = Bags::default();
    for bag in 0..count {
        let length = if bag % 7 == 3 { 0 } else { 1 + rng.below(9) };
        let ids: Vec<u32> = (0..length).map(|_| rng.below(vocabulary) as u32).collect();
        bags.push(&ids);
    }
    bags
}

#[test]
fn embedding_bags_agree_with_their_slow_twin() {
    for (count, vocabulary, d) in [(1, 1, 1), (5, 9, 3), (90, 40, 33), (70, 600, 67)] {
        let bags = Arc::new(bags(count, vocabulary));
        let slow = |a: &[Var]| {
            let table = a[0].broadcast_mul(&a[1].unsqueeze(1).unwrap()).unwrap();
            let mean = |ids: &[u32]| match ids {
                [] => Tensor::zeros(d, candle_core::DType::F32, &Device::Cpu).unwrap(),
                ids => {
                    let ids = Tensor::new(ids, &Device::Cpu).unwrap();
                    table.index_select(&ids, 0).unwrap().mean(0).unwrap()
                }
            };
            Tensor::stack(&bags.iter().map(mean).collect::<Vec<_>>(), 0).unwrap()
        };
        let fast = |a: &[Var]| ops::embedding_bag(&a[0], &a[1], bags.clone()).unwrap();
        twins(&vars([&[vocabulary, d], &[vocabulary]]), fast, slow);
    }
}

#[test]
fn an_empty_bag_is_zeros_and_spoils_no_gradient() {
    let [table, weights] = vars([&[3, 2], &[3]]);
    let all_empty: Bags = [&[][..], &[]].into_iter().collect();
    let one_empty: Bags = [&[][..], &[1]].into_iter().collect();
    for (bags, touched) in [(all_empty, 0.0), (one_empty, 1.0)] {
        let out = ops::embedding_bag(&table, &weights, Arc::new(bags)).unwrap();
        assert_eq!(values(&out)[..2], [0.0; 2]);
        let gradients = out.sum_all().unwrap().backward().unwrap();
        let weight = values(&weights)[1];
        let expected = [0.0, 0.0, touched * weight, touched * weight, 0.0, 0.0];
        assert_eq!(values(gradients.get(&table).unwrap()), expected);
        let sum: f32 = values(&table)[2..4].iter().sum();
        assert_eq!(values(gradients.get(&weights).unwrap()), [0.0, touched * sum, 0.0]);
    }
    let unknown: Bags = [&[3][..]].into_iter().collect();
    assert!(ops::embedding_bag(&table, &weights, Arc::new(unknown)).is_err());
}

#[test]
fn cross_entropy_agrees_with_its_slow_twin_where_some_may_not_be_chosen() {
    for (rows, classes) in [(1, 1), (3, 5), (70, 33), (130, 130)] {
        let targets: Vec<u32> = (0..rows).map(|row| (row * 7 % classes) as u32).collect();
        let mut logits = values(&vars([&[rows, classes]])[0]);
        for (at, logit) in logits.iter_mut().enumerate() {
            let (row, column) = (at / classes, at % classes);
            if (row + column) % 3 == 0 && column != targets[row] as usize {
                *logit = f32::NEG_INFINITY;
            }
        }
        let logits = Tensor::from_vec(logits, (rows, classes), &Device::Cpu).unwrap();
        let logits = Var::from_tensor(&logits).unwrap();
        let slow = |a: &[Var]| {
            let targets = Tensor::new(&targets[..], &Device::Cpu).unwrap().unsqueeze(1).unwrap();
            let logs = candle_nn::ops::log_softmax(&a[0], D::Minus1).unwrap();
            logs.gather(&targets, 1).unwrap().mean_all().unwrap().neg().unwrap()
        };
        twins(&[logits], |a| ops::cross_entropy(&a[0], &targets).unwrap(), slow);
    }
    let logits = Tensor::new(&[[1.0_f32, 2.0]], &Device::Cpu).unwrap();
    assert!(ops::cross_entropy(&logits, &[2]).is_err(), "a target that is no class");
    assert!(ops::cross_entropy(&logits, &[0, 1]).is_err(), "more targets than rows");
}

#[test]
fn large_logits_do_not_overflow() {
    let logits = Var::new(&[[1e4_f32, -1e4], [-3e38, 3e38]], &Device::Cpu).unwrap();
    let loss = ops::cross_entropy(&logits, &[0, 1]).unwrap();
    assert_eq!(number(&loss), 0.0);
    let gradients = loss.backward().unwrap();
    let gradient = values(gradients.get(&logits).unwrap());
    assert!(gradient.iter().all(|g| g.abs() < 1e-30), "{gradient:?}");
}

#[test]
fn exp_and_gelu_are_as_exact_as_they_say() {
    let grid = |from: f32, to: f32| -> Vec<f32> {
        (0..=100_000).map(|i| from + (to - from) * (i as f32 / 100_000.0)).collect()
    };
    let x = grid(-87.0, 88.0);
    let mut exp = vec![0.0; x.len()];
    kernels::softmax_into(&mut exp, &x, 0.0, 1.0);
    let apart = exp.iter().zip(&x).map(|(y, x)| (f64::from(*y) / f64::from(*x).exp() - 1.0).abs());
    let worst = apart.fold(0.0, f64::max);
    assert!(worst < 2e-7, "exp: {worst:e}");

    let x = grid(-12.0, 12.0);
    let exact: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let exact = Tensor::new(exact, &Device::Cpu).unwrap();
    let phi =
        ((exact.affine(0.5_f64.sqrt(), 0.0).unwrap().erf().unwrap() + 1.0).unwrap() * 0.5).unwrap();
    let density = (exact.sqr().unwrap() * -0.5).unwrap().exp().unwrap();
    let density = (density / std::f64::consts::TAU.sqrt()).unwrap();
    let gelu = (&exact * &phi).unwrap().to_vec1::<f64>().unwrap();
    let slope = (phi + (&exact * density).unwrap()).unwrap().to_vec1::<f64>().unwrap();
    let worst = |got: &[f32], expected: &[f64]| {
        let apart = |(g, e): (&f32, &f64)| (f64::from(*g) - e).abs() / (1.0 + e.abs());
        got.iter().zip(expected).map(apart).fold(0.0, f64::max)
    };
    let mut with_bias = x.clone();
    kernels::bias_gelu(&mut with_bias, &[0.0]);
    assert!(worst(&with_bias, &gelu) < 5e-7, "{:e}", worst(&with_bias, &gelu));
    let mut plain = x.clone();
    kernels::gelu(&mut plain);
    assert!(worst(&plain, &gelu) < 1e-6, "{:e}", worst(&plain, &gelu));
    let mut dx = vec![0.0; x.len()];
    kernels::bias_gelu_backward(&mut dx, &x, &[0.0], &vec![1.0; x.len()]);
    assert!(worst(&dx, &slope) < 5e-7, "{:e}", worst(&dx, &slope));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let work = || {
        let config = BiEncoderConfig::mini(700, 40);
        let params = Params::new(&config.plan(&[1.0; 700]), 4).unwrap();
        let network = BiEncoder::new(&config, &params).unwrap();
        let text = |n: usize| (0..n % 11).map(|i| ((n * 37 + i * 101) % 700) as u32).collect();
        let batch = Batch {
            anchors: (0..300).map(text).collect(),
            positives: (300..600).map(text).collect(),
            negatives: (600..700).map(text).collect(),
            anchor_groups: (0..300).collect(),
            positive_groups: (0..300).map(|n| n / 2).collect(),
            negative_groups: (0..100).collect(),
        };
        let loss = loss(&network, &batch);
        let mut bits = values(&loss);
        let gradients = params.gradients(&loss).unwrap();
        AdamW::new(&params, AdamWSettings::default(), |_| Group { lr: 1.0, decay: true })
            .step(&params, &gradients, (1.0, global_norm(&gradients).unwrap()))
            .unwrap();
        bits.extend(gradients.values().chain(params.snapshot().unwrap().values()).flat_map(values));
        let texts: Vec<&[u32]> = batch.anchors.iter().map(Vec::as_slice).collect();
        bits.extend(FusedBiEncoder::from_network(&network).unwrap().encode_parallel(&texts));
        bits.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let with = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    };
    let one = with(1);
    for threads in [2, 5] {
        assert!(with(threads) == one, "{threads} threads");
    }
}

#[test]
fn both_forms_of_the_network_agree() {
    let (config, params) = golden_params();
    let network = BiEncoder::new(&config, &params).unwrap();
    let fused = FusedBiEncoder::from_network(&network).unwrap();
    let texts: Vec<&[u32]> = GOLDEN.batch.positives.iter().map(Vec::as_slice).collect();
    let slow = network.forward(Arc::new(texts.iter().copied().collect())).unwrap();
    let fast = Tensor::from_vec(fused.encode_parallel(&texts), (5, 4), &Device::Cpu).unwrap();
    close(&fast, &ops::l2_normalize(&slow).unwrap(), 1e-6);
}

#[test]
fn a_fresh_network_is_the_weighted_mean() {
    let config = BiEncoderConfig::mini(50, 24);
    let weights: Vec<f32> = (0..50).map(|id| 0.1 + id as f32 / 25.0).collect();
    let params = Params::new(&config.plan(&weights), 9).unwrap();
    let network = BiEncoder::new(&config, &params).unwrap();
    let bags = Arc::new(bags(30, 50));
    let (table, weights) = (params.get(TABLE).unwrap(), params.get(TOKEN_WEIGHT).unwrap());
    let mean = ops::embedding_bag(&table, &weights, bags.clone()).unwrap();
    close(&network.forward(bags).unwrap(), &mean, 1e-5);
}

fn plan(names: &[&str]) -> Plan {
    names.iter().map(|name| ((*name).to_owned(), Param::new([3, 5], Init::Normal(0.1)))).collect()
}

fn all(params: &Params) -> BTreeMap<String, Vec<f32>> {
    params.iter().map(|(name, var)| (name.to_owned(), values(var))).collect()
}

#[test]
fn a_seed_says_every_value_and_another_parameter_moves_none() {
    let two = all(&Params::new(&plan(&["b", "d"]), 5).unwrap());
    assert_eq!(two, all(&Params::new(&plan(&["b", "d"]), 5).unwrap()));
    assert_ne!(two, all(&Params::new(&plan(&["b", "d"]), 6).unwrap()));
    assert_ne!(two["b"], two["d"]);
    let mut five = all(&Params::new(&plan(&["a", "b", "c", "d", "e"]), 5).unwrap());
    five.retain(|name, _| two.contains_key(name));
    assert_eq!(five, two);
}

#[track_caller]
fn fails<T>(result: minirag::Result<T>, parts: &[&str]) {
    let error = result.err().expect("it is accepted").to_string();
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn a_file_of_other_parameters_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("model.safetensors");
    let load = |names: &[&str]| Params::load(&plan(names), &path);
    let file = path.to_str().unwrap();
    fails(load(&["b"]), &[file]);
    let saved = Params::new(&plan(&["b", "d"]), 5).unwrap();
    write_tensors(&path, &saved.snapshot().unwrap(), CHECKPOINT).unwrap();
    assert_eq!(all(&load(&["b", "d"]).unwrap()), all(&saved));
    fails(load(&["b", "d", "e"]), &[file, "missing `e`", "unknown none"]);
    fails(load(&["d"]), &[file, "missing none", "unknown `b`"]);
    let mut other = plan(&["b", "d"]);
    other.insert("d".to_owned(), Param::new([5, 3], Init::Constant(0.0)));
    fails(Params::load(&other, &path), &[file, "`d` has shape [3, 5]", "wants [5, 3]"]);
    let whole = fs::read(&path).unwrap();
    for length in [0, 7, 40, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        fails(load(&["b", "d"]), &[file, &format!("{length} bytes")]);
    }
    let wrong = Param::new([2, 2], Init::Values(vec![1.0; 3]));
    assert!(Params::new(&[("w".to_owned(), wrong)].into(), 0).is_err());
    fails(saved.get("w"), &["`w`"]);
}

#[test]
fn equal_parameters_make_equal_files() {
    let root = tempfile::tempdir().unwrap();
    let bytes = |name: &str, names: &[&str]| {
        let path = root.path().join(name);
        let tensors = Params::new(&plan(names), 5).unwrap().snapshot().unwrap();
        write_tensors(&path, &tensors, CHECKPOINT).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(bytes("1", &["a", "b", "c"]), bytes("2", &["c", "b", "a"]));
}

#[test]
fn the_rate_rises_then_falls_by_half_a_cosine() {
    let factors = |warmup, steps: u64| -> Vec<f64> {
        (0..=steps).map(|step| Schedule { warmup, steps }.factor(step)).collect()
    };
    let close = |got: Vec<f64>, expected: &[f64]| {
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-12), "{got:?}");
    };
    let root = 0.5 * (1.0 + 0.5_f64.sqrt());
    close(factors(4, 8), &[0.25, 0.5, 0.75, 1.0, 1.0, root, 0.5, 1.0 - root, 0.0]);
    close(factors(0, 2), &[1.0, 0.5, 0.0]);
    close(factors(9, 2), &[0.5, 1.0, 1.0]);
}

fn gradients(step: u64) -> Gradients {
    let mut rng = Rng::new(step);
    ["b", "d"].map(|name| (name.to_owned(), tensor(&mut rng, &[3, 5]))).into()
}

#[test]
fn a_restored_optimiser_goes_on_to_the_bit() {
    let group = |name: &str| Group { lr: 0.5, decay: name == "b" };
    let new = |params: &Params| AdamW::new(params, AdamWSettings::default(), group);
    let step = |optimiser: &mut AdamW, params: &Params, step| {
        let gradients = gradients(step);
        let norm = global_norm(&gradients).unwrap();
        optimiser.step(params, &gradients, (1.0, norm)).unwrap();
    };
    let straight = Params::new(&plan(&["b", "d"]), 5).unwrap();
    let mut optimiser = new(&straight);
    (0..3).for_each(|n| step(&mut optimiser, &straight, n));
    let (values, state) = (straight.snapshot().unwrap(), optimiser.state().unwrap());
    (3..6).for_each(|n| step(&mut optimiser, &straight, n));
    assert_ne!(all(&straight)["b"], self::values(&values["b"]), "a snapshot stays as it was");

    let resumed = Params::from_tensors(&plan(&["b", "d"]), values, Path::new("state")).unwrap();
    let mut optimiser = new(&resumed);
    optimiser.restore(&state).unwrap();
    (3..6).for_each(|n| step(&mut optimiser, &resumed, n));
    assert_eq!(all(&resumed), all(&straight));

    let mut missing = state.clone();
    missing.remove("d.square");
    fails(optimiser.restore(&missing), &["`d.square`"]);
    let mut short = state;
    short.insert("b.mean".to_owned(), Tensor::new(&[0.0_f32; 4], &Device::Cpu).unwrap());
    fails(optimiser.restore(&short), &["expected 15, got 4"]);
}

#[test]
fn what_has_no_gradient_stays_and_what_has_another_size_is_refused() {
    let params = Params::new(&plan(&["b", "d"]), 5).unwrap();
    let before = all(&params);
    let group = |_: &str| Group { lr: 1.0, decay: true };
    let mut optimiser = AdamW::new(&params, AdamWSettings::default(), group);
    let mut one = gradients(0);
    one.remove("d");
    optimiser.step(&params, &one, (1.0, 1.0)).unwrap();
    assert_eq!(all(&params)["d"], before["d"]);
    assert_ne!(all(&params)["b"], before["b"]);
    one.insert("d".to_owned(), Tensor::new(&[1.0_f32], &Device::Cpu).unwrap());
    fails(optimiser.step(&params, &one, (1.0, 1.0)), &["expected 15, got 1"]);
}

fn rows<const N: usize>(rows: &[[f32; 2]; N]) -> Tensor {
    ops::l2_normalize(&Tensor::new(rows, &Device::Cpu).unwrap()).unwrap()
}

#[test]
fn false_negatives_are_not_chosen_among() {
    let anchors = rows(&[[1.0, 0.2], [0.3, 1.0]]);
    let positives = rows(&[[1.0, 0.0], [0.5, 0.6]]);
    let loss = |negative: [f32; 2], anchor_groups: [u64; 2], positive_groups: [u64; 2], group| {
        let groups =
            Groups { anchors: &anchor_groups, positives: &positive_groups, negatives: &[group] };
        number(&LOSS.loss(&anchors, &positives, Some(&rows(&[negative])), groups).unwrap())
    };
    let (near, far) = ([1.0, 0.3], [-1.0, 0.0]);
    assert_ne!(loss(near, [1, 2], [1, 2], 3), loss(far, [1, 2], [1, 2], 3));
    for (anchors, positives) in [([1, 2], [7, 7]), ([7, 7], [1, 2])] {
        let open = loss(near, anchors, positives, 9);
        assert!(open > loss(far, anchors, positives, 9));
        // Nothing is left to choose among but the positive.
        let own = positives[0];
        if positives == [7, 7] {
            assert_eq!(loss(near, anchors, positives, own), 0.0);
            assert_eq!(loss(far, anchors, positives, own), 0.0);
        } else {
            assert!(loss(near, anchors, positives, own) < open);
        }
    }
}

#[test]
fn a_hard_negative_counts_with_at_most_its_share_of_the_positive() {
    let (anchors, positives) = (rows(&[[1.0, 0.0]]), rows(&[[3.0, 4.0]]));
    let groups = Groups { anchors: &[1], positives: &[1], negatives: &[2] };
    let loss = |ceiling, negative| {
        let settings = InfoNce { symmetric: false, ceiling, ..LOSS };
        number(&settings.loss(&anchors, &positives, Some(&rows(&[negative])), groups).unwrap())
    };
    // The positive's cosine is .6, the negative's 1; logits are ten times that.
    let expected = |cosine: f64| (1.0 + (10.0 * (cosine - 0.6)).exp()).ln();
    assert!((loss(0.95, [1.0, 0.0]) - expected(0.57)).abs() < 1e-5);
    assert!((loss(0.95, [0.0, 1.0]) - expected(0.0)).abs() < 1e-5);
    assert!((loss(f32::INFINITY, [1.0, 0.0]) - expected(1.0)).abs() < 1e-5);
}

#[test]
fn a_loss_of_wrong_sizes_or_temperature_is_refused() {
    let x = rows(&[[1.0, 0.0], [0.0, 1.0]]);
    let groups = Groups { anchors: &[1, 2], positives: &[1], negatives: &[] };
    fails(LOSS.loss(&x, &x, None, groups), &["expected 2, got 1"]);
    let groups = Groups { positives: &[1, 2], ..groups };
    for temperature in [0.0, -1.0, f32::NAN] {
        let settings = InfoNce { temperature, ..LOSS };
        fails(settings.loss(&x, &x, None, groups), &["--temperature"]);
    }
}
