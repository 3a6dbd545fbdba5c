//! An outcome in, text for a terminal or JSON for a script out.

use std::{fmt::Write as _, path::Path};

use serde_json::{Map, Value, json};

use crate::{
    cli::{Opened, one_line, printable},
    error::{Error, Result},
    eval::files,
    pipeline::{Outcome, Step},
    types::{Answer, Chunk, Citation, Explanation, Hit, Query, Ranking},
};

impl Opened {
    /// The answer and its citations as a person reads them.
    ///
    /// `streamed`: the text itself has been printed as it came.
    pub fn show_answer(&self, outcome: &Outcome, streamed: bool) -> String {
        match &outcome.answer {
            Answer::Unknown { reason, best, threshold } => {
                let mut text = format!("{}\n", self.settings.template.refusal());
                let _ = write!(text, "  ({}", reason.name());
                if let (Some(best), Some(threshold)) = (best, threshold) {
                    let _ = write!(text, ": best score {best:.3}, threshold {threshold:.3}");
                }
                printable(&(text + ")\n")).into_owned()
            }
            Answer::Cited { text, citations, .. } => {
                let mut shown = if streamed { String::new() } else { format!("{text}\n") };
                for citation in citations {
                    let _ = write!(shown, "\n{}", show_citation(citation));
                }
                printable(&shown).into_owned()
            }
        }
    }

    /// The answer as `answer --json` and `/v1/answer` give it.
    pub fn json_answer(&self, question: &str, outcome: &Outcome) -> Result<Value> {
        let (status, answer, value, reason, citations) = match &outcome.answer {
            Answer::Cited { text, value, citations } => {
                ("answered", text.as_str(), value.as_deref(), None, &citations[..])
            }
            Answer::Unknown { reason, .. } => {
                ("unknown", self.settings.template.refusal(), None, Some(reason.name()), &[][..])
            }
        };
        let mut rewriter = Value::Null;
        let mut threshold = None;
        let mut dropped = 0;
        for (step, _) in &outcome.trace.steps {
            match step {
                Step::Rewrite(strategy, queries) => {
                    let queries: Vec<&str> = queries.iter().map(|q| q.text.as_str()).collect();
                    rewriter = json!({"strategy": strategy, "queries": queries});
                }
                Step::Threshold(_, held) => threshold = *held,
                Step::Prompt(prompt) => dropped = prompt.dropped_tokens,
                _ => {}
            }
        }
        Ok(json!({
            "question": question,
            "status": status,
            "answer": answer,
            "value": value,
            "reason": reason,
            "rewriter": rewriter,
            "score": outcome.ranking.best(),
            "threshold": threshold,
            "scale": outcome.ranking.scale().name(),
            "citations": citations.iter().map(|c| self.json_citation(c)).collect::<Vec<_>>(),
            "passages": self.json_passages(outcome)?,
            "latency_ms": json_latency(outcome),
            "dropped_tokens": {"prompt": dropped},
            "fingerprint": self.fingerprint,
        }))
    }

    fn json_passages(&self, outcome: &Outcome) -> Result<Vec<Value>> {
        let hits = outcome.ranking.hits();
        let read = &hits[..hits.len().min(self.settings.top_k)];
        let passages = self.pipeline.join(read)?;
        let json = passages.iter().zip(read).map(|(passage, hit)| {
            json!({
                "chunk_id": passage.chunk.id.to_string(),
                "anchor": passage.chunk.anchor(),
                "text": passage.chunk.text,
                "scores": scores(outcome, hit),
            })
        });
        Ok(json.collect())
    }

