//! Bias and GELU in one pass, forward and backward.
//!
//! The exact form `x * Phi(x)` (Hendrycks and Gimpel 2016) with the error function of Abramowitz
//! and Stegun 7.1.26, absolute error under 1.5e-7.

use super::exp;

/// `(Phi(x), exp(-x^2 / 2))`: the normal distribution's integral, and its density but for a factor.
#[inline(always)]
#[allow(clippy::excessive_precision)] // The constants as published.
fn normal(x: f32) -> (f32, f32) {
    let a = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let density = exp(-a * a);
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = 1.061_405_429 * t - 1.453_152_027;
    let p = ((p * t + 1.421_413_741) * t - 0.284_496_736) * t + 0.254_829_592;
    let erf = 1.0 - p * t * density;
    (0.5 * (1.0 + erf.copysign(x)), density)
}

vectorised! {
    /// `rows = gelu(rows + bias)`, shapes `(n, d)` and `(d)`.
    pub fn bias_gelu(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (x, b) in row.iter_mut().zip(bias) {
                let v = *x + *b;
                *x = v * normal(v).0;
            }
        }
    }
}

/// The error function as a quotient of polynomials (Eigen's, absolute error under 3e-7): half the
/// work of the form above, which its gradient shares the exponential with.
#[inline(always)]
#[allow(clippy::excessive_precision)] // The constants as published.
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let y = x * x;
    let p = -2.726_142_258_01e-10 * y + 2.770_681_424_96e-8;
    let p = (p * y - 2.101_024_020_83e-6) * y - 5.692_506_394_62e-5;
    let p = ((p * y - 7.349_906_303_27e-4) * y - 2.954_599_808_54e-3) * y - 1.609_603_332_62e-2;
    let q = -1.456_607_184_65e-5 * y - 2.133_740_552_79e-4;
    let q = ((q * y - 1.682_826_974_38e-3) * y - 7.373_329_167_20e-3) * y - 1.426_473_905_14e-2;
    x * p / q
}

vectorised! {
    /// `x = gelu(x)`, the exact form.
    pub fn gelu(values: &mut [f32]) {
        for x in values {
            *x *= 0.5 + 0.5 * erf(*x * std::f32::consts::FRAC_1_SQRT_2);
        }
    }
}

vectorised! {
    /// `x = gelu(x)` by the approximation with a hyperbolic tangent.
    pub fn gelu_tanh(values: &mut [f32]) {
        const SQRT_2_OVER_PI: f32 = 0.797_884_6;
        for x in values {
            let inner = SQRT_2_OVER_PI * (*x + 0.044_715 * *x * *x * *x);
            // (1 + tanh(y)) / 2 = 1 / (1 + exp(-2 y))
            *x /= 1.0 + exp(-2.0 * inner);
        }
    }
}

vectorised! {
    /// What is below zero becomes zero.
    pub fn relu(values: &mut [f32]) {
        for x in values {
            *x = x.max(0.0);
        }
    }
}

vectorised! {
    /// The gradient of [`bias_gelu`] at `rows`: `dx = upstream * gelu'(rows + bias)`, all `(n, d)`.
    pub fn bias_gelu_backward(dx: &mut [f32], rows: &[f32], bias: &[f32], upstream: &[f32]) {
        const INV_SQRT_2PI: f32 = 0.398_942_3;
        let d = bias.len();
        let rows = rows.chunks_exact(d).zip(upstream.chunks_exact(d));
        for (dx, (row, upstream)) in dx.chunks_exact_mut(d).zip(rows) {
            for (((dx, x), b), g) in dx.iter_mut().zip(row).zip(bias).zip(upstream) {
                let v = *x + *b;
                let (phi, density) = normal(v);
                *dx = *g * (phi + v * INV_SQRT_2PI * density);
            }
        }
    }
}
