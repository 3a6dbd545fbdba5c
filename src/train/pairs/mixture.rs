//! Several sources in one: every batch holds an equal share of each.

use super::{Example, Pairs, mix};
use crate::error::{Error, Result};

/// Sources whose examples share the batches.
pub struct Mixture {
    sources: Vec<Box<dyn Pairs>>,
    dev: Vec<Example>,
}

impl Mixture {
    /// One source as it is, or the mixture of several.
    ///
    /// # Errors
    /// No source.
    pub fn of(mut sources: Vec<Box<dyn Pairs>>) -> Result<Box<dyn Pairs>> {
        match sources.len() {
            0 => Err(Error::Setting("there is nothing to train on".to_owned())),
            1 => Ok(sources.remove(0)),
            _ => {
                let dev = (0..).zip(&sources).flat_map(|(place, source)| {
                    source.dev().iter().map(move |example| of_source(place, example.clone()))
                });
                Ok(Box::new(Self { dev: dev.collect(), sources }))
            }
        }
    }
}

impl Pairs for Mixture {
    fn len(&self) -> usize {
        self.sources.iter().map(|source| source.len()).sum()
    }

    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example> {
        let n = self.sources.len();
        // The first sources take what a division leaves over.
        let share = |place: usize| size / n + usize::from(place < size % n);
        let parts = self.sources.iter().enumerate();
        let parts = parts.flat_map(|(place, source)| {
            let examples = source.batch(seed, step, share(place)).into_iter();
            examples.map(move |example| of_source(place as u64, example))
        });
        parts.collect()
    }

    fn dev(&self) -> &[Example] {
        &self.dev
    }
}

/// The example with groups that no other source has: each numbers its own from 0.
fn of_source(place: u64, mut example: Example) -> Example {
    let salt = mix(place);
    example.anchor_group ^= salt;
    example.positive_group ^= salt;
    example.negatives.iter_mut().for_each(|negative| negative.group ^= salt);
    example
}
