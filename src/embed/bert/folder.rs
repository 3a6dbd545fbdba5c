//! What the files of a sentence-transformers folder say, but for the weights.
//!
//! Nothing is guessed that a file states; a module, a pooling or a key that would change the
//! vectors and cannot be followed is an error, since the vectors would look as good as right ones.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::super::bi_encoder::{Module, read_dense, read_json};
use crate::{
    error::{Error, Result},
    nn::{
        bert::{BertConfig, Pooling},
        bi_encoder::DenseConfig,
        kernels::Packed,
    },
};

/// What follows the pooling.
#[derive(Debug)]
pub(super) enum Step {
    Dense(DenseConfig, Packed, Vec<f32>),
    Normalize,
}

/// The settings of an embedder.
#[derive(Debug)]
pub(super) struct Settings {
    /// Where the network and the tokenizer are: mostly the folder itself.
    pub(super) network: PathBuf,
    pub(super) config: BertConfig,
    /// Side by side, in this order.
    pub(super) pooling: Vec<Pooling>,
    /// Whether the prompt's tokens count in the pooling.
    pub(super) include_prompt: bool,
    pub(super) steps: Vec<Step>,
    /// Tokens, special ones among them.
    pub(super) max_tokens: usize,
    pub(super) lower_case: bool,
    pub(super) query_prompt: String,
    pub(super) passage_prompt: String,
}

const MODULES: &str = "modules.json";

impl Settings {
    /// Reads the folder. Without `modules.json` it is a plain transformers folder, which is pooled
    /// by the mean and not normalised, as sentence-transformers does.
    ///
    /// # Errors
    /// A file that is missing or wrong, a module that is not known.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MODULES);
        let modules: Vec<Module> = if path.exists() { read_json(&path)? } else { Vec::new() };
        let network = modules.first().map_or(folder.to_owned(), |module| folder.join(&module.path));
        let path = network.join("config.json");
        let json = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        let config = BertConfig::parse(&json, &path)?;
        let (pooling, include_prompt, steps) = read_modules(folder, &modules, &config)?;
        let (max_tokens, lower_case) = read_limit(&network, &config)?;
        let (query_prompt, passage_prompt) = read_prompts(folder)?;
        Ok(Self {
            network,
            config,
            pooling,
            include_prompt,
            steps,
            max_tokens,
            lower_case,
            query_prompt,
            passage_prompt,
        })
    }

    /// Values of a vector.
    pub(super) fn dim(&self) -> usize {
        let pooled = self.pooling.len() * self.config.hidden_size;
        let dense = self.steps.iter().rev().find_map(|step| match step {
            Step::Dense(layer, ..) => Some(layer.out_features),
            Step::Normalize => None,
        });
        dense.unwrap_or(pooled)
    }
}

type Pooled = (Vec<Pooling>, bool, Vec<Step>);

fn read_modules(folder: &Path, modules: &[Module], config: &BertConfig) -> Result<Pooled> {
    if modules.is_empty() {
        return Ok((vec![Pooling::Mean], true, Vec::new()));
    }
    let mut pooled = None;
    let mut steps = Vec::new();
    let mut width = 0;
    for (place, module) in modules.iter().enumerate() {
        let inside = folder.join(&module.path);
        // A module of somebody's own may bear the name of a known one.
        let class = match module.kind.starts_with("sentence_transformers.") {
            true => module.class(),
            false => &module.kind,
        };
        match (place, class, &pooled) {
            (0, "Transformer", _) => {}
            (1, "Pooling", _) => {
                let (pooling, include_prompt) = read_pooling(&inside, config)?;
                width = pooling.len() * config.hidden_size;
                pooled = Some((pooling, include_prompt));
            }
            (_, "Dense", Some(_)) => {
                let (layer, (weight, bias)) = read_dense(&inside)?;
                if layer.in_features != width {
                    let got = layer.in_features;
                    let message = format!("in_features is {got}; what comes before gives {width}");
                    return Err(Error::format(inside.join("config.json"), message));
                }
                width = layer.out_features;
                let weight = Packed::new(&weight, layer.in_features);
                steps.push(Step::Dense(layer, weight, bias));
            }
            (_, "Normalize", Some(_)) => steps.push(Step::Normalize),
            (_, class, _) => {
                let message = format!(
                    "module {place} is `{class}`; a text encoder has Transformer, Pooling, then \
                     Dense and Normalize if at all"
                );
                return Err(Error::format(folder.join(MODULES), message));
            }
        }
    }
    let Some((pooling, include_prompt)) = pooled else {
        return Err(Error::format(folder.join(MODULES), "there is no module `Pooling`"));
    };
    Ok((pooling, include_prompt, steps))
}

