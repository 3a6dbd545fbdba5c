//! Rankings of several searches in, one ranking out.
//!
//! Two rules. Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009) looks at ranks alone;
//! the convex combination (Bruch, Gai and Ingber 2023) keeps how far apart the scores are, each
//! leg normalised between its theoretical minimum and its best score.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    types::{Hit, Ranking, Row, Scale},
};

/// The constant of reciprocal rank fusion, as in the paper.
pub const RRF_K: f32 = 60.0;

/// One ranking and how much it counts.
#[derive(Debug, Clone, Copy)]
pub struct Leg<'a> {
    /// The ranking of one search for one query.
    pub ranking: &'a Ranking,
    /// Its weight; 0 leaves it out.
    pub weight: f32,
}

/// Sum over legs of `weight / (60 + rank)`, ranks from 1; a row absent from a leg gets nothing
/// from it. Equal scores go by best rank, then row.
pub fn reciprocal_rank(legs: &[Leg<'_>], keep: usize) -> Result<Ranking> {
    combine(Scale::Rrf, legs, keep, |_, rank, _| Ok(1.0 / (RRF_K + rank as f32)))
}

/// Mean over legs, by weight, of scores normalised to 0..1: no likeness (0, of BM25 and of a
/// cosine) gives 0, the leg's best score 1. Equal scores go by best rank, then row.
///
/// The paper takes -1 for the cosine's minimum. A row that a leg did not return gets nothing from
/// it, and with -1 that lies half the range below the leg's last hit: being among the leg's
/// candidates would count more than the score.
///
/// # Errors
/// A leg whose scale has no theoretical minimum.
pub fn convex(legs: &[Leg<'_>], keep: usize) -> Result<Ranking> {
    let total: f32 = legs.iter().map(|leg| leg.weight.max(0.0)).sum();
    combine(Scale::Convex, legs, keep, |ranking, _, score| {
        let minimum = match ranking.scale() {
            Scale::Bm25 | Scale::Cosine => 0.0,
            other => {
                let name = other.name();
                return Err(Error::Setting(format!("{name} scores have no minimum to fuse by")));
            }
        };
        let best = ranking.best().unwrap_or(minimum);
        let range = best - minimum;
        Ok(if range > 0.0 { (score - minimum).max(0.0) / range / total } else { 0.0 })
    })
}

fn combine(
    scale: Scale,
    legs: &[Leg<'_>],
    keep: usize,
    value: impl Fn(&Ranking, usize, f32) -> Result<f32>,
) -> Result<Ranking> {
    let mut fused: BTreeMap<Row, (f32, usize)> = BTreeMap::new();
    for leg in legs.iter().filter(|leg| leg.weight > 0.0) {
        for (rank, hit) in (1..).zip(leg.ranking.hits()) {
            let (score, best_rank) = fused.entry(hit.row).or_insert((0.0, rank));
            *score += leg.weight * value(leg.ranking, rank, hit.score)?;
            *best_rank = rank.min(*best_rank);
        }
    }
    let hits = fused.into_iter().map(|(row, (score, rank))| (Hit { row, score }, rank)).collect();
    Ranking::with_ties(scale, hits, keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(scale: Scale, hits: &[(u32, f32)]) -> Ranking {
        let hits = hits.iter().map(|&(row, score)| Hit { row: Row(row), score }).collect();
        Ranking::new(scale, hits, 10).unwrap()
    }

    fn rows(ranking: &Ranking) -> Vec<u32> {
        ranking.hits().iter().map(|hit| hit.row.0).collect()
    }

    #[test]
    fn ranks_count_from_one_and_absent_rows_get_nothing() {
        let a = ranking(Scale::Bm25, &[(1, 9.0), (2, 8.0)]);
        let b = ranking(Scale::Cosine, &[(2, 0.5)]);
        let legs = [Leg { ranking: &a, weight: 1.0 }, Leg { ranking: &b, weight: 1.0 }];
        let fused = reciprocal_rank(&legs, 10).unwrap();
        assert_eq!(rows(&fused), [2, 1]);
        assert_eq!(fused.hits()[0].score, 1.0 / 62.0 + 1.0 / 61.0);
        assert_eq!(fused.hits()[1].score, 1.0 / 61.0);
    }

    #[test]
    fn symmetric_ties_go_by_row_whatever_the_order_of_the_legs() {
        let a = ranking(Scale::Bm25, &[(7, 2.0), (3, 1.0)]);
        let b = ranking(Scale::Cosine, &[(3, 0.9), (7, 0.8)]);
        let (a, b) = (Leg { ranking: &a, weight: 1.0 }, Leg { ranking: &b, weight: 1.0 });
        assert_eq!(rows(&reciprocal_rank(&[a, b], 10).unwrap()), [3, 7]);
        assert_eq!(rows(&reciprocal_rank(&[b, a], 10).unwrap()), [3, 7]);
    }

    #[test]
    fn convex_scores_lie_between_zero_and_one() {
        let a = ranking(Scale::Bm25, &[(1, 8.0), (2, 4.0)]);
        let b = ranking(Scale::Cosine, &[(1, 1.0), (2, 0.0), (3, -1.0)]);
        let legs = [Leg { ranking: &a, weight: 0.5 }, Leg { ranking: &b, weight: 0.5 }];
        let fused = convex(&legs, 10).unwrap();
        let scores: Vec<f32> = fused.hits().iter().map(|hit| hit.score).collect();
        assert_eq!(scores, [1.0, 0.25, 0.0]);
    }

    #[test]
    fn a_leg_of_weight_zero_adds_no_rows() {
        let a = ranking(Scale::Bm25, &[(1, 8.0)]);
        let b = ranking(Scale::Cosine, &[(2, 1.0)]);
        let legs = [Leg { ranking: &a, weight: 1.0 }, Leg { ranking: &b, weight: 0.0 }];
        assert_eq!(rows(&reciprocal_rank(&legs, 10).unwrap()), [1]);
    }
}
