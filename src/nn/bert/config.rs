//! The shape of the network, as `config.json` states it, and its parameters by name.

use std::{collections::BTreeMap, path::Path};

use candle_core::Tensor;
use serde::Deserialize;

use super::Sequence;
use crate::{
    error::{Error, Result},
    nn::{Init, Param, Plan},
};

/// The shape of a BERT, with the field names of Hugging Face's `config.json`; what such a file
/// holds beside them (`dtype`, formerly `torch_dtype`, dropout, ...) changes no vector.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BertConfig {
    /// `bert`, `roberta`, `xlm-roberta` or `camembert`.
    pub model_type: String,
    /// Tokens.
    pub vocab_size: usize,
    /// Values of a token's vector.
    pub hidden_size: usize,
    /// Values of it that one attention head sees, times the number of heads, are `hidden_size`.
    pub num_attention_heads: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Values between the two halves of a layer's MLP.
    pub intermediate_size: usize,
    /// What is between them.
    #[serde(default)]
    pub hidden_act: HiddenAct,
    /// Rows of the table of positions.
    pub max_position_embeddings: usize,
    /// Segments.
    #[serde(default = "two")]
    pub type_vocab_size: usize,
    /// Keeps the layer norms finite.
    #[serde(default = "eps")]
    pub layer_norm_eps: f64,
    /// Deviation of fresh weights.
    #[serde(default = "range")]
    pub initializer_range: f32,
    /// The token that fills batches up; RoBERTa's positions start after it.
    #[serde(default)]
    pub pad_token_id: Option<u32>,
    /// `absolute`, or not said.
    #[serde(default)]
    pub position_embedding_type: Option<String>,
    /// Whether the network is a decoder, which it must not be.
    #[serde(default)]
    pub is_decoder: bool,
}

fn two() -> usize {
    2
}

fn eps() -> f64 {
    1e-12
}

fn range() -> f32 {
    0.02
}

/// The activation of the MLPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum HiddenAct {
    /// The exact GELU.
    #[default]
    #[serde(rename = "gelu", alias = "gelu_python")]
    Gelu,
    /// Its approximation with a hyperbolic tangent.
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh", alias = "gelu_fast")]
    GeluTanh,
    /// What is below zero becomes zero.
    #[serde(rename = "relu")]
    Relu,
}

/// Linear layers of a layer: name, and whether the wide side goes in or comes out.
const LINEAR: [(&str, Side); 6] = [
    ("attention.self.query", Side::Neither),
    ("attention.self.key", Side::Neither),
    ("attention.self.value", Side::Neither),
    ("attention.output.dense", Side::Neither),
    ("intermediate.dense", Side::Out),
    ("output.dense", Side::In),
];

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Neither,
    In,
    Out,
}

