//! Training: one loop for every network, and what each network learns from.
//!
//! [`run()`] knows steps, evaluation, the best checkpoint, logs, stopping and resuming; a
//! [`Task`] knows one network: the loss of a batch, the dev metric, the files of a checkpoint. A
//! batch is a function of the seed and the step alone, so that a resumed run needs no more than
//! parameters, moments and a step number to be the run that was never stopped.

pub mod pairs;
pub mod bi_encoder;
mod bert;
mod mini;
mod plot;
mod run;
mod state;

pub use bert::BertBiEncoder;
pub use mini::MiniBiEncoder;
pub use run::{Line, RunSettings, Summary, Task, Watch, run};
