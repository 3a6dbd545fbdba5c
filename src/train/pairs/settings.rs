//! How pairs are made from documents. The defaults are those of a trial on SciFact; the shares of
//! headings and questions, which that set has none of, are guesses.

use crate::error::{Error, Result};

/// How often each kind of anchor is drawn, relative to the others that a passage allows.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Weights {
    /// A sentence, for the rest of its passage.
    pub sentence: f64,
    /// The title, for the passage that the document begins with.
    pub title: f64,
    /// A heading, for what stands below it.
    pub heading: f64,
    /// The question that a definition answers, for the passage with the definition.
    pub question: f64,
    /// The end of the passage before, for this one. It is as good an anchor for the passage that
    /// it is from, which a small corpus has in the same batch: off by default.
    pub neighbour: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { sentence: 0.7, title: 0.3, heading: 0.3, question: 0.2, neighbour: 0.0 }
    }
}

/// What is done to anchors and passages; shares are between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct RecipeSettings {
    /// Kinds of anchors.
    pub weights: Weights,
    /// Share of the sentences that stay in the passage that they ask for.
    pub keep: f64,
    /// Share of the sentences that are cropped.
    pub crop: f64,
    /// The least and the most tokens of a crop.
    pub crop_tokens: (usize, usize),
    /// Share of the passages with title and headings in front.
    pub headed: f64,
    /// Share of an anchor's tokens that are left out.
    pub anchor_dropout: f64,
    /// Share of a passage's tokens that are left out.
    pub passage_dropout: f64,
}

impl Default for RecipeSettings {
    fn default() -> Self {
        Self {
            weights: Weights::default(),
            keep: 0.1,
            crop: 0.5,
            crop_tokens: (4, 24),
            headed: 0.8,
            anchor_dropout: 0.15,
            passage_dropout: 0.1,
        }
    }
}

impl RecipeSettings {
    /// # Errors
    /// Shares that are none, weights that no draw can follow.
    pub(super) fn check(&self) -> Result<()> {
        let Self { keep, crop, headed, anchor_dropout, passage_dropout, .. } = *self;
        let shares = [
            ("keep", keep),
            ("crop", crop),
            ("headed", headed),
            ("anchor dropout", anchor_dropout),
            ("passage dropout", passage_dropout),
        ];
        if let Some((name, share)) = shares.iter().find(|(_, x)| !(0.0..=1.0).contains(x)) {
            return Err(Error::Setting(format!("{name} {share} is no share between 0 and 1")));
        }
        let (least, most) = self.crop_tokens;
        if least == 0 || least > most {
            return Err(Error::Setting(format!("no crop has between {least} and {most} tokens")));
        }
        let Weights { sentence, title, heading, question, neighbour } = self.weights;
        let weights = [sentence, title, heading, question, neighbour];
        if weights.iter().any(|x| !x.is_finite() || *x < 0.0) || weights.iter().sum::<f64>() == 0.0
        {
            let message = "the weights of the anchors are to be 0 or more, and not all 0";
            return Err(Error::Setting(message.into()));
        }
        Ok(())
    }

    /// The settings for what is held out: nothing left to chance but the choice of the anchor.
    pub(super) fn held_out(mut self) -> Self {
        (self.keep, self.anchor_dropout, self.passage_dropout) = (0.0, 0.0, 0.0);
        self.headed = 1.0;
        self
    }
}
