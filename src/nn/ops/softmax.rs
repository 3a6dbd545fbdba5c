//! Scaled softmax over the keys that a sequence has.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{output, tensor, values, with_values};
use crate::nn::kernels;

/// `softmax(scale * scores)` over the last dimension of `scores`, shape
/// `(batch, heads, queries, keys)`, where sequence `b` has `lengths[b]` keys: those after them get
/// 0, and no gradient. A sequence without keys gets zeros, where masking by minus infinity gives
/// NaN.
///
/// # Errors
/// Another number of sequences, or a sequence with more keys than there are.
pub fn masked_softmax(scores: &Tensor, lengths: Arc<[usize]>, scale: f32) -> Result<Tensor> {
    let (batch, _, _, keys) = scores.dims4()?;
    if lengths.len() != batch || lengths.iter().any(|length| *length > keys) {
        bail!("{batch} sequences of at most {keys} keys have lengths {lengths:?}");
    }
    scores.contiguous()?.apply_op1(MaskedSoftmax { lengths, scale })
}

struct MaskedSoftmax {
    lengths: Arc<[usize]>,
    scale: f32,
}

impl CustomOp1 for MaskedSoftmax {
    fn name(&self) -> &'static str {
        "masked-softmax"
    }

    fn cpu_fwd(&self, scores: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, heads, queries, keys) = layout.shape().dims4()?;
        let mut out = values(scores, layout)?.to_vec();
        out.par_chunks_mut((queries * keys).max(1)).enumerate().for_each(|(head, rows)| {
            kernels::softmax(rows, keys, self.lengths[head / heads], self.scale);
        });
        output(out, layout.shape().clone())
    }

    fn bwd(&self, _scores: &Tensor, p: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (_, _, queries, keys) = p.dims4()?;
        let dx = with_values(p, |p| {
            with_values(grad, |grad| {
                let mut dx = grad.to_vec();
                let block = (queries * keys).max(1);
                dx.par_chunks_mut(block).zip(p.par_chunks(block)).for_each(|(dx, p)| {
                    kernels::softmax_backward(dx, p, keys, self.scale);
                });
                dx
            })
        })??;
        Ok(Some(tensor(dx, p.shape())?))
    }
}
