//! Rows to unit length.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{BLOCK, output, tensor, values, with_values};
use crate::nn::kernels;

/// Divides each row of `x`, shape `(n, d)`, by its Euclidean norm. A row of zeros stays zeros and
/// gets no gradient, where a plain division gives NaN.
///
/// # Errors
/// A tensor that is not contiguous.
pub fn l2_normalize(x: &Tensor) -> Result<Tensor> {
    x.apply_op1(Normalize)
}

struct Normalize;

impl CustomOp1 for Normalize {
    fn name(&self) -> &'static str {
        "l2-normalize"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, d) = layout.shape().dims2()?;
        let mut out = values(x, layout)?.to_vec();
        out.par_chunks_mut(d).with_min_len(BLOCK).for_each(kernels::normalize);
        output(out, layout.shape().clone())
    }

    /// `(g - y (y . g)) / |x|` for `y = x / |x|`.
    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let d = x.dim(1)?;
        let dx = with_values(x, |x| {
            with_values(y, |y| {
                with_values(grad, |grad| {
                    let mut dx = grad.to_vec();
                    let rows = x.par_chunks(d).zip(y.par_chunks(d));
                    dx.par_chunks_mut(d).zip(rows).with_min_len(BLOCK).for_each(|(dx, (x, y))| {
                        let norm = kernels::norm(x);
                        let scale = if norm == 0.0 { 0.0 } else { 1.0 / norm };
                        let along = kernels::dot(y, dx);
                        for (dx, y) in dx.iter_mut().zip(y) {
                            *dx = (*dx - along * y) * scale;
                        }
                    });
                    dx
                })
            })
        })???;
        Ok(Some(tensor(dx, x.shape())?))
    }
}