    /// Every stage of a question, one block each.
    pub fn show_trace(&self, outcome: &Outcome) -> Result<String> {
        let mut text = String::new();
        for (step, took) in &outcome.trace.steps {
            let took = took.as_secs_f64() * 1e3;
            match step {
                Step::Rewrite(strategy, queries) => {
                    let _ = writeln!(text, "rewrite ({strategy}), {took:.2} ms");
                    for query in queries {
                        let (origin, weight) = (query.origin.name(), query.weight);
                        let _ = writeln!(text, "  {origin}, weight {weight}: {}", query.text);
                    }
                }
                Step::Retrieve(legs) => {
                    let _ = writeln!(text, "retrieve, {took:.2} ms");
                    for leg in legs {
                        let name = leg.ranking.scale().name();
                        let found = leg.ranking.hits().len();
                        let _ = writeln!(text, "  {name}, query {}: {found} found", leg.query + 1);
                        self.show_hits(&mut text, &leg.ranking)?;
                    }
                }
                Step::Fuse(ranking) => {
                    let _ = writeln!(text, "fuse ({}), {took:.2} ms", ranking.scale().name());
                    self.show_hits(&mut text, ranking)?;
                }
                Step::Rerank(ranking) => {
                    let _ = writeln!(text, "rerank ({}), {took:.2} ms", ranking.scale().name());
                    self.show_hits(&mut text, ranking)?;
                }
                Step::Threshold(best, threshold) => {
                    let show = |x: &Option<f32>| x.map_or("none".into(), |x| format!("{x:.4}"));
                    let (best, threshold) = (show(best), show(threshold));
                    let _ = writeln!(text, "threshold: best {best}, threshold {threshold}");
                }
                Step::Prompt(prompt) => {
                    let _ = writeln!(text, "prompt, {took:.2} ms, dropped {:?}", prompt.dropped);
                    for line in prompt.text.lines() {
                        let _ = writeln!(text, "  > {line}");
                    }
                }
                Step::Read(draft) => {
                    let reader = self.pipeline.reader.name();
                    let _ = writeln!(text, "read ({reader}), {took:.2} ms\n  {}", draft.text);
                }
                Step::Cite(cited) => {
                    let (unknown, unsupported) = (&cited.unknown_markers, cited.unsupported);
                    let _ = writeln!(
                        text,
                        "cite, {took:.2} ms, unknown markers {unknown:?}, unsupported sentences \
                         {unsupported}"
                    );
                }
            }
        }
        Ok(printable(&text).into_owned())
    }

