//! A pipeline and a dataset in, one record a question out.
//!
//! Each question goes through the very calls that `answer` makes; what is measured is read from
//! its trace. Retrieval figures are of the fused ranking; those of the reranked one stand beside
//! them with `reranked_` before their names, with what was not reranked below what was. Where the set has gold spans, a hit is a chunk that
//! overlaps one, and figures by document stand beside with `doc_` before their names.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use crate::{
    error::{Error, Result},
    eval::{
        dataset::{Dataset, Question},
        metrics::{self, Judged, Measure},
        report::PerQuery,
        trec::{self, Run},
    },
    pipeline::{Outcome, Pipeline, Settings, Step, Trace},
    types::{Answer, Chunk, ChunkId, DocumentId, Hit, Ranking, Row},
};

/// How far down the chain a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Stage {
    /// Rewrite, search, fuse.
    Retrieval,
    /// And rerank.
    Rerank,
    /// And read and cite.
    Answer,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// One record a question, in the order of the dataset.
    pub records: Vec<PerQuery>,
    /// The last ranking of each question, by document.
    pub run: Run,
    /// Questions in a second of the pipeline's time, grading left out; `None` without questions.
    pub queries_per_second: Option<f64>,
}

/// Asks every question of `dataset`, one after the other, calling `on_question` after each.
pub fn run(
    pipeline: &Pipeline,
    settings: &Settings,
    dataset: &Dataset,
    (stage, measures): (Stage, &[Measure]),
    on_question: &mut dyn FnMut(),
) -> Result<Measured> {
    let mut records = Vec::with_capacity(dataset.queries.len());
    let mut run = Run::new();
    let by_id: HashMap<ChunkId, &Chunk> = pipeline.chunks.iter().map(|c| (c.id, c)).collect();
    for question in &dataset.queries {
        let asked = ask(pipeline, settings, question, stage)?;
        let grader = Grader { pipeline, by_id: &by_id, dataset, question, measures };
        records.push(grader.record(&asked)?);
        let last = asked.reranked.as_ref().unwrap_or(&asked.fused);
        run.insert(question.id.clone(), grader.documents(last.hits())?);
        on_question();
    }
    let total: f64 = records.iter().filter_map(|record| record.latency_ms.get("total")).sum();
    let queries_per_second = (total > 0.0).then(|| records.len() as f64 * 1e3 / total);
    Ok(Measured { records, run, queries_per_second })
}

/// What the chain did with one question.
struct Asked {
    fused: Ranking,
    reranked: Option<Ranking>,
    outcome: Option<Outcome>,
    trace: Trace,
}

fn ask(
    pipeline: &Pipeline,
    settings: &Settings,
    question: &Question,
    stage: Stage,
) -> Result<Asked> {
    if stage == Stage::Answer {
        let outcome = pipeline.answer(&question.text, settings, &mut |_| {})?;
        let trace = outcome.trace.clone();
        let fused = trace.steps.iter().find_map(|(step, _)| match step {
            Step::Fuse(ranking) => Some(ranking.clone()),
            _ => None,
        });
        let fused = fused.unwrap_or_else(|| outcome.ranking.clone());
        let reranked = Some(extended(&outcome.ranking, &fused)?);
        return Ok(Asked { fused, reranked, outcome: Some(outcome), trace });
    }
    let mut trace = Trace::default();
    let fused = pipeline.retrieve(&question.text, settings, &mut trace)?;
    let reranked = match stage {
        Stage::Retrieval => None,
        _ => {
            let reranked = pipeline.rerank(&question.text, &fused, settings, &mut trace)?;
            Some(extended(&reranked, &fused)?)
        }
    };
    Ok(Asked { fused, reranked, outcome: None, trace })
}

/// `reranked` with the rest of `fused` below it in its order: a candidate pool of 30 must not cut
/// recall at 100. The scores of the rest only keep that order.
fn extended(reranked: &Ranking, fused: &Ranking) -> Result<Ranking> {
    let held: HashSet<Row> = reranked.hits().iter().map(|hit| hit.row).collect();
    let rest = fused.hits().iter().filter(|hit| !held.contains(&hit.row));
    let mut below = reranked.hits().last().map_or(0.0, |hit| hit.score);
    let rest = rest.map(|hit| {
        below -= 1.0;
        Hit { row: hit.row, score: below }
    });
    let hits: Vec<(Hit, usize)> = reranked.hits().iter().copied().chain(rest).zip(0..).collect();
    let depth = hits.len();
    Ranking::with_ties(reranked.scale(), hits, depth)
}

/// Scores one question.
struct Grader<'a> {
    pipeline: &'a Pipeline,
    by_id: &'a HashMap<ChunkId, &'a Chunk>,
    dataset: &'a Dataset,
    question: &'a Question,
    measures: &'a [Measure],
}

