//! Numbers to what may be claimed from them: means with intervals, percentiles, a paired test.
//!
//! Intervals are bootstrap percentiles (Efron 1979) over questions; the test is the paired
//! randomisation test (Fisher 1935; Smucker, Allan and Carterette 2007 for retrieval). Both are
//! seeded: same input, same figures.

use crate::rng::derive;

/// Resamples of a bootstrap interval.
pub const RESAMPLES: usize = 1000;

/// Sign flips of a randomisation test.
pub const FLIPS: usize = 10_000;

/// A figure with what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Questions it was computed from.
    pub n: usize,
    /// Lower and upper end of the 95% interval.
    pub ci95: [f64; 2],
}

/// A figure of a sample, given how often each item was drawn; `None` where it has no value.
pub type Statistic<'a> = Box<dyn Fn(&[u32]) -> Option<f64> + Sync + 'a>;

/// The mean of `values`, each counted as often as it was drawn.
pub(super) fn weighted_mean(values: &[f64], weights: &[u32]) -> Option<f64> {
    let sum: f64 = values.iter().zip(weights).map(|(x, w)| x * f64::from(*w)).sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// Statistics of the same `n` items, each with its 95% interval. All see the same resamples, so
/// that drawing is paid for once; those where a statistic has no value are left out.
pub fn bootstrap(n: usize, seed: u64, statistics: &[Statistic<'_>]) -> Vec<Option<Estimate>> {
    let mut weights = vec![1; n];
    let values: Vec<Option<f64>> =
        statistics.iter().map(|statistic| statistic(&weights).filter(|_| n > 0)).collect();
    let mut resampled = vec![Vec::with_capacity(RESAMPLES); statistics.len()];
    let mut rng = derive(seed, "bootstrap");
    for _ in 0..RESAMPLES {
        weights.fill(0);
        (0..n).for_each(|_| weights[rng.below(n)] += 1);
        for ((statistic, value), resampled) in statistics.iter().zip(&values).zip(&mut resampled) {
            resampled.extend(value.and_then(|_| statistic(&weights)));
        }
    }
    let estimate = |(value, resampled): (Option<f64>, Vec<f64>)| {
        let value = value?;
        // A statistic with a value on the whole may have none on every resample of a tiny set.
        let end = |p| percentile(&resampled, p).unwrap_or(value);
        Some(Estimate { value, n, ci95: [end(2.5), end(97.5)] })
    };
    values.into_iter().zip(resampled).map(estimate).collect()
}

/// The `p`-th percentile, linear between the two nearest values; `None` without values.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 100.0) / 100.0 * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// What the randomisation test says of two conditions measured on the same questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedTest {
    /// Questions measured under both.
    pub n: usize,
    /// Mean of second minus first.
    pub difference: f64,
    /// Two-sided: the share of random sign flips whose mean is at least as far from 0.
    pub p_value: f64,
}

/// Tests whether `differences`, one a question, could be chance; `None` without any.
pub fn randomisation_test(differences: &[f64], seed: u64) -> Option<PairedTest> {
    let n = differences.len();
    if n == 0 {
        return None;
    }
    let observed: f64 = differences.iter().sum();
    // A question without a difference has nothing to flip.
    let differing: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let mut rng = derive(seed, "randomisation");
    let mut as_far = 0;
    for _ in 0..FLIPS {
        let mut sum = 0.0;
        for block in differing.chunks(64) {
            let mut signs = rng.next_u64();
            for d in block {
                sum += if signs & 1 == 0 { *d } else { -d };
                signs >>= 1;
            }
        }
        // The slack lets a sum that is equal but for rounding count as equal.
        as_far += usize::from(sum.abs() >= observed.abs() - 1e-9);
    }
    // One is added on both sides so that no finite test claims p = 0 (Phipson and Smyth 2010).
    let p_value = (as_far + 1) as f64 / (FLIPS + 1) as f64;
    Some(PairedTest { n, difference: observed / n as f64, p_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64], seed: u64) -> Option<Estimate> {
        let mean: Statistic<'_> = Box::new(|weights| weighted_mean(values, weights));
        bootstrap(values.len(), seed, &[mean]).pop()?
    }

    #[test]
    fn percentiles_interpolate() {
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[4.0], 95.0), Some(4.0));
        assert_eq!(percentile(&[4.0, 1.0, 3.0, 2.0], 50.0), Some(2.5));
        assert_eq!(percentile(&[0.0, 10.0], 95.0), Some(9.5));
    }

    #[test]
    fn the_interval_is_that_of_the_normal_approximation() {
        // 400 zeros and ones at 0.75: standard error 0.02165, so 0.75 +- 0.0424.
        let values: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 4 != 0))).collect();
        let estimate = mean(&values, 7).unwrap();
        assert_eq!((estimate.value, estimate.n), (0.75, 400));
        assert!((estimate.ci95[0] - 0.7076).abs() < 0.008, "{estimate:?}");
        assert!((estimate.ci95[1] - 0.7924).abs() < 0.008, "{estimate:?}");
        assert_eq!(mean(&values, 7), Some(estimate));
        assert_ne!(mean(&values, 8).unwrap().ci95, estimate.ci95);
        assert_eq!(mean(&[], 7), None);
    }

    #[test]
    fn a_statistic_without_a_value_has_no_estimate() {
        assert_eq!(bootstrap(5, 0, &[Box::new(|_| None)]), [None]);
        assert_eq!(bootstrap(0, 0, &[Box::new(|_| Some(1.0))]), [None]);
    }

    #[test]
    fn the_paired_test_agrees_with_all_flips_counted() {
        let differences = [0.4, 0.3, -0.1, 0.25, 0.5, 0.0, 0.05, -0.2];
        let observed: f64 = differences.iter().sum();
        let flipped = |signs: u32| -> f64 {
            let flip = |(i, d): (usize, &f64)| if signs >> i & 1 == 0 { *d } else { -d };
            differences.iter().enumerate().map(flip).sum()
        };
        let far = (0..256).filter(|signs| flipped(*signs).abs() >= observed.abs() - 1e-9).count();
        let test = randomisation_test(&differences, 1).unwrap();
        assert!((test.p_value - far as f64 / 256.0).abs() < 0.015, "{test:?}, exact {far}/256");
        assert!((test.difference - 0.15).abs() < 1e-12);
    }

    #[test]
    fn equal_conditions_do_not_differ_and_opposite_ones_do() {
        assert_eq!(randomisation_test(&[0.0; 30], 1).unwrap().p_value, 1.0);
        assert!(randomisation_test(&[1.0; 30], 1).unwrap().p_value < 0.001);
        assert_eq!(randomisation_test(&[], 1), None);
    }
}
