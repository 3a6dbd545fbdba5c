//! `token-window`: pieces of the target's length, whatever they hold; a blank line or the end of
//! a sentence within 10% of the target is taken where there is one.

use super::{
    breaks::{Break, Level},
    pack::{Layout, Piece, Reach},
};

pub(super) fn split(layout: &Layout<'_>) -> Vec<Piece> {
    layout.pack(0..layout.text.len(), |reach| {
        nearest(reach, Level::Block).or_else(|| nearest(reach, Level::Sentence))
    })
}

/// The break of at least `level` nearest to the target, within 10% of it.
fn nearest(reach: &Reach<'_>, level: Level) -> Option<Break> {
    let off = |b: &&Break| (b.rank - reach.start).abs_diff(reach.target);
    let near = reach.breaks.iter().filter(|b| b.level >= level && off(b) * 10 <= reach.target);
    near.min_by_key(off).copied()
}
