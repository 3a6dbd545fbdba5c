//! What the training commands share: options, the line of progress, Ctrl-C.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::{Args, ValueEnum};

use super::one_line;
use crate::{
    error::{Error, Result},
    nn::AdamWSettings,
    train::{Line, RunSettings},
};

/// Exit code after Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The processor.
    Cpu,
    /// A graphics card of NVIDIA.
    Cuda,
    /// A graphics card of Apple.
    Metal,
}

/// How long and how fast; each default is the preset's.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Training")]
pub struct TrainArgs {
    /// The folder of the checkpoint
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Go on with the unfinished run in --output, with the same options as before
    #[arg(long)]
    pub resume: bool,
    /// Steps in all [default: the preset's]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Examples of a step [default: the preset's]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,
    /// Peak learning rate [default: the preset's]
    #[arg(long, value_name = "X")]
    pub lr: Option<f64>,
    /// Steps of rising learning rate; a cosine down to zero follows [default: the preset's]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Steps between evaluations on the held-out examples [default: the preset's]
    #[arg(long, value_name = "N")]
    pub eval_every: Option<u64>,
    /// Where to compute
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: DeviceChoice,
    /// Feeds the initial values and the order of the examples
    #[arg(long, env = "MINIRAG_SEED", default_value_t = 0)]
    pub seed: u64,
    /// Print train.json on stdout
    #[arg(long)]
    pub json: bool,
}

impl TrainArgs {
    /// The run: what was asked for, and the preset where nothing was.
    ///
    /// # Errors
    /// A device that this build has not, a run of no steps, a learning rate that is none.
    pub(super) fn settings(&self, preset: RunSettings) -> Result<RunSettings> {
        if self.device != DeviceChoice::Cpu {
            return Err(Error::Setting(
                "--device: the operations are written for the processor; leave it `cpu`".to_owned(),
            ));
        }
        let settings = RunSettings {
            steps: self.steps.unwrap_or(preset.steps),
            warmup: self.warmup.unwrap_or(preset.warmup),
            eval_every: self.eval_every.unwrap_or(preset.eval_every),
            optimiser: AdamWSettings {
                lr: self.lr.unwrap_or(preset.optimiser.lr),
                ..preset.optimiser
            },
        };
        let lr = settings.optimiser.lr;
        if settings.steps == 0 || settings.eval_every == 0 {
            return Err(Error::Setting("--steps and --eval-every: must be at least 1".to_owned()));
        }
        if !(lr.is_finite() && lr > 0.0) {
            return Err(Error::Setting(format!("--lr {lr}: must be above 0")));
        }
        Ok(settings)
    }
}

/// Becomes true at the first Ctrl-C, so that the run can save itself; the second ends the process.
///
/// # Errors
/// A handler that cannot be set.
pub(super) fn interruption() -> Result<&'static AtomicBool> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    static SET: OnceLock<Result<(), String>> = OnceLock::new();
    let set = SET.get_or_init(|| {
        let handler = || {
            if ASKED.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
            let _ = writeln!(io::stderr(), "\nsaving; once more to end at once");
        };
        ctrlc::set_handler(handler).map_err(|error| error.to_string())
    });
    match set {
        Ok(()) => Ok(&ASKED),
        Err(reason) => Err(Error::Setting(format!("Ctrl-C cannot be handled: {reason}"))),
    }
}

/// Prints lines of the log on standard error: over each other on a terminal, else evaluations only.
pub(super) fn printer(quiet: bool, steps: u64, metric: &str) -> impl FnMut(&Line) {
    let terminal = io::stderr().is_terminal();
    move |line: &Line| {
        if quiet || (!terminal && line.dev.is_none()) {
            return;
        }
        let Line { step, loss, lr, dev, examples_per_second, seconds, .. } = line;
        let dev = dev.map_or(String::new(), |dev| format!("  dev {metric} {dev:.4}"));
        let left = seconds / *step as f64 * steps.saturating_sub(*step) as f64;
        let text = format!(
            "step {step}/{steps}  loss {loss:.4}  lr {lr:.2e}  {examples_per_second:.0} pairs/s  \
             {left:.0} s left{dev}"
        );
        let mut err = io::stderr();
        let _ = match (terminal, line.dev) {
            (true, None) => write!(err, "\r\x1b[K{}", one_line(&text)),
            (true, Some(_)) => writeln!(err, "\r\x1b[K{}", one_line(&text)),
            (false, _) => writeln!(err, "{}", one_line(&text)),
        };
    }
}

/// A line on standard error, unless quiet.
pub(super) fn note(quiet: bool, text: &str) {
    if !quiet {
        let _ = writeln!(io::stderr(), "{}", one_line(text));
    }
}