    /// Writes the answer's JSON with every stage's ids and scores to `path`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_trace(&self, question: &str, outcome: &Outcome, path: &Path) -> Result<()> {
        let mut json = self.json_answer(question, outcome)?;
        json["steps"] = outcome.trace.steps.iter().map(|(step, _)| self.json_step(step)).collect();
        let text = format!("{json:#}\n");
        // A terminal or a pipe has no place beside it.
        match path.metadata() {
            Ok(about) if !about.is_file() => std::fs::write(path, text).map_err(Error::io(path)),
            _ => files::write(path, &text),
        }
    }

    fn json_step(&self, step: &Step) -> Value {
        let hits = |ranking: &Ranking| {
            let hit = |hit: &Hit| {
                let chunk = self.pipeline.chunk(hit.row);
                json!([chunk.map_or_else(|_| String::new(), |c| c.id.to_string()), hit.score])
            };
            json!({
                "scale": ranking.scale().name(),
                "hits": ranking.hits().iter().map(hit).collect::<Vec<_>>(),
            })
        };
        match step {
            Step::Rewrite(strategy, queries) => {
                let query = |q: &Query| json!({"text": q.text, "origin": q.origin.name(), "weight": q.weight});
                let queries: Vec<Value> = queries.iter().map(query).collect();
                json!({"rewrite": strategy, "queries": queries})
            }
            Step::Retrieve(legs) => {
                let legs: Vec<Value> = legs
                    .iter()
                    .map(|leg| json!({"query": leg.query, "ranking": hits(&leg.ranking)}))
                    .collect();
                json!({"retrieve": legs})
            }
            Step::Fuse(ranking) => json!({"fuse": hits(ranking)}),
            Step::Rerank(ranking) => json!({"rerank": hits(ranking)}),
            Step::Threshold(best, threshold) => json!({"best": best, "threshold": threshold}),
            Step::Prompt(prompt) => json!({"prompt": prompt.text, "dropped": prompt.dropped}),
            Step::Read(draft) => json!({"draft": draft.text, "value": draft.value}),
            Step::Cite(cited) => json!({
                "unknown_markers": cited.unknown_markers,
                "unsupported": cited.unsupported,
            }),
        }
    }

    fn show_hits(&self, text: &mut String, ranking: &Ranking) -> Result<()> {
        const SHOWN: usize = 5;
        let hits = ranking.hits();
        for (rank, passage) in (1..).zip(self.pipeline.join(&hits[..hits.len().min(SHOWN)])?) {
            let (score, place) = (passage.score, show_place(passage.chunk));
            let _ = writeln!(text, "    {rank}. {score:.4}  {place}");
        }
        Ok(())
    }

    /// Of the passages that were read: which is the most relevant, which is a near miss, why.
    pub fn show_explanation(&self, question: &str, outcome: &Outcome) -> Result<String> {
        let mut text = String::new();
        let hits = outcome.ranking.hits();
        let read = &hits[..hits.len().min(self.settings.top_k)];
        let cited: Vec<String> = match &outcome.answer {
            Answer::Cited { citations, .. } => citations.iter().map(|c| c.anchor.clone()).collect(),
            Answer::Unknown { .. } => Vec::new(),
        };
        for (rank, (hit, passage)) in (1..).zip(read.iter().zip(self.pipeline.join(read)?)) {
            let anchor = passage.chunk.anchor();
            let verdict = match (rank, cited.contains(&anchor)) {
                (1, true) => "most relevant, cited",
                (1, false) => "most relevant, not cited",
                (_, true) => "cited",
                (_, false) => "read, not cited: another sentence fits as well or better",
            };
            let _ = writeln!(text, "{rank}. {}\n   {verdict}", show_place(passage.chunk));
            for part in self.pipeline.explain(question, hit.row, &outcome.trace)? {
                show_tree(&mut text, &part, 2);
            }
        }
        Ok(printable(&text).into_owned())
    }

    fn json_citation(&self, citation: &Citation) -> Value {
        let documents = &self.pipeline.documents;
        let document = documents.iter().find(|document| document.id == citation.document);
        json!({
            "marker": citation.marker,
            "chunk_id": citation.chunk.to_string(),
            "document": &*citation.document.0,
            "encoding": document.and_then(|document| document.metadata.get("encoding")),
            "anchor": citation.anchor,
            "section": citation.section,
            "span": [citation.span.start, citation.span.end],
            "quote": citation.quote,
            "supported": citation.supported,
            "support": citation.support,
        })
    }
}

/// Where a passage stands, on one line.
fn show_place(chunk: &Chunk) -> String {
    format!("{}  {}", one_line(&chunk.anchor()), one_line(&chunk.heading))
}

fn show_citation(citation: &Citation) -> String {
    let Citation { marker, document, section, quote, .. } = citation;
    let document = one_line(&document.0);
    let section =
        if section.is_empty() { String::new() } else { format!(", {}", one_line(section)) };
    let check = if citation.supported { "" } else { " (not supported)" };
    format!("[#{marker}] {document}{section}{check}\n    \"{}\"\n", quote.replace('\n', "\n     "))
}

fn show_tree(text: &mut String, part: &Explanation, depth: usize) {
    let _ = writeln!(text, "{}{:.4}  {}", "  ".repeat(depth), part.value, part.what);
    part.parts.iter().for_each(|part| show_tree(text, part, depth + 1));
}

/// The scores that a passage had in each stage.
fn scores(outcome: &Outcome, hit: &Hit) -> Map<String, Value> {
    let mut scores = Map::new();
    let mut add = |ranking: &Ranking| {
        if let Some((_, score)) = ranking.find(hit.row) {
            scores.entry(ranking.scale().name()).or_insert_with(|| json!(score));
        }
    };
    for (step, _) in &outcome.trace.steps {
        match step {
            Step::Retrieve(legs) => legs.iter().for_each(|leg| add(&leg.ranking)),
            Step::Fuse(ranking) | Step::Rerank(ranking) => add(ranking),
            _ => {}
        }
    }
    scores
}

fn json_latency(outcome: &Outcome) -> Value {
    outcome.trace.latencies().into_iter().map(|(stage, ms)| (stage.to_owned(), json!(ms))).collect()
}
