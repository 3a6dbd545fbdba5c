//! The `evaluate` command: conditions in, reports, tables and verdicts out.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{ArgGroup, CommandFactory, FromArgMatches, Parser};
use serde_json::{Map, Value, json};

use super::{ModelArgs, Opened, SourceArgs, VerboseArgs, open, progress};
use crate::{
    corpus,
    error::{Error, Result},
    eval::{
        compare,
        dataset::{Dataset, beir, grammar::QuestionSet},
        gate,
        metrics::{self, Measure},
        report::{self, Heading, PerQuery, Report},
        run::{self, Stage},
        trec,
    },
    types::Document,
};

const EXAMPLES: &str = "\
Examples:
  evaluate                                   the grammar set, test split, the whole chain
  evaluate --split dev --sweep fusion-weight=0,0.3,0.5,1
  evaluate --dataset scifact --retriever bm25 --stage retrieval
  evaluate --gate data/expected/grammar.toml
  evaluate --output before; ...; evaluate --compare before

Exit codes: 0 done, 1 failed or a figure under its bound, 2 usage.";

/// Measures retrieval and answers on questions whose answers are known
#[derive(Debug, Clone, Parser)]
#[command(name = "evaluate", version, after_help = EXAMPLES, args_override_self = true)]
#[command(group = ArgGroup::new("side by side").args(["sweep", "by_class"]))]
pub struct Evaluate {
    /// A BEIR folder (corpus.jsonl, queries.jsonl, qrels/) [default: the grammar set]
    #[arg(long, env = "MINIRAG_DATASET", value_name = "DIR")]
    dataset: Option<PathBuf>,
    /// The part of the set: train, dev, test, or a subset it names
    #[arg(long, default_value = "test")]
    split: String,
    /// Ask only the first N questions
    #[arg(long, value_name = "N", value_parser = cut_off)]
    queries: Option<usize>,
    /// How far down the chain to go [default: answer where the set has answers, else rerank]
    #[arg(long, value_enum)]
    stage: Option<Stage>,
    /// Cut-offs at which to take every retrieval measure, e.g. 1,3,5,10,100 [default: the usual one
    /// of each]
    #[arg(long, value_name = "K,K", value_delimiter = ',', value_parser = cut_off)]
    k: Vec<usize>,
    /// Write the ranking of every question as a TREC run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sweep", "gate"])]
    run: Option<PathBuf>,
    /// Score a TREC run instead of searching
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "sweep", "gate", "stage"])]
    from_run: Option<PathBuf>,
    /// Write report.json and per-query.jsonl
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sweep", "gate"])]
    output: Option<PathBuf>,
    /// Compare with an earlier --output by a paired randomisation test
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sweep", "gate", "json"])]
    compare: Option<PathBuf>,
    /// Hold the figures against a file of bounds; its conditions are run as options
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    gate: Option<PathBuf>,
    /// Run one condition a value, side by side
    #[arg(long, value_name = "OPTION=A,B,C")]
    sweep: Option<String>,
    /// Print the classes of questions side by side, as a markdown table
    #[arg(long, conflicts_with_all = ["sweep", "gate", "json"])]
    by_class: bool,
    /// Show only these metrics in the table of --sweep or --by-class
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = metric)]
    #[arg(requires = "side by side")]
    metrics: Vec<String>,
    /// Write the grammar set as a BEIR folder and stop
    #[arg(long, value_name = "DIR", conflicts_with = "dataset")]
    export_beir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Feeds the bootstrap and the randomisation test
    #[arg(long, env = "MINIRAG_SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    verbose: VerboseArgs,
}

/// Options that a gate file must not set.
const WRITES_OR_READS_FILES: [&str; 6] =
    ["run", "output", "compare", "from-run", "gate", "export-beir"];

/// What the command prints, and how it exits.
type Printed = (String, ExitCode);

/// One condition's figures.
struct Condition {
    report: Report,
    records: Vec<PerQuery>,
}

impl Evaluate {
    /// Parses `arguments`, program name first; usage errors end the process with 2.
    pub fn from_arguments(arguments: &[OsString]) -> Self {
        Self::parse_from(arguments)
    }

