//! The training loop: it learns, repeats itself to the byte, resumes exactly, and refuses in time.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use candle_core::Tensor;
use minirag::{
    nn::{
        AdamWSettings, Gradients, Init, Param, Params,
        adamw::Group,
        loss::{Groups, InfoNce},
        ops::l2_normalize,
    },
    rng::Rng,
    tokenizer::{self, Tokenizer, TrainSettings},
    train::{
        MiniBiEncoder, RunSettings, Summary, Task, Watch,
        bi_encoder::{Contrastive, ContrastiveSettings, TextEncoder},
        pairs::{Example, Negative, Pairs, Unlabelled, UnlabelledSettings},
        run,
    },
    types::Document,
};
use serde_json::{Map, Value, json};

use crate::nn_bert::values;

/// Documents of a few sentences, each about things of its own.
pub(super) fn documents(count: usize) -> Vec<(String, String)> {
    let document = |n: usize| {
        let mut rng = Rng::new(n as u64);
        let words = ["the", "a", "is", "was", "near", "and", "often", "with"];
        let own: Vec<String> = ["bor", "kel", "mis", "tan"]
            .iter()
            .map(|start| format!("{start}{}{}", n % 10, ["ak", "el", "ov", "um"][n / 10 % 4]))
            .collect();
        let mut sentence = || {
            let picked: Vec<&str> = (0..9)
                .map(|at| if at % 2 == 0 { &*own[rng.below(4)] } else { words[rng.below(8)] })
                .collect();
            format!("{}.", picked.join(" "))
        };
        let text: Vec<String> = (0..6).map(|_| sentence()).collect();
        (format!("{}.md", own[0]), format!("# {}\n\n{}\n", own[0], text.join(" ")))
    };
    (0..count).map(document).collect()
}

static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(|| {
    let document = |(id, text): (String, String)| Document {
        id: (&*id).into(),
        title: id.trim_end_matches(".md").into(),
        text,
        metadata: [("format".to_owned(), "markdown".to_owned())].into(),
    };
    documents(40).into_iter().map(document).collect()
});

static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    let texts: Vec<&str> = DOCUMENTS.iter().map(|d| &*d.text).collect();
    let settings = TrainSettings { vocab_size: 400, lowercase: true, ..Default::default() };
    Arc::new(tokenizer::train(&texts, &settings).unwrap().0)
});

pub(super) fn encoder(seed: u64) -> MiniBiEncoder {
    let texts: Vec<&str> = DOCUMENTS.iter().map(|d| &*d.text).collect();
    MiniBiEncoder::new(TOKENIZER.clone(), 16, &texts, seed).unwrap()
}

fn unlabelled() -> Unlabelled {
    Unlabelled::new(&DOCUMENTS, &TOKENIZER, UnlabelledSettings::default()).unwrap()
}

fn contrastive(seed: u64) -> ContrastiveSettings {
    ContrastiveSettings {
        batch_size: 16,
        cache_chunk: 0,
        matryoshka: Vec::new(),
        loss: InfoNce::default(),
        seed,
    }
}

/// Lines of the log fall on 7, 10, 14, 20, 21, 28 and 30.
const RUN: RunSettings = RunSettings {
    steps: 30,
    warmup: 3,
    eval_every: 7,
    optimiser: AdamWSettings {
        lr: 0.02,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        weight_decay: 0.01,
        clip: 1.0,
    },
};
const LINES: [u64; 7] = [7, 10, 14, 20, 21, 28, 30];

/// Runs `task`, which is asked to stop after a line of the log.
pub(super) fn go(
    task: &dyn Task,
    settings: &RunSettings,
    output: &Path,
    resume: bool,
    stop_after: Option<u64>,
) -> minirag::Result<Summary> {
    let stop = AtomicBool::new(false);
    let on_line = &mut |line: &minirag::train::Line| {
        stop.store(stop_after == Some(line.step), Ordering::Relaxed);
    };
    run(task, settings, Watch { output, resume, on_line, stop: &stop })
}

/// A fresh bi-encoder, trained as `settings` and `arguments` say.
fn sit(
    output: &Path,
    (settings, run): (ContrastiveSettings, &RunSettings),
    arguments: &Value,
    resume: bool,
    stop_after: Option<u64>,
) -> minirag::Result<Summary> {
    let (encoder, pairs) = (encoder(settings.seed), unlabelled());
    let arguments = arguments.as_object().unwrap().clone();
    let task = Contrastive { encoder: &encoder, pairs: &pairs, settings, arguments };
    go(&task, run, output, resume, stop_after)
}

