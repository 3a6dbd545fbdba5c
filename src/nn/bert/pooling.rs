//! From a vector for each token to one for the sequence.

use crate::nn::kernels;

/// How the tokens' vectors become one, by sentence-transformers' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// Their sum over the square root of their number.
    MeanSqrtLen,
    /// Their mean, each weighted by its place, counted from 1.
    WeightedMean,
    /// The first one's.
    Cls,
    /// The last one's.
    LastToken,
    /// The largest of each value.
    Max,
}

impl Pooling {
    /// All of them, by the names of the present and of the former `1_Pooling/config.json`.
    pub const NAMES: [(&str, &str, Self); 6] = [
        ("cls", "pooling_mode_cls_token", Self::Cls),
        ("max", "pooling_mode_max_tokens", Self::Max),
        ("mean", "pooling_mode_mean_tokens", Self::Mean),
        ("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Self::MeanSqrtLen),
        ("weightedmean", "pooling_mode_weightedmean_tokens", Self::WeightedMean),
        ("lasttoken", "pooling_mode_lasttoken", Self::LastToken),
    ];

    /// The weight of each of `length` tokens, the first `skip` of which do not count; `None` for
    /// the maximum, which is no weighted sum. All zeros where none counts.
    pub fn weights(self, length: usize, skip: usize) -> Option<Vec<f32>> {
        let mut weights = vec![0.0; length];
        let skip = skip.min(length);
        let counted = &mut weights[skip..];
        let n = counted.len() as f32;
        match self {
            Self::Mean => counted.fill(1.0 / n),
            Self::MeanSqrtLen => counted.fill(1.0 / n.sqrt()),
            Self::WeightedMean => {
                let places = (skip + 1..=length).map(|place| place as f32);
                let sum: f32 = places.clone().sum();
                counted.iter_mut().zip(places).for_each(|(weight, place)| *weight = place / sum);
            }
            Self::Cls => counted.iter_mut().take(1).for_each(|weight| *weight = 1.0),
            Self::LastToken => counted.iter_mut().rev().take(1).for_each(|weight| *weight = 1.0),
            Self::Max => return None,
        }
        Some(weights)
    }

    /// Pools `tokens`, shape `(length, d)`, into `out`, shape `(d)`.
    pub fn pool(self, tokens: &[f32], skip: usize, out: &mut [f32]) {
        let d = out.len();
        out.fill(0.0);
        if let Some(weights) = self.weights(tokens.len() / d, skip) {
            for (token, weight) in tokens.chunks_exact(d).zip(weights) {
                if weight != 0.0 {
                    kernels::add_scaled(out, token, weight);
                }
            }
            return;
        }
        let mut tokens = tokens.chunks_exact(d).skip(skip);
        if let Some(first) = tokens.next() {
            out.copy_from_slice(first);
        }
        for token in tokens {
            out.iter_mut().zip(token).for_each(|(out, x)| *out = out.max(*x));
        }
    }
}