    /// Runs the command; `arguments` are what it was parsed from, so that a sweep or a gate can
    /// set one option and leave the rest.
    ///
    /// # Errors
    /// A set, a corpus or a run that cannot be read.
    pub fn execute(&self, arguments: &[OsString]) -> Result<Printed> {
        self.verbose.apply()?;
        if let Some(out) = &self.export_beir {
            return self.export(out);
        }
        if let Some(path) = &self.gate {
            return self.hold_against(path, arguments);
        }
        if let Some(sweep) = &self.sweep {
            return self.sweep(sweep, arguments);
        }
        let condition = match &self.from_run {
            Some(path) => self.score_run(path)?,
            None => self.measure()?,
        };
        let mut printed = match self.json {
            true => condition.report.json()? + "\n",
            false if self.by_class => report::by_class(&condition.report, &self.metrics),
            false => condition.report.table(),
        };
        if let Some(before) = &self.compare {
            let (_, records) = report::read(before)?;
            let differences = compare::compare(&records, &condition.records, self.seed)?;
            printed = format!("{printed}\n{}", compare::table(&differences));
        }
        if let Some(dir) = &self.output {
            report::write(dir, &condition.report, &condition.records)?;
        }
        Ok((printed, ExitCode::SUCCESS))
    }

    /// The same command with more options set.
    fn with(&self, arguments: &[OsString], options: &[(String, String)]) -> Result<Self> {
        let extra = options.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]);
        let arguments = arguments.iter().cloned().chain(extra.map(OsString::from));
        let matches = Self::command().try_get_matches_from(arguments);
        let parsed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| {
            let options: Vec<String> = options.iter().map(|(n, v)| format!("{n}={v}")).collect();
            Error::Setting(format!("{}: {}", options.join(", "), error.kind()))
        })
    }

    fn sweep(&self, sweep: &str, arguments: &[OsString]) -> Result<Printed> {
        let Some((option, values)) = sweep.split_once('=') else {
            return Err(Error::Setting(format!("--sweep {sweep}: expected OPTION=A,B,C")));
        };
        let mut reports = Vec::new();
        for value in values.split(',') {
            let command = self.with(arguments, &[(option.to_owned(), value.to_owned())])?;
            let mut report = command.measure()?.report;
            report.condition.insert(option.to_owned(), value.into());
            if !self.metrics.is_empty() {
                report.metrics.retain(|name, _| self.metrics.contains(name));
            }
            reports.push(report);
        }
        if self.json {
            let text = serde_json::to_string_pretty(&reports);
            let text = text.map_err(|error| Error::Setting(error.to_string()))?;
            return Ok((text + "\n", ExitCode::SUCCESS));
        }
        Ok((report::markdown(&reports), ExitCode::SUCCESS))
    }

    fn hold_against(&self, path: &Path, arguments: &[OsString]) -> Result<Printed> {
        let mut lines = String::new();
        let mut verdicts = Vec::new();
        for gate in gate::read(path)? {
            let text = |value: &toml::Value| match value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is_file = |name: &&String| WRITES_OR_READS_FILES.contains(&name.as_str());
            if let Some(name) = gate.condition.keys().find(is_file) {
                let message = format!("`{name}` is no condition: a gate holds settings alone");
                return Err(Error::format(path, message));
            }
            // The set is this command's own; the rest of the condition are options of it.
            let settings = gate.condition.iter().filter(|(name, _)| *name != "dataset");
            let options: Vec<_> = settings.map(|(name, v)| (name.clone(), text(v))).collect();
            let mut command = self.with(arguments, &options)?;
            command.k.extend(gate.cut_offs());
            let mut report = command.measure()?.report;
            // `chunker = "markdown"` has been run as such, whatever the fingerprint calls it.
            let set = options.into_iter().map(|(name, value)| (name, value.into()));
            report.condition.extend(set);
            for verdict in gate::check(&gate, &report) {
                lines.push_str(&format!("{verdict}\n"));
                verdicts.push(verdict);
            }
        }
        let failed = verdicts.iter().filter(|verdict| !verdict.ok).count();
        lines.push_str(&format!("{} bounds, {failed} failed\n", verdicts.len()));
        let json = |verdict: &gate::Verdict| {
            json!({
                "metric": verdict.metric, "slice": verdict.slice, "value": verdict.value,
                "bound": verdict.bound, "ok": verdict.ok, "fault": verdict.fault,
            })
        };
        if self.json {
            lines = format!("{:#}\n", verdicts.iter().map(json).collect::<Value>());
        }
        Ok((lines, if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
    }

    fn export(&self, out: &Path) -> Result<Printed> {
        let documents = corpus::load_or_default(None)?.0.documents;
        QuestionSet::read(&question_folder()?, &documents)?.export_beir(out, &documents)?;
        Ok((format!("wrote {}\n", out.display()), ExitCode::SUCCESS))
    }

    /// Runs one condition.
    fn measure(&self) -> Result<Condition> {
        let (opened, dataset) = self.open()?;
        if let Some(warning) = dataset.chunker_mismatch(&opened.chunker) {
            self.verbose.say(&warning);
        }
        let stage = self.stage.unwrap_or_else(|| default_stage(&dataset));
        let measures = Measure::at(&self.k);
        let bar = progress(self.verbose.quiet, dataset.queries.len(), "questions");
        let measured = run::run(
            &opened.pipeline,
            &opened.settings,
            &dataset,
            (stage, &measures),
            &mut || bar.inc(1),
        )?;
        bar.finish_and_clear();
        if let Some(path) = &self.run {
            trec::write(path, &measured.run, "minirag")?;
        }
        let heading = Heading {
            dataset: dataset.name.clone(),
            split: dataset.split.clone(),
            condition: opened.condition(stage),
            queries_per_second: measured.queries_per_second,
            seed: self.seed,
        };
        let report = summed_up(heading, &measured.records)?;
        Ok(Condition { report, records: measured.records })
    }

    /// The set and the pipeline over the corpus that it asks about.
    fn open(&self) -> Result<(Opened, Dataset)> {
        let mut source = self.source.clone();
        let mut dataset = match &self.dataset {
            Some(dir) if beir::has_spans(dir) && source.chunker.is_some() => {
                beir::load_spans(dir, &self.split)?
            }
            Some(dir) => beir::load(dir, &self.split)?,
            None => {
                let opened = open(&source, &self.models)?;
                let mut dataset = grammar_set(&opened.pipeline.documents, &self.split)?;
                self.queries.into_iter().for_each(|n| dataset.limit(n));
                return Ok((opened, dataset));
            }
        };
        self.queries.into_iter().for_each(|n| dataset.limit(n));
        if source.index.is_none() && source.corpus.is_none() {
            source.corpus.clone_from(&dataset.corpus);
        }
        Ok((open(&source, &self.models)?, dataset))
    }

    fn score_run(&self, path: &Path) -> Result<Condition> {
        let mut dataset = match &self.dataset {
            Some(dir) => beir::load(dir, &self.split)?,
            None => grammar_set(&corpus::load_or_default(None)?.0.documents, &self.split)?,
        };
        self.queries.into_iter().for_each(|n| dataset.limit(n));
        let records = run::score(&trec::read(path)?, &dataset, &Measure::at(&self.k))?;
        let mut condition = Map::new();
        condition.insert("from-run".to_owned(), path.display().to_string().into());
        let heading = Heading {
            dataset: dataset.name.clone(),
            split: dataset.split.clone(),
            condition,
            queries_per_second: None,
            seed: self.seed,
        };
        Ok(Condition { report: summed_up(heading, &records)?, records })
    }
}

fn cut_off(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|k| *k > 0).ok_or_else(|| "a whole number from 1".to_owned())
}

