//! Records to means, set measures, slices and percentiles.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::{Heading, Latency, PerQuery, Report, Slice};
use crate::eval::{
    metrics::{Outcome, Refusals, auroc},
    stats::{self, Estimate, Statistic},
};

/// A measure of a set of outcomes, each counted as often as its weight says.
type SetMeasure = fn(&[Outcome], &[u32]) -> Option<f64>;

/// Depend on how many questions of each kind the set holds.
const AS_COUNTED: [(&str, SetMeasure); 2] = [
    ("refusal_precision", |outcomes, weights| Refusals::count(outcomes, weights).precision()),
    ("refusal_f1", |outcomes, weights| Refusals::count(outcomes, weights).f1()),
];

/// Don't; so they are comparable between the slices of unanswerable classes.
const BALANCED: [(&str, SetMeasure); 4] = [
    ("refusal_recall", |outcomes, weights| Refusals::count(outcomes, weights).recall()),
    ("refusal_precision_balanced", |outcomes, weights| {
        Refusals::count(outcomes, weights).balanced()?.precision()
    }),
    ("refusal_f1_balanced", |outcomes, weights| {
        Refusals::count(outcomes, weights).balanced()?.f1()
    }),
    ("refusal_auroc", auroc),
];

pub(super) fn report(heading: Heading, records: &[PerQuery]) -> Report {
    let all: Vec<&PerQuery> = records.iter().collect();
    let measures: Vec<_> = AS_COUNTED.into_iter().chain(BALANCED).collect();
    let whole = slice(&all, &outcomes(records), &measures, heading.seed);
    let classes: BTreeSet<&str> = records.iter().filter_map(|r| r.class.as_deref()).collect();
    let slices = classes.into_iter().map(|class| {
        let part: Vec<&PerQuery> =
            records.iter().filter(|r| r.class.as_deref() == Some(class)).collect();
        // Refusing is only worth something beside the answerable questions that were not refused.
        let positives = part.iter().any(|record| record.answerable == Some(false));
        let beside = records.iter().filter(|record| match record.answerable {
            Some(true) => positives,
            Some(false) => record.class.as_deref() == Some(class),
            None => false,
        });
        (class.to_owned(), slice(&part, &outcomes(beside), &BALANCED, heading.seed))
    });
    let slices: BTreeMap<String, Slice> = slices.collect();
    Report {
        dataset: heading.dataset,
        split: heading.split,
        n: records.len(),
        condition: heading.condition,
        metrics: whole.metrics,
        ci95: whole.ci95,
        n_by_metric: whole.n_by_metric,
        slices: [("class".to_owned(), slices)].into_iter().filter(|(_, s)| !s.is_empty()).collect(),
        latency_ms: latency(records),
        queries_per_second: heading.queries_per_second,
    }
}

fn slice(
    records: &[&PerQuery],
    outcomes: &[Outcome],
    measures: &[(&str, SetMeasure)],
    seed: u64,
) -> Slice {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in records.iter().flat_map(|record| &record.metrics) {
        if let Some(value) = value {
            values.entry(name).or_default().push(*value);
        }
    }
    // Metrics of equally many questions share their resamples.
    let mut jobs: BTreeMap<usize, (Vec<&str>, Vec<Statistic<'_>>)> = BTreeMap::new();
    let mut add = |n, name, statistic| {
        let (names, statistics) = jobs.entry(n).or_default();
        names.push(name);
        statistics.push(statistic);
    };
    for (name, values) in &values {
        add(values.len(), name, Box::new(|weights| stats::weighted_mean(values, weights)));
    }
    for (name, measure) in measures {
        add(outcomes.len(), name, Box::new(move |weights| measure(outcomes, weights)));
    }
    let estimated = jobs.par_iter().flat_map_iter(|(n, (names, statistics))| {
        let estimates = stats::bootstrap(*n, seed, statistics);
        names.iter().zip(estimates).filter_map(|(name, estimate)| Some((*name, estimate?)))
    });
    let estimates: Vec<(&str, Estimate)> = estimated.collect();
    let by_name = |(name, _): &(&str, Estimate)| (*name).to_owned();
    Slice {
        n: records.len(),
        metrics: estimates.iter().map(|e| (by_name(e), e.1.value)).collect(),
        ci95: estimates.iter().map(|e| (by_name(e), e.1.ci95)).collect(),
        n_by_metric: estimates.iter().map(|e| (by_name(e), e.1.n)).collect(),
    }
}

/// The outcomes of the questions of which both sides are known, by score for [`auroc`].
fn outcomes<'a>(records: impl IntoIterator<Item = &'a PerQuery>) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = records
        .into_iter()
        .filter_map(|record| {
            let (answerable, refused) = (record.answerable?, record.refused?);
            Some(Outcome { answerable, refused, score: record.score })
        })
        .collect();
    let score = |outcome: &Outcome| outcome.score.unwrap_or(f64::NEG_INFINITY);
    outcomes.sort_by(|a, b| score(a).total_cmp(&score(b)));
    outcomes
}

fn latency(records: &[PerQuery]) -> BTreeMap<String, Latency> {
    let mut stages: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (stage, ms) in records.iter().flat_map(|record| &record.latency_ms) {
        stages.entry(stage).or_default().push(*ms);
    }
    let percentiles = stages.into_iter().filter_map(|(stage, ms)| {
        let (p50, p95) = (stats::percentile(&ms, 50.0)?, stats::percentile(&ms, 95.0)?);
        Some((stage.to_owned(), Latency { p50, p95 }))
    });
    percentiles.collect()
}