impl BertConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Another kind of network, or sizes that fit no network.
    pub fn parse(json: &str, path: &Path) -> Result<Self> {
        let wrong = |message: String| Err(Error::format(path, message));
        let config: Self = serde_json::from_str(json)
            .map_err(|error| Error::format(path, format!("not the shape of a BERT: {error}")))?;
        if !["bert", "roberta", "xlm-roberta", "camembert"].contains(&config.model_type.as_str()) {
            return wrong(format!(
                "model_type `{}` cannot be run; `bert`, `roberta`, `xlm-roberta` and `camembert` can",
                config.model_type
            ));
        }
        match config.position_embedding_type.as_deref() {
            None | Some("absolute") => {}
            Some(other) => {
                return wrong(format!(
                    "position_embedding_type `{other}` cannot be run; `absolute` can"
                ));
            }
        }
        if config.is_decoder {
            return wrong("is_decoder is true: an encoder is needed".to_owned());
        }
        let (hidden, heads) = (config.hidden_size, config.num_attention_heads);
        if heads == 0 || hidden == 0 || !hidden.is_multiple_of(heads) {
            return wrong(format!("hidden_size {hidden} is not shared out by {heads} heads"));
        }
        if config.vocab_size * config.type_vocab_size * config.intermediate_size == 0
            || config.max_positions() == 0
        {
            return wrong("a size is 0".to_owned());
        }
        Ok(config)
    }

    /// The first token's row in the table of positions.
    pub fn first_position(&self) -> usize {
        match self.model_type.as_str() {
            "bert" => 0,
            // fairseq's padding token, and all positions after it.
            _ => self.pad_token_id.unwrap_or(1) as usize + 1,
        }
    }

    /// Tokens of the longest sequence.
    pub fn max_positions(&self) -> usize {
        self.max_position_embeddings.saturating_sub(self.first_position())
    }

    /// Values that one head sees.
    pub fn head_size(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }

    /// The parameters, each with `prefix` before its name: none in a sentence encoder, `bert.` in
    /// a classifier.
    pub fn plan(&self, prefix: &str) -> Plan {
        let mut plan = Plan::new();
        let hidden = self.hidden_size;
        let normal = || Init::Normal(self.initializer_range);
        let mut add = |name: &str, shape: &[usize], init| {
            plan.insert(format!("{prefix}{name}"), Param::new(shape, init));
        };
        for (table, rows) in [
            ("word_embeddings", self.vocab_size),
            ("position_embeddings", self.max_position_embeddings),
            ("token_type_embeddings", self.type_vocab_size),
        ] {
            add(&format!("embeddings.{table}.weight"), &[rows, hidden], normal());
        }
        let mut norms = vec!["embeddings.LayerNorm".to_owned()];
        for layer in 0..self.num_hidden_layers {
            for (name, side) in LINEAR {
                let width = |wide: Side| match side == wide {
                    true => self.intermediate_size,
                    false => hidden,
                };
                let (inputs, outputs) = (width(Side::In), width(Side::Out));
                let name = format!("encoder.layer.{layer}.{name}");
                add(&format!("{name}.weight"), &[outputs, inputs], normal());
                add(&format!("{name}.bias"), &[outputs], Init::Constant(0.0));
            }
            norms.push(format!("encoder.layer.{layer}.attention.output.LayerNorm"));
            norms.push(format!("encoder.layer.{layer}.output.LayerNorm"));
        }
        for norm in norms {
            add(&format!("{norm}.weight"), &[hidden], Init::Constant(1.0));
            add(&format!("{norm}.bias"), &[hidden], Init::Constant(0.0));
        }
        plan
    }

    /// Checks that a sequence can be run.
    ///
    /// # Errors
    /// Without tokens, too long, or with a token or segment that is in no table.
    pub fn check(&self, sequence: &Sequence<'_>) -> Result<()> {
        let (length, most) = (sequence.ids.len(), self.max_positions());
        if length == 0 || length > most {
            return Err(Error::Setting(format!(
                "a sequence of {length} tokens; 1 to {most} can be"
            )));
        }
        if !sequence.types.is_empty() && sequence.types.len() != length {
            let (what, got) = ("segments of a sequence's tokens", sequence.types.len());
            return Err(Error::Shape { what, expected: length, got });
        }
        for (what, ids, most) in [
            ("token", sequence.ids, self.vocab_size),
            ("segment", sequence.types, self.type_vocab_size),
        ] {
            if let Some(id) = ids.iter().find(|id| **id as usize >= most) {
                return Err(Error::Setting(format!("{what} {id} of {most}")));
            }
        }
        Ok(())
    }
}

/// Brings the tensors of an encoder's file to the names of [`BertConfig::plan`] without prefix:
/// a prefix that all have is cut, the first releases' `gamma` and `beta` are renamed, and what a
/// sentence encoder does not use (pooler, pre-training heads, position ids) is left out.
pub fn encoder_tensors(tensors: BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let prefixes = ["bert.", "roberta."];
    let unused = ["pooler.", "cls.", "lm_head."];
    let buffers = ["embeddings.position_ids", "embeddings.token_type_ids"];
    let rename = |(name, tensor): (String, Tensor)| {
        let bare = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
        if unused.iter().any(|prefix| bare.starts_with(prefix)) || buffers.contains(&bare) {
            return None;
        }
        let bare = match bare.rsplit_once('.') {
            Some((norm, "gamma")) => format!("{norm}.weight"),
            Some((norm, "beta")) => format!("{norm}.bias"),
            _ => bare.to_owned(),
        };
        Some((bare, tensor))
    };
    tensors.into_iter().filter_map(rename).collect()
}
