//! Layer normalisation (Ba, Kiros and Hinton 2016), forward and backward.

use super::{LANES, rows::dot_inline};

#[inline(always)]
fn sum(row: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let tail: f32 = chunks.remainder().iter().map(|x| term(*x)).sum();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += term(chunk[i]);
        }
    }
    lanes.iter().sum::<f32>() + tail
}

/// Mean, and one over the standard deviation, in two passes: the shortcut by the mean of squares
/// loses what a large mean drowns.
#[inline(always)]
fn moments(row: &[f32], eps: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum(row, |x| x) / n;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / n;
    (mean, 1.0 / (variance + eps).sqrt())
}

#[inline(always)]
fn normalize(row: &mut [f32], gamma: &[f32], beta: &[f32], eps: f32) {
    let (mean, scale) = moments(row, eps);
    for ((x, gamma), beta) in row.iter_mut().zip(gamma).zip(beta) {
        *x = (*x - mean) * scale * *gamma + *beta;
    }
}

vectorised! {
    /// Each row becomes `(row - mean) / sqrt(variance + eps) * gamma + beta`; `rows` is `(n, d)`,
    /// the others `(d)`.
    pub fn layer_norm(rows: &mut [f32], gamma: &[f32], beta: &[f32], eps: f32) {
        for row in rows.chunks_exact_mut(gamma.len()) {
            normalize(row, gamma, beta, eps);
        }
    }
}

vectorised! {
    /// As [`layer_norm`] of `rows + residual`, both `(n, d)`.
    pub fn add_layer_norm(
        rows: &mut [f32],
        residual: &[f32],
        gamma: &[f32],
        beta: &[f32],
        eps: f32,
    ) {
        let d = gamma.len();
        for (row, residual) in rows.chunks_exact_mut(d).zip(residual.chunks_exact(d)) {
            for (x, residual) in row.iter_mut().zip(residual) {
                *x += *residual;
            }
            normalize(row, gamma, beta, eps);
        }
    }
}

vectorised! {
    /// The gradient of [`layer_norm`] at `rows`, into `upstream`'s place, all `(n, d)`; what
    /// `gamma` and `beta` get is added to `sums`, both `(d)`.
    pub fn layer_norm_backward(
        upstream: &mut [f32],
        rows: &[f32],
        gamma: &[f32],
        sums: (&mut [f32], &mut [f32]),
        eps: f32,
    ) {
        let d = gamma.len();
        let (d_gamma, d_beta) = sums;
        let mut centred = vec![0.0; d];
        for (g, row) in upstream.chunks_exact_mut(d).zip(rows.chunks_exact(d)) {
            let (mean, scale) = moments(row, eps);
            for (c, x) in centred.iter_mut().zip(row) {
                *c = (*x - mean) * scale;
            }
            for ((sum, g), c) in d_gamma.iter_mut().zip(g.iter()).zip(&centred) {
                *sum += *g * *c;
            }
            for ((sum, g), gamma) in d_beta.iter_mut().zip(g.iter_mut()).zip(gamma) {
                *sum += *g;
                *g *= *gamma;
            }
            let n = d as f32;
            let (level, slope) = (sum(g, |x| x) / n, dot_inline(g, &centred) / n);
            for (g, c) in g.iter_mut().zip(&centred) {
                *g = scale * (*g - level - *c * slope);
            }
        }
    }
}
