//! Reports to plain text and markdown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Report, Slice};
use crate::eval::metrics;

/// One report for a terminal: every figure with its interval and n, then slices and latency.
pub(super) fn terminal(report: &Report) -> String {
    let mut text = format!("{} {}, n {}\n", report.dataset, report.split, report.n);
    let condition = report.condition.iter().map(|(key, value)| format!("{key} {}", plain(value)));
    let condition: Vec<String> = condition.collect();
    if !condition.is_empty() {
        text += &(condition.join(", ") + "\n");
    }
    let mut rows = vec![row(["metric", "value", "95% interval", "n"])];
    rows.extend(names([&report.metrics]).iter().map(|name| {
        let interval = report
            .ci95
            .get(*name)
            .map_or(String::new(), |ci| format!("{} to {}", figure(ci[0]), figure(ci[1])));
        let n = report.n_by_metric.get(*name).map_or(String::new(), usize::to_string);
        vec![(*name).to_owned(), figure(report.metrics[*name]), interval, n]
    }));
    text += &("\n".to_owned() + &aligned(&rows));
    for (by, slices) in &report.slices {
        let names = names(slices.values().map(|slice| &slice.metrics));
        let mut rows = vec![row([by.as_str(), "n"])];
        rows[0].extend(names.iter().map(|name| (*name).to_owned()));
        rows.extend(slices.iter().map(|(value, slice)| {
            let figures = names.iter().map(|name| slice.metrics.get(*name).copied());
            let mut cells = vec![value.clone(), slice.n.to_string()];
            cells.extend(figures.map(|value| value.map_or("-".to_owned(), figure)));
            cells
        }));
        text += &("\n".to_owned() + &aligned(&transposed(&rows)));
    }
    if !report.latency_ms.is_empty() {
        let mut rows = vec![row(["stage", "p50 ms", "p95 ms"])];
        rows.extend(report.latency_ms.iter().map(|(stage, latency)| {
            vec![stage.clone(), format!("{:.2}", latency.p50), format!("{:.2}", latency.p95)]
        }));
        text += &("\n".to_owned() + &aligned(&rows));
    }
    if let Some(rate) = report.queries_per_second {
        text += &format!("\n{rate:.1} queries a second\n");
    }
    text
}

/// Several reports side by side, a column each, named by what their conditions differ in.
pub fn markdown(reports: &[Report]) -> String {
    let labels = labels(reports);
    let mut rows = vec![vec!["metric".to_owned()]];
    rows[0].extend(labels);
    for name in names(reports.iter().map(|report| &report.metrics)) {
        let mut cells = vec![name.to_owned()];
        cells.extend(reports.iter().map(|report| cell(report, name)));
        rows.push(cells);
    }
    markdown_table(&rows)
}

/// A report's classes side by side, a column each with its number of questions.
pub fn by_class(report: &Report, metrics: &[String]) -> String {
    let none = BTreeMap::new();
    let classes = report.slices.get("class").unwrap_or(&none);
    let mut rows = vec![vec!["metric".to_owned(), format!("all (n {})", report.n)]];
    rows[0].extend(classes.iter().map(|(class, slice)| format!("{class} (n {})", slice.n)));
    let wanted = |name: &&str| metrics.is_empty() || metrics.iter().any(|metric| metric == name);
    let all = classes.values().map(|slice| &slice.metrics).chain([&report.metrics]);
    for name in names(all).into_iter().filter(wanted) {
        let mut cells = vec![name.to_owned(), cell(report, name)];
        let value = |slice: &Slice| slice.metrics.get(name).map_or("-".to_owned(), |x| figure(*x));
        cells.extend(classes.values().map(value));
        rows.push(cells);
    }
    markdown_table(&rows)
}

/// Rows as a markdown table, the first its header.
fn markdown_table(rows: &[Vec<String>]) -> String {
    let line = |cells: &Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let columns = rows.first().map_or(1, Vec::len);
    let rule = format!("|---|{}\n", "---:|".repeat(columns - 1));
    rows.iter()
        .enumerate()
        .fold(String::new(), |text, (at, row)| text + &line(row) + if at == 0 { &rule } else { "" })
}

/// `.873 [.85, .90] (n 120)`.
fn cell(report: &Report, name: &str) -> String {
    let Some(value) = report.metrics.get(name) else { return "-".to_owned() };
    let mut text = figure(*value);
    if let Some([low, high]) = report.ci95.get(name) {
        text += &format!(" [{}, {}]", figure(*low), figure(*high));
    }
    if let Some(n) = report.n_by_metric.get(name) {
        text += &format!(" (n {n})");
    }
    text
}

fn labels(reports: &[Report]) -> Vec<String> {
    let facts: Vec<BTreeMap<&str, String>> = reports.iter().map(facts).collect();
    let keys: BTreeSet<&str> = facts.iter().flat_map(|facts| facts.keys().copied()).collect();
    let differs = |key: &&str| facts.iter().any(|f| f.get(*key) != facts[0].get(*key));
    let differing: Vec<&str> = keys.into_iter().filter(differs).collect();
    facts
        .iter()
        .enumerate()
        .map(|(at, facts)| {
            let parts = differing.iter().filter_map(|key| Some((key, facts.get(*key)?)));
            let parts: Vec<String> = parts.map(|(key, value)| format!("{key}={value}")).collect();
            if parts.is_empty() { format!("run {}", at + 1) } else { parts.join(", ") }
        })
        .collect()
}

/// Dataset, split and settings of a report as texts.
fn facts(report: &Report) -> BTreeMap<&str, String> {
    let settings = report.condition.iter().map(|(key, value)| (key.as_str(), plain(value)));
    let own = [("dataset", report.dataset.clone()), ("split", report.split.clone())];
    settings.chain(own).collect()
}

/// A setting's value without quotes.
pub(in crate::eval) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The names of all metrics, in the order in which tables show them.
fn names<'a>(figures: impl IntoIterator<Item = &'a BTreeMap<String, f64>>) -> Vec<&'a str> {
    let names: BTreeSet<&str> =
        figures.into_iter().flat_map(|figures| figures.keys().map(String::as_str)).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    // A name unknown here still has its row, after the others.
    names.sort_by_key(|name| metrics::position(name).map_or((1, None), |at| (0, Some(at))));
    names
}

fn figure(value: f64) -> String {
    format!("{value:.3}")
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Slices have few values and many metrics, so that metrics go down.
fn transposed(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect()
}

/// The first column to the left, the others to the right.
pub(in crate::eval) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        text += &(line.trim_end().to_owned() + "\n");
    }
    text
}