fn train(output: &Path, resume: bool, stop_after: Option<u64>) -> minirag::Result<Summary> {
    sit(output, (contrastive(1), &RUN), &json!({ "corpus": "x" }), resume, stop_after)
}

/// Every file below `folder`.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(self::files(&path).into_iter().map(|(k, v)| (format!("{name}/{k}"), v)));
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

/// Every file of a checkpoint, without what tells the time.
pub(super) fn checkpoint(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(folder);
    files.remove("log.jsonl").unwrap();
    let mut report: Value = serde_json::from_slice(&files["train.json"]).unwrap();
    assert!(report.as_object_mut().unwrap().remove("minutes").unwrap().as_f64().unwrap() >= 0.0);
    files.insert("train.json".to_owned(), report.to_string().into_bytes());
    files
}

#[track_caller]
pub(super) fn same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert!(a.keys().eq(b.keys()), "{:?} and {:?}", a.keys(), b.keys());
    for (name, bytes) in a {
        assert!(*bytes == b[name], "{name} differs");
    }
}

pub(super) fn logged(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("log.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn logged_steps(folder: &Path) -> Vec<u64> {
    logged(folder).iter().map(|line| line["step"].as_u64().unwrap()).collect()
}

#[track_caller]
fn fails(result: minirag::Result<Summary>, parts: &[&str]) {
    let error = result.expect_err("it is accepted").to_string();
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn thirty_steps_lower_the_loss_and_raise_the_metric() {
    let root = tempfile::tempdir().unwrap();
    // Random vectors that the idf does not help: nothing is found to begin with.
    let (encoder, pairs) = (encoder(1), toy_pairs());
    let task = Contrastive {
        encoder: &encoder,
        pairs: &pairs,
        settings: contrastive(1),
        arguments: Map::new(),
    };
    let before = task.evaluate().unwrap();
    let summary = go(&task, &RUN, root.path(), false, None).unwrap();
    let lines = logged(root.path());
    let loss = |line: usize| lines[line]["loss"].as_f64().unwrap();
    assert!(loss(6) < 0.7 * loss(0), "{} and {}", loss(0), loss(6));
    let (best, _) = summary.best.unwrap();
    assert!(best > before + 0.1, "{before} and {best}");
    assert_eq!(task.evaluate().unwrap(), best, "the best parameters are the ones that are kept");
    assert_eq!((summary.steps, summary.interrupted), (30, false));
}

/// Anchors and positives that share no token; what belongs together is to be learnt.
struct ToyPairs {
    examples: Vec<Example>,
}

fn toy_pairs() -> ToyPairs {
    let example = |n: u32| {
        let negative = Negative { ids: vec![120 + (n + 1) % 24, 150], group: 900 + u64::from(n) };
        Example {
            anchor: vec![100 + n % 24, 160 + n % 3],
            positive: vec![130 + n % 24, 170, 171 + n % 2],
            negatives: if n.is_multiple_of(3) { vec![negative] } else { Vec::new() },
            anchor_group: u64::from(n % 24),
            positive_group: u64::from(n % 24),
        }
    };
    ToyPairs { examples: (0..48).map(example).collect() }
}

impl Pairs for ToyPairs {
    fn len(&self) -> usize {
        self.examples.len()
    }

    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example> {
        let mut rng = Rng::new(seed * 1000 + step);
        (0..size).map(|_| self.examples[rng.below(48)].clone()).collect()
    }

    fn dev(&self) -> &[Example] {
        &self.examples[..24]
    }
}

#[test]
fn two_runs_give_the_same_bytes_and_another_seed_others() {
    let root = tempfile::tempdir().unwrap();
    let folder = |name: &str| root.path().join(name);
    let (one, two) = (train(&folder("1"), false, None), train(&folder("2"), false, None));
    assert_eq!(one.unwrap().best, two.unwrap().best);
    let (one, two) = (checkpoint(&folder("1")), checkpoint(&folder("2")));
    same(&one, &two);
    for name in ["model.safetensors", "1_Dense/model.safetensors", "tokenizer.json", "loss.png"] {
        assert!(one.contains_key(name), "no {name} in {:?}", one.keys());
    }
    assert!(!one.keys().any(|name| name.starts_with("training")), "an ended run leaves no state");
    assert!(one["loss.png"].starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(logged_steps(&folder("1")), LINES);
    sit(&folder("3"), (contrastive(2), &RUN), &json!({ "corpus": "x" }), false, None).unwrap();
    assert_ne!(checkpoint(&folder("3"))["model.safetensors"], one["model.safetensors"]);
}

#[test]
fn a_resumed_run_is_the_one_that_was_never_stopped() {
    let root = tempfile::tempdir().unwrap();
    let (straight, stopped) = (root.path().join("1"), root.path().join("2"));
    let whole = train(&straight, false, None).unwrap();
    let mut resume = false;
    // Before the first evaluation, between two, at one, before the end.
    for stop in [7, 10, 14, 28] {
        let summary = train(&stopped, resume, Some(stop)).unwrap();
        assert_eq!((summary.steps, summary.interrupted), (stop, true));
        resume = true;
    }
    let ended = train(&stopped, true, None).unwrap();
    assert_eq!((ended.best, ended.loss, ended.steps), (whole.best, whole.loss, whole.steps));
    same(&checkpoint(&straight), &checkpoint(&stopped));
    assert_eq!(logged_steps(&stopped), LINES);
    for (a, b) in logged(&straight).iter().zip(logged(&stopped)) {
        for field in ["loss", "lr", "grad_norm", "dev"] {
            assert_eq!(a[field], b[field], "{field} of {a}");
        }
    }
    fails(train(&stopped, true, None), &["no unfinished run to resume"]);
}

#[test]
fn what_a_killed_run_logged_after_its_state_is_not_logged_twice() {
    let root = tempfile::tempdir().unwrap();
    train(root.path(), false, Some(14)).unwrap();
    let log = root.path().join("log.jsonl");
    let kept = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{kept}{}\n{{\"step\": 2", kept.lines().last().unwrap())).unwrap();
    train(root.path(), true, None).unwrap();
    assert_eq!(logged_steps(root.path()), LINES);
}

#[test]
fn a_run_is_not_resumed_as_another_one() {
    let root = tempfile::tempdir().unwrap();
    let data = json!({ "corpus": "x", "mine_negatives": "bm25" });
    let resume = |settings, run: &RunSettings, data: &Value| {
        sit(root.path(), (settings, run), data, true, None)
    };
    sit(root.path(), (contrastive(1), &RUN), &data, false, Some(7)).unwrap();
    let before = files(root.path());
    let state = "state.safetensors";
    let mut faster = RUN;
    faster.optimiser.lr = 0.5;
    fails(resume(contrastive(1), &faster, &data), &[state, "lr was 0.02 and is 0.5"]);
    fails(resume(contrastive(2), &RUN, &data), &[state, "seed was 1 and is 2"]);
    let other = json!({ "corpus": "y", "mine_negatives": "bm25" });
    fails(resume(contrastive(1), &RUN, &other), &["corpus was \"x\" and is \"y\""]);
    let fewer = json!({ "corpus": "x" });
    fails(resume(contrastive(1), &RUN, &fewer), &["mine_negatives was \"bm25\" and is null"]);
    let mut loss = contrastive(1);
    loss.loss.ceiling = 0.5;
    fails(resume(loss, &RUN, &data), &["ceiling was", "is 0.5"]);
    let both = ContrastiveSettings { batch_size: 8, cache_chunk: 4, ..contrastive(1) };
    let both = resume(both, &RUN, &data);
    fails(both, &["batch_size was 16 and is 8", "cache_chunk was 0 and is 4"]);
    same(&before, &files(root.path()));
    resume(contrastive(1), &RUN, &data).unwrap();
}

#[test]
fn a_folder_that_holds_something_is_not_trained_into() {
    let root = tempfile::tempdir().unwrap();
    train(root.path(), false, Some(7)).unwrap();
    let unfinished = files(root.path());
    fails(train(root.path(), false, None), &["unfinished run", "--resume"]);
    same(&unfinished, &files(root.path()));
    train(root.path(), true, None).unwrap();
    let trained = files(root.path());
    fails(train(root.path(), false, None), &["trained model", "--output"]);
    same(&trained, &files(root.path()));

    let theirs = tempfile::tempdir().unwrap();
    fs::write(theirs.path().join("modules.json"), "[]").unwrap();
    fails(train(theirs.path(), false, None), &["holds a", "model"]);
    assert_eq!(files(theirs.path()).len(), 1);
    fails(train(theirs.path(), true, None), &["no unfinished run"]);
    assert_eq!(files(theirs.path()).len(), 1);
}

#[test]
fn a_state_that_is_cut_off_says_so() {
    let root = tempfile::tempdir().unwrap();
    train(root.path(), false, Some(7)).unwrap();
    let path = root.path().join("training/state.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        fails(train(root.path(), true, None), &[path.to_str().unwrap(), "no"]);
    }
    fs::write(&path, whole).unwrap();
    train(root.path(), true, None).unwrap();
}

#[test]
fn a_folder_has_one_run_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let (encoder, pairs) = (encoder(1), unlabelled());
    let task = Contrastive {
        encoder: &encoder,
        pairs: &pairs,
        settings: contrastive(1),
        arguments: json!({ "corpus": "x" }).as_object().unwrap().clone(),
    };
    let tried = Cell::new(0);
    // The first line comes before any state is written, later ones after.
    let on_line = &mut |line: &minirag::train::Line| {
        let resume = line.step > 7;
        fails(train(root.path(), resume, None), &["another run is training into this folder"]);
        tried.set(tried.get() + 1);
    };
    let stop = AtomicBool::new(false);
    let watch = Watch { output: root.path(), resume: false, on_line, stop: &stop };
    run(&task, &RUN, watch).unwrap();
    assert_eq!(tried.get(), LINES.len());
    let other = tempfile::tempdir().unwrap();
    train(other.path(), false, None).unwrap();
    same(&checkpoint(root.path()), &checkpoint(other.path()));
}

/// Two numbers that are to become 1; one that goes wrong at a step, and a metric that does.
struct Toy {
    params: Params,
    bad_loss: Option<u64>,
    bad_gradient: Option<u64>,
    bad_metric: bool,
}

impl Toy {
    fn new() -> Self {
        let plan = [("w".to_owned(), Param::new([2], Init::Constant(0.0)))].into();
        let params = Params::new(&plan, 0).unwrap();
        Self { params, bad_loss: None, bad_gradient: None, bad_metric: false }
    }

    fn distance(&self) -> Tensor {
        (self.params.get("w").unwrap() - 1.0).unwrap().sqr().unwrap().sum_all().unwrap()
    }
}

impl Task for Toy {
    fn params(&self) -> &Params {
        &self.params
    }

    fn group(&self, _name: &str) -> Group {
        Group { lr: 1.0, decay: false }
    }

    fn batch_size(&self) -> usize {
        1
    }

    fn step(&self, step: u64) -> minirag::Result<(f64, Gradients)> {
        let loss = self.distance();
        let mut gradients = self.params.gradients(&loss)?;
        if self.bad_gradient == Some(step) {
            let wrong = (&gradients["w"] * f64::INFINITY)?;
            gradients.insert("w".to_owned(), wrong);
        }
        let loss = f64::from(loss.to_scalar::<f32>()?);
        Ok((if self.bad_loss == Some(step) { f64::NAN } else { loss }, gradients))
    }

    fn metric(&self) -> &'static str {
        "nearness"
    }

    fn evaluate(&self) -> minirag::Result<f64> {
        Ok(if self.bad_metric { f64::NAN } else { -f64::from(self.distance().to_scalar::<f32>()?) })
    }

    fn save(&self, folder: &Path) -> minirag::Result<()> {
        fs::write(folder.join("w"), format!("{:?}", values(&self.params.get("w")?))).unwrap();
        Ok(())
    }

    fn arguments(&self) -> Map<String, Value> {
        Map::new()
    }
}

#[test]
fn a_loss_or_gradient_that_is_no_number_stops_the_run_and_names_the_step() {
    let run = RunSettings { eval_every: 3, ..RUN };
    for (bad, what) in [("loss", "the loss is NaN"), ("gradient", "gradients is inf")] {
        let root = tempfile::tempdir().unwrap();
        let toy = match bad {
            "loss" => Toy { bad_loss: Some(4), ..Toy::new() },
            _ => Toy { bad_gradient: Some(4), ..Toy::new() },
        };
        fails(go(&toy, &run, root.path(), false, None), &["step 5", what, "--lr"]);
        assert!(!root.path().join("w").exists(), "a broken run leaves no checkpoint");
        // What was saved after step 3 leads to where a sound run gets.
        let summary = go(&Toy::new(), &run, root.path(), true, None).unwrap();
        let sound = tempfile::tempdir().unwrap();
        assert_eq!(go(&Toy::new(), &run, sound.path(), false, None).unwrap().best, summary.best);
        same(&checkpoint(root.path()), &checkpoint(sound.path()));
    }
    let root = tempfile::tempdir().unwrap();
    let toy = Toy { bad_metric: true, ..Toy::new() };
    fails(go(&toy, &run, root.path(), false, None), &["step 3", "dev metric is NaN"]);
}

#[test]
fn a_learning_rate_that_breaks_the_network_stops_the_run() {
    let root = tempfile::tempdir().unwrap();
    let mut run = RunSettings { warmup: 0, eval_every: 1, ..RUN };
    run.optimiser.lr = 1e38;
    let result = sit(root.path(), (contrastive(1), &run), &json!({}), false, None);
    fails(result, &["step 1", "dev metric is NaN"]);
    assert!(!root.path().join("training/state.safetensors").exists(), "it saved what is broken");
}

/// The loss and the gradients of a step.
fn first_step(settings: ContrastiveSettings) -> (f64, Gradients) {
    let (encoder, pairs) = (encoder(1), toy_pairs());
    let arguments = Map::new();
    Contrastive { encoder: &encoder, pairs: &pairs, settings, arguments }.step(0).unwrap()
}

#[test]
fn a_batch_in_parts_has_the_gradient_of_the_whole() {
    let matryoshka = vec![4];
    let (loss, whole) =
        first_step(ContrastiveSettings { matryoshka: matryoshka.clone(), ..contrastive(1) });
    assert_eq!(whole.len(), 6, "every parameter has a gradient");
    for cache_chunk in [1, 3, 7, 1000] {
        let settings =
            ContrastiveSettings { cache_chunk, matryoshka: matryoshka.clone(), ..contrastive(1) };
        let (in_parts, gradients) = first_step(settings);
        assert!((loss - in_parts).abs() < 1e-6, "{in_parts} is not {loss}");
        assert!(whole.keys().eq(gradients.keys()));
        for (name, expected) in &whole {
            let norm = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>().sqrt();
            let (got, expected) = (values(&gradients[name]), values(expected));
            let apart: Vec<f32> = got.iter().zip(&expected).map(|(g, e)| g - e).collect();
            let relative = norm(&apart) / norm(&expected);
            assert!(relative <= 1e-5, "{name} in parts of {cache_chunk}: {relative:e}");
        }
    }
}

#[test]
fn the_loss_of_prefixes_is_the_mean_of_theirs() {
    let (encoder, pairs) = (encoder(1), toy_pairs());
    let examples = pairs.batch(1, 0, 16);
    let texts: Vec<&[u32]> = (examples.iter().map(|e| &e.anchor))
        .chain(examples.iter().map(|e| &e.positive))
        .chain(examples.iter().flat_map(|e| &e.negatives).map(|n| &n.ids))
        .map(Vec::as_slice)
        .collect();
    let rows = encoder.embed(&texts).unwrap();
    let groups: Vec<u64> = examples.iter().map(|e| e.positive_group).collect();
    let negatives: Vec<u64> = examples.iter().flat_map(|e| &e.negatives).map(|n| n.group).collect();
    assert!(!negatives.is_empty());
    let of_prefix = |prefix| {
        let rows = l2_normalize(&rows.narrow(1, 0, prefix).unwrap().contiguous().unwrap()).unwrap();
        let part = |from, count| rows.narrow(0, from, count).unwrap();
        let groups = Groups { anchors: &groups, positives: &groups, negatives: &negatives };
        let hard = part(32, negatives.len());
        let loss = InfoNce::default().loss(&part(0, 16), &part(16, 16), Some(&hard), groups);
        f64::from(loss.unwrap().to_scalar::<f32>().unwrap())
    };
    // The whole counts once, also when it is named.
    for (matryoshka, prefixes) in [(vec![], vec![16]), (vec![4, 16, 8], vec![16, 4, 8])] {
        let (loss, _) = first_step(ContrastiveSettings { matryoshka, ..contrastive(1) });
        let mean = prefixes.iter().map(|p| of_prefix(*p)).sum::<f64>() / prefixes.len() as f64;
        assert!((loss - mean).abs() < 1e-5, "{loss} is not {mean}");
    }
}

#[test]
fn settings_that_cannot_be_trained_are_refused() {
    let (encoder, pairs) = (encoder(1), toy_pairs());
    let check = |settings| {
        Contrastive { encoder: &encoder, pairs: &pairs, settings, arguments: Map::new() }.check()
    };
    check(ContrastiveSettings { matryoshka: vec![16, 1], ..contrastive(1) }).unwrap();
    for prefix in [0, 17] {
        let settings = ContrastiveSettings { matryoshka: vec![4, prefix], ..contrastive(1) };
        let error = check(settings).unwrap_err().to_string();
        assert!(error.contains(&format!("--matryoshka {prefix}")) && error.contains("16"));
    }
    let error = check(ContrastiveSettings { batch_size: 1, ..contrastive(1) }).unwrap_err();
    assert!(error.to_string().contains("--batch-size 1"));
}
