//! Trains a byte-level BPE tokenizer on a folder of texts.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Result;
use clap::Parser;
use minirag::{
    cli, corpus,
    tokenizer::{self, TrainSettings},
};

/// Train a byte-level BPE tokenizer on any corpus: same texts, same bytes.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  train-tokenizer --corpus data/rag-kb --output models/tokenizer
  train-tokenizer --corpus ~/notes --output /tmp/tokenizer --vocab-size 8192 --json
  train-tokenizer --corpus ~/notes --output /tmp/uncased --vocab-size 12000 --lowercase"
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
    /// Put texts in NFKC and lower case and cut them at blanks and marks: for a retriever.
    #[arg(long)]
    lowercase: bool,
    /// Print train.json on stdout.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    cli::exit(run(&Args::parse()))
}

fn run(args: &Args) -> Result<ExitCode> {
    let corpus = corpus::load(&args.corpus)?;
    let texts: Vec<&str> = corpus.documents.iter().map(|d| d.text.as_str()).collect();
    let settings = TrainSettings {
        vocab_size: args.vocab_size,
        min_frequency: args.min_frequency,
        lowercase: args.lowercase,
        ..Default::default()
    };
    let (tokenizer, report) = tokenizer::train(&texts, &settings)?;
    let path = tokenizer.save(&args.output)?;
    report.save(&args.output)?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        writeln!(out, "{}: {report}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}
