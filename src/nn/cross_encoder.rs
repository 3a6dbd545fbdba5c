//! A question and a passage read together, one logit out: how well the one answers the other
//! (Nogueira and Cho 2019).
//!
//! BERT, then a dense layer with tanh over the first token's vector, then one unit: what
//! transformers calls BertForSequenceClassification with one label. RoBERTa's classifier is the
//! same under other names.
//!
//! A network trained from scratch knows no word when it starts, but it can be shown which tokens
//! question and passage have in common: with `exact_match_types` in `config.json`, those tokens
//! have segments of their own ([`mark_matches`]).

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use candle_core::Tensor;
use serde::Deserialize;

use super::{
    Init, Param, Params, Plan,
    bert::{Batch, Bert, BertConfig, FusedBert, Sequence, encoder_tensors},
    kernels, ops,
};
use crate::error::{Error, Result};

/// The prefix of the encoder's parameters.
const ENCODER: &str = "bert.";
/// The parts of the head: weight and bias of each.
const POOLER: &str = "bert.pooler.dense";
const CLASSIFIER: &str = "classifier";

/// The shape of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossEncoderConfig {
    /// The encoder's.
    pub bert: BertConfig,
    /// Whether tokens that both texts hold have segments of their own.
    pub exact_match_types: bool,
}

#[derive(Deserialize)]
struct Head {
    num_labels: Option<usize>,
    id2label: Option<BTreeMap<String, String>>,
    #[serde(default)]
    exact_match_types: bool,
}

impl CrossEncoderConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Another kind of network, more labels than one, too few segments for what it says of them.
    pub fn parse(json: &str, path: &Path) -> Result<Self> {
        let wrong = |message: String| Err(Error::format(path, message));
        let bert = BertConfig::parse(json, path)?;
        let head: Head = serde_json::from_str(json)
            .map_err(|error| Error::format(path, format!("not a classifier: {error}")))?;
        // transformers takes two labels where nothing is said.
        let labels = head.num_labels.or(head.id2label.map(|labels| labels.len())).unwrap_or(2);
        if labels != 1 {
            return wrong(format!(
                "a classifier of {labels} labels; a cross-encoder that ranks has one \
                 (num_labels, or one entry of id2label)"
            ));
        }
        let exact_match_types = head.exact_match_types;
        if exact_match_types && bert.type_vocab_size < 4 {
            let types = bert.type_vocab_size;
            return wrong(format!(
                "exact_match_types needs 4 segments; type_vocab_size is {types}"
            ));
        }
        Ok(Self { bert, exact_match_types })
    }

    /// The parameters by their names in the file.
    pub fn plan(&self) -> Plan {
        let hidden = self.bert.hidden_size;
        let mut plan = self.bert.plan(ENCODER);
        for (part, outputs) in [(POOLER, hidden), (CLASSIFIER, 1)] {
            let weight = Init::Normal(self.bert.initializer_range);
            plan.insert(format!("{part}.weight"), Param::new([outputs, hidden], weight));
            plan.insert(format!("{part}.bias"), Param::new([outputs], Init::Constant(0.0)));
        }
        plan
    }
}

