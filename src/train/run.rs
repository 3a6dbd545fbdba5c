//! The loop: steps, evaluation, the best checkpoint, the log; stops when asked, resumes exactly.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use candle_core::Tensor;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    plot,
    state::{Progress, State},
};
use crate::{
    error::{Error, Result},
    nn::{
        AdamW, AdamWSettings, Gradients, Params, Schedule,
        adamw::{Group, global_norm},
    },
};

/// How long a run is and how it moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSettings {
    /// Steps in all.
    pub steps: u64,
    /// Steps of rising learning rate.
    pub warmup: u64,
    /// Steps between evaluations on the dev set.
    pub eval_every: u64,
    /// The optimiser's constants.
    pub optimiser: AdamWSettings,
}

/// One network and what it learns from.
pub trait Task {
    /// The parameters that are trained.
    fn params(&self) -> &Params;

    /// How the optimiser treats a parameter.
    fn group(&self, name: &str) -> Group;

    /// Examples of a step.
    fn batch_size(&self) -> usize;

    /// The loss of the batch of `step`, and its gradients; a function of the parameters and the
    /// step alone.
    ///
    /// # Errors
    /// Those of the network.
    fn step(&self, step: u64) -> Result<(f64, Gradients)>;

    /// What [`Task::evaluate`] measures, e.g. `mrr`.
    fn metric(&self) -> &'static str;

    /// The dev metric of the parameters as they are; more is better.
    ///
    /// # Errors
    /// Those of the network.
    fn evaluate(&self) -> Result<f64>;

    /// Writes the checkpoint of the parameters as they are into an empty folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    fn save(&self, folder: &Path) -> Result<()>;

    /// What the run depends on besides [`RunSettings`]: data, seed, sizes. A resumed run must
    /// have the same.
    fn arguments(&self) -> Map<String, Value>;
}

/// A line of `log.jsonl`.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Line {
    /// Steps done.
    pub step: u64,
    /// Mean loss of the steps since the line before.
    pub loss: f64,
    /// Learning rate of the last of them.
    pub lr: f64,
    /// Norm of its gradients before clipping.
    pub grad_norm: f64,
    /// The dev metric, where the line ends with an evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<f64>,
    /// Training examples a second of this sitting.
    pub examples_per_second: f64,
    /// Seconds of all sittings.
    pub seconds: f64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// True when it was stopped before its last step.
    pub interrupted: bool,
    /// The best dev metric, and the step after which it was measured.
    pub best: Option<(f64, u64)>,
    /// Mean loss of the last line of the log.
    pub loss: f64,
    /// Seconds of all sittings.
    pub seconds: f64,
}

/// Where a run writes, whether it goes on from there, and who looks on.
pub struct Watch<'a> {
    /// The folder of the checkpoint.
    pub output: &'a Path,
    /// Go on with the unfinished run of that folder.
    pub resume: bool,
    /// Is given every line of the log.
    pub on_line: &'a mut dyn FnMut(&Line),
    /// Becomes true when the run is to be saved and ended.
    pub stop: &'a AtomicBool,
}

/// Trains `task` and leaves the checkpoint that was best on the dev set in the output folder,
/// beside `train.json`, `log.jsonl` and `loss.png`.
///
/// While the run is unfinished, `training` in that folder holds its state, written at every
/// evaluation and when the run is asked to stop; a resumed run goes on from there, and ends with
/// the bytes that it would have had.
///
/// # Errors
/// A folder that holds another run, a state of other settings, a loss or gradient that is not
/// finite (which names the step, and leaves the last state to resume from).
pub fn run(task: &dyn Task, settings: &RunSettings, watch: Watch<'_>) -> Result<Summary> {
    let Watch { output, resume, on_line, stop } = watch;
    let arguments = arguments(task, settings);
    let mut sitting = Sitting::begin(task, settings, output, arguments, resume)?;
    while sitting.progress.step < settings.steps {
        if stop.load(Ordering::Relaxed) {
            sitting.save()?;
            return sitting.finish(true);
        }
        sitting.step()?;
        let done = sitting.progress.step;
        if done.is_multiple_of(settings.eval_every.max(1)) || done == settings.steps {
            let metric = task.evaluate()?;
            finite(done, "dev metric", metric)?;
            sitting.keep_best(metric)?;
            on_line(&sitting.log(Some(metric))?);
            sitting.save()?;
        } else if done.is_multiple_of(LOG_EVERY) {
            on_line(&sitting.log(None)?);
        }
    }
    sitting.finish(false)
}

