//! Judged pairs and a search in, the same pairs with hard negatives out.
//!
//! What ranks high for an anchor and is not its positive teaches most, unless it is right and
//! nobody judged it. So a candidate must score below 95% of the positive's own score
//! ("TopK-PercPos", Moreira et al. 2024, NV-Retriever), and must not be a near-duplicate of any
//! positive of the anchor.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::{LabelledTexts, text_key};
use crate::{
    error::{Error, Result},
    rng::derive,
    types::Ranking,
};

/// Ranks the passages of a [`LabelledTexts`] by their places in it: text and number of hits in.
pub type SearchFn<'a> = dyn Fn(&str, usize) -> Result<Ranking> + Sync + 'a;

/// What becomes a hard negative.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct MineSettings {
    /// Negatives that a pair gets at most.
    pub negatives: usize,
    /// Hits that they are drawn from.
    pub depth: usize,
    /// Share of the positive's score that a negative must stay below.
    pub margin: f32,
    /// Draws them.
    pub seed: u64,
}

impl Default for MineSettings {
    fn default() -> Self {
        Self { negatives: 4, depth: 100, margin: 0.95, seed: 0 }
    }
}

/// What mining came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct MineReport {
    /// Negatives added.
    pub mined: usize,
    /// Candidates left out for a score too near to the positive's, or above it.
    pub too_near: usize,
    /// Pairs left as they were: their positive is not among the hits, or scores 0 or less, so that
    /// nothing can be held against its score.
    pub without_score: usize,
}

/// Adds hard negatives to the pairs of `texts`.
///
/// # Errors
/// A margin outside of 0 to 1; a search that fails or finds what is not there.
pub fn mine_negatives(
    texts: &mut LabelledTexts,
    search: &SearchFn<'_>,
    settings: &MineSettings,
) -> Result<MineReport> {
    if !(0.0..=1.0).contains(&settings.margin) {
        let message = format!("a margin of {} is no share between 0 and 1", settings.margin);
        return Err(Error::Setting(message));
    }
    let keys: Vec<u64> = texts.anchors.iter().map(|anchor| text_key(anchor)).collect();
    let mut right: HashMap<u64, HashSet<u64>> = HashMap::new();
    for pair in &texts.pairs {
        right.entry(keys[pair.anchor]).or_default().insert(texts.groups[pair.positive]);
    }
    let mined: Vec<(Vec<usize>, MineReport)> = (0..texts.pairs.len())
        .into_par_iter()
        .map(|at| mine(texts, at, search, (settings, &right[&keys[texts.pairs[at].anchor]])))
        .collect::<Result<_>>()?;
    let mut total = MineReport::default();
    for (pair, (negatives, report)) in texts.pairs.iter_mut().zip(mined) {
        pair.negatives.extend(negatives);
        total.mined += report.mined;
        total.too_near += report.too_near;
        total.without_score += report.without_score;
    }
    Ok(total)
}

/// The negatives of one pair, none of whose groups is `right`.
fn mine(
    texts: &LabelledTexts,
    at: usize,
    search: &SearchFn<'_>,
    (settings, right): (&MineSettings, &HashSet<u64>),
) -> Result<(Vec<usize>, MineReport)> {
    let pair = &texts.pairs[at];
    let mut report = MineReport::default();
    let ranking = search(&texts.anchors[pair.anchor], settings.depth)?;
    let hits: Vec<(usize, f32)> =
        ranking.hits().iter().map(|hit| (hit.row.0 as usize, hit.score)).collect();
    if let Some((row, _)) = hits.iter().find(|(row, _)| *row >= texts.passages.len()) {
        return Err(Error::UnknownRow { row: *row as u32 });
    }
    let positive = hits.iter().find(|(row, _)| *row == pair.positive).map(|(_, score)| *score);
    let Some(positive) = positive.filter(|score| *score > 0.0) else {
        report.without_score = 1;
        return Ok((Vec::new(), report));
    };
    let mut negatives = Vec::new();
    for (row, score) in hits {
        if right.contains(&texts.groups[row]) || pair.negatives.contains(&row) {
            continue;
        }
        if score > settings.margin * positive {
            report.too_near += 1;
        } else {
            negatives.push(row);
        }
    }
    derive(settings.seed, &format!("mine-{at}")).shuffle(&mut negatives);
    negatives.truncate(settings.negatives);
    report.mined = negatives.len();
    Ok((negatives, report))
}
