//! The way of one question through the rooms: the only file that knows them all.
//!
//! A question is rewritten into queries, each query is searched in both legs, the rankings are
//! fused, the best candidates reranked, the best of those prompted, read and cited, or refused.
//! Searches give rows; only this file joins rows with text, times the stages and traces them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    cite::{self, Cited},
    embed::Embedder,
    error::{Error, Result},
    fuse::{self, Leg},
    lexical::LexicalIndex,
    prompt::{self, Order, PromptSettings, Show, Template},
    reader::Reader,
    rerank::{self, Reranker},
    rewrite::{QueryRewriter, RewriteContext},
    store::VectorStore,
    text::Analyzer,
    types::{
        Answer, Chunk, Document, Draft, Evidence, Explanation, Hit, Prompt, Query, QueryOrigin,
        Ranking, Reason, Row, Scale, ScoredChunk, Source,
    },
};

/// The parts, each behind its trait.
pub struct Pipeline {
    /// The documents, whole.
    pub documents: Vec<Document>,
    /// The chunk of every row.
    pub chunks: Vec<Chunk>,
    /// Text to vectors.
    pub embedder: Box<dyn Embedder>,
    /// Vector search.
    pub store: Box<dyn VectorStore>,
    /// Word search.
    pub lexical: Arc<dyn LexicalIndex>,
    /// Question to queries.
    pub rewriter: Box<dyn QueryRewriter>,
    /// The second look; `None` keeps the fused order.
    pub reranker: Option<Box<dyn Reranker>>,
    /// Scores sentences as evidence.
    pub evidence: Arc<dyn Reranker>,
    /// How words become terms where a citation is verified.
    pub analyzer: Analyzer,
    /// The writer.
    pub reader: Box<dyn Reader>,
}

/// Which searches are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Retriever {
    /// Both, fused.
    Hybrid,
    /// Words alone.
    Bm25,
    /// Vectors alone.
    Dense,
}

/// How rankings become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fusion {
    /// Reciprocal rank fusion.
    Rrf,
    /// Convex combination of normalised scores.
    Convex,
}

/// The numbers of one run; they travel with the question and are never stored in a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which searches are asked.
    pub retriever: Retriever,
    /// How rankings become one.
    pub fusion: Fusion,
    /// Weight of the dense leg, 0 to 1; the lexical leg has the rest.
    pub fusion_weight: f32,
    /// How much a candidate's place in the search counts beside the reranker's score, 0 to 1.
    pub search_weight: f32,
    /// Candidates that are reranked.
    pub candidates: usize,
    /// Passages that are read.
    pub top_k: usize,
    /// What the prompt shows of a passage.
    pub show: Show,
    /// Where the best passage stands in the prompt.
    pub order: Order,
    /// The words around the passages.
    pub template: Template,
    /// Refuse when the best passage scores less; `None` takes the scale's default.
    pub threshold: Option<f32>,
}

/// The weights and the pool are those of the best figures on the train and dev splits of the
/// grammar set (`evaluate --split dev --sweep fusion-weight=0,0.1,0.2,0.3,0.5` and so on).
impl Default for Settings {
    fn default() -> Self {
        Self {
            retriever: Retriever::Hybrid,
            fusion: Fusion::Convex,
            fusion_weight: 0.2,
            search_weight: 0.3,
            candidates: 30,
            top_k: 3,
            show: Show::Sentence,
            order: Order::BestFirst,
            template: Template::Snippets,
            threshold: None,
        }
    }
}

impl Settings {
    /// Hits asked of each search: enough for the pool and for measuring recall at 100.
    pub fn depth(&self) -> usize {
        self.candidates.max(self.top_k).max(100)
    }

    /// Checks that the numbers can be used.
    ///
    /// # Errors
    /// A fusion weight outside 0..=1, a pool smaller than what is read of it, a threshold that is
    /// not a number.
    pub fn check(&self) -> Result<()> {
        let weights = [("fusion", self.fusion_weight), ("search", self.search_weight)];
        if let Some((name, weight)) = weights.into_iter().find(|(_, w)| !(0.0..=1.0).contains(w)) {
            return Err(Error::Setting(format!("the {name} weight is {weight}, not in 0..=1")));
        }
        if self.top_k == 0 || self.candidates < self.top_k {
            let (pool, read) = (self.candidates, self.top_k);
            return Err(Error::Setting(format!(
                "{read} passages to read of {pool} candidates: need 1 <= top-k <= candidates"
            )));
        }
        match self.threshold {
            Some(x) if x.is_nan() => Err(Error::Setting("the threshold is not a number".into())),
            _ => Ok(()),
        }
    }
}