/// The present form has `pooling_mode`, a name or several; the former a key for each.
fn read_pooling(folder: &Path, config: &BertConfig) -> Result<(Vec<Pooling>, bool)> {
    let path = folder.join("config.json");
    let json: BTreeMap<String, Value> = read_json(&path)?;
    let wrong = |message: String| Err(Error::format(&path, message));
    for key in ["embedding_dimension", "word_embedding_dimension"] {
        let (got, expected) = (json.get(key).and_then(Value::as_u64), config.hidden_size as u64);
        if let Some(got) = got.filter(|got| *got != expected) {
            return wrong(format!("{key} is {got}; the network's hidden_size is {expected}"));
        }
    }
    let include_prompt = json.get("include_prompt").and_then(Value::as_bool).unwrap_or(true);
    let mut pooling = Vec::new();
    let names: Vec<&Value> = match json.get("pooling_mode") {
        Some(Value::Array(names)) => names.iter().collect(),
        Some(name) => vec![name],
        None => Vec::new(),
    };
    for name in &names {
        let known = Pooling::NAMES.iter().find(|(known, _, _)| name.as_str() == Some(known));
        let Some((_, _, mode)) = known else {
            return wrong(format!("pooling_mode {name} is not known"));
        };
        pooling.push(*mode);
    }
    let former =
        json.iter().filter(|(key, _)| names.is_empty() && key.starts_with("pooling_mode_"));
    for (key, _) in former.clone().filter(|(_, value)| value.as_bool() == Some(true)) {
        if !Pooling::NAMES.iter().any(|(_, known, _)| key == known) {
            return wrong(format!("{key} is not known"));
        }
    }
    let stated = former.count() > 0;
    if stated {
        let on = |key: &str| json.get(key).and_then(Value::as_bool) == Some(true);
        pooling
            .extend(Pooling::NAMES.iter().filter(|(_, key, _)| on(key)).map(|(_, _, mode)| *mode));
    }
    if pooling.is_empty() && names.is_empty() {
        // What sentence-transformers does where nothing is said.
        pooling.push(Pooling::Mean);
    }
    Ok((pooling, include_prompt))
}

#[derive(Default, Deserialize)]
struct Transformer {
    #[serde(default)]
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

#[derive(Default, Deserialize)]
struct TokenizerConfig {
    /// Absurdly large where there is no limit.
    #[serde(default)]
    model_max_length: Option<f64>,
    #[serde(default)]
    truncation_side: Option<String>,
}

/// The most tokens of a text, and whether it is to be lower-cased.
fn read_limit(folder: &Path, config: &BertConfig) -> Result<(usize, bool)> {
    let names = ["bert", "roberta", "xlm-roberta", "camembert"];
    let paths = names.map(|name| folder.join(format!("sentence_{name}_config.json")));
    let transformer: Transformer = match paths.iter().find(|path| path.exists()) {
        Some(path) => read_json(path)?,
        None => Transformer::default(),
    };
    let path = folder.join("tokenizer_config.json");
    let tokenizer: TokenizerConfig =
        if path.exists() { read_json(&path)? } else { TokenizerConfig::default() };
    if let Some(side) = tokenizer.truncation_side.filter(|side| side != "right") {
        let message = format!("truncation_side `{side}` cannot be followed; `right` can");
        return Err(Error::format(path, message));
    }
    let most = config.max_positions();
    let stated = transformer.max_seq_length;
    // A limit beyond what a number holds is none.
    let limit = stated.or(tokenizer.model_max_length.map(|limit| limit as usize));
    let limit = limit.unwrap_or(most).min(most);
    if limit == 0 {
        return Err(Error::format(folder, "the longest text has 0 tokens"));
    }
    Ok((limit, transformer.do_lower_case))
}

#[derive(Default, Deserialize)]
struct Prompts {
    #[serde(default)]
    prompts: BTreeMap<String, Option<String>>,
    #[serde(default)]
    default_prompt_name: Option<String>,
}

/// What is put before queries and before passages: the prompt of one of their names, else the
/// default one, unless that is the other side's.
fn read_prompts(folder: &Path) -> Result<(String, String)> {
    const QUERY: &[&str] = &["query"];
    const PASSAGE: &[&str] = &["document", "passage", "corpus"];
    let path = folder.join("config_sentence_transformers.json");
    let Prompts { prompts, default_prompt_name } =
        if path.exists() { read_json(&path)? } else { Prompts::default() };
    let prompt = |name: &str| prompts.get(name).cloned().flatten();
    if let Some(name) = default_prompt_name.as_ref().filter(|name| !prompts.contains_key(*name)) {
        let message = format!("default_prompt_name is `{name}`, which is none of the prompts");
        return Err(Error::format(path, message));
    }
    let choose = |names: &[&str], others: &[&str]| {
        let own = names.iter().find_map(|name| prompt(name));
        let default = default_prompt_name.as_deref().filter(|name| !others.contains(name));
        own.or_else(|| default.and_then(prompt)).unwrap_or_default()
    };
    Ok((choose(QUERY, PASSAGE), choose(PASSAGE, QUERY)))
}
