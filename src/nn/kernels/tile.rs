//! The innermost loops of [`Packed::multiply`](super::Packed::multiply), one for each set of
//! instructions: a tile of rows by two vectors of outputs is kept in registers while the inputs
//! go by.

use super::packed::Line;

/// One product, its sizes checked.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) rows: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) x: *const f32,
    pub(super) x_stride: usize,
    pub(super) lines: *const Line,
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    /// Null for none.
    pub(super) bias: *const f32,
}

/// A tile's sums: where they start from, which may be null, and where they go to.
#[derive(Clone, Copy)]
struct Sums {
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
}

/// The rows, inputs and panels of a tile: `b` is the first panel, `next` values further begins
/// the tile's second vector.
#[derive(Clone, Copy)]
struct Operands {
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    next: usize,
    inputs: usize,
}

/// At most this many inputs at a time, so that their part of a panel stays in the nearest cache.
const INPUTS: usize = 384;
/// Outputs of the widest tile, and rows of the highest.
const WIDEST: usize = 32;
const HIGHEST: usize = 12;

/// Defines the loop over all tiles and the tile for one set of instructions.
macro_rules! tiles {
    (
        $name:ident, $features:tt, $vector:ty, lanes $lanes:literal, rows $rows:literal: $($m:literal)*,
        $zero:path, $set:path, $load:path, $store:path, $fma:path
    ) => {
        mod $name {
            use super::{HIGHEST, INPUTS, Job, Line, Operands, Sums, WIDEST};
            use std::arch::x86_64::*;

            const WIDTH: usize = 2 * $lanes;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn run(job: &Job) {
                let blocks = job.inputs.div_ceil(INPUTS).max(1);
                let depth = job.inputs.div_ceil(blocks);
                for column in (0..job.outputs).step_by(WIDTH) {
                    for start in (0..job.inputs.max(1)).step_by(depth.max(1)) {
                        let inputs = depth.min(job.inputs - start);
                        // What is read next is fetched on the way, a share with each tile: in the
                        // same panels, or in those after them.
                        let last = start + inputs == job.inputs;
                        let ahead = if last { (WIDTH / Line::LEN - 1) * job.inputs } else { 0 };
                        let next = column / Line::LEN * job.inputs + start + inputs + ahead;
                        let share = inputs.div_ceil(job.rows.div_ceil($rows));
                        for row in (0..job.rows).step_by($rows) {
                            let rows = (job.rows - row).min($rows);
                            let next = job.lines.wrapping_add(next + row / $rows * share);
                            // SAFETY: a hint may name any address; the tile is within the job.
                            unsafe {
                                for line in 0..share {
                                    let line = next.wrapping_add(line);
                                    _mm_prefetch::<_MM_HINT_T1>(line.cast());
                                    if WIDTH > Line::LEN {
                                        let beside = line.wrapping_add(job.inputs);
                                        _mm_prefetch::<_MM_HINT_T1>(beside.cast());
                                    }
                                }
                                tile(job, (row, rows), (start, inputs), column);
                            }
                        }
                    }
                }
            }

            /// One tile; where fewer outputs are left than it is wide, by way of a buffer.
            #[target_feature(enable = $features)]
            unsafe fn tile(
                job: &Job,
                (row, rows): (usize, usize),
                (start, inputs): (usize, usize),
                column: usize,
            ) {
                // SAFETY: `row`, `start` and `column` are within the job's sizes; a panel has
                // whole lines, and there is an even number of panels.
                unsafe {
                    let panel = job.lines.add(column / Line::LEN * job.inputs + start);
                    let operands = Operands {
                        a: job.x.add(row * job.x_stride + start),
                        a_stride: job.x_stride,
                        b: panel.cast(),
                        next: if $lanes < Line::LEN { $lanes } else { job.inputs * Line::LEN },
                        inputs,
                    };
                    let to = job.out.add(row * job.out_stride + column);
                    let (from, from_stride) = match (start, job.bias.is_null()) {
                        (1.., _) => (to.cast_const(), job.out_stride),
                        (0, false) => (job.bias.add(column), 0),
                        (0, true) => (std::ptr::null(), 0),
                    };
                    let sums = Sums { from, from_stride, to, to_stride: job.out_stride };
                    let width = job.outputs - column;
                    if width >= WIDTH {
                        return sized(rows, operands, sums);
                    }
                    let mut buffer = [0.0_f32; HIGHEST * WIDEST];
                    let inside = buffer.as_mut_ptr();
                    for i in (0..rows).filter(|_| !from.is_null()) {
                        from.add(i * from_stride).copy_to(inside.add(i * WIDTH), width);
                    }
                    let (from, stride) = (inside.cast_const(), WIDTH);
                    let within = Sums { from, from_stride: stride, to: inside, to_stride: stride };
                    sized(rows, operands, within);
                    for i in 0..rows {
                        inside.add(i * WIDTH).copy_to(to.add(i * job.out_stride), width);
                    }
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn sized(rows: usize, operands: Operands, sums: Sums) {
                // SAFETY: handed on.
                unsafe {
                    match rows {
                        $($m => registers::<$m>(operands, sums),)*
                        _ => registers::<$rows>(operands, sums),
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            unsafe fn registers<const M: usize>(operands: Operands, sums: Sums) {
                let Operands { a, a_stride, b, next, inputs } = operands;
                let mut low: [$vector; M] = [$zero(); M];
                let mut high: [$vector; M] = [$zero(); M];
                // SAFETY: M rows of `a`, of the sums and `inputs` lines of the panel are there.
                unsafe {
                    if !sums.from.is_null() {
                        for i in 0..M {
                            let from = sums.from.add(i * sums.from_stride);
                            low[i] = $load(from);
                            high[i] = $load(from.add($lanes));
                        }
                    }
                    for k in 0..inputs {
                        let line = b.add(k * Line::LEN);
                        let (left, right) = ($load(line), $load(line.add(next)));
                        for i in 0..M {
                            let value = $set(*a.add(i * a_stride + k));
                            low[i] = $fma(value, left, low[i]);
                            high[i] = $fma(value, right, high[i]);
                        }
                    }
                    for i in 0..M {
                        let to = sums.to.add(i * sums.to_stride);
                        $store(to, low[i]);
                        $store(to.add($lanes), high[i]);
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
tiles!(
    avx512, "avx512f,avx2,fma", __m512, lanes 16, rows 12: 1 2 3 4 5 6 7 8 9 10 11,
    _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps
);

#[cfg(target_arch = "x86_64")]
tiles!(
    avx2, "avx2,fma", __m256, lanes 8, rows 6: 1 2 3 4 5,
    _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps
);

/// Does the product with the best instructions at hand.
///
/// # Safety
/// The job's pointers must be good for its sizes.
pub(super) unsafe fn run(job: &Job) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has what the function was compiled for; the rest is handed on.
            return unsafe { avx512::run(job) };
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { avx2::run(job) };
        }
    }
    // SAFETY: handed on.
    unsafe { portable(job) }
}

/// The same sums without vector instructions of our own choice.
unsafe fn portable(job: &Job) {
    // Where the processor has it, the compiler knows; elsewhere it would be a call for each value.
    let fused = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
    let add = |sum: f32, x: f32, y: f32| if fused { x.mul_add(y, sum) } else { sum + x * y };
    for column in (0..job.outputs).step_by(Line::LEN) {
        let width = (job.outputs - column).min(Line::LEN);
        for row in 0..job.rows {
            let mut sums = [0.0_f32; Line::LEN];
            // SAFETY: within the job's sizes.
            unsafe {
                if !job.bias.is_null() {
                    job.bias.add(column).copy_to(sums.as_mut_ptr(), width);
                }
                let panel = job.lines.add(column / Line::LEN * job.inputs);
                for k in 0..job.inputs {
                    let x = *job.x.add(row * job.x_stride + k);
                    for (sum, y) in sums.iter_mut().zip((*panel.add(k)).0) {
                        *sum = add(*sum, x, y);
                    }
                }
                sums.as_ptr().copy_to(job.out.add(row * job.out_stride + column), width);
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
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
}
