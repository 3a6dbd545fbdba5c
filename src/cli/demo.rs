//! The `demo` command: the assembled chain, traced on one question and measured on the test set.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use clap::Parser;
use serde_json::json;

use super::{ModelArgs, Opened, SourceArgs, VerboseArgs, evaluate, open, printable, progress};
use crate::{
    error::Result,
    eval::{
        dataset::{Dataset, beir},
        gate::{self, Gate, Verdict},
        metrics::Measure,
        report::{Heading, Report},
        run::{self, Stage},
    },
    pipeline::Outcome,
};

const EXAMPLES: &str = "\
Examples:
  demo                       the grammar corpus and its test questions
  demo --corpus scifact      a BEIR folder with its own questions
  demo --corpus ~/notes      a folder of documents: the trace alone, there is nothing to measure

Exit codes: 0 all figures reach their bounds, 1 one does not (it is named), 2 usage.";

/// Shows the whole chain at work on one question, then its figures beside their bounds
#[derive(Debug, Parser)]
#[command(name = "demo", version, after_help = EXAMPLES)]
pub struct Demo {
    /// The question to trace [default: one that fits the corpus]
    #[arg(long)]
    question: Option<String>,
    /// Bounds that the figures must reach
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    verbose: VerboseArgs,
}

/// The bounds of the grammar set, as shipped.
const GRAMMAR_GATE: &str = include_str!("../../data/expected/grammar.toml");

impl Demo {
    /// Runs the command: what to print, and how to exit.
    ///
    /// # Errors
    /// A corpus that cannot be read.
    pub fn execute(&self) -> Result<(String, ExitCode)> {
        self.verbose.apply()?;
        let opened = open(&self.source, &self.models)?;
        self.verbose.report(&opened);
        let dataset = self.dataset(&opened)?;
        let question = self.question(dataset.as_ref());
        let outcome = opened.pipeline.answer(&question, &opened.settings, &mut |_| {})?;
        let measured = dataset.map(|dataset| self.measure(&opened, &dataset)).transpose()?;
        let failed: Vec<String> = measured
            .iter()
            .flat_map(|(_, verdicts)| verdicts)
            .filter(|verdict| !verdict.ok)
            .map(Verdict::to_string)
            .collect();
        let code = if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        if self.json {
            let report = measured.as_ref().map(|(report, _)| report);
            let json = json!({
                "chunker": opened.chunker,
                "answer": opened.json_answer(&question, &outcome)?,
                "report": report,
                "failed": failed,
            });
            return Ok((format!("{json:#}\n"), code));
        }
        let mut text = show_chain(&opened, &question, &outcome)?;
        if let Some((report, verdicts)) = &measured {
            show_figures(&mut text, report, verdicts, opened.settings.top_k);
        }
        for line in failed {
            let _ = writeln!(text, "{line}");
        }
        Ok((text, code))
    }

    /// The questions to measure on: those of the grammar set or of a BEIR folder, if there are.
    fn dataset(&self, opened: &Opened) -> Result<Option<Dataset>> {
        match &self.source.corpus {
            Some(dir) if dir.join("qrels/test.tsv").is_file() => Ok(Some(beir::load(dir, "test")?)),
            None if self.source.index.is_none() => {
                Ok(Some(evaluate::grammar_set(&opened.pipeline.documents, "test")?))
            }
            _ => Ok(None),
        }
    }

    fn question(&self, dataset: Option<&Dataset>) -> String {
        let first = || dataset.and_then(|dataset| dataset.queries.first()).map(|q| q.text.clone());
        match (&self.question, &self.source.corpus) {
            (Some(question), _) => question.clone(),
            (None, None) => "What is the past participle of eat?".to_owned(),
            (None, Some(_)) => first().unwrap_or_else(|| "What is this about?".to_owned()),
        }
    }

    fn measure(&self, opened: &Opened, dataset: &Dataset) -> Result<(Report, Vec<Verdict>)> {
        let measures = Measure::at(&[opened.settings.top_k, 5, 10]);
        let bar = progress(self.verbose.quiet, dataset.queries.len(), "questions");
        let measured = run::run(
            &opened.pipeline,
            &opened.settings,
            dataset,
            (Stage::Answer, &measures),
            &mut || bar.inc(1),
        )?;
        bar.finish_and_clear();
        let heading = Heading {
            dataset: dataset.name.clone(),
            split: dataset.split.clone(),
            condition: opened.condition(Stage::Answer),
            queries_per_second: measured.queries_per_second,
            seed: 0,
        };
        let report = evaluate::summed_up(heading, &measured.records)?;
        let gates: Vec<Gate> = match &self.gate {
            Some(path) => gate::read(path)?,
            None if dataset.corpus.is_none() => gate::parse("grammar.toml".as_ref(), GRAMMAR_GATE)?,
            None => Vec::new(),
        };
        let verdicts = gates.iter().flat_map(|gate| gate::check(gate, &report)).collect();
        Ok((report, verdicts))
    }
}

fn show_chain(opened: &Opened, question: &str, outcome: &Outcome) -> Result<String> {
    let pipeline = &opened.pipeline;
    let (documents, chunks) = (pipeline.documents.len(), pipeline.chunks.len());
    let mut text = format!(
        "chunker   {}: {documents} documents, {chunks} chunks\nembedder  {}\n\nquestion  \
         {question}\nrewriter  {}\n",
        opened.chunker,
        pipeline.embedder.fingerprint(),
        pipeline.rewriter.name(),
    );
    let scale = outcome.ranking.scale().name();
    let hits = outcome.ranking.hits();
    for (rank, passage) in (1..).zip(pipeline.join(&hits[..hits.len().min(3)])?) {
        let anchor = passage.chunk.anchor();
        let _ = writeln!(text, "  {rank}. {scale} {:.4}  {anchor}", passage.score);
    }
    let _ = writeln!(text, "\n{}", opened.show_answer(outcome, false));
    let latencies = outcome.trace.latencies().map(|(stage, ms)| format!("{stage} {ms:.2} ms"));
    let _ = writeln!(text, "latency   {}", latencies.join(", "));
    Ok(printable(&text).into_owned())
}

/// Each bound's figure; then each stage by itself beside the chain up to it.
fn show_figures(text: &mut String, report: &Report, verdicts: &[Verdict], top_k: usize) {
    let _ = writeln!(text, "\n{} {}, {} questions", report.dataset, report.split, report.n);
    for verdict in verdicts {
        let _ = writeln!(text, "  {verdict}");
    }
    let figure = |name: &str| report.metrics.get(name).map_or("-".into(), |x| format!("{x:.3}"));
    let stages = [
        ("retrieve", "recall@10", "mrr@10"),
        ("rerank", "reranked_recall@10", "reranked_mrr@10"),
        ("read", "answer_contains", "citation_recall"),
        ("refuse", "refusal_recall", "refusal_precision"),
    ];
    let _ = writeln!(text, "\nfigures of the stages");
    for (stage, first, second) in stages {
        let (a, b) = (figure(first), figure(second));
        let _ = writeln!(text, "  {stage:9} {first} {a}, {second} {b}");
    }
    let held = format!("reranked_hit@{top_k}");
    let (held_figure, answered) = (figure(&held), figure("answer_contains"));
    let _ = writeln!(text, "  passages to read: {held} {held_figure}; answer_contains {answered}");
}
