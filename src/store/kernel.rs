//! Dot products of a few queries with many rows: where the time of an exact search goes.
//!
//! Rows come interleaved in blocks of [`LANES`]: the first value of each row of the block, then
//! the second of each, and so on. A register then holds one value of 16 rows, no sum runs across
//! a register, and any length of row will do. A tile of queries x blocks stays in registers while
//! its rows stream past once. Each dot product is one chain of multiply-adds in the order of the
//! values, whatever the tile, so that a batch and a single query give the same bits.
#![allow(unsafe_code)] // Vector intrinsics, in tiles whose slices are checked before they run.

/// Rows in a block.
pub(super) const LANES: usize = 16;

/// A way of computing that this machine has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    /// What the bench calls it.
    pub(super) name: &'static str,
    /// Blocks of the wide tiles.
    blocks: usize,
    /// Most queries first; for each number of queries a wide tile, then one of a single block.
    tiles: &'static [Tile],
}

#[derive(Debug, Clone, Copy)]
struct Tile {
    queries: usize,
    blocks: usize,
    /// Takes `dim`, queries `(queries, dim)`, blocks `(blocks, dim, 16)` and scores of which
    /// query `q` has those from `q * stride`, then `stride`.
    run: unsafe fn(usize, &[f32], &[f32], &mut [f32], usize),
}

impl Kernel {
    /// The fastest that this machine can run.
    pub(super) fn best() -> Self {
        Self::available()[0]
    }

    /// All that this machine can run, fastest first.
    pub(super) fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                kernels.push(Self { name: "avx512", blocks: 3, tiles: &avx512::TILES });
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                kernels.push(Self { name: "avx2", blocks: 1, tiles: &avx2::TILES });
            }
        }
        kernels.push(Self { name: "portable", blocks: 1, tiles: &portable::TILES });
        kernels
    }

    /// Writes the dot product of query `q` with row `r` of `blocks` to `scores[q * rows + r]`.
    ///
    /// `queries` has shape `(queries, dim)`, `blocks` `(rows / 16, dim, 16)`, `scores`
    /// `(queries, rows)`.
    pub(super) fn dots(&self, dim: usize, queries: &[f32], blocks: &[f32], scores: &mut [f32]) {
        let rows = blocks.len() / dim;
        let all = queries.len() / dim;
        assert!(rows.is_multiple_of(LANES) && blocks.len() == rows * dim, "whole blocks");
        assert!(queries.len() == all * dim && scores.len() == all * rows, "whole queries");
        let mut row = 0;
        while row < rows {
            let wide = if rows - row >= self.blocks * LANES { self.blocks } else { 1 };
            let end = row + wide * LANES;
            let mut query = 0;
            while let Some(tile) =
                self.tiles.iter().find(|tile| tile.blocks == wide && tile.queries <= all - query)
                && query < all
            {
                let queries = &queries[query * dim..][..tile.queries * dim];
                let scores = &mut scores[query * rows + row..];
                let scores = &mut scores[..(tile.queries - 1) * rows + wide * LANES];
                // SAFETY: `available` offers a kernel only where the processor has what its
                // tiles need, and the slices have the lengths that a tile asks for.
                unsafe { (tile.run)(dim, queries, &blocks[row * dim..end * dim], scores, rows) };
                query += tile.queries;
            }
            row = end;
        }
    }
}

/// The tiles of one kernel, as a constant: `(queries, blocks)` of each.
macro_rules! tiles {
    ($(($queries:literal, $blocks:literal)),* $(,)?) => {
        pub(super) static TILES: [super::Tile; [$($queries),*].len()] = [$(super::Tile {
            queries: $queries,
            blocks: $blocks,
            run: tile::<$queries, $blocks>,
        }),*];
    };
}

mod portable {
    use super::LANES;

    tiles![(1, 1)];

