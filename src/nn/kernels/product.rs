//! The matrix product, on one thread.

/// `out = x W^T`: `x` is `(n, in)`, `weight` `(out, in)` and `out` `(n, out)`.
///
/// # Panics
/// Slices whose lengths are no such shapes.
pub fn product(out: &mut [f32], x: &[f32], weight: &[f32], inputs: usize) {
    let (n, outputs) = (x.len() / inputs, weight.len() / inputs);
    assert!(x.len() == n * inputs && weight.len() == outputs * inputs, "whole rows");
    assert!(out.len() == n * outputs, "room for {n} x {outputs} values, got {}", out.len());
    // SAFETY: the strides span exactly the slices, whose lengths have been checked, and `out`
    // is borrowed alone.
    unsafe {
        gemm::gemm(
            n,
            outputs,
            inputs,
            out.as_mut_ptr(),
            1,
            outputs as isize,
            false,
            x.as_ptr(),
            1,
            inputs as isize,
            weight.as_ptr(),
            inputs as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
