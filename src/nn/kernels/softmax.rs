//! Softmax over the keys that a sequence has, forward and backward.

use super::{
    LANES, exp,
    rows::{dot_inline, max},
};

vectorised! {
    /// Each row, of `width` values, becomes `softmax(scale * row)` over its first `len` values and
    /// zero beyond; all of it with `len` 0.
    pub fn softmax(rows: &mut [f32], width: usize, len: usize, scale: f32) {
        for row in rows.chunks_exact_mut(width) {
            let (row, beyond) = row.split_at_mut(len);
            beyond.fill(0.0);
            let max = max(row);
            let (mut lanes, mut tail) = ([0.0_f32; LANES], 0.0);
            let mut chunks = row.chunks_exact_mut(LANES);
            for chunk in &mut chunks {
                for i in 0..LANES {
                    let weight = exp((chunk[i] - max) * scale);
                    chunk[i] = weight;
                    lanes[i] += weight;
                }
            }
            for x in chunks.into_remainder() {
                *x = exp((*x - max) * scale);
                tail += *x;
            }
            let share = 1.0 / (lanes.iter().sum::<f32>() + tail);
            row.iter_mut().for_each(|x| *x *= share);
        }
    }
}

vectorised! {
    /// The gradient of [`softmax`] at its result `probabilities`, into `upstream`'s place:
    /// `scale * p * (g - p . g)`.
    pub fn softmax_backward(upstream: &mut [f32], probabilities: &[f32], width: usize, scale: f32) {
        let rows = upstream.chunks_exact_mut(width).zip(probabilities.chunks_exact(width));
        for (g, p) in rows {
            let mean = dot_inline(g, p);
            for (g, p) in g.iter_mut().zip(p) {
                *g = scale * *p * (*g - mean);
            }
        }
    }
}
