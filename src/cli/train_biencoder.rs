//! The `train-biencoder` command: texts in, a checkpoint folder that `--embedder` takes out.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use candle_core::DType;
use clap::{Parser, ValueEnum};
use serde_json::{Map, Value, json};

use super::{
    TrainArgs, VerboseArgs,
    train::{INTERRUPTED, interruption, note, printer},
    value_name,
};
use crate::{
    corpus::{self, Corpus},
    embed,
    error::{Error, Result},
    lexical::{Bm25, LexicalIndex},
    nn::{AdamWSettings, loss::InfoNce},
    store::{FlatStore, VectorStore},
    text::Analyzer,
    tokenizer::{self, Tokenizer},
    train::{
        BertBiEncoder, MiniBiEncoder, RunSettings, Summary, Watch,
        bi_encoder::{Contrastive, ContrastiveSettings, Model},
        pairs::{
            Labelled, LabelledSettings, LabelledTexts, MineSettings, Mixture, Pairs, SearchFn,
            Unlabelled, UnlabelledSettings, mine_negatives,
        },
        run,
    },
};

const EXAMPLES: &str = "\
Examples:
  train-biencoder --corpus ~/notes --output my-model      a retriever for these documents
  answer --corpus ~/notes --embedder my-model \"Where is the key?\"
  train-biencoder --pairs pairs.jsonl --output my-model   lines of {\"anchor\", \"positive\"}
  train-biencoder --dataset scifact --split train --mine-negatives bm25 --output my-model
  train-biencoder --init my-model --corpus ~/more --output my-second-model

Several sources are mixed in every batch. Ctrl-C saves; --resume goes on.
Exit codes: 0 done, 1 failed, 2 usage, 130 interrupted and saved.";

/// Trains a bi-encoder by contrast: each text is to find its own passage among those of the batch
#[derive(Debug, Clone, Parser)]
#[command(name = "train-biencoder", version, after_help = EXAMPLES)]
pub struct TrainBiencoder {
    /// A folder or file of documents, or a BEIR folder, of which pairs are made; no labels needed
    #[arg(long, value_name = "PATH", required_unless_present_any = ["pairs", "dataset"])]
    corpus: Option<PathBuf>,
    /// JSON lines of {"anchor", "positive", "negative"?}; may be given again
    #[arg(long, value_name = "FILE")]
    pairs: Vec<PathBuf>,
    /// A BEIR folder with judged queries
    #[arg(long, value_name = "DIR")]
    dataset: Option<PathBuf>,
    /// Which of its queries
    #[arg(long, default_value = "train", requires = "dataset")]
    split: String,
    /// Start from this checkpoint instead of a fresh network
    #[arg(long, value_name = "DIR")]
    init: Option<PathBuf>,
    /// Sizes and numbers that are not given; a pretrained BERT has its own [default: default]
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// Dimensions of a fresh network [default: the preset's]
    #[arg(long, value_name = "N", conflicts_with = "init")]
    dim: Option<usize>,
    /// Tokens of a fresh network's vocabulary, at most [default: the preset's]
    #[arg(long, value_name = "N", conflicts_with = "init")]
    vocab_size: Option<usize>,
    /// Cosines are divided by it
    #[arg(long, value_name = "X", default_value_t = InfoNce::default().temperature)]
    temperature: f32,
    /// Embed a batch in parts of N texts: the gradient of the whole, the memory of a part
    #[arg(long, value_name = "N", default_value_t = 0)]
    cache_chunk: usize,
    /// Give labelled pairs hard negatives that this search finds
    #[arg(long, value_enum)]
    mine_negatives: Option<Miner>,
    /// Also train these prefixes of the vectors to be vectors of their own
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    matryoshka: Vec<usize>,
    /// Write the checkpoint in half precision: half the size
    #[arg(long)]
    half: bool,
    #[command(flatten)]
    train: TrainArgs,
    #[command(flatten)]
    verbose: VerboseArgs,
}

/// Sizes and numbers for a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Seconds, to see it work.
    Tiny,
    /// For labelled pairs of one field of knowledge: 512 dimensions of few tokens, moved little.
    Small,
    /// 256 dimensions and 12,000 tokens: minutes, for a person's documents.
    Default,
}

/// Who finds hard negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Miner {
    /// BM25 over the passages.
    Bm25,
    /// The checkpoint of --init.
    Dense,
}

/// What a preset says.
struct Sizes {
    dim: usize,
    vocab_size: usize,
    batch_size: usize,
    run: RunSettings,
}