fn metric(name: &str) -> std::result::Result<String, String> {
    let known = metrics::position(name).is_some();
    known.then(|| name.to_owned()).ok_or_else(|| "no metric has this name".to_owned())
}

/// A report with at least one figure.
///
/// # Errors
/// Questions that nothing could be measured on: an empty table must not pass for a result.
pub(super) fn summed_up(heading: Heading, records: &[PerQuery]) -> Result<Report> {
    let report = Report::new(heading, records)?;
    if report.metrics.is_empty() {
        return Err(Error::Mismatch(format!(
            "{} {}: none of its {} questions has a judgement or an answer to measure against",
            report.dataset, report.split, report.n
        )));
    }
    Ok(report)
}

/// As far as the set's labels allow.
fn default_stage(dataset: &Dataset) -> Stage {
    let answers = |q: &crate::eval::dataset::Question| !q.answers.is_empty();
    match dataset.queries.iter().any(answers) {
        true => Stage::Answer,
        false => Stage::Rerank,
    }
}

/// The folder of the grammar set's questions.
fn question_folder() -> Result<PathBuf> {
    corpus::shipped(Path::new("data/eval")).ok_or_else(|| {
        let message = "no data/eval below MINIRAG_HOME, the current folder or the executable's: \
                       run from the repository, or name a BEIR folder with --dataset";
        Error::Setting(message.to_owned())
    })
}

/// A split of the grammar set, its gold found in `documents`.
pub(super) fn grammar_set(documents: &[Document], split: &str) -> Result<Dataset> {
    QuestionSet::read(&question_folder()?, documents)?.split(split)
}
