//! Sums, products and softmax of rows; the optimiser's step.

use super::{LANES, exp};

vectorised! {
    /// `sum += scale * row`.
    pub fn add_scaled(sum: &mut [f32], row: &[f32], scale: f32) {
        for (sum, x) in sum.iter_mut().zip(row) {
            *sum += scale * *x;
        }
    }
}

vectorised! {
    /// Adds rows of `table`, each so many times, in their order: `sum` is as long as a row.
    ///
    /// # Panics
    /// A row that the table lacks.
    pub fn add_scaled_rows(sum: &mut [f32], table: &[f32], rows: &[(u32, f32)]) {
        /// Columns that stay in registers while all rows are added.
        const BLOCK: usize = 2 * LANES;
        let d = sum.len();
        let (blocks, tail) = sum.as_chunks_mut::<BLOCK>();
        let from = blocks.len() * BLOCK;
        for (index, block) in blocks.iter_mut().enumerate() {
            let mut sums = *block;
            for &(row, scale) in rows {
                let x = &table[row as usize * d + index * BLOCK..][..BLOCK];
                for i in 0..BLOCK {
                    sums[i] += scale * x[i];
                }
            }
            *block = sums;
        }
        if !tail.is_empty() {
            for &(row, scale) in rows {
                for (sum, x) in tail.iter_mut().zip(&table[row as usize * d + from..]) {
                    *sum += scale * *x;
                }
            }
        }
    }
}

vectorised! {
    /// Adds `bias` to each row, shapes `(n, d)` and `(d)`.
    pub fn add_bias(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (x, b) in row.iter_mut().zip(bias) {
                *x += *b;
            }
        }
    }
}

vectorised! {
    /// Adds each column's sum to `sums`, shapes `(n, d)` and `(d)`.
    pub fn column_sums(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += *x;
            }
        }
    }
}

/// As [`dot`], to be compiled into the loop around it.
#[inline(always)]
pub(super) fn dot_inline(a: &[f32], b: &[f32]) -> f32 {
    let (mut lanes, mut tail) = ([0.0_f32; LANES], 0.0);
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (x, y) in a.remainder().iter().zip(b.remainder()) {
        tail += x * y;
    }
    for (a, b) in a.zip(b) {
        for i in 0..LANES {
            lanes[i] += a[i] * b[i];
        }
    }
    lanes.iter().sum::<f32>() + tail
}

vectorised! {
    /// The dot product of two rows of one length.
    pub fn dot(a: &[f32], b: &[f32]) -> f32 {
        dot_inline(a, b)
    }
}

/// The squared Euclidean norm of a row.
pub fn sum_of_squares(row: &[f32]) -> f32 {
    dot(row, row)
}

/// Scales a row to unit length; a row of zeros stays zeros. A row so long that its norm is no
/// number becomes NaN, which the checks of losses and vectors report, and not zeros, which pass.
pub fn normalize(row: &mut [f32]) {
    let norm = norm(row);
    if norm != 0.0 {
        row.iter_mut().for_each(|x| *x /= norm);
    }
}

/// The Euclidean norm of a row; NaN where its square is beyond `f32`.
pub fn norm(row: &[f32]) -> f32 {
    let norm = sum_of_squares(row).sqrt();
    if norm.is_finite() { norm } else { f32::NAN }
}

#[inline(always)]
pub(super) fn max(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let mut max = f32::NEG_INFINITY;
    for x in chunks.remainder() {
        max = max.max(*x);
    }
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
        }
    }
    lanes.iter().fold(max, |max, x| max.max(*x))
}

vectorised! {
    /// `ln(sum(exp(row)))`; minus infinity where every value is.
    pub fn log_sum_exp(row: &[f32]) -> f32 {
        let max = max(row);
        if max == f32::NEG_INFINITY {
            return max;
        }
        let mut lanes = [0.0_f32; LANES];
        let chunks = row.chunks_exact(LANES);
        let mut tail = 0.0;
        // `exp` clamps: what is masked must not add exp(-87).
        let weight = |x: f32| if x == f32::NEG_INFINITY { 0.0 } else { exp(x - max) };
        for x in chunks.remainder() {
            tail += weight(*x);
        }
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += weight(chunk[i]);
            }
        }
        max + (lanes.iter().sum::<f32>() + tail).ln()
    }
}

vectorised! {
    /// `out = scale * exp(row - log_sum)`; what is minus infinity gets 0.
    pub fn softmax_into(out: &mut [f32], row: &[f32], log_sum: f32, scale: f32) {
        for (out, x) in out.iter_mut().zip(row) {
            *out = if *x == f32::NEG_INFINITY { 0.0 } else { scale * exp(*x - log_sum) };
        }
    }
}

/// What one step of AdamW multiplies with.
#[derive(Debug, Clone, Copy)]
pub struct AdamWRates {
    /// Decay of the mean of gradients.
    pub beta1: f32,
    /// Decay of the mean of their squares.
    pub beta2: f32,
    /// Keeps the division finite.
    pub epsilon: f32,
    /// Learning rate times weight decay.
    pub decay: f32,
    /// `1 / (1 - beta1^t)`.
    pub correct1: f32,
    /// `1 / (1 - beta2^t)`.
    pub correct2: f32,
    /// Learning rate.
    pub lr: f32,
    /// Times the gradient: what clipping leaves of it.
    pub shrink: f32,
}

vectorised! {
    /// One step of AdamW over a parameter's values, in place: `mean` and `square` are its moments.
    pub fn adamw(
        values: &mut [f32],
        gradient: &[f32],
        mean: &mut [f32],
        square: &mut [f32],
        rates: AdamWRates,
    ) {
        let AdamWRates { beta1, beta2, epsilon, decay, correct1, correct2, lr, shrink } = rates;
        let moments = mean.iter_mut().zip(square.iter_mut());
        for ((p, g), (m, v)) in values.iter_mut().zip(gradient).zip(moments) {
            let g = shrink * *g;
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *p = *p * (1.0 - decay) - lr * (*m * correct1) / ((*v * correct2).sqrt() + epsilon);
        }
    }
}
