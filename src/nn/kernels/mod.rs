//! Loops over slices that the compiler turns into vector instructions.
//!
//! Each is compiled three times (AVX-512, AVX2, what every machine has) and the best that the
//! processor can run is chosen at the call. Rust never reorders or contracts floating-point
//! arithmetic, and sums run over a fixed number of lanes, so all three give the same bits.
#![allow(unsafe_code)] // Functions compiled for more than the baseline, once detected.

/// Defines a function that runs compiled for the best instruction set at hand.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn portable($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $type),*) $(-> $ret)? { portable($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) $(-> $ret)? { portable($($arg),*) }
                if std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has what the function was compiled for.
                    return unsafe { avx512($($arg),*) };
                }
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            portable($($arg),*)
        }
    };
}

mod activation;
mod layer_norm;
mod packed;
mod rows;
mod softmax;
mod tile;

pub use activation::{bias_gelu, bias_gelu_backward, gelu, gelu_tanh, relu};
pub use layer_norm::{add_layer_norm, layer_norm, layer_norm_backward};
pub use packed::{Packed, Rows, RowsMut};
pub use rows::{
    AdamWRates, adamw, add_bias, add_scaled, add_scaled_rows, column_sums, dot, log_sum_exp, norm,
    normalize, softmax_into, sum_of_squares,
};
pub use softmax::{softmax, softmax_backward};

/// Lanes that sums run over: one AVX-512 register.
pub(crate) const LANES: usize = 16;

/// `exp(x)` without a branch, relative error under 2e-7 for `x` in -87..88, clamped outside
/// (the polynomial of Cephes' `expf`).
#[inline(always)]
#[allow(clippy::excessive_precision)] // The constants as published.
pub(crate) fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.0);
    let n = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = x - n * 0.693_359_375 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_15e-4_f32;
    p = p * r + 1.398_199_950_7e-3;
    p = p * r + 8.333_451_907_3e-3;
    p = p * r + 4.166_579_589_4e-2;
    p = p * r + 1.666_666_545_9e-1;
    p = p * r + 5.000_000_120_1e-1;
    let power = (((n as i32) + 127) << 23) as u32;
    (p * r * r + r + 1.0) * f32::from_bits(power)
}