/// Steps between lines of the log.
const LOG_EVERY: u64 = 10;
const LOG: &str = "log.jsonl";
/// The folder of an unfinished run, and what it holds.
const TRAINING: &str = "training";
const STATE: &str = "state.safetensors";
const LOCK: &str = "lock";
const EXPORT: &str = "export";

fn arguments(task: &dyn Task, settings: &RunSettings) -> Map<String, Value> {
    let RunSettings { steps, warmup, eval_every, optimiser } = *settings;
    let AdamWSettings { lr, beta1, beta2, epsilon, weight_decay, clip } = optimiser;
    let mut arguments = task.arguments();
    let run = json!({
        "steps": steps, "warmup": warmup, "eval_every": eval_every, "lr": lr, "beta1": beta1,
        "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay, "clip": clip,
    });
    if let Value::Object(run) = run {
        arguments.extend(run);
    }
    arguments
}

/// A run from its beginning, or from where it was taken up, to its end or its next stop.
struct Sitting<'a> {
    task: &'a dyn Task,
    schedule: Schedule,
    peak: f64,
    output: &'a Path,
    arguments: Map<String, Value>,
    optimiser: AdamW,
    progress: Progress,
    best: BTreeMap<String, Tensor>,
    /// Gradient norm and share of the peak learning rate of the last step.
    last: (f64, f64),
    began: Instant,
    /// Steps and seconds of the sittings before.
    before: (u64, f64),
    /// Held as long as the run writes here.
    _lock: File,
}

impl<'a> Sitting<'a> {
    fn begin(
        task: &'a dyn Task,
        settings: &'a RunSettings,
        output: &'a Path,
        arguments: Map<String, Value>,
        resume: bool,
    ) -> Result<Self> {
        let state = output.join(TRAINING).join(STATE);
        check_output(output, &state, resume)?;
        let lock = lock(&output.join(TRAINING))?;
        let mut sitting = Self {
            task,
            schedule: Schedule { warmup: settings.warmup, steps: settings.steps },
            peak: settings.optimiser.lr,
            output,
            arguments,
            optimiser: AdamW::new(task.params(), settings.optimiser, |name| task.group(name)),
            progress: Progress::default(),
            best: BTreeMap::new(),
            last: (0.0, 0.0),
            began: Instant::now(),
            before: (0, 0.0),
            _lock: lock,
        };
        if resume {
            sitting.take_up(State::load(&state)?, &state)?;
        }
        let log = output.join(LOG);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&log);
        let length = sitting.progress.log_bytes;
        file.and_then(|file| file.set_len(length)).map_err(Error::io(&log))?;
        Ok(sitting)
    }

    /// Goes on from `state`, read from `path`.
    fn take_up(&mut self, state: State, path: &Path) -> Result<()> {
        let (was, is) = (&state.arguments, &self.arguments);
        let gone = was.keys().filter(|name| !is.contains_key(*name));
        let value = |of: &Map<String, Value>, name| of.get(name).cloned().unwrap_or_default();
        let differ: Vec<String> = (is.keys().chain(gone))
            .map(|name| (name, value(was, name), value(is, name)))
            .filter(|(_, was, is)| was != is)
            .map(|(name, was, is)| format!("{name} was {was} and is {is}"))
            .collect();
        if !differ.is_empty() {
            let differ = differ.join(", ");
            let message =
                format!("the run was begun otherwise: {differ}; give it the same, or begin anew");
            return Err(Error::format(path, message));
        }
        self.task.params().restore(&state.params)?;
        self.optimiser.restore(&state.optimiser)?;
        self.before = (state.progress.step, state.progress.seconds);
        self.progress = state.progress;
        self.best = state.best;
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let step = self.progress.step;
        let (loss, gradients) = self.task.step(step)?;
        let norm = global_norm(&gradients)?;
        finite(step + 1, "loss", loss)?;
        finite(step + 1, "norm of the gradients", norm)?;
        let factor = self.schedule.factor(step);
        self.optimiser.step(self.task.params(), &gradients, (factor, norm))?;
        self.last = (norm, factor);
        self.progress.step += 1;
        self.progress.losses.0 += loss;
        self.progress.losses.1 += 1;
        Ok(())
    }

    fn keep_best(&mut self, metric: f64) -> Result<()> {
        if self.progress.best.is_none_or(|(best, _)| metric > best) {
            self.progress.best = Some((metric, self.progress.step));
            self.best = self.task.params().snapshot()?;
        }
        Ok(())
    }

    /// Writes a line of the log.
    fn log(&mut self, dev: Option<f64>) -> Result<Line> {
        let (sum, count) = std::mem::take(&mut self.progress.losses);
        let sitting = self.began.elapsed().as_secs_f64();
        let steps = self.progress.step - self.before.0;
        let (grad_norm, factor) = self.last;
        let line = Line {
            step: self.progress.step,
            loss: sum / count.max(1) as f64,
            lr: self.peak * factor,
            grad_norm,
            dev,
            examples_per_second: steps as f64 * self.task.batch_size() as f64 / sitting,
            seconds: self.before.1 + sitting,
        };
        self.progress.last_loss = line.loss;
        let mut text = json!(line).to_string();
        text.push('\n');
        let path = self.output.join(LOG);
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io(&path))?;
        self.progress.log_bytes += text.len() as u64;
        Ok(line)
    }

    fn save(&mut self) -> Result<()> {
        self.progress.seconds = self.before.1 + self.began.elapsed().as_secs_f64();
        let state = State {
            arguments: self.arguments.clone(),
            progress: self.progress.clone(),
            params: self.task.params().snapshot()?,
            optimiser: self.optimiser.state()?,
            best: self.best.clone(),
        };
        state.save(&self.output.join(TRAINING).join(STATE))
    }

    /// Writes the best checkpoint; an ended run leaves no state behind.
    fn finish(mut self, interrupted: bool) -> Result<Summary> {
        self.progress.seconds = self.before.1 + self.began.elapsed().as_secs_f64();
        let Progress { step, best, last_loss, seconds, .. } = self.progress;
        let summary = Summary { steps: step, interrupted, best, loss: last_loss, seconds };
        if !self.best.is_empty() {
            self.task.params().restore(&self.best)?;
            self.export(&summary)?;
        }
        if !interrupted {
            let training = self.output.join(TRAINING);
            fs::remove_dir_all(&training).map_err(Error::io(&training))?;
        }
        Ok(summary)
    }

    /// Writes the checkpoint aside, then moves it to its place file by file.
    fn export(&self, summary: &Summary) -> Result<()> {
        let aside = self.output.join(TRAINING).join(EXPORT);
        if aside.exists() {
            fs::remove_dir_all(&aside).map_err(Error::io(&aside))?;
        }
        fs::create_dir_all(&aside).map_err(Error::io(&aside))?;
        self.task.save(&aside)?;
        let report = json!({
            "arguments": self.arguments,
            "steps": summary.steps,
            "minutes": summary.seconds / 60.0,
            "loss": summary.loss,
            "dev": summary.best.map(|(value, step)| {
                json!({ "metric": self.task.metric(), "value": value, "step": step })
            }),
            "version": env!("CARGO_PKG_VERSION"),
        });
        let path = aside.join("train.json");
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Error::format(&path, format!("cannot be written: {error}")))?;
        fs::write(&path, text + "\n").map_err(Error::io(&path))?;
        plot::losses(&self.output.join(LOG), &aside.join("loss.png"), self.task.metric())?;
        move_all(&aside, self.output)?;
        fs::remove_dir_all(&aside).map_err(Error::io(&aside))
    }
}