    fn tile<const Q: usize, const B: usize>(
        dim: usize,
        queries: &[f32],
        blocks: &[f32],
        scores: &mut [f32],
        stride: usize,
    ) {
        for (query, scores) in queries.chunks_exact(dim).zip(scores.chunks_mut(stride)) {
            let blocks = blocks.chunks_exact(dim * LANES);
            for (block, scores) in blocks.zip(scores.as_chunks_mut::<LANES>().0) {
                let mut sums = [0.0; LANES];
                for (x, values) in query.iter().zip(block.as_chunks::<LANES>().0) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += x * value;
                    }
                }
                *scores = sums;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::LANES;
    use std::arch::x86_64::*;

    // 8 x 3 sums, 3 blocks and a query fill 28 of 32 registers.
    tiles![(8, 3), (8, 1), (4, 3), (4, 1), (2, 3), (2, 1), (1, 3), (1, 1)];

    #[target_feature(enable = "avx512f")]
    fn tile<const Q: usize, const B: usize>(
        dim: usize,
        queries: &[f32],
        blocks: &[f32],
        scores: &mut [f32],
        stride: usize,
    ) {
        // What the unchecked reads below rest on.
        assert!(queries.len() == Q * dim && blocks.len() == B * dim * LANES);
        let mut sums = [[_mm512_setzero_ps(); B]; Q];
        for d in 0..dim {
            let mut values = [_mm512_setzero_ps(); B];
            for (b, values) in values.iter_mut().enumerate() {
                // SAFETY: `blocks` has shape (B, dim, 16).
                *values = unsafe { _mm512_loadu_ps(blocks.as_ptr().add((b * dim + d) * LANES)) };
            }
            for (q, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `queries` has shape (Q, dim).
                let x = _mm512_set1_ps(unsafe { *queries.get_unchecked(q * dim + d) });
                for (sum, values) in sums.iter_mut().zip(values) {
                    *sum = _mm512_fmadd_ps(x, values, *sum);
                }
            }
        }
        for (q, sums) in sums.iter().enumerate() {
            for (sum, out) in sums.iter().zip(scores[q * stride..].as_chunks_mut::<LANES>().0) {
                // SAFETY: `out` is an array of 16 values.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr(), *sum) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::LANES;
    use std::arch::x86_64::*;

    // 6 x 2 sums, 2 halves of a block and a query fill 15 of 16 registers.
    tiles![(6, 1), (4, 1), (2, 1), (1, 1)];

    #[target_feature(enable = "avx2,fma")]
    fn tile<const Q: usize, const B: usize>(
        dim: usize,
        queries: &[f32],
        blocks: &[f32],
        scores: &mut [f32],
        stride: usize,
    ) {
        // What the unchecked reads below rest on.
        assert!(queries.len() == Q * dim && blocks.len() == B * dim * LANES);
        let mut sums = [[[_mm256_setzero_ps(); 2]; B]; Q];
        for d in 0..dim {
            for b in 0..B {
                // SAFETY: `blocks` has shape (B, dim, 16).
                let halves = unsafe {
                    let at = blocks.as_ptr().add((b * dim + d) * LANES);
                    [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(LANES / 2))]
                };
                for (q, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: `queries` has shape (Q, dim).
                    let x = _mm256_set1_ps(unsafe { *queries.get_unchecked(q * dim + d) });
                    for (sum, half) in sums[b].iter_mut().zip(halves) {
                        *sum = _mm256_fmadd_ps(x, half, *sum);
                    }
                }
            }
        }
        for (q, sums) in sums.iter().enumerate() {
            for (sum, out) in sums.iter().zip(scores[q * stride..].as_chunks_mut::<LANES>().0) {
                // SAFETY: `out` is an array of 16 values, of which each half is written.
                unsafe {
                    _mm256_storeu_ps(out.as_mut_ptr(), sum[0]);
                    _mm256_storeu_ps(out.as_mut_ptr().add(LANES / 2), sum[1]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_kernel_agrees_with_a_plain_loop() {
        let mut rng = Rng::new(1);
        let mut random = |n| (0..n).map(|_| rng.uniform() as f32 - 0.5).collect::<Vec<_>>();
        for dim in [1, 2, 15, 16, 17, 64, 257] {
            for blocks in [0, 1, 2, 3, 4, 7] {
                for many in [1, 2, 3, 5, 6, 7, 8, 9, 15, 33] {
                    let rows = blocks * LANES;
                    let (data, queries) = (random(rows * dim), random(many * dim));
                    for kernel in Kernel::available() {
                        let mut scores = vec![f32::NAN; many * rows];
                        kernel.dots(dim, &queries, &data, &mut scores);
                        check(kernel.name, dim, &queries, &data, &scores);
                    }
                }
            }
        }
    }

    #[track_caller]
    fn check(name: &str, dim: usize, queries: &[f32], data: &[f32], scores: &[f32]) {
        let rows = data.len() / dim;
        for (at, score) in scores.iter().enumerate() {
            let (query, row) = (&queries[at / rows * dim..][..dim], at % rows);
            let value = |d| data[(row / LANES * dim + d) * LANES + row % LANES];
            let exact: f64 = (0..dim).map(|d| f64::from(query[d]) * f64::from(value(d))).sum();
            assert!((f64::from(*score) - exact).abs() < 1e-5, "{name} {dim} {at}: {score} {exact}");
        }
    }
}