/// The score below which the best passage is no answer, on each scale; chosen on the dev split
/// of the grammar set. Fused and raw scores depend on the corpus: nothing is refused by them.
pub fn default_threshold(scale: Scale) -> Option<f32> {
    match scale {
        Scale::Overlap => Some(0.4),
        _ => None,
    }
}

/// One ranking of one search.
#[derive(Debug, Clone, PartialEq)]
pub struct LegRanking {
    /// Which of the queries.
    pub query: usize,
    /// What the search found.
    pub ranking: Ranking,
}

/// What one stage did.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The strategy and the queries searched with.
    Rewrite(&'static str, Vec<Query>),
    /// One ranking for each query and search.
    Retrieve(Vec<LegRanking>),
    /// The fused ranking.
    Fuse(Ranking),
    /// The reranked candidates.
    Rerank(Ranking),
    /// The best score held against the threshold.
    Threshold(Option<f32>, Option<f32>),
    /// The prompt.
    Prompt(Box<Prompt>),
    /// The reader's text.
    Read(Draft),
    /// The answer and the markers that led nowhere.
    Cite(Box<Cited>),
}

/// What each stage did, in order, and how long it took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// One entry a stage.
    pub steps: Vec<(Step, Duration)>,
}

impl Trace {
    fn time<T>(
        &mut self,
        run: impl FnOnce() -> Result<T>,
        step: impl FnOnce(&T) -> Step,
    ) -> Result<T> {
        let start = Instant::now();
        let value = run()?;
        let took = start.elapsed();
        self.steps.push((step(&value), took));
        Ok(value)
    }

    /// Milliseconds of each stage, by the names that `answer --json` and the evaluation give them.
    pub fn latencies(&self) -> [(&'static str, f64); 5] {
        let spent = |which: fn(&Step) -> bool| -> f64 {
            let steps = self.steps.iter().filter(|(step, _)| which(step));
            // An empty sum of floats is -0.0.
            steps.map(|(_, took)| took.as_secs_f64() * 1e3).sum::<f64>() + 0.0
        };
        [
            ("rewrite", spent(|step| matches!(step, Step::Rewrite(..)))),
            ("retrieve", spent(|step| matches!(step, Step::Retrieve(_) | Step::Fuse(_)))),
            ("rerank", spent(|step| matches!(step, Step::Rerank(_)))),
            ("read", spent(|step| matches!(step, Step::Prompt(_) | Step::Read(_) | Step::Cite(_)))),
            ("total", spent(|_| true)),
        ]
    }
}

/// An answer and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the user gets.
    pub answer: Answer,
    /// The ranking that the passages were taken from.
    pub ranking: Ranking,
    /// What each stage did.
    pub trace: Trace,
}