fn finite(step: u64, what: &'static str, value: f64) -> Result<()> {
    match value.is_finite() {
        true => Ok(()),
        false => Err(Error::Diverged { step, what, value }),
    }
}

/// Whether the run may have the folder.
fn check_output(output: &Path, state: &Path, resume: bool) -> Result<()> {
    let message = match (resume, state.exists()) {
        (true, false) => "holds no unfinished run to resume",
        (false, true) => "holds an unfinished run: go on with --resume, or give another --output",
        // Ours has the first of these; the second comes with other people's models.
        (false, false)
            if ["train.json", "modules.json"].iter().any(|f| output.join(f).exists()) =>
        {
            "holds a trained model: give another --output, or remove that folder first"
        }
        _ => return Ok(()),
    };
    Err(Error::format(output, message))
}

/// Creates the folder of the run; one run at a time may have it.
fn lock(training: &Path) -> Result<File> {
    fs::create_dir_all(training).map_err(Error::io(training))?;
    let path = training.join(LOCK);
    let file = File::create(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            Err(Error::format(training, "another run is training into this folder"))
        }
        Err(fs::TryLockError::Error(error)) => Err(Error::io(&path)(error)),
    }
}

/// Moves the files of `from`, and of its folders, to the same places in `to`.
fn move_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::io(to))?;
    let entries = fs::read_dir(from).map_err(Error::io(from))?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    for path in paths {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        if path.is_dir() {
            move_all(&path, &target)?;
        } else {
            fs::rename(&path, &target).map_err(Error::io(&target))?;
        }
    }
    Ok(())
}
