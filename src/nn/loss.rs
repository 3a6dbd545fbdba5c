//! What retrievers and rerankers are trained by.
//!
//! [`InfoNce`]: each anchor is to choose its positive among all that the batch holds. After van den
//! Oord et al. 2018, with the other positives of the batch as negatives (Karpukhin et al. 2020).
//! What is no true negative is left out of the choice: the positives of an anchor that asks the
//! same, and passages that are equal to the positive, near it or of its document.
//!
//! [`RankingLoss`]: the right candidate of a question is to score above its wrong ones.

use candle_core::Tensor;

use super::ops;
use crate::error::{Error, Result};

/// How scores become a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InfoNce {
    /// Cosines are divided by it.
    pub temperature: f32,
    /// Also let each positive choose its anchor; the loss is the mean of both.
    pub symmetric: bool,
    /// A hard negative counts with at most this share of the positive's cosine, so that one that
    /// is a positive nobody labelled is not driven away (Moreira et al. 2024).
    pub ceiling: f32,
}

impl Default for InfoNce {
    fn default() -> Self {
        Self { temperature: 0.1, symmetric: true, ceiling: 0.95 }
    }
}

/// Who is whose false negative: examples of equal group in either list are.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// Equal for anchors that ask the same, one an example.
    pub anchors: &'a [u64],
    /// Equal for positives that are near-copies or of one document, one an example.
    pub positives: &'a [u64],
    /// The group of each hard negative.
    pub negatives: &'a [u64],
}

impl InfoNce {
    /// The loss, a scalar: `anchors` and `positives` are `(n, dim)` of unit rows, `negatives`
    /// `(m, dim)`: hard negatives, each open to every anchor.
    ///
    /// # Errors
    /// Shapes that do not fit, a temperature that is not above 0.
    pub fn loss(
        &self,
        anchors: &Tensor,
        positives: &Tensor,
        negatives: Option<&Tensor>,
        groups: Groups<'_>,
    ) -> Result<Tensor> {
        let (n, _) = anchors.dims2()?;
        let sizes = [groups.anchors.len(), groups.positives.len()];
        if let Some(got) = sizes.into_iter().find(|size| *size != n) {
            return Err(Error::Shape { what: "groups of a batch", expected: n, got });
        }
        if self.temperature.is_nan() || self.temperature <= 0.0 {
            let temperature = self.temperature;
            return Err(Error::Setting(format!("--temperature {temperature}: must be above 0")));
        }
        let scale = f64::from(1.0 / self.temperature);
        let targets: Vec<u32> = (0_u32..).take(n).collect();
        let false_negative = |i: usize, j: usize| {
            i != j
                && (groups.anchors[i] == groups.anchors[j]
                    || groups.positives[i] == groups.positives[j])
        };
        let cosines = anchors.matmul(&positives.t()?)?;
        let in_batch = (masked(&cosines, false_negative)? * scale)?;
        let logits = match negatives {
            None => in_batch.clone(),
            Some(negatives) => {
                let hard = anchors.matmul(&negatives.t()?)?;
                let positive = (anchors * positives)?.sum_keepdim(1)?;
                let ceiling = (positive * f64::from(self.ceiling))?;
                let hard = hard.minimum(&ceiling.broadcast_as(hard.shape())?)?;
                let hard = masked(&hard, |i, j| groups.positives[i] == groups.negatives[j])?;
                Tensor::cat(&[&in_batch, &(hard * scale)?], 1)?
            }
        };
        let forward = ops::cross_entropy(&logits, &targets)?;
        if !self.symmetric {
            return Ok(forward);
        }
        let backward = ops::cross_entropy(&in_batch.t()?, &targets)?;
        Ok(((forward + backward)? * 0.5)?)
    }
}

/// How the scores of a question's candidates become a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankingLoss {
    /// Each candidate by itself: is it right? The right ones weigh as much as all the wrong ones.
    Bce,
    /// Each wrong candidate against the right one (RankNet, Burges et al. 2005).
    Pairwise,
    /// The right one among all (ListNet's top-one case, Cao et al. 2007).
    Listwise,
}

impl RankingLoss {
    /// The loss, a scalar, of `scores`, shape `(lists, candidates)`, the first of each list right.
    ///
    /// # Errors
    /// Lists without a wrong candidate.
    pub fn loss(self, scores: &Tensor) -> Result<Tensor> {
        let (lists, candidates) = scores.dims2()?;
        if candidates < 2 {
            let (what, got) = ("candidates of a list", candidates);
            return Err(Error::Shape { what, expected: 2, got });
        }
        if self == Self::Listwise {
            return Ok(ops::cross_entropy(scores, &vec![0; lists])?);
        }
        let right = scores.narrow(1, 0, 1)?;
        let wrong = scores.narrow(1, 1, candidates - 1)?;
        Ok(match self {
            Self::Pairwise => softplus(&wrong.broadcast_sub(&right)?)?.mean_all()?,
            _ => ((softplus(&right.neg()?)?.mean_all()? + softplus(&wrong)?.mean_all()?)? * 0.5)?,
        })
    }
}

/// `ln(1 + e^x)`, without overflow.
fn softplus(x: &Tensor) -> Result<Tensor> {
    Ok((x.relu()? + ((x.abs()?.neg()?.exp()? + 1.0)?.log()?))?)
}

/// `scores` with minus infinity where `masked(row, column)`.
fn masked(scores: &Tensor, masked: impl Fn(usize, usize) -> bool) -> Result<Tensor> {
    let (rows, columns) = scores.dims2()?;
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let places: Vec<_> = places.filter(|(row, column)| masked(*row, *column)).collect();
    if places.is_empty() {
        return Ok(scores.clone());
    }
    let mut mask = vec![0_f32; rows * columns];
    for (row, column) in places {
        mask[row * columns + column] = f32::NEG_INFINITY;
    }
    let mask = Tensor::from_vec(mask, (rows, columns), scores.device())?;
    Ok((scores + mask)?)
}