impl Pipeline {
    /// Answers `question`, and says how; `on_text` gets the reader's text as it comes.
    pub fn answer(
        &self,
        question: &str,
        settings: &Settings,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Outcome> {
        let mut trace = Trace::default();
        let fused = self.retrieve(question, settings, &mut trace)?;
        let ranking = self.rerank(question, &fused, settings, &mut trace)?;
        let threshold = settings.threshold.or_else(|| default_threshold(ranking.scale()));
        let best = ranking.best();
        trace.steps.push((Step::Threshold(best, threshold), Duration::ZERO));
        let refused = match best {
            None => Some(Reason::NoPassages),
            Some(best) if threshold.is_some_and(|threshold| best < threshold) => {
                Some(Reason::BelowThreshold)
            }
            Some(_) => None,
        };
        let answer = match refused {
            Some(reason) => Answer::Unknown { reason, best, threshold },
            None => self.read(question, &ranking, settings, &mut trace, on_text)?,
        };
        Ok(Outcome { answer, ranking, trace })
    }

    /// Rewrites and searches: the fused ranking, as deep as the legs were asked.
    pub fn retrieve(
        &self,
        question: &str,
        settings: &Settings,
        trace: &mut Trace,
    ) -> Result<Ranking> {
        settings.check()?;
        let context = RewriteContext { stats: self.lexical.as_ref() };
        let queries = trace.time(
            || self.rewriter.rewrite(question, &context),
            |queries| Step::Rewrite(self.rewriter.name(), queries.clone()),
        )?;
        let legs =
            trace.time(|| self.search(&queries, settings), |legs| Step::Retrieve(legs.clone()))?;
        trace.time(|| self.fuse(&queries, &legs, settings), |fused| Step::Fuse(fused.clone()))
    }

    /// Reranks the best candidates of `fused`.
    pub fn rerank(
        &self,
        question: &str,
        fused: &Ranking,
        settings: &Settings,
        trace: &mut Trace,
    ) -> Result<Ranking> {
        let pool = &fused.hits()[..fused.hits().len().min(settings.candidates)];
        let Some(reranker) = &self.reranker else {
            return Ranking::with_ties(
                fused.scale(),
                pool.iter().copied().zip(0..).collect(),
                pool.len(),
            );
        };
        trace.time(
            || {
                let pool = self.join(pool)?;
                rerank::rerank(reranker.as_ref(), question, &pool, settings.search_weight)
            },
            |ranking| Step::Rerank(ranking.clone()),
        )
    }

    /// Prompts with the best passages of `ranking`, reads, cites.
    fn read(
        &self,
        question: &str,
        ranking: &Ranking,
        settings: &Settings,
        trace: &mut Trace,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Answer> {
        let prompt = trace.time(
            || self.prompt(question, ranking, settings),
            |prompt| Step::Prompt(Box::new(prompt.clone())),
        )?;
        let draft =
            trace.time(|| self.reader.read(&prompt, on_text), |draft| Step::Read(draft.clone()))?;
        let threshold = settings.threshold.or_else(|| default_threshold(ranking.scale()));
        let cited = trace.time(
            || cite::cite(draft, &prompt, self.analyzer, (ranking.best(), threshold)),
            |cited| Step::Cite(Box::new(cited.clone())),
        )?;
        Ok(cited.answer)
    }

    /// The prompt for the best passages of `ranking`, their sentences scored.
    pub fn prompt(&self, question: &str, ranking: &Ranking, settings: &Settings) -> Result<Prompt> {
        let best = &ranking.hits()[..ranking.hits().len().min(settings.top_k)];
        let mut sources = Vec::with_capacity(best.len());
        for (marker, passage) in (1..).zip(self.join(best)?) {
            let mut evidence = prompt::evidence(passage.chunk);
            let scores = self.score_evidence(question, passage.chunk, &evidence)?;
            evidence.iter_mut().zip(scores).for_each(|(e, score)| e.score = score);
            let (chunk, score) = (passage.chunk.clone(), passage.score);
            sources.push(Source { marker, chunk, score, evidence, shown: String::new() });
        }
        let Settings { template, show, order, .. } = *settings;
        Ok(prompt::build(
            question,
            sources,
            &PromptSettings { template, show, order, budget: None },
        ))
    }

    /// What each sentence holds of the question, by itself and under its headings: the mean. A
    /// heading gives all sentences below it what it holds; only the sentence's own words tell one
    /// from the other.
    fn score_evidence(
        &self,
        question: &str,
        chunk: &Chunk,
        evidence: &[Evidence],
    ) -> Result<Vec<f32>> {
        let bare: Vec<&str> = evidence.iter().map(|e| e.text.as_str()).collect();
        let headed = |e: &Evidence| format!("{} {} {} {}", chunk.title, e.section, e.asked, e.text);
        let headed: Vec<String> = evidence.iter().map(headed).collect();
        let headed: Vec<&str> = headed.iter().map(String::as_str).collect();
        let bare = self.evidence.score(question, &bare)?;
        let headed = self.evidence.score(question, &headed)?;
        Ok(bare.into_iter().zip(headed).map(|(bare, headed)| (bare + headed) / 2.0).collect())
    }

    /// One ranking for each query and leg. A hypothetical answer is embedded as a passage and
    /// searched by its vector alone; the vectors of one question are searched in one pass.
    fn search(&self, queries: &[Query], settings: &Settings) -> Result<Vec<LegRanking>> {
        let depth = settings.depth();
        let is_hypothetical = |query: &Query| query.origin == QueryOrigin::Hypothetical;
        let mut legs = Vec::new();
        if settings.retriever != Retriever::Bm25 {
            for hypothetical in [false, true] {
                let chosen: Vec<usize> = (0..queries.len())
                    .filter(|at| is_hypothetical(&queries[*at]) == hypothetical)
                    .collect();
                if chosen.is_empty() {
                    continue;
                }
                let texts: Vec<&str> = chosen.iter().map(|at| queries[*at].text.as_str()).collect();
                let vectors = match hypothetical {
                    true => self.embedder.embed_passages(&texts)?,
                    false => self.embedder.embed_queries(&texts)?,
                };
                let rankings = self.store.search_batch(&vectors, depth)?;
                if rankings.len() != chosen.len() {
                    let (expected, got) = (chosen.len(), rankings.len());
                    return Err(Error::Shape { what: "query vectors", expected, got });
                }
                let found = chosen.into_iter().zip(rankings);
                legs.extend(found.map(|(query, ranking)| LegRanking { query, ranking }));
            }
        }
        if settings.retriever != Retriever::Dense {
            for (at, query) in queries.iter().enumerate().filter(|(_, q)| !is_hypothetical(q)) {
                let ranking = self.lexical.search(&query.text, depth)?;
                legs.push(LegRanking { query: at, ranking });
            }
        }
        Ok(legs)
    }

    fn fuse(&self, queries: &[Query], legs: &[LegRanking], settings: &Settings) -> Result<Ranking> {
        // One search for one query needs no fusion: its own scores say more.
        if let [only] = legs {
            return Ok(only.ranking.clone());
        }
        let weight = |leg: &LegRanking| {
            let side = match (settings.retriever, leg.ranking.scale()) {
                (Retriever::Hybrid, Scale::Cosine) => settings.fusion_weight,
                (Retriever::Hybrid, _) => 1.0 - settings.fusion_weight,
                _ => 1.0,
            };
            queries[leg.query].weight * side
        };
        let legs: Vec<Leg<'_>> =
            legs.iter().map(|leg| Leg { ranking: &leg.ranking, weight: weight(leg) }).collect();
        match settings.fusion {
            Fusion::Rrf => fuse::reciprocal_rank(&legs, settings.depth()),
            Fusion::Convex => fuse::convex(&legs, settings.depth()),
        }
    }

    /// Joins rows with their chunks.
    pub fn join(&self, hits: &[Hit]) -> Result<Vec<ScoredChunk<'_>>> {
        let join = |hit: &Hit| {
            Ok(ScoredChunk { row: hit.row, chunk: self.chunk(hit.row)?, score: hit.score })
        };
        hits.iter().map(join).collect()
    }

    /// The chunk of one row.
    pub fn chunk(&self, row: Row) -> Result<&Chunk> {
        self.chunks.get(row.0 as usize).ok_or(Error::UnknownRow { row: row.0 })
    }

    /// Why `row` scored as it did in each stage of `trace`.
    pub fn explain(&self, question: &str, row: Row, trace: &Trace) -> Result<Vec<Explanation>> {
        let mut queries: &[Query] = &[];
        let mut parts = Vec::new();
        for (step, _) in &trace.steps {
            match step {
                Step::Rewrite(_, written) => queries = written,
                Step::Retrieve(legs) => {
                    for leg in legs {
                        let query = queries.get(leg.query).map_or(question, |query| &query.text);
                        parts.extend(ranked(&leg.ranking, row, || match leg.ranking.scale() {
                            Scale::Bm25 => Ok(self.lexical.explain(query, row).parts),
                            _ => Ok(Vec::new()),
                        })?);
                    }
                }
                Step::Fuse(ranking) => parts.extend(ranked(ranking, row, || Ok(Vec::new()))?),
                Step::Rerank(ranking) => {
                    let Some(reranker) = &self.reranker else { continue };
                    let text = self.chunk(row)?.index_text();
                    let tree = || Ok(vec![reranker.explain(question, &text)?]);
                    parts.extend(ranked(ranking, row, tree)?);
                }
                _ => {}
            }
        }
        Ok(parts)
    }
}

/// The place and score of `row` in a ranking over what it was computed from, if it is in there.
fn ranked(
    ranking: &Ranking,
    row: Row,
    parts: impl FnOnce() -> Result<Vec<Explanation>>,
) -> Result<Option<Explanation>> {
    let Some((rank, value)) = ranking.find(row) else { return Ok(None) };
    let what = format!("{}, rank {rank}", ranking.scale().name());
    Ok(Some(Explanation { what, value, parts: parts()? }))
}
