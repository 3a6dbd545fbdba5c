//! The one seeded generator: same seed, same numbers, on every machine and thread count.
//!
//! xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64. It is always passed as an
//! argument; nothing in the crate draws from a global or from the clock.

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

/// The seed of a named sub-stream, so that one `--seed` feeds `"shuffle"`, `"init"` and others
/// without any of them moving another.
pub fn derive(seed: u64, stream: &str) -> Rng {
    // FNV-1a over the name, mixed into the seed.
    let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Rng::new(seed ^ name)
}

impl Rng {
    /// A generator started from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniform number in `0..n`; `n` must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        // Multiply-shift (Lemire 2019); the bias for n below 2^32 is under 2^-32.
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// A uniform number in `0.0..1.0`.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the normal distribution with mean 0 and deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f32 {
        // 1 - u is never 0, whose logarithm is not finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.uniform()).cos()) as f32
    }

    /// Puts `items` in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
