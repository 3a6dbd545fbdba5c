//! Makes an index of documents, brings it up to date, checks it.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Result, bail};
use clap::Parser;
use indicatif::ProgressBar;
use minirag::{
    chunk::Strategy,
    cli::{self, VerboseArgs},
    index::{ChunkChoice, FILE, Index, Request, Tools, update, verify},
};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  index --corpus ~/notes --index my-index
  index --corpus ~/notes --index my-index --dry-run --json
  index --index my-index --verify

An index folder inside the folder of documents is left out of the documents.
Exit codes: 0 done, 1 failed (with --strict: a file was skipped; with --verify: a fault, or
documents that have changed), 2 usage.";

/// Makes documents searchable: reads, cuts and embeds them, and swaps the new index in
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// A folder or file of documents, or a BEIR folder [default: the grammar corpus]
    #[arg(long, env = "MINIRAG_CORPUS", value_name = "PATH")]
    corpus: Option<PathBuf>,
    /// The folder of the index
    #[arg(long, env = "MINIRAG_INDEX", value_name = "DIR")]
    index: PathBuf,
    /// How documents are cut [default: that of the old index, else auto; whole for a BEIR folder]
    #[arg(long, env = "MINIRAG_CHUNKER", value_enum)]
    chunker: Option<Strategy>,
    /// Tokens a chunk aims at [default: that of the old index, else 150]
    #[arg(long, env = "MINIRAG_CHUNK_TOKENS", value_name = "N")]
    chunk_tokens: Option<usize>,
    /// Tokens that neighbouring chunks share [default: that of the old index, else 20]
    #[arg(long, env = "MINIRAG_CHUNK_OVERLAP", value_name = "N")]
    chunk_overlap: Option<usize>,
    /// `hashing`, or a checkpoint folder [default: that of the old index, else
    /// models/biencoder, which is also built in]
    #[arg(long, env = "MINIRAG_EMBEDDER", value_name = "NAME|DIR")]
    embedder: Option<String>,
    /// Check the index against itself and its documents
    #[arg(long, conflicts_with_all = ["stats", "dry_run", "strict"])]
    verify: bool,
    /// Say what the index holds and what it was made with
    #[arg(long, conflicts_with_all = ["dry_run", "strict"])]
    stats: bool,
    /// Write nothing, only say what would change
    #[arg(long)]
    dry_run: bool,
    /// Fail, and write nothing, if a file was skipped
    #[arg(long)]
    strict: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verbose: VerboseArgs,
}

fn main() -> ExitCode {
    cli::exit(run(&Args::parse()))
}

fn run(args: &Args) -> Result<ExitCode> {
    args.verbose.apply()?;
    if args.stats {
        return stats(args);
    }
    let name = cli::embedder_name(args.embedder.as_deref(), Some(&args.index));
    let embedder = cli::embedder(&name)?;
    if args.verify {
        let found = verify(&args.index, args.corpus.as_deref(), embedder.as_ref())?;
        show(args, &found.json(), &found.to_string())?;
        return Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let tokenizer = cli::tokenizer()?;
    let request = Request {
        corpus: args.corpus.clone(),
        dir: args.index.clone(),
        dry_run: args.dry_run,
        strict: args.strict,
        chunks: ChunkChoice {
            strategy: args.chunker,
            tokens: args.chunk_tokens,
            overlap: args.chunk_overlap,
        },
        embedder: absolute(&name),
    };
    let hidden = args.verbose.quiet || !io::stderr().is_terminal();
    let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let tools = Tools::new(&tokenizer, embedder.as_ref());
    let report = update(&request, &tools, &|stage| {
        bar.set_message(stage.to_owned());
        if args.verbose.verbose {
            args.verbose.say(stage);
        }
    })?;
    bar.finish_and_clear();
    show(args, &report.json(), &report.to_string())?;
    if args.strict && !report.skipped.is_empty() {
        let skipped = report.skipped.len();
        bail!("{skipped} of {} files were skipped (--strict): nothing written", report.found);
    }
    Ok(ExitCode::SUCCESS)
}

fn stats(args: &Args) -> Result<ExitCode> {
    let manifest = Index::manifest(&args.index)?;
    let bytes = std::fs::metadata(args.index.join(FILE))?.len();
    let json = json!({ "manifest": manifest, "bytes": bytes });
    let text = json["manifest"].as_object().into_iter().flatten();
    let text: String = text.map(|(key, value)| format!("{key}: {value}\n")).collect();
    show(args, &json, &format!("{text}bytes: {bytes}"))?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Args, json: &Value, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json { writeln!(out, "{json}") } else { writeln!(out, "{}", cli::printable(text)) }
}

/// The name as the index records it: of a folder the whole path, so that the index can be asked
/// from anywhere.
fn absolute(embedder: &str) -> String {
    let path = std::path::Path::new(embedder).canonicalize();
    match path {
        Ok(path) if embedder != cli::EMBEDDER => path.to_string_lossy().into_owned(),
        _ => embedder.to_owned(),
    }
}
