//! Two runs over the same questions to their differences, each with its test.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::{Error, Result},
    eval::{
        metrics,
        report::{PerQuery, aligned},
        stats::{PairedTest, randomisation_test},
    },
};

/// How a metric changed from one run to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The metric.
    pub metric: String,
    /// Its mean before, over the questions that both runs measured.
    pub before: f64,
    /// Its mean after, over the same.
    pub after: f64,
    /// Whether that could be chance.
    pub test: PairedTest,
}

/// Compares every metric that both runs measured, question by question.
///
/// # Errors
/// Runs that share no question.
pub fn compare(before: &[PerQuery], after: &[PerQuery], seed: u64) -> Result<Vec<Difference>> {
    let earlier: BTreeMap<&str, &PerQuery> = before.iter().map(|r| (r.id.as_str(), r)).collect();
    let pairs: Vec<(&PerQuery, &PerQuery)> =
        after.iter().filter_map(|r| Some((*earlier.get(r.id.as_str())?, r))).collect();
    if pairs.is_empty() {
        return Err(Error::Mismatch(format!(
            "the runs ({} and {} questions) share no question, so they cannot be compared",
            before.len(),
            after.len()
        )));
    }
    let names: BTreeSet<&String> = pairs.iter().flat_map(|(_, r)| r.metrics.keys()).collect();
    let mut differences: Vec<Difference> = names
        .into_iter()
        .filter_map(|name| {
            let value = |record: &PerQuery| record.metrics.get(name).copied().flatten();
            let values: Vec<(f64, f64)> =
                pairs.iter().filter_map(|(a, b)| Some((value(a)?, value(b)?))).collect();
            let changes: Vec<f64> = values.iter().map(|(a, b)| b - a).collect();
            let test = randomisation_test(&changes, seed)?;
            let before = values.iter().map(|(a, _)| a).sum::<f64>() / test.n as f64;
            let after = values.iter().map(|(_, b)| b).sum::<f64>() / test.n as f64;
            Some(Difference { metric: name.clone(), before, after, test })
        })
        .collect();
    differences.sort_by_key(|d| metrics::position(&d.metric).map_or((1, None), |at| (0, Some(at))));
    Ok(differences)
}

/// The differences as plain text; a star marks p < 0.05, uncorrected: of twenty metrics that do
/// not differ, one has a star by chance.
pub fn table(differences: &[Difference]) -> String {
    let header = ["metric", "before", "after", "difference", "p", "n", ""];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(differences.iter().map(|d| {
        vec![
            d.metric.clone(),
            format!("{:.3}", d.before),
            format!("{:.3}", d.after),
            format!("{:+.3}", d.test.difference),
            format!("{:.4}", d.test.p_value),
            d.test.n.to_string(),
            if d.test.p_value < 0.05 { "*" } else { "" }.to_owned(),
        ]
    }));
    aligned(&rows) + "* p < 0.05, uncorrected\n"
}
