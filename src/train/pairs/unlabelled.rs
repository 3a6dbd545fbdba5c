//! Documents that nobody judged: pairs made on the fly, new ones in every step.

use std::collections::HashSet;

use rayon::prelude::*;

use super::{
    DEV_EXAMPLES, DEV_SEED, Example, Pairs, RecipeSettings, dev_count, near_duplicates,
    recipes::Place, source::Source,
};
use crate::{
    corpus::Kind,
    error::{Error, Result},
    rng::derive,
    tokenizer::Tokenizer,
    types::Document,
};

/// How documents become pairs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct UnlabelledSettings {
    /// A longer document is cut into passages of at most so many tokens.
    pub passage_tokens: usize,
    /// How an anchor is made for a passage.
    pub recipes: RecipeSettings,
}

impl Default for UnlabelledSettings {
    fn default() -> Self {
        Self { passage_tokens: 250, recipes: RecipeSettings::default() }
    }
}

impl UnlabelledSettings {
    /// The defaults for a kind of corpus: in a BEIR folder a document is found as a whole.
    pub fn of(kind: Kind) -> Self {
        let passage_tokens = match kind {
            Kind::Folder => Self::default().passage_tokens,
            Kind::Beir => 1000,
        };
        Self { passage_tokens, ..Self::default() }
    }
}

/// Held-out examples of one passage at most.
const DEV_OF_A_PASSAGE: usize = 4;
/// Passages shorter than this teach nothing, and a sentence must fit into one.
const LEAST_TOKENS: usize = 16;

/// A source of pairs made from documents.
pub struct Unlabelled {
    settings: UnlabelledSettings,
    sources: Vec<Source>,
    /// Document and passage of all that examples are made from.
    train: Vec<(u32, u32)>,
    dev: Vec<Example>,
}

impl Unlabelled {
    /// Tokenises `documents`, finds near-duplicates among their passages and holds out 5% of the
    /// documents (of the passages, where there is but one document). A passage that nearly is a
    /// held-out one is not learnt from.
    ///
    /// # Errors
    /// A corpus too small for any pair to be held against another; shares that are none; a
    /// tokenizer that fails.
    pub fn new(
        documents: &[Document],
        tokenizer: &Tokenizer,
        settings: UnlabelledSettings,
    ) -> Result<Self> {
        settings.recipes.check()?;
        if settings.passage_tokens < LEAST_TOKENS {
            return Err(Error::Setting(format!(
                "passages of {} tokens are too short: ask for at least {LEAST_TOKENS}",
                settings.passage_tokens
            )));
        }
        let sources = documents
            .par_iter()
            .map(|document| Source::new(document, tokenizer, settings.passage_tokens));
        let sources: Vec<Source> = sources.collect::<Result<_>>()?;
        let mut unlabelled = Self { settings, sources, train: Vec::new(), dev: Vec::new() };
        unlabelled.group(documents);
        unlabelled.split()?;
        Ok(unlabelled)
    }

    fn group(&mut self, documents: &[Document]) {
        let texts = self.sources.iter().zip(documents).flat_map(|(source, document)| {
            source.passages.iter().map(|passage| &document.text[source.bytes(passage)])
        });
        let groups = near_duplicates(&texts.collect::<Vec<&str>>());
        let passages = self.sources.iter_mut().flat_map(|source| &mut source.passages);
        passages.zip(groups).for_each(|(passage, group)| passage.group = group);
    }

    fn place(&self, (document, passage): (u32, u32)) -> Place<'_> {
        Place { source: &self.sources[document as usize], at: passage as usize }
    }

    fn group_of(&self, (document, passage): (u32, u32)) -> u64 {
        self.sources[document as usize].passages[passage as usize].group
    }

    fn split(&mut self) -> Result<()> {
        let weights = &self.settings.recipes.weights;
        let all = (0..).zip(&self.sources).flat_map(|(document, source)| {
            (0..source.passages.len() as u32).map(move |passage| (document, passage))
        });
        let usable: Vec<(u32, u32)> = all.filter(|&at| self.place(at).is_usable(weights)).collect();
        let mut documents: Vec<&[(u32, u32)]> = usable.chunk_by(|a, b| a.0 == b.0).collect();
        if documents.len() == 1 {
            documents = usable.chunks(1).collect();
        }
        let count = dev_count(documents.len());
        derive(DEV_SEED, "dev").shuffle(&mut documents);
        let mut held: Vec<(u32, u32)> = Vec::new();
        for document in documents.into_iter().take(count) {
            if held.len() < DEV_EXAMPLES {
                held.extend(document);
            }
        }
        let groups: HashSet<u64> = held.iter().map(|&at| self.group_of(at)).collect();
        let held_documents: HashSet<(u32, u32)> = held.iter().copied().collect();
        let train: Vec<(u32, u32)> = (usable.iter().copied())
            .filter(|at| !held_documents.contains(at) && !groups.contains(&self.group_of(*at)))
            .collect();
        let learnt: HashSet<u64> = train.iter().map(|&at| self.group_of(at)).collect();
        if learnt.len() < 2 {
            return Err(Error::Setting(self.too_small(usable.len())));
        }
        let settings = self.settings.recipes.held_out();
        let examples =
            (0..DEV_OF_A_PASSAGE).flat_map(|round| held.iter().map(move |at| (round, at)));
        self.dev = examples
            .take(DEV_EXAMPLES)
            .map(|(round, &at)| {
                let mut rng = derive(DEV_SEED, &format!("dev-{}-{}-{round}", at.0, at.1));
                self.place(at).example(&settings, &mut rng)
            })
            .collect();
        self.train = train;
        Ok(())
    }

    fn too_small(&self, usable: usize) -> String {
        let sentences: usize = self.sources.iter().map(|source| source.sentences.len()).sum();
        let passages: usize = self.sources.iter().map(|source| source.passages.len()).sum();
        format!(
            "{} documents with {sentences} sentences make {passages} passages, {usable} of which \
             something can ask for: too few to train on. At least 3 different ones are needed, \
             each with a title or two sentences, in two documents or more or in one of more than \
             {} tokens: add documents, or train on labelled pairs",
            self.sources.len(),
            3 * self.settings.passage_tokens,
        )
    }
}

impl Pairs for Unlabelled {
    fn len(&self) -> usize {
        self.train.len()
    }

    /// Examples of passages drawn at random, each passage as likely as any other.
    fn batch(&self, seed: u64, step: u64, size: usize) -> Vec<Example> {
        let example = |at: usize| {
            let mut rng = derive(seed, &format!("pair-{step}-{at}"));
            let place = self.place(self.train[rng.below(self.train.len())]);
            place.example(&self.settings.recipes, &mut rng)
        };
        (0..size).into_par_iter().with_min_len(32).map(example).collect()
    }

    fn dev(&self) -> &[Example] {
        &self.dev
    }
}
