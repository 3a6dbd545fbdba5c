//! One record a question to the figures of a run: JSON for machines, tables for people.
//!
//! `report.json` has the fields of the `evaluate` command's `--json`, and `per-query.jsonl` one
//! [`PerQuery`] a line. Every figure has its number of questions in `n_by_metric` and its 95%
//! interval in `ci95`; a metric without a question that it applies to is absent.

mod aggregate;
mod table;

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) use table::{aligned, plain};
pub use table::{by_class, markdown};

use crate::{
    error::{Error, Result},
    eval::files,
};

/// What was measured on one question.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PerQuery {
    /// The question's id.
    pub id: String,
    /// Its class, by which the report is sliced.
    pub class: Option<String>,
    /// Values by metric; `None` where the metric does not apply, which stays out of the mean.
    pub metrics: BTreeMap<String, Option<f64>>,
    /// Milliseconds by stage.
    pub latency_ms: BTreeMap<String, f64>,
    /// Whether the corpus holds an answer, where that is known.
    pub answerable: Option<bool>,
    /// Whether the system refused, where it was asked to answer.
    pub refused: Option<bool>,
    /// What the threshold was held against, higher meaning surer; `None` where nothing was found.
    pub score: Option<f64>,
    /// The final answer.
    pub answer: Option<String>,
}

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Heading {
    /// The dataset's name.
    pub dataset: String,
    /// Its split.
    pub split: String,
    /// The settings that were measured.
    pub condition: Map<String, Value>,
    /// Questions in a second of the pipeline's time, where that was measured.
    pub queries_per_second: Option<f64>,
    /// Feeds the bootstrap.
    pub seed: u64,
}

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The dataset's name.
    pub dataset: String,
    /// Its split.
    pub split: String,
    /// Questions in the run.
    pub n: usize,
    /// The settings that were measured.
    pub condition: Map<String, Value>,
    /// Means and set measures.
    pub metrics: BTreeMap<String, f64>,
    /// Their 95% intervals.
    pub ci95: BTreeMap<String, [f64; 2]>,
    /// The number of questions behind each.
    pub n_by_metric: BTreeMap<String, usize>,
    /// The same for parts of the questions: `class`, then the class's name.
    pub slices: BTreeMap<String, BTreeMap<String, Slice>>,
    /// Percentiles by stage.
    pub latency_ms: BTreeMap<String, Latency>,
    /// Questions in a second of the pipeline's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_per_second: Option<f64>,
}

/// The figures of a part of the questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Questions in the part.
    pub n: usize,
    /// Means and set measures.
    pub metrics: BTreeMap<String, f64>,
    /// Their 95% intervals.
    pub ci95: BTreeMap<String, [f64; 2]>,
    /// The number of questions behind each.
    pub n_by_metric: BTreeMap<String, usize>,
}

/// How long a stage took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// What 95% of the questions stayed under.
    pub p95: f64,
}

impl Report {
    /// Sums up a run.
    ///
    /// # Errors
    /// A value that is not finite, with its question and metric: a mean over it would hide it.
    pub fn new(heading: Heading, records: &[PerQuery]) -> Result<Self> {
        for record in records {
            let metrics = record.metrics.iter().filter_map(|(name, value)| Some((name, (*value)?)));
            let score = record.score.iter().map(|score| (None, *score));
            let latency = record.latency_ms.iter().map(|(stage, ms)| (Some(stage), *ms));
            let values = metrics.map(|(name, value)| (Some(name), value)).chain(score);
            if let Some((name, value)) = values.chain(latency).find(|(_, v)| !v.is_finite()) {
                let name = name.map_or("score", String::as_str);
                return Err(Error::Mismatch(format!(
                    "question `{}`: {name} is {value}, which has no place in a mean",
                    record.id
                )));
            }
        }
        Ok(aggregate::report(heading, records))
    }

    /// The report as one JSON document.
    ///
    /// # Errors
    /// None that can happen: every key is a string and every number finite.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::Mismatch(e.to_string()))
    }

    /// The report as plain text for a terminal.
    pub fn table(&self) -> String {
        table::terminal(self)
    }

    /// The figures of a slice written `class=conjugation`, or of the whole without one.
    pub(super) fn figures(&self, slice: Option<&str>) -> Option<&BTreeMap<String, f64>> {
        let Some(slice) = slice else { return Some(&self.metrics) };
        let (by, name) = slice.split_once('=')?;
        self.slices.get(by)?.get(name).map(|slice| &slice.metrics)
    }
}

/// Writes `report.json` and `per-query.jsonl` into a folder, each whole or not at all.
///
/// # Errors
/// A file that cannot be written.
pub fn write(dir: &Path, report: &Report, records: &[PerQuery]) -> Result<()> {
    let path = dir.join("per-query.jsonl");
    let lines = records.iter().map(|record| serde_json::to_string(record).map(|line| line + "\n"));
    let lines: Result<String, _> = lines.collect();
    files::write(&path, &lines.map_err(|e| Error::format(&path, e.to_string()))?)?;
    files::write(&dir.join("report.json"), &(report.json()? + "\n"))
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// A file that is missing or malformed.
pub fn read(dir: &Path) -> Result<(Report, Vec<PerQuery>)> {
    let path = dir.join("report.json");
    let report = serde_json::from_str(&files::read(&path)?)
        .map_err(|e| Error::format(&path, e.to_string()))?;
    let records = files::json_lines(&dir.join("per-query.jsonl"))?;
    Ok((report, records.into_iter().map(|(_, record)| record).collect()))
}
