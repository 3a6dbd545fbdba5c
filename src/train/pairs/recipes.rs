//! A passage in, something that may ask for it out.
//!
//! After the inverse cloze task (Lee et al. 2019): a sentence asks for what stood around it, so
//! that the words alone cannot give the answer away. Titles, headings and questions made of
//! definitions ask for the passage as it is.

use super::{
    Example, RecipeSettings, Weights, ids_key,
    source::{Passage, Source, Span},
};
use crate::rng::Rng;

/// Tokens of the end of a passage that ask for the next.
const NEIGHBOUR_TOKENS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recipe {
    Sentence,
    Title,
    Heading,
    Question,
    Neighbour,
}

/// A passage and where it is from.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) source: &'a Source,
    /// Which of the source's passages.
    pub(super) at: usize,
}

impl<'a> Place<'a> {
    fn passage(self) -> &'a Passage {
        &self.source.passages[self.at]
    }

    /// What a passage allows, with its weight; nothing of weight 0.
    fn recipes(self, weights: &Weights) -> [(Recipe, f64); 5] {
        let passage = self.passage();
        let sentences = passage.sentences.clone();
        let body = sentences.filter(|&at| !self.source.sentences[at].is_heading).take(2).count();
        let if_any = |allowed: bool, weight: f64| if allowed { weight } else { 0.0 };
        let asks = body > 1 && !passage.anchors.is_empty() || passage.divisible;
        let titled = self.at == 0 && !self.source.title.is_empty() && body > 0;
        [
            (Recipe::Sentence, if_any(asks, weights.sentence)),
            (Recipe::Title, if_any(titled, weights.title)),
            (Recipe::Heading, if_any(!passage.sections.is_empty(), weights.heading)),
            (Recipe::Question, if_any(!passage.questions.is_empty(), weights.question)),
            (Recipe::Neighbour, if_any(self.at > 0 && body > 0, weights.neighbour)),
        ]
    }

    /// True if some example can be made.
    pub(super) fn is_usable(self, weights: &Weights) -> bool {
        self.recipes(weights).iter().any(|(_, weight)| *weight > 0.0)
    }

    /// One example; the place must be usable.
    pub(super) fn example(self, settings: &RecipeSettings, rng: &mut Rng) -> Example {
        let recipes = self.recipes(&settings.weights);
        let total: f64 = recipes.iter().map(|(_, weight)| weight).sum();
        let mut drawn = rng.uniform() * total;
        let possible = || recipes.iter().filter(|(_, weight)| *weight > 0.0);
        let recipe = possible().find(|(_, weight)| {
            drawn -= weight;
            drawn < 0.0
        });
        let last = || possible().next_back();
        let recipe = recipe.or_else(last).map_or(Recipe::Sentence, |(recipe, _)| *recipe);
        let mut make = Maker { place: self, settings, rng, left_out: None, cut: 0..0, path: true };
        let (anchor, asked) = make.anchor(recipe);
        let is_title = recipe == Recipe::Title;
        let positive = make.positive(!is_title);
        Example {
            anchor,
            positive,
            negatives: Vec::new(),
            anchor_group: ids_key(self.source.ids(&asked)),
            positive_group: self.passage().group,
        }
    }
}

/// One example in the making.
struct Maker<'a> {
    place: Place<'a>,
    settings: &'a RecipeSettings,
    rng: &'a mut Rng,
    /// The sentence that the passage lacks.
    left_out: Option<usize>,
    /// The tokens that the passage lacks.
    cut: Span,
    /// Whether headings may stand in front.
    path: bool,
}

