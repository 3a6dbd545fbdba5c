//! Trains a byte-level BPE tokenizer on a folder of texts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use minirag::tokenizer::{self, TrainSettings};

/// Train a byte-level BPE tokenizer on any corpus: same texts, same bytes.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  train-tokenizer --corpus data/rag-kb --output models/tokenizer
  train-tokenizer --corpus ~/notes --output /tmp/tokenizer --vocab-size 8192 --json"
)]
struct Args {
    /// A folder or file of documents.
    #[arg(long, env = "MINIRAG_CORPUS", default_value = "data/rag-kb")]
    corpus: PathBuf,
    /// The folder that gets tokenizer.json and train.json.
    #[arg(long)]
    output: PathBuf,
    /// Number of tokens.
    #[arg(long, default_value_t = TrainSettings::default().vocab_size)]
    vocab_size: usize,
    /// Leave out merges seen less often.
    #[arg(long, default_value_t = TrainSettings::default().min_frequency)]
    min_frequency: u64,
    /// Print train.json on stdout.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let texts = texts(&args.corpus)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let settings = TrainSettings {
        vocab_size: args.vocab_size,
        min_frequency: args.min_frequency,
        ..Default::default()
    };
    let (tokenizer, report) = tokenizer::train(&texts, &settings)?;
    let path = tokenizer.save(&args.output)?;
    report.save(&args.output)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}: {report}", path.display());
    }
    Ok(())
}

/// The texts of the corpus; `minirag::corpus` takes this over.
fn texts(path: &Path) -> Result<Vec<String>> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<_>>()?;
        paths.sort();
        let is_text = |path: &Path| path.extension().is_some_and(|e| e == "md" || e == "txt");
        paths.retain(|path| path.is_dir() || is_text(path));
        let nested: Vec<Vec<String>> = paths.iter().map(|p| texts(p)).collect::<Result<_>>()?;
        return Ok(nested.concat());
    }
    Ok(vec![std::fs::read_to_string(path).with_context(|| path.display().to_string())?])
}
