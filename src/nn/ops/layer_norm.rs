//! Layer normalisation.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{BLOCK, output, tensor, values, with_values};
use crate::nn::kernels;

/// `(x - mean) / sqrt(variance + eps) * gamma + beta` of each row: `x` is `(n, d)`, the others
/// `(d)`. candle's own fused form lets no gradient through.
///
/// # Errors
/// Shapes that do not fit.
pub fn layer_norm(x: &Tensor, gamma: &Tensor, beta: &Tensor, eps: f32) -> Result<Tensor> {
    let (_, d) = x.dims2()?;
    if gamma.dims() != [d] || beta.dims() != [d] {
        bail!("layer norm of {d} values by {:?} and {:?}", gamma.shape(), beta.shape());
    }
    x.apply_op3(gamma, beta, LayerNorm { eps })
}

struct LayerNorm {
    eps: f32,
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        gamma: &CpuStorage,
        gamma_layout: &Layout,
        beta: &CpuStorage,
        beta_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let mut out = values(x, x_layout)?.to_vec();
        let (gamma, beta) = (values(gamma, gamma_layout)?, values(beta, beta_layout)?);
        out.par_chunks_mut(BLOCK * gamma.len())
            .for_each(|rows| kernels::layer_norm(rows, gamma, beta, self.eps));
        output(out, x_layout.shape().clone())
    }

    fn bwd(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let d = gamma.elem_count();
        let (dx, d_gamma, d_beta) = with_values(x, |x| {
            with_values(gamma, |gamma| {
                with_values(grad, |grad| {
                    let mut dx = grad.to_vec();
                    let blocks = dx.par_chunks_mut(BLOCK * d).zip(x.par_chunks(BLOCK * d));
                    let sums: Vec<(Vec<f32>, Vec<f32>)> = blocks
                        .map(|(dx, x)| {
                            let (mut d_gamma, mut d_beta) = (vec![0.0; d], vec![0.0; d]);
                            let sums = (&mut d_gamma[..], &mut d_beta[..]);
                            kernels::layer_norm_backward(dx, x, gamma, sums, self.eps);
                            (d_gamma, d_beta)
                        })
                        .collect();
                    let (mut d_gamma, mut d_beta) = (vec![0.0; d], vec![0.0; d]);
                    for (gamma, beta) in &sums {
                        kernels::add_scaled(&mut d_gamma, gamma, 1.0);
                        kernels::add_scaled(&mut d_beta, beta, 1.0);
                    }
                    (dx, d_gamma, d_beta)
                })
            })
        })???;
        Ok((
            Some(tensor(dx, x.shape())?),
            Some(tensor(d_gamma, gamma.shape())?),
            Some(tensor(d_beta, beta.shape())?),
        ))
    }
}
