//! `semantic`: cuts where the sentences before and after are least alike (after Kamradt 2023,
//! but within half to 1.1 times the target instead of at a percentile of all distances, which
//! gives pieces of any size).

use super::{
    EmbedFn,
    breaks::{Break, Level},
    pack::{Layout, Piece},
};
use crate::{
    error::{Error, Result},
    types::Vectors,
};

pub(super) fn split(layout: &Layout<'_>, embed: &EmbedFn<'_>) -> Result<Vec<Piece>> {
    let similar = similarities(layout, embed)?;
    Ok(layout.pack(0..layout.text.len(), |reach| {
        let half = |b: &Break| (b.rank - reach.start) * 2 >= reach.target;
        let breaks = reach.breaks.iter().enumerate().filter(|(_, b)| half(b));
        breaks
            .min_by(|(a, _), (b, _)| similar[reach.first + a].total_cmp(&similar[reach.first + b]))
            .map(|(_, found)| *found)
            .or_else(|| reach.furthest(Level::Sentence, 25))
    }))
}

/// For each break, the cosine of the two sentences before it and the two after.
fn similarities(layout: &Layout<'_>, embed: &EmbedFn<'_>) -> Result<Vec<f32>> {
    let text = layout.text;
    let starts: Vec<usize> = std::iter::once(0).chain(layout.breaks.iter().map(|b| b.at)).collect();
    // Pairs, since one sentence alone says too little to compare.
    let pairs: Vec<&str> = (0..starts.len())
        .map(|i| &text[starts[i]..starts.get(i + 2).copied().unwrap_or(text.len())])
        .collect();
    let vectors = embed(&pairs)?;
    if vectors.len() != pairs.len() {
        return Err(Error::Shape {
            what: "vectors of sentences to chunk by",
            expected: pairs.len(),
            got: vectors.len(),
        });
    }
    let pair_before = |i: usize| i.saturating_sub(1);
    Ok((0..layout.breaks.len()).map(|i| cosine(&vectors, pair_before(i), i + 1)).collect())
}

fn cosine(vectors: &Vectors, a: usize, b: usize) -> f32 {
    vectors.row(a).iter().zip(vectors.row(b)).map(|(x, y)| x * y).sum()
}
