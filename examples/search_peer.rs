//! Our side of `scripts/compare_search.py`: holds an index and searches it on command.
//!
//! `search_peer flat ROWS QUERIES DIM` reads two files of little-endian f32; `search_peer bm25
//! FOLDER TERMS` reads a BEIR folder and writes the terms of its passages and test queries, so
//! that the peers can index the very same. Then each line on stdin, `COMMAND K`, runs all queries
//! once and is answered by a line: the rows found by the first queries. The script holds the
//! watch: it reads this process's CPU time before the command and after the answer.

use std::{
    fs,
    io::{BufRead, Write},
    path::Path,
};

use anyhow::{Context, Result, bail};
use minirag::{
    lexical::{Bm25, Bm25Settings, LexicalIndex},
    store::{FlatStore, VectorStore},
    text::Analyzer,
    types::{Ranking, Vectors},
};
use serde_json::{Value, json};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["flat", rows, queries, dim] => flat(rows.as_ref(), queries.as_ref(), dim.parse()?),
        ["bm25", folder, terms] => bm25(folder.as_ref(), terms.as_ref()),
        _ => bail!("usage: search_peer flat ROWS QUERIES DIM | search_peer bm25 FOLDER TERMS"),
    }
}

fn flat(rows: &Path, queries: &Path, dim: usize) -> Result<()> {
    let store = FlatStore::new(read_vectors(rows, dim)?);
    let queries = read_vectors(queries, dim)?;
    serve(|command, k| match command {
        "single" => Ok(queries.rows().map(|q| store.search(q, k)).collect::<Result<_, _>>()?),
        "batch" => Ok(store.search_batch(&queries, k)?),
        _ => bail!("unknown command {command}"),
    })
}

fn bm25(folder: &Path, terms: &Path) -> Result<()> {
    let texts = read_lines(&folder.join("corpus.jsonl"))?;
    let texts: Vec<String> = texts
        .iter()
        .map(|passage| format!("{}\n{}", text(passage, "title"), text(passage, "text")))
        .collect();
    let qrels = fs::read_to_string(folder.join("qrels/test.tsv"))?;
    let judged: Vec<&str> = qrels.lines().filter_map(|line| line.split('\t').next()).collect();
    let queries: Vec<String> = read_lines(&folder.join("queries.jsonl"))?
        .iter()
        .filter(|query| judged.contains(&text(query, "_id")))
        .map(|query| text(query, "text").to_owned())
        .collect();
    let analyzer = Analyzer::default();
    let index = Bm25::build(&texts, analyzer, Bm25Settings::default())?;
    let split = |texts: &[String]| -> Vec<Vec<String>> {
        texts.iter().map(|text| analyzer.terms(text)).collect()
    };
    let query_terms = split(&queries);
    let shared = json!({"texts": texts, "passages": split(&texts), "queries": queries,
        "query_terms": query_terms});
    fs::write(terms, shared.to_string())?;
    serve(|command, k| match command {
        "raw" => Ok(queries.iter().map(|q| index.search(q, k)).collect::<Result<_, _>>()?),
        "terms" => {
            Ok(query_terms.iter().map(|q| index.search_terms(q, k)).collect::<Result<_, _>>()?)
        }
        _ => bail!("unknown command {command}"),
    })
}

fn serve(search: impl Fn(&str, usize) -> Result<Vec<Ranking>>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (command, k) = line.split_once(' ').context("a line is COMMAND K")?;
        let rankings = search(command, k.parse()?)?;
        let rows = |ranking: &Ranking| ranking.hits().iter().map(|hit| hit.row.0).collect();
        let first: Vec<Vec<u32>> = rankings.iter().take(32).map(rows).collect();
        writeln!(out, "{}", json!(first))?;
    }
    Ok(())
}

fn read_vectors(path: &Path, dim: usize) -> Result<Vectors> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Ok(Vectors::new(dim, values)?)
}

fn read_lines(path: &Path) -> Result<Vec<Value>> {
    let lines = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}
