//! Softmax and cross-entropy that keep only the logits and a number for each row.

use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{BLOCK, output, tensor, values, with_values};
use crate::nn::kernels;

/// The mean over rows of `-ln softmax(logits)[target]`, a scalar: `logits` is `(n, classes)`,
/// with minus infinity for what a row may not choose; one target a row.
///
/// # Errors
/// Another number of targets than rows, or a target that is no column.
pub fn cross_entropy(logits: &Tensor, targets: &[u32]) -> Result<Tensor> {
    let (rows, classes) = logits.dims2()?;
    if rows != targets.len() || rows == 0 {
        bail!("{rows} rows of logits have {} targets", targets.len());
    }
    if let Some(target) = targets.iter().find(|target| **target as usize >= classes) {
        bail!("target {target} of {classes} classes");
    }
    let sums = OnceLock::new();
    logits.contiguous()?.apply_op1(CrossEntropy { targets: targets.into(), sums })
}

struct CrossEntropy {
    targets: Box<[u32]>,
    /// Each row's `ln(sum(exp))`, kept for the way back.
    sums: OnceLock<Vec<f32>>,
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, classes) = layout.shape().dims2()?;
        let logits = values(logits, layout)?;
        let sums = self.sums.get_or_init(|| log_sums(logits, classes));
        let rows = logits.chunks_exact(classes).zip(&self.targets[..]);
        let losses = sums.iter().zip(rows).map(|(sum, (row, target))| sum - row[*target as usize]);
        let total: f64 = losses.map(f64::from).sum();
        output(vec![(total / sums.len() as f64) as f32], ())
    }

    /// `(softmax - one_hot(target)) / n`.
    fn bwd(&self, logits: &Tensor, _loss: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let classes = logits.dim(1)?;
        let scale = grad.to_scalar::<f32>()? / self.targets.len() as f32;
        let dx = with_values(logits, |logits| {
            let sums = self.sums.get_or_init(|| log_sums(logits, classes));
            let mut dx = vec![0.0; logits.len()];
            let rows = logits.par_chunks(classes).zip(sums).zip(&self.targets[..]);
            let rows = dx.par_chunks_mut(classes).zip(rows).with_min_len(BLOCK);
            rows.for_each(|(dx, ((row, sum), target))| {
                kernels::softmax_into(dx, row, *sum, scale);
                dx[*target as usize] -= scale;
            });
            dx
        })?;
        Ok(Some(tensor(dx, logits.shape())?))
    }
}

fn log_sums(logits: &[f32], classes: usize) -> Vec<f32> {
    logits.par_chunks(classes).with_min_len(BLOCK).map(kernels::log_sum_exp).collect()
}
