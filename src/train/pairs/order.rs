//! A random order of `0..n` whose every place can be asked for alone.
//!
//! A Feistel network permutes the next power of four; what falls outside of `0..n` is permuted
//! again until it does not ("cycle walking", Black and Rogaway 2002). So a step of an epoch needs
//! no list of the epoch, and no state that a resumed run would have to restore.

use super::mix;

const ROUNDS: u64 = 6;

/// What stands at place `at` (below `n`) of the order that `key` names.
pub(super) fn permuted(at: u64, n: u64, key: u64) -> u64 {
    let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mask = (1 << half) - 1;
    let mut place = at;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..ROUNDS {
            let scrambled = mix(key ^ right ^ (round << 56)) & mask;
            (left, right) = (right, left ^ scrambled);
        }
        place = left << half | right;
        if place < n {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_in_an_order_that_the_key_decides() {
        for n in [1, 2, 3, 5, 16, 17, 100, 1_000, 4_097] {
            let order = |key| (0..n).map(|at| permuted(at, n, key)).collect::<Vec<u64>>();
            let mut sorted = order(7);
            sorted.sort_unstable();
            assert_eq!((0..n).collect::<Vec<u64>>(), sorted);
            if n >= 16 {
                assert_ne!(order(7), order(8));
                assert_ne!((0..n).collect::<Vec<u64>>(), order(7));
            }
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let n = 10_000;
        let near = (1..n).filter(|&at| permuted(at, n, 3).abs_diff(permuted(at - 1, n, 3)) < 100);
        // By chance 2% of the neighbours stay within 1% of the length.
        let near = near.count();
        assert!((120..280).contains(&near), "{near}");
    }
}