/// Brings the tensors of a classifier's file to the names of [`CrossEncoderConfig::plan`].
pub fn classifier_tensors(tensors: BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let heads = [
        ("bert.pooler.dense", POOLER),
        ("classifier.dense", POOLER),
        ("classifier.out_proj", CLASSIFIER),
        ("classifier", CLASSIFIER),
    ];
    let (mut head, mut encoder) = (BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in tensors {
        let of_head = name.rsplit_once('.').and_then(|(part, kind)| {
            let (_, part) = heads.iter().find(|(theirs, _)| *theirs == part)?;
            Some(format!("{part}.{kind}"))
        });
        match of_head {
            Some(name) => head.insert(name, tensor),
            None => encoder.insert(name, tensor),
        };
    }
    let encoder = encoder_tensors(encoder).into_iter();
    head.extend(encoder.map(|(name, tensor)| (format!("{ENCODER}{name}"), tensor)));
    head
}

/// Gives the tokens of segment 0 that occur in segment 1 the segment 2, and those of segment 1
/// that occur in segment 0 the segment 3.
pub fn mark_matches(ids: &[u32], types: &mut [u32]) {
    let of = |segment: u32, types: &[u32]| -> HashSet<u32> {
        ids.iter().zip(types).filter(|(_, kind)| **kind == segment).map(|(id, _)| *id).collect()
    };
    let (first, second) = (of(0, types), of(1, types));
    for (id, kind) in ids.iter().zip(types) {
        match *kind {
            0 if second.contains(id) => *kind = 2,
            1 if first.contains(id) => *kind = 3,
            _ => {}
        }
    }
}

/// The network over parameters that are being trained.
pub struct CrossEncoder {
    bert: Bert,
    pooler: (Tensor, Tensor),
    classifier: (Tensor, Tensor),
}

impl CrossEncoder {
    /// The network over parameters that follow [`CrossEncoderConfig::plan`].
    ///
    /// # Errors
    /// A parameter that is missing.
    pub fn new(config: &CrossEncoderConfig, params: &Params) -> Result<Self> {
        let linear = |part: &str| -> Result<(Tensor, Tensor)> {
            Ok((params.get(&format!("{part}.weight"))?, params.get(&format!("{part}.bias"))?))
        };
        Ok(Self {
            bert: Bert::new(&config.bert, params, ENCODER)?,
            pooler: linear(POOLER)?,
            classifier: linear(CLASSIFIER)?,
        })
    }

    /// One logit for each sequence, shape `(n)`.
    ///
    /// # Errors
    /// A sequence that [`BertConfig::check`] refuses.
    pub fn logits(&self, sequences: &[Sequence<'_>]) -> Result<Tensor> {
        let batch = Batch::new(self.bert.config(), sequences)?;
        // (n, width, hidden) to (n, hidden): the first token of each.
        let first = self.bert.forward(&batch)?.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
        let pooled = ops::linear(&first, &self.pooler.0, Some(&self.pooler.1))?.tanh()?;
        Ok(ops::linear(&pooled, &self.classifier.0, Some(&self.classifier.1))?.squeeze(1)?)
    }
}

/// The network for inference.
pub struct FusedCrossEncoder {
    bert: FusedBert,
    pooler: (Vec<f32>, Vec<f32>),
    classifier: (Vec<f32>, f32),
}

impl FusedCrossEncoder {
    /// The network over the parameters of [`CrossEncoderConfig::plan`], got by their names.
    ///
    /// # Errors
    /// Those of `get`.
    pub fn new(config: &CrossEncoderConfig, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        let values = |name: &str| -> Result<Vec<f32>> { Ok(get(name)?.flatten_all()?.to_vec1()?) };
        let linear = |part: &str| -> Result<(Vec<f32>, Vec<f32>)> {
            Ok((values(&format!("{part}.weight"))?, values(&format!("{part}.bias"))?))
        };
        let (weight, bias) = linear(CLASSIFIER)?;
        Ok(Self {
            bert: FusedBert::new(&config.bert, &|name| get(&format!("{ENCODER}{name}")))?,
            pooler: linear(POOLER)?,
            classifier: (weight, bias.first().copied().unwrap_or_default()),
        })
    }

    /// One logit for each sequence, in their order; none depends on the others.
    ///
    /// # Errors
    /// A sequence that [`BertConfig::check`] refuses.
    pub fn logits(&self, sequences: &[Sequence<'_>]) -> Result<Vec<f32>> {
        let hidden = self.bert.config().hidden_size;
        let (weight, bias) = &self.pooler;
        self.bert.encode(sequences, 1, &|encoded, logit| {
            let first = &encoded.tokens[..hidden];
            let rows = weight.chunks_exact(hidden).zip(bias);
            let pooled = rows.map(|(row, bias)| (kernels::dot(row, first) + bias).tanh());
            let (weight, bias) = &self.classifier;
            logit[0] = bias + pooled.zip(weight).map(|(x, weight)| x * weight).sum::<f32>();
        })
    }
}
