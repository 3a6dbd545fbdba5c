//! Several sources in one: every batch holds an equal share of each.

use super::{Example, Pairs};
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
                let dev = sources.iter().flat_map(|source| source.dev().to_vec()).collect();
                Ok(Box::new(Self { sources, dev }))
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
        parts.flat_map(|(place, source)| source.batch(seed, step, share(place))).collect()
    }

    fn dev(&self) -> &[Example] {
        &self.dev
    }
}