impl Preset {
    fn sizes(self) -> Sizes {
        let (dim, vocab_size, batch_size, steps, lr) = match self {
            Self::Tiny => (32, 1024, 64, 60, 0.01),
            // Rows of tokens that no pair holds stay as they are, and must not be drowned by those
            // that are trained.
            Self::Small => (512, 3072, 256, 200, 0.002),
            Self::Default => (256, 12_000, 256, 1000, 0.01),
        };
        // No decay: rows of rare tokens would shrink between the few steps that train them.
        let optimiser =
            AdamWSettings { lr, beta2: 0.98, weight_decay: 0.0, ..AdamWSettings::default() };
        let run = RunSettings {
            steps,
            warmup: (steps / 10).min(100),
            eval_every: (steps / 10).max(1),
            optimiser,
        };
        Sizes { dim, vocab_size, batch_size, run }
    }
}

impl Sizes {
    /// For a pretrained transformer, which moves little and costs much a step.
    fn fine_tuning() -> Self {
        let optimiser = AdamWSettings { lr: 2e-5, ..AdamWSettings::default() };
        let run = RunSettings { steps: 300, warmup: 30, eval_every: 50, optimiser };
        Self { dim: 0, vocab_size: 0, batch_size: 32, run }
    }
}

/// What was read to train on.
struct Texts {
    labelled: Vec<LabelledTexts>,
    corpus: Option<Corpus>,
}

impl TrainBiencoder {
    /// Trains, and says what there is to print.
    ///
    /// # Errors
    /// Texts that cannot be read or are too few, options that do not fit, a run that fails.
    pub fn execute(&self) -> Result<(String, ExitCode)> {
        self.verbose.apply()?;
        let texts = self.read()?;
        let (model, sizes) = self.model(&texts)?;
        let model = model.as_ref();
        let settings = self.train.settings(sizes.run)?;
        let (pairs, mut arguments) = self.pairs(texts, model)?;
        arguments.insert("network".to_owned(), model.describe());
        if let Some(folder) = &self.init {
            let fingerprint = model.embedder()?.fingerprint();
            arguments.insert("init".to_owned(), json!([folder, fingerprint]));
        }
        let task = Contrastive {
            encoder: model,
            pairs: pairs.as_ref(),
            settings: ContrastiveSettings {
                batch_size: self.train.batch_size.unwrap_or(sizes.batch_size),
                cache_chunk: self.cache_chunk,
                matryoshka: self.matryoshka.clone(),
                loss: InfoNce { temperature: self.temperature, ..InfoNce::default() },
                seed: self.train.seed,
            },
            arguments,
        };
        task.check()?;
        let watch = Watch {
            output: &self.train.output,
            resume: self.train.resume,
            on_line: &mut printer(self.verbose.quiet, settings.steps, "mrr"),
            stop: interruption()?,
        };
        let summary = run(&task, &settings, watch)?;
        self.report(&summary)
    }

    /// What is trained, and the numbers that go with it.
    fn model(&self, texts: &Texts) -> Result<(Box<dyn Model>, Sizes)> {
        let dtype = if self.half { DType::F16 } else { DType::F32 };
        let sizes = self.preset.unwrap_or(Preset::Default).sizes();
        let Some(folder) = &self.init else {
            return Ok((Box::new(self.fresh(texts, &sizes, dtype)?), sizes));
        };
        if embed::is_static(folder)? {
            return Ok((Box::new(MiniBiEncoder::open(folder, dtype)?), sizes));
        }
        if self.preset.is_some() {
            let message = "a BERT is not trained by a preset: leave --preset out";
            return Err(Error::format(folder, message));
        }
        Ok((Box::new(BertBiEncoder::open(folder, dtype)?), Sizes::fine_tuning()))
    }

    fn read(&self) -> Result<Texts> {
        let mut labelled = Vec::new();
        for path in &self.pairs {
            labelled.push(LabelledTexts::read(path)?);
        }
        if let Some(folder) = &self.dataset {
            labelled.push(LabelledTexts::beir(folder, &self.split)?);
        }
        let corpus = self.corpus.as_deref().map(corpus::load).transpose()?;
        for skipped in corpus.iter().flat_map(|corpus| &corpus.skipped) {
            note(self.verbose.quiet, &format!("skipped {}: {}", skipped.path, skipped.reason));
        }
        Ok(Texts { labelled, corpus })
    }

