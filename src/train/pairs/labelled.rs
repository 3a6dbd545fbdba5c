//! Judged pairs, tokenised: whole epochs in a new order each, a slice held out.

use std::collections::HashSet;

use rayon::prelude::*;

use super::{
    DEV_EXAMPLES, DEV_SEED, Example, LabelledTexts, Negative, Pairs, dev_count, order::permuted,
    text_key,
};
use crate::{
    error::{Error, Result},
    rng::{Rng, derive},
    tokenizer::Tokenizer,
};

/// How judged pairs become examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LabelledSettings {
    /// Longer texts are cut to so many tokens.
    pub max_tokens: usize,
    /// Hard negatives of an example, drawn anew each time; a pair that has fewer brings them all.
    pub negatives: usize,
}

impl Default for LabelledSettings {
    fn default() -> Self {
        Self { max_tokens: 512, negatives: 1 }
    }
}

/// A source of judged pairs.
pub struct Labelled {
    settings: LabelledSettings,
    anchors: Vec<Text>,
    /// Those that no pair names are empty.
    passages: Vec<Text>,
    train: Vec<super::TextPair>,
    dev: Vec<Example>,
}

#[derive(Default)]
struct Text {
    ids: Vec<u32>,
    group: u64,
}

impl Labelled {
    /// Tokenises `texts` and holds out 5% of the groups of passages. A pair that is not held out,
    /// but asks what a held-out one asks, is used by neither side.
    ///
    /// # Errors
    /// Too few pairs to hold any out; settings that leave nothing; a tokenizer that fails.
    pub fn new(
        texts: &LabelledTexts,
        tokenizer: &Tokenizer,
        settings: LabelledSettings,
    ) -> Result<Self> {
        if settings.max_tokens == 0 {
            return Err(Error::Setting("texts of 0 tokens teach nothing: ask for more".into()));
        }
        let used: HashSet<usize> = (texts.pairs.iter())
            .flat_map(|pair| pair.negatives.iter().chain([&pair.positive]).copied())
            .collect();
        let ids = |text: &str| {
            let mut ids = Vec::new();
            tokenizer.encode_ids_into(text, &mut ids)?;
            ids.truncate(settings.max_tokens);
            ids.shrink_to_fit();
            Ok::<_, Error>(ids)
        };
        let anchors = texts.anchors.par_iter();
        let anchors = anchors.map(|text| Ok(Text { ids: ids(text)?, group: text_key(text) }));
        let passages = texts.passages.par_iter().enumerate().map(|(at, text)| {
            let ids = if used.contains(&at) { ids(text)? } else { Vec::new() };
            Ok(Text { ids, group: texts.groups[at] })
        });
        let mut labelled = Self {
            settings,
            anchors: anchors.collect::<Result<_>>()?,
            passages: passages.collect::<Result<_>>()?,
            train: Vec::new(),
            dev: Vec::new(),
        };
        labelled.split(texts)?;
        Ok(labelled)
    }

    fn split(&mut self, texts: &LabelledTexts) -> Result<()> {
        let group = |passage: usize| texts.groups[passage];
        let mut groups: Vec<u64> = texts.pairs.iter().map(|pair| group(pair.positive)).collect();
        groups.sort_unstable();
        groups.dedup();
        let distinct = groups.len();
        derive(DEV_SEED, "dev").shuffle(&mut groups);
        let held: HashSet<u64> = groups.into_iter().take(dev_count(distinct)).collect();
        let (mut dev, train): (Vec<_>, Vec<_>) =
            texts.pairs.iter().partition(|pair| held.contains(&group(pair.positive)));
        derive(DEV_SEED, "dev-pairs").shuffle(&mut dev);
        let asked: HashSet<u64> = dev.iter().map(|pair| self.anchors[pair.anchor].group).collect();
        self.train = (train.into_iter())
            .filter(|pair| !asked.contains(&self.anchors[pair.anchor].group))
            .cloned()
            .collect();
        for pair in &mut self.train {
            pair.negatives.retain(|negative| !held.contains(&group(*negative)));
        }
        let learnt: HashSet<u64> = self.train.iter().map(|pair| group(pair.positive)).collect();
        if learnt.len() < 2 {
            return Err(Error::format(
                &texts.path,
                format!(
                    "{} pairs of {} anchors and {distinct} different passages leave {} to learn \
                     from when 5% of the passages are held out: at least 2 passages beside the \
                     held-out one are needed, with anchors of their own",
                    texts.pairs.len(),
                    texts.anchors.len(),
                    self.train.len(),
                ),
            ));
        }
        let mut rng = derive(DEV_SEED, "dev-negatives");
        self.dev =
            dev.into_iter().take(DEV_EXAMPLES).map(|pair| self.example(pair, &mut rng)).collect();
        Ok(())
    }

    fn example(&self, pair: &super::TextPair, rng: &mut Rng) -> Example {
        let (anchor, positive) = (&self.anchors[pair.anchor], &self.passages[pair.positive]);
        let mut negatives = pair.negatives.clone();
        if negatives.len() > self.settings.negatives {
            rng.shuffle(&mut negatives);
            negatives.truncate(self.settings.negatives);
        }
        let negative = |at: usize| Negative {
            ids: self.passages[at].ids.clone(),
            group: self.passages[at].group,
        };
        Example {
            anchor: anchor.ids.clone(),
            positive: positive.ids.clone(),
            negatives: negatives.into_iter().map(negative).collect(),
            anchor_group: anchor.group,
            positive_group: positive.group,
        }
    }
}

impl Pairs for Labelled {
    fn len(&self) -> usize {
        self.train.len()
    }

    /// The next `size` pairs of an endless row of epochs.
    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example> {
        let n = self.train.len() as u64;
        let first = step.wrapping_mul(size as u64);
        let example = |place: u64| {
            let (epoch, at) = (place / n, place % n);
            let key = derive(seed, &format!("epoch-{epoch}")).next_u64();
            let pair = &self.train[permuted(at, n, key) as usize];
            self.example(pair, &mut derive(seed, &format!("negatives-{place}")))
        };
        let at = (0..size).into_par_iter().with_min_len(64);
        at.map(|at| example(first.wrapping_add(at as u64))).collect()
    }

    fn dev(&self) -> &[Example] {
        &self.dev
    }
}
