//! Texts that belong together in, batches of token ids for a contrastive loss out.
//!
//! Two sources: [`Labelled`] pairs that people judged ([`LabelledTexts`] reads JSON lines or a
//! BEIR split, [`mine_negatives`] adds hard negatives to them), and [`Unlabelled`] documents, from
//! which pairs are made on the fly.
//!
//! A batch is a function of seed and step alone, whatever the threads: so a resumed run sees what
//! the uninterrupted one saw. In a batch every positive is a negative for the other anchors,
//! except where the groups say that it may be right as well. The held-out slice is the same under
//! every seed, so that runs with several seeds can be compared by it.

mod definition;
mod duplicates;
mod labelled;
mod mine;
mod mixture;
mod order;
mod recipes;
mod settings;
mod source;
mod texts;
mod unlabelled;

pub use duplicates::near_duplicates;
pub use labelled::{Labelled, LabelledSettings};
pub use mine::{MineReport, MineSettings, SearchFn, mine_negatives};
pub use mixture::Mixture;
pub use settings::{RecipeSettings, Weights};
pub use texts::{LabelledTexts, TextPair};
pub use unlabelled::{Unlabelled, UnlabelledSettings};

use crate::text::{Analyzer, fold};

/// Share of the documents that is held out.
const DEV_SHARE: f64 = 0.05;
/// Held-out examples are at most so many.
const DEV_EXAMPLES: usize = 512;
/// Chooses what is held out; no setting, so that it is the same for every run on the same texts.
const DEV_SEED: u64 = 0;

/// A text to ask with, a text that is to be found by it, and texts that are not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Example {
    /// Token ids of the question, or what stands for one.
    pub anchor: Vec<u32>,
    /// Token ids of the passage.
    pub positive: Vec<u32>,
    /// Passages that look right and are not.
    pub negatives: Vec<Negative>,
    /// Equal for anchors that ask the same.
    pub anchor_group: u64,
    /// Equal for passages that are the same or near-duplicates, which are never held against
    /// each other.
    pub positive_group: u64,
}

/// A hard negative.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Negative {
    /// Its token ids.
    pub ids: Vec<u32>,
    /// As [`Example::positive_group`]: another anchor may have it as its positive.
    pub group: u64,
}

/// A source of training batches.
pub trait Pairs: Send + Sync {
    /// Number of pairs, or of passages that pairs are made from.
    fn len(&self) -> usize;

    /// True without any; never so for the sources of this module.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples of a step: the same for the same seed, step and size.
    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example>;

    /// Held-out examples, none of whose passages is ever in a batch.
    fn dev(&self) -> &[Example];
}

/// Number of `units` to hold out: 5%, at least one.
fn dev_count(units: usize) -> usize {
    ((units as f64 * DEV_SHARE).ceil() as usize).max(1)
}

/// A number for what `text` says: its words, whatever their case, the blanks and the marks.
fn text_key(text: &str) -> u64 {
    let mut key = Key::default();
    let words = Analyzer { stem: false, stop_words: false };
    words.words(text, |word| key.add(word.bytes().chain([0xff])));
    if key == Key::default() {
        key.add(fold(text.trim()).bytes());
    }
    key.0
}

/// A number for a list of token ids.
fn ids_key(ids: &[u32]) -> u64 {
    let mut key = Key::default();
    key.add(ids.iter().flat_map(|id| id.to_le_bytes()));
    key.0
}

/// FNV-1a, the same in every process.
#[derive(PartialEq)]
struct Key(u64);

impl Default for Key {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Key {
    fn add(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Spreads the bits of a number over all of its bits (SplitMix64's last step).
fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
