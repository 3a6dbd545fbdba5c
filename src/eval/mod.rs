//! The yardstick: questions with known answers in, figures with their uncertainty out.
//!
//! A [`dataset`] holds questions, judgements and gold answers; [`metrics`] score one question at a
//! time; a [`report`] is the means of those scores, each with its number of questions and a 95%
//! interval from [`stats`]; a [`gate`] holds a report against bounds; [`trec`] reads and writes
//! runs in the format of the field's own tools; [`compare`] says whether two reports differ by
//! more than chance.
//!
//! Rules that hold everywhere: retrieval measures agree with `trec_eval`; a metric that does not
//! apply to a question is `None` and stays out of the mean; a metric that applies to no question
//! is absent, never 0 and never NaN.

pub mod compare;
pub mod dataset;
pub(crate) mod files;
pub mod gate;
pub mod metrics;
pub mod report;
pub mod run;
pub mod stats;
pub mod trec;
