//! Texts as a transformer reads them: with the special tokens that the tokenizer's file wants
//! around them, cut to what the model can read.

use serde_json::Value;

use super::Tokenizer;
use crate::error::{Error, Result};

/// A text, or a pair of them, ready for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInput {
    /// The tokens, special ones among them.
    pub ids: Vec<u32>,
    /// The segment of each.
    pub types: Vec<u32>,
    /// How many of them are special.
    pub special: usize,
    /// Tokens that were cut off.
    pub cut: usize,
}

/// What stands around one text, and around two, as the file's `post_processor` says.
#[derive(Debug)]
pub(super) struct Frame {
    single: Vec<Piece>,
    /// `None` where the file says nothing of pairs.
    pair: Option<Vec<Piece>>,
}

/// One piece of an input, with its segment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Special(Vec<u32>, u32),
    First(u32),
    Second(u32),
}

impl Frame {
    /// Reads the `post_processor` of a file; `Err` says why it cannot be followed.
    pub(super) fn parse(json: &Value) -> Result<Self, String> {
        let bare = || Ok(Self { single: vec![Piece::First(0)], pair: None });
        match json["type"].as_str() {
            None if json.is_null() => bare(),
            // Changes offsets, not tokens.
            Some("ByteLevel") => bare(),
            Some("BertProcessing") => Self::classic(json, false),
            Some("RobertaProcessing") => Self::classic(json, true),
            Some("TemplateProcessing") => Self::template(json),
            Some("Sequence") => {
                let parts = json["processors"].as_array().into_iter().flatten();
                let mut parts = parts.filter(|part| part["type"] != "ByteLevel");
                match (parts.next(), parts.next()) {
                    (None, _) => bare(),
                    (Some(only), None) => Self::parse(only),
                    _ => Err("several post-processors that each add tokens".to_owned()),
                }
            }
            kind => Err(format!("post_processor {} is not known", kind.unwrap_or("without type"))),
        }
    }

    /// `[CLS] A [SEP] B [SEP]` as in BERT, or `<s> A </s> </s> B </s>` as in RoBERTa.
    fn classic(json: &Value, roberta: bool) -> Result<Self, String> {
        let special = |name: &str, kind| match json[name][1].as_u64().map(u32::try_from) {
            Some(Ok(id)) => Ok(Piece::Special(vec![id], kind)),
            _ => Err(format!("post_processor has no id of `{name}`")),
        };
        let second = u32::from(!roberta);
        let single = vec![special("cls", 0)?, Piece::First(0), special("sep", 0)?];
        let mut pair = single.clone();
        if roberta {
            pair.push(special("sep", 0)?);
        }
        pair.extend([Piece::Second(second), special("sep", second)?]);
        Ok(Self { single, pair: Some(pair) })
    }

    fn template(json: &Value) -> Result<Self, String> {
        let piece = |piece: &Value| {
            let (kind, of) = piece.as_object().and_then(|piece| piece.iter().next())?;
            let segment = u32::try_from(of["type_id"].as_u64()?).ok()?;
            match (kind.as_str(), of["id"].as_str()?) {
                ("Sequence", "A") => Some(Piece::First(segment)),
                ("Sequence", "B") => Some(Piece::Second(segment)),
                ("SpecialToken", name) => {
                    let ids = json["special_tokens"][name]["ids"].as_array()?;
                    let ids = ids.iter().map(|id| u32::try_from(id.as_u64()?).ok());
                    Some(Piece::Special(ids.collect::<Option<_>>()?, segment))
                }
                _ => None,
            }
        };
        let pieces = |name: &str| -> Option<Vec<Piece>> {
            json[name].as_array()?.iter().map(piece).collect()
        };
        match (pieces("single"), pieces("pair")) {
            (Some(single), pair) => Ok(Self { single, pair }),
            (None, _) => Err("post_processor has a template that cannot be read".to_owned()),
        }
    }
}

impl Tokenizer {
    /// The tokens of `text`, or of the pair that it forms with a second one, as
    /// [`Tokenizer::frame`] puts them.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`] and [`Tokenizer::frame`].
    pub fn encode_for_model(
        &self,
        text: &str,
        pair: Option<&str>,
        max: usize,
    ) -> Result<ModelInput> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.encode_ids_into(text, &mut first)?;
        if let Some(text) = pair {
            self.encode_ids_into(text, &mut second)?;
        }
        self.frame(&first, pair.is_some().then_some(&second[..]), max)
    }

    /// Puts the special tokens around a text's tokens, or around a pair's, so that there are at
    /// most `max`: what is cut off is the end of the text, or of a pair's second text, never of
    /// its first.
    ///
    /// # Errors
    /// A `max` that leaves no room for a text beside the special tokens, or beside a pair's first;
    /// a pair and a tokenizer that has no form for one; a post-processor that is not known.
    pub fn frame(&self, first: &[u32], second: Option<&[u32]>, max: usize) -> Result<ModelInput> {
        let frame = self.frame.as_ref().map_err(|reason| {
            Error::Setting(format!("the tokenizer's special tokens are not known: {reason}"))
        })?;
        let pieces = match (second, &frame.pair) {
            (None, _) => &frame.single,
            (Some(_), Some(pair)) => pair,
            (Some(_), None) => {
                let message = "the tokenizer has no post-processor for pairs of texts";
                return Err(Error::Setting(message.to_owned()));
            }
        };
        let special = pieces.iter().map(|piece| match piece {
            Piece::Special(ids, _) => ids.len(),
            _ => 0,
        });
        let special: usize = special.sum();
        let kept = special + if second.is_some() { first.len() } else { 0 };
        let cuttable = second.unwrap_or(first);
        let room = max.saturating_sub(kept);
        if room == 0 && !cuttable.is_empty() {
            return Err(Error::Setting(format!(
                "{max} tokens can be read, and {kept} are taken before the text that may be cut"
            )));
        }
        let shown = &cuttable[..cuttable.len().min(room)];
        let mut input =
            ModelInput { special, cut: cuttable.len() - shown.len(), ..Default::default() };
        for piece in pieces {
            let (ids, segment) = match piece {
                Piece::Special(ids, segment) => (&ids[..], segment),
                Piece::First(segment) if second.is_some() => (first, segment),
                Piece::First(segment) | Piece::Second(segment) => (shown, segment),
            };
            input.ids.extend_from_slice(ids);
            input.types.extend(std::iter::repeat_n(segment, ids.len()));
        }
        Ok(input)
    }
}