impl Grader<'_> {
    fn record(&self, asked: &Asked) -> Result<PerQuery> {
        let mut metrics = BTreeMap::new();
        self.grade_ranking("", &asked.fused, &mut metrics)?;
        if let Some(reranked) = &asked.reranked {
            self.grade_ranking(metrics::RERANKED_PREFIX, reranked, &mut metrics)?;
        }
        let quotes = self.question.gold.iter().map(|gold| gold.quote.as_str());
        let overlap = metrics::word_overlap(&self.question.text, quotes);
        metrics.insert("word_overlap".to_owned(), overlap);
        let mut record = PerQuery {
            id: self.question.id.clone(),
            class: self.question.class.clone(),
            answerable: self.question.answerable,
            latency_ms: asked.trace.latencies().map(|(stage, ms)| (stage.to_owned(), ms)).into(),
            ..PerQuery::default()
        };
        if let Some(outcome) = &asked.outcome {
            self.grade_answer(outcome, &mut metrics);
            record.refused = Some(matches!(outcome.answer, Answer::Unknown { .. }));
            record.score = outcome.ranking.best().map(f64::from);
            record.answer = match &outcome.answer {
                Answer::Cited { text, .. } => Some(text.clone()),
                Answer::Unknown { .. } => None,
            };
        }
        record.metrics = metrics;
        Ok(record)
    }

    /// Documents of ranked chunks, each with its best chunk's score.
    fn documents(&self, hits: &[Hit]) -> Result<Vec<(String, f32)>> {
        let chunks = self.pipeline.join(hits)?;
        Ok(trec::documents(chunks.iter().map(|c| (&*c.chunk.document.0, c.score))))
    }

    fn grade_ranking(
        &self,
        prefix: &str,
        ranking: &Ranking,
        metrics: &mut BTreeMap<String, Option<f64>>,
    ) -> Result<()> {
        let Some(relevance) = self.dataset.qrels.get(&self.question.id) else { return Ok(()) };
        let mut add = |prefix: &str, judged: &Judged| {
            for measure in self.measures {
                metrics.insert(format!("{prefix}{measure}"), Some(measure.of(judged)));
            }
        };
        let documents = Judged::documents(&self.documents(ranking.hits())?, relevance)?;
        if self.question.gold.is_empty() {
            add(prefix, &documents);
            return Ok(());
        }
        let chunks = self.pipeline.join(ranking.hits())?;
        let spans: Vec<(&DocumentId, Range<usize>)> =
            chunks.iter().map(|c| (&c.chunk.document, c.chunk.span.clone())).collect();
        add(prefix, &Judged::chunks(&spans, &self.question.gold));
        if prefix.is_empty() {
            add(metrics::DOCUMENT_PREFIX, &documents);
        }
        Ok(())
    }

    fn grade_answer(&self, outcome: &Outcome, metrics: &mut BTreeMap<String, Option<f64>>) {
        let mut add = |name: &str, value: Option<f64>| {
            metrics.insert(name.to_owned(), value);
        };
        let question = self.question;
        let answerable = question.answerable.unwrap_or(true);
        let gold = &question.answers;
        add("answer_rate", Some(f64::from(matches!(outcome.answer, Answer::Cited { .. }))));
        let Answer::Cited { text, value, citations } = &outcome.answer else {
            // A refusal of a question with an answer is a wrong answer, not a missing one.
            if answerable && !gold.is_empty() {
                for name in ["answer_contains", "exact_match", "f1"] {
                    add(name, Some(0.0));
                }
            }
            if answerable {
                add("citation_recall", metrics::citation_recall(&[], &question.gold));
            }
            return;
        };
        let chunks = citations.iter().filter_map(|citation| self.by_id.get(&citation.chunk));
        let chunks: Vec<String> = chunks.map(|chunk| chunk.index_text()).collect();
        let passages: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let faithful = metrics::faithfulness(&outcome.answer, &passages);
        add("faithfulness", faithful.map(|f| f.share()));
        add("token_precision", faithful.map(|f| f.token_precision));
        let short = value.as_deref().unwrap_or(text);
        add("answer_relevance", metrics::answer_relevance(&question.text, text));
        let cited: Vec<_> = citations.iter().map(|c| (&c.document, c.span.clone())).collect();
        let supported = citations.iter().filter(|citation| citation.supported).count();
        if !citations.is_empty() {
            add("supported_citations", Some(supported as f64 / citations.len() as f64));
        }
        if !answerable {
            return;
        }
        if !gold.is_empty() {
            add("answer_contains", metrics::contains(text, gold));
            add("exact_match", metrics::exact_match(short, gold));
            add("f1", metrics::f1(short, gold));
        }
        match self.dataset.qrels.get(&question.id) {
            Some(relevance) if question.gold.is_empty() => {
                add("citation_precision", metrics::document_precision(&cited, relevance));
            }
            _ => add("citation_precision", metrics::citation_precision(&cited, &question.gold)),
        }
        add("citation_recall", metrics::citation_recall(&cited, &question.gold));
    }
}

/// The records of a run made elsewhere, by its documents; a question that the run lacks scores 0.
///
/// # Errors
/// As [`Judged::documents`].
pub fn score(run: &Run, dataset: &Dataset, measures: &[Measure]) -> Result<Vec<PerQuery>> {
    if !dataset.queries.iter().any(|question| run.contains_key(&question.id)) {
        let (theirs, ours) = (run.len(), dataset.queries.len());
        return Err(Error::Mismatch(format!(
            "none of the run's {theirs} queries is among the {ours} questions of {} {}: it belongs \
             to another set or split",
            dataset.name, dataset.split
        )));
    }
    let mut records = Vec::with_capacity(dataset.queries.len());
    for question in &dataset.queries {
        let mut record = PerQuery {
            id: question.id.clone(),
            class: question.class.clone(),
            answerable: question.answerable,
            ..PerQuery::default()
        };
        if let Some(relevance) = dataset.qrels.get(&question.id) {
            let ranked = run.get(&question.id).map_or(&[][..], Vec::as_slice);
            let judged = Judged::documents(ranked, relevance)?;
            let values = measures.iter().map(|m| (m.to_string(), Some(m.of(&judged))));
            record.metrics.extend(values);
        }
        records.push(record);
    }
    Ok(records)
}
