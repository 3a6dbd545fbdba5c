//! The tiles against a plain sum.

use super::{super::packed::Packed, *};

// The tile of 16 lanes on any processor: all of it but the instructions.
type Lanes = [f32; 16];

fn zero() -> Lanes {
    [0.0; 16]
}

fn set(x: f32) -> Lanes {
    [x; 16]
}

unsafe fn load(from: *const f32) -> Lanes {
    // SAFETY: the caller's.
    unsafe { from.cast::<Lanes>().read_unaligned() }
}

unsafe fn store(to: *mut f32, x: Lanes) {
    // SAFETY: the caller's.
    unsafe { to.cast::<Lanes>().write_unaligned(x) }
}

fn fma(x: Lanes, y: Lanes, sum: Lanes) -> Lanes {
    std::array::from_fn(|i| x[i].mul_add(y[i], sum[i]))
}

tiles!(
    emulated, "sse2", super::Lanes, lanes 16, rows 12: 1 2 3 4 5 6 7 8 9 10 11,
    super::zero, super::set, super::load, super::store, super::fma
);

/// Every height and width of tile gives what a plain sum gives.
#[test]
fn all_tiles_compute_the_product() {
    let odd = [(5, 400, 31), (7, 1, 1), (3, 900, 33), (25, 64, 16), (13, 385, 100)];
    for (rows, inputs, outputs) in (1..=13).map(|n| (n, 7 * n, 48)).chain(odd) {
        let value = |i: usize| ((i * 7919) % 257) as f32 / 128.0 - 1.0;
        let weight: Vec<f32> = (0..inputs * outputs).map(value).collect();
        let x: Vec<f32> = (0..rows * inputs).map(|i| value(i + 3)).collect();
        let bias: Vec<f32> = (0..outputs).map(|i| value(i + 11)).collect();
        let packed = Packed::new(&weight, inputs);
        for bias in [&bias[..], &[]] {
            for run in [run, emulated::run, portable] {
                let mut out = vec![f32::NAN; rows * outputs];
                let job = packed.job(&mut out, outputs, (&x, inputs, rows), bias);
                // SAFETY: the sizes are those of the slices, and no instructions are used
                // that have not been looked for.
                unsafe { run(&job) };
                for (place, got) in out.iter().enumerate() {
                    let (row, output) = (place / outputs, place % outputs);
                    let x = &x[row * inputs..][..inputs];
                    let weight = &weight[output * inputs..][..inputs];
                    let dot: f64 = (x.iter().zip(weight)).map(|(x, w)| f64::from(x * w)).sum();
                    let expected = dot + f64::from(*bias.get(output).unwrap_or(&0.0));
                    let apart = (f64::from(*got) - expected).abs();
                    assert!(apart < 1e-4, "{rows} x {inputs} x {outputs} at {place}: {apart}");
                }
            }
        }
    }
}
