//! `x W^T + b`, and with GELU after it.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{BLOCK, output, tensor, values, with_values};
use crate::nn::kernels;

/// `x W^T + b`: `x` is `(n, in)`, `weight` `(out, in)`, `bias` `(out)`, the result `(n, out)`.
///
/// # Errors
/// Shapes that do not fit.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let product = x.matmul(&weight.t()?)?;
    match bias {
        Some(bias) => product.apply_op2(bias, AddBias),
        None => Ok(product),
    }
}

/// `gelu(x W^T + b)`, with the exact GELU; shapes as [`linear`].
///
/// # Errors
/// Shapes that do not fit.
pub fn linear_gelu(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    x.matmul(&weight.t()?)?.apply_op2(bias, BiasGelu)
}

struct AddBias;

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let mut out = values(x, x_layout)?.to_vec();
        kernels::add_bias(&mut out, values(bias, bias_layout)?);
        output(out, x_layout.shape().clone())
    }

    fn bwd(
        &self,
        _x: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let sums = with_values(grad, |grad| column_sums(grad, bias.elem_count()))?;
        Ok((Some(grad.clone()), Some(tensor(sums, bias.shape())?)))
    }
}

struct BiasGelu;

impl CustomOp2 for BiasGelu {
    fn name(&self) -> &'static str {
        "bias-gelu"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let mut out = values(x, x_layout)?.to_vec();
        let bias = values(bias, bias_layout)?;
        out.par_chunks_mut(BLOCK * bias.len()).for_each(|rows| kernels::bias_gelu(rows, bias));
        output(out, x_layout.shape().clone())
    }

    fn bwd(
        &self,
        x: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d = bias.elem_count();
        let (dx, sums) = with_values(x, |x| {
            with_values(bias, |bias| {
                with_values(grad, |grad| {
                    let mut dx = vec![0.0; x.len()];
                    let blocks = x.par_chunks(BLOCK * d).zip(grad.par_chunks(BLOCK * d));
                    dx.par_chunks_mut(BLOCK * d).zip(blocks).for_each(|(dx, (x, grad))| {
                        kernels::bias_gelu_backward(dx, x, bias, grad);
                    });
                    let sums = column_sums(&dx, d);
                    (dx, sums)
                })
            })
        })???;
        Ok((Some(tensor(dx, x.shape())?), Some(tensor(sums, bias.shape())?)))
    }
}

/// The sum of each of `d` columns, over blocks of rows that do not depend on the threads.
fn column_sums(rows: &[f32], d: usize) -> Vec<f32> {
    let block = |rows: &[f32]| {
        let mut sums = vec![0.0; d];
        kernels::column_sums(rows, &mut sums);
        sums
    };
    let blocks: Vec<Vec<f32>> = rows.par_chunks(8 * BLOCK * d).map(block).collect();
    let mut total = vec![0.0; d];
    for sums in &blocks {
        kernels::add_scaled(&mut total, sums, 1.0);
    }
    total
}