impl Maker<'_> {
    /// The anchor, and the whole of what it is made from.
    fn anchor(&mut self, recipe: Recipe) -> (Vec<u32>, Span) {
        let (source, passage) = (self.place.source, self.place.passage());
        let asked = match recipe {
            Recipe::Sentence => return self.sentence(),
            Recipe::Title => source.title.clone(),
            Recipe::Question => {
                let at = passage.questions[self.rng.below(passage.questions.len())];
                source.sentences[at].question.clone()
            }
            Recipe::Heading => {
                let section = passage.sections[self.rng.below(passage.sections.len())];
                self.path = false;
                if !self.chance(self.settings.keep) {
                    self.left_out = passage.sentences.clone().find(|&at| {
                        let sentence = &source.sentences[at];
                        sentence.is_heading && sentence.section == section
                    });
                }
                source.sections[section as usize].heading.clone()
            }
            Recipe::Neighbour => {
                let before =
                    &source.sentences[source.passages[self.place.at - 1].sentences.clone()];
                let mut tail = before
                    .iter()
                    .rev()
                    .map(|s| s.text.clone())
                    .find(|text| !text.is_empty())
                    .unwrap_or(0..0);
                tail.start = tail.start.max(tail.end.saturating_sub(NEIGHBOUR_TOKENS as u32));
                tail
            }
        };
        (self.dropped(&asked), asked)
    }

    /// A sentence, whole or cropped, that the passage then mostly lacks.
    fn sentence(&mut self) -> (Vec<u32>, Span) {
        let (source, passage) = (self.place.source, self.place.passage());
        let (least, most) = self.settings.crop_tokens;
        if passage.divisible {
            // The only sentence: one half of it or less asks for what is left.
            let only = passage.sentences.clone().find(|&at| !source.sentences[at].is_heading);
            let whole = only.map_or(0..0, |at| source.sentences[at].text.clone());
            let crop = self.crop(&whole, least, most.min(whole.len() / 2));
            if !self.chance(self.settings.keep) {
                self.cut = crop.clone();
            }
            return (self.dropped(&crop), whole);
        }
        let at = passage.anchors[self.rng.below(passage.anchors.len())];
        let whole = source.sentences[at].anchor.clone();
        let asked = match self.chance(self.settings.crop) {
            true => self.crop(&whole, least, most),
            false => whole.clone(),
        };
        if !self.chance(self.settings.keep) {
            self.left_out = Some(at);
        }
        (self.dropped(&asked), whole)
    }

    /// A random part of between `least` and `most` tokens, as far as there are so many.
    fn crop(&mut self, whole: &Span, least: usize, most: usize) -> Span {
        let most = most.min(whole.len());
        let least = least.min(most);
        let len = least + self.rng.below(most - least + 1);
        let start = whole.start + self.rng.below(whole.len() - len + 1) as u32;
        start..start + len as u32
    }

    fn positive(&mut self, headed: bool) -> Vec<u32> {
        let (source, passage) = (self.place.source, self.place.passage());
        let sentences = &source.sentences[passage.sentences.clone()];
        let mut ids = Vec::with_capacity(256);
        let share = self.settings.passage_dropout;
        if headed && self.chance(self.settings.headed) {
            push_dropped(&mut ids, source.ids(&source.title), share, self.rng);
            let section = sentences.first().filter(|_| self.path).map(|first| first.section);
            let path = section.map_or(0..0, |at| source.sections[at as usize].path.clone());
            push_dropped(&mut ids, source.ids(&path), share, self.rng);
        }
        let mut last = None;
        for (sentence, at) in sentences.iter().zip(passage.sentences.clone()) {
            if self.left_out == Some(at) {
                continue;
            }
            let Span { start, end } = sentence.text;
            let is_cut = self.cut.start >= start && self.cut.end <= end && !self.cut.is_empty();
            let parts = match is_cut {
                true => [start..self.cut.start, self.cut.end..end],
                false => [start..end, end..end],
            };
            for part in parts.iter().filter(|part| !part.is_empty()) {
                push_dropped(&mut ids, source.ids(part), share, self.rng);
                last = Some(part.start);
            }
        }
        if ids.is_empty() {
            ids.extend(last.map(|at| source.ids(&(at..at + 1))[0]));
        }
        ids
    }

    fn dropped(&mut self, asked: &Span) -> Vec<u32> {
        let whole = self.place.source.ids(asked);
        let mut ids = Vec::with_capacity(whole.len());
        push_dropped(&mut ids, whole, self.settings.anchor_dropout, self.rng);
        if ids.is_empty() {
            ids.extend(whole.first());
        }
        ids
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.uniform() < share
    }
}

/// Appends `from` without a random `share` of it.
fn push_dropped(ids: &mut Vec<u32>, from: &[u32], share: f64, rng: &mut Rng) {
    if share <= 0.0 {
        return ids.extend_from_slice(from);
    }
    ids.extend(from.iter().filter(|_| rng.uniform() >= share));
}
