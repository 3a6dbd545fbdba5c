//! Answers questions from documents, with citations.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{CommandFactory, Parser};
use minirag::{
    cli::{self, ModelArgs, Opened, SourceArgs, VerboseArgs},
    types::Answer,
};

const EXAMPLES: &str = "\
Examples:
  answer What is the past participle of eat?
  answer --corpus ~/notes --trace 'When did we move the database?'
  answer --index my-index --json < questions.txt > answers.jsonl

Exit codes: 0 done (also for \"I don't know\"), 1 failed, 2 usage, 3 no answer with
--fail-on-unknown.";

/// Answers questions from your documents, with citations that can be checked
#[derive(Debug, Parser)]
#[command(name = "answer", version, after_help = EXAMPLES)]
struct Args {
    /// The question; without one, one question a line is read from standard input
    question: Vec<String>,
    /// Print one JSON object a question
    #[arg(long)]
    json: bool,
    /// Print what every stage did (with --json to standard error)
    #[arg(long)]
    trace: bool,
    /// Write what every stage did with the one question to a file, as JSON
    #[arg(long, value_name = "FILE", requires = "question")]
    trace_file: Option<PathBuf>,
    /// Say which passages are relevant, which are near misses, and why (with --json to standard
    /// error)
    #[arg(long)]
    explain: bool,
    /// Print the reader's text as it comes
    #[arg(long, conflicts_with = "json")]
    stream: bool,
    /// Exit with 3 if a question has no answer
    #[arg(long)]
    fail_on_unknown: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    verbose: VerboseArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let blank = |question: &[String]| question.iter().all(|word| word.trim().is_empty());
    if args.question.is_empty() && io::stdin().is_terminal() {
        let _ = Args::command().print_help();
        return ExitCode::from(2);
    }
    if !args.question.is_empty() && blank(&args.question) {
        let _ = writeln!(io::stderr(), "error: the question is empty");
        return ExitCode::from(2);
    }
    cli::exit(run(&args))
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.verbose.apply()?;
    let opened = cli::open(&args.source, &args.models)?;
    args.verbose.report(&opened);
    let mut unknown = false;
    if args.question.is_empty() {
        // One line that is not UTF-8 must not cost the others their answers.
        for (at, line) in io::stdin().lock().split(b'\n').enumerate() {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let mark = if at == 0 { "\u{feff}" } else { "" }; // of the byte order
            let question = line.strip_prefix(mark).unwrap_or(&line).trim();
            if !question.is_empty() {
                unknown |= answer(args, &opened, question)?;
            }
        }
    } else {
        unknown = answer(args, &opened, args.question.join(" ").trim())?;
    }
    Ok(if unknown && args.fail_on_unknown { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// Answers one question; true if there is no answer.
fn answer(args: &Args, opened: &Opened, question: &str) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let mut streamed = false;
    let mut on_text = |piece: &str| {
        if args.stream {
            streamed = true;
            let piece = cli::printable(piece);
            let _ = out.write_all(piece.as_bytes()).and_then(|()| out.flush());
        }
    };
    let outcome = opened.pipeline.answer(question, &opened.settings, &mut on_text)?;
    if let Some(path) = &args.trace_file {
        opened.write_trace(question, &outcome, path)?;
    }
    if streamed {
        writeln!(out)?;
    }
    let trace = if args.trace { opened.show_trace(&outcome)? + "\n" } else { String::new() };
    let explanation = match args.explain {
        true => format!("\n{}", opened.show_explanation(question, &outcome)?),
        false => String::new(),
    };
    if args.json {
        io::stderr().write_all((trace + &explanation).as_bytes())?;
        writeln!(out, "{}", opened.json_answer(question, &outcome)?)?;
    } else {
        let shown = opened.show_answer(&outcome, streamed);
        write!(out, "{trace}{shown}{explanation}")?;
    }
    Ok(matches!(outcome.answer, Answer::Unknown { .. }))
}