    /// A fresh network with a tokenizer of its own, both made for these texts.
    fn fresh(&self, texts: &Texts, sizes: &Sizes, dtype: DType) -> Result<MiniBiEncoder> {
        let documents = texts.corpus.iter().flat_map(|corpus| &corpus.documents);
        let documents: Vec<String> =
            documents.map(|document| format!("{} {}", document.title, document.text)).collect();
        let passages = texts.labelled.iter().flat_map(|labelled| &labelled.passages);
        let passages: Vec<&str> = documents.iter().chain(passages).map(String::as_str).collect();
        let anchors = texts.labelled.iter().flat_map(|labelled| &labelled.anchors);
        let all: Vec<&str> = passages.iter().copied().chain(anchors.map(String::as_str)).collect();
        let vocabulary = tokenizer::TrainSettings {
            vocab_size: self.vocab_size.unwrap_or(sizes.vocab_size),
            lowercase: true,
            special_tokens: Vec::new(),
            ..tokenizer::TrainSettings::default()
        };
        note(self.verbose.quiet, &format!("training a tokenizer on {} texts", all.len()));
        let (tokenizer, _) = tokenizer::train(&all, &vocabulary)?;
        let dim = self.dim.unwrap_or(sizes.dim);
        let mut model = MiniBiEncoder::new(Arc::new(tokenizer), dim, &passages, self.train.seed)?;
        model.dtype = dtype;
        Ok(model)
    }

    /// The source of the batches, and what a resumed run must find unchanged of it.
    fn pairs(
        &self,
        texts: Texts,
        model: &dyn Model,
    ) -> Result<(Box<dyn Pairs>, Map<String, Value>)> {
        let mut sources: Vec<Box<dyn Pairs>> = Vec::new();
        let mut arguments = Map::new();
        let tokenizer: &Tokenizer = model.tokenizer();
        for mut labelled in texts.labelled {
            if let Some(miner) = self.mine_negatives {
                self.mine(&mut labelled, miner, model)?;
            }
            let name = format!("pairs {}", labelled.path.display());
            let source = Labelled::new(&labelled, tokenizer, LabelledSettings::default())?;
            let about = json!({ "count": source.len(), "hash": labelled.hash() });
            arguments.insert(name, about);
            sources.push(Box::new(source));
        }
        if let Some(Corpus { documents, kind, .. }) = &texts.corpus {
            let source = Unlabelled::new(documents, tokenizer, UnlabelledSettings::of(*kind))?;
            let hash = corpus::content_hash(documents);
            let about = json!({ "documents": documents.len(), "passages": source.len(),
                "hash": &hash[..12] });
            arguments.insert("corpus".to_owned(), about);
            sources.push(Box::new(source));
        }
        if let Some(miner) = self.mine_negatives {
            arguments.insert("mine_negatives".to_owned(), value_name(&miner).into());
        }
        for (name, about) in &arguments {
            note(self.verbose.quiet, &format!("{name}: {about}"));
        }
        Ok((Mixture::of(sources)?, arguments))
    }

    fn mine(&self, texts: &mut LabelledTexts, miner: Miner, model: &dyn Model) -> Result<()> {
        let settings = MineSettings { seed: self.train.seed, ..MineSettings::default() };
        let passages = texts.passages.clone();
        let search: Box<SearchFn<'_>> = match miner {
            Miner::Bm25 => {
                let index = Bm25::build(&passages, Analyzer::default(), Default::default())?;
                Box::new(move |query, k| index.search(query, k))
            }
            Miner::Dense if self.init.is_none() => {
                return Err(Error::Setting(
                    "--mine-negatives dense: a fresh network finds nothing yet; give --init"
                        .to_owned(),
                ));
            }
            Miner::Dense => {
                let embedder = model.embedder()?;
                let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
                let store = FlatStore::new(embedder.embed_passages(&passages)?);
                Box::new(move |query, k| store.search(embedder.embed_queries(&[query])?.row(0), k))
            }
        };
        let report = mine_negatives(texts, search.as_ref(), &settings)?;
        note(self.verbose.quiet, &format!("hard negatives: {}", json!(report)));
        Ok(())
    }

    fn report(&self, summary: &Summary) -> Result<(String, ExitCode)> {
        let output = &self.train.output;
        if summary.interrupted {
            note(false, &format!("saved after step {}: go on with --resume", summary.steps));
            return Ok((String::new(), ExitCode::from(INTERRUPTED)));
        }
        let text = match self.train.json {
            true => {
                let path = output.join("train.json");
                std::fs::read_to_string(&path).map_err(Error::io(&path))?
            }
            false => said(output, summary),
        };
        Ok((text, ExitCode::SUCCESS))
    }
}

fn said(output: &Path, summary: &Summary) -> String {
    let best = summary.best.map_or(String::new(), |(value, step)| {
        format!(", best dev mrr {value:.4} after step {step}")
    });
    let minutes = summary.seconds / 60.0;
    format!("{}: {} steps in {minutes:.1} minutes{best}\n", output.display(), summary.steps)
}
