//! A file of conditions, metrics and bounds, held against a report.
//!
//! ```toml
//! [[gate]]
//! condition = { dataset = "grammar", split = "test", retriever = "hybrid" }
//! bounds = [
//!     { metric = "recall@5", slice = "class=conjugation", min = 0.95 },
//!     { metric = "ndcg@10", expect = 0.691, tolerance = 0.001 },
//! ]
//! ```
//!
//! A bound that cannot be held against the report (an unknown metric, a missing slice, another
//! condition) has failed, and says why.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    error::{Error, Result},
    eval::{
        files, metrics,
        report::{Report, plain},
    },
};

/// The bounds of one condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// What a report must be about: `dataset`, `split` and settings.
    pub condition: BTreeMap<String, toml::Value>,
    /// What it must reach.
    pub bounds: Vec<Bound>,
}

/// What one figure must be.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The metric's name.
    pub metric: String,
    /// The part of the questions, e.g. `class=conjugation`; all without one.
    pub slice: Option<String>,
    /// The lowest figure that passes.
    pub min: Option<f64>,
    /// The highest figure that passes.
    pub max: Option<f64>,
    /// The bound in words, e.g. `>= 0.95`.
    pub words: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GateFile {
    gate: Vec<RawGate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGate {
    condition: BTreeMap<String, toml::Value>,
    bounds: Vec<Spanned<RawBound>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBound {
    metric: String,
    slice: Option<String>,
    min: Option<f64>,
    max: Option<f64>,
    expect: Option<f64>,
    tolerance: Option<f64>,
}

impl TryFrom<RawBound> for Bound {
    type Error = String;

    fn try_from(raw: RawBound) -> Result<Self, String> {
        let (min, max, words) = match (raw.min, raw.max, raw.expect, raw.tolerance) {
            (Some(min), None, None, None) => (Some(min), None, format!(">= {min}")),
            (None, Some(max), None, None) => (None, Some(max), format!("<= {max}")),
            (Some(min), Some(max), None, None) if min <= max => {
                (Some(min), Some(max), format!("{min} to {max}"))
            }
            (None, None, Some(expect), Some(tolerance)) if tolerance >= 0.0 => {
                let words = format!("{expect} +- {tolerance}");
                (Some(expect - tolerance), Some(expect + tolerance), words)
            }
            _ => {
                return Err(format!(
                    "the bound of `{}` needs `min`, `max` (not below `min`) or both, or `expect` \
                     with `tolerance`",
                    raw.metric
                ));
            }
        };
        if [min, max].iter().flatten().any(|bound| !bound.is_finite()) {
            return Err(format!("the bound of `{}` is not finite", raw.metric));
        }
        Ok(Self { metric: raw.metric, slice: raw.slice, min, max, words })
    }
}

/// Whether a figure passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The metric's name.
    pub metric: String,
    /// The part of the questions.
    pub slice: Option<String>,
    /// The figure, where the report has it.
    pub value: Option<f64>,
    /// What it was held against.
    pub bound: String,
    /// True if it passed.
    pub ok: bool,
    /// Why it could not be evaluated.
    pub fault: Option<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.ok { "OK  " } else { "FAIL" }, self.metric)?;
        if let Some(slice) = &self.slice {
            write!(f, " [{slice}]")?;
        }
        match self.value {
            Some(value) => write!(f, " {value:.4}")?,
            None => f.write_str(" no value")?,
        }
        write!(f, ", bound {}", self.bound)?;
        self.fault.iter().try_for_each(|fault| write!(f, ": {fault}"))
    }
}

/// Reads a gate file.
///
/// # Errors
/// TOML that is malformed or holds another key, with its line; a file without bounds, which
/// nothing could fail.
pub fn read(path: &Path) -> Result<Vec<Gate>> {
    parse(path, &files::read(path)?)
}

/// Reads a gate file's text; `path` names it in errors.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Vec<Gate>> {
    let fault = |at: usize, message: String| {
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        files::at_line(path, line, message)
    };
    let file: GateFile = toml::from_str(text)
        .map_err(|e| fault(e.span().map_or(0, |span| span.start), e.message().to_owned()))?;
    let mut gates = Vec::new();
    for raw in file.gate {
        let bounds = raw.bounds.into_iter().map(|bound| {
            let at = bound.span().start;
            Bound::try_from(bound.into_inner()).map_err(|message| fault(at, message))
        });
        gates.push(Gate { condition: raw.condition, bounds: bounds.collect::<Result<_>>()? });
    }
    if gates.is_empty() || gates.iter().any(|gate| gate.bounds.is_empty()) {
        return Err(Error::format(path, "a gate without bounds lets everything pass"));
    }
    Ok(gates)
}

impl Gate {
    /// The cut-offs of the retrieval measures that it bounds.
    pub fn cut_offs(&self) -> impl Iterator<Item = usize> + '_ {
        let position = |bound: &Bound| metrics::position(&bound.metric)?.1?.cut_off();
        self.bounds.iter().filter_map(position)
    }
}

/// Holds a report against a gate, one verdict a bound.
pub fn check(gate: &Gate, report: &Report) -> Vec<Verdict> {
    let mismatch = condition_mismatch(gate, report);
    gate.bounds
        .iter()
        .map(|bound| {
            let found = match &mismatch {
                Some(fault) => Err(fault.clone()),
                None => figure(bound, report),
            };
            let (value, fault) = found.map_or_else(|e| (None, Some(e)), |v| (Some(v), None));
            // Comparisons that a NaN fails.
            let within = |value: f64| {
                bound.min.is_none_or(|min| value >= min)
                    && bound.max.is_none_or(|max| value <= max)
                    && value.is_finite()
            };
            Verdict {
                metric: bound.metric.clone(),
                slice: bound.slice.clone(),
                value,
                bound: bound.words.clone(),
                ok: value.is_some_and(within),
                fault,
            }
        })
        .collect()
}

/// The first setting in which the report is not what the gate is for.
fn condition_mismatch(gate: &Gate, report: &Report) -> Option<String> {
    gate.condition.iter().find_map(|(key, expected)| {
        let expected = match expected {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let got = match key.as_str() {
            "dataset" => report.dataset.clone(),
            "split" => report.split.clone(),
            key => report.condition.get(key).map_or_else(|| "not set".to_owned(), plain),
        };
        (got != expected).then(|| format!("it is for {key} `{expected}`, the report's is `{got}`"))
    })
}

fn figure(bound: &Bound, report: &Report) -> Result<f64, String> {
    let name = &bound.metric;
    let Some(figures) = report.figures(bound.slice.as_deref()) else {
        let slice = bound.slice.as_deref().unwrap_or_default();
        return Err(format!("the report has no slice `{slice}`"));
    };
    match figures.get(name) {
        Some(value) => Ok(*value),
        None => Err(match metrics::position(name) {
            None => format!("no metric is called `{name}`"),
            Some((group, Some(_))) if figures.keys().any(|name| measures(name, group)) => {
                "not measured (see --k)".to_owned()
            }
            Some(_) => "the report does not have it: it applied to no question".to_owned(),
        }),
    }
}

/// True if `name` is a retrieval measure of that group: of another cut-off or family, then.
fn measures(name: &str, group: usize) -> bool {
    metrics::position(name).is_some_and(|(of, measure)| of == group && measure.is_some())
}
