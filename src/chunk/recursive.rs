//! `recursive`: sections where markdown has them, else blocks, else lines within 10% of the
//! target, else sentences, else words: the order of LangChain's RecursiveCharacterTextSplitter,
//! in one pass.
//!
//! A better place to cut further away makes smaller chunks, and with as many of them read, less
//! text: of 50%, 65%, 80%, 90% and 100% as the least fill, 90% found the most gold spans.

use super::{
    breaks::{Break, Level},
    pack::{Layout, Piece, Reach},
};

pub(super) fn split(layout: &Layout<'_>) -> Vec<Piece> {
    layout.pack(0..layout.text.len(), choose)
}

/// The furthest break of the best level that fills enough of the target.
pub(super) fn choose(reach: &Reach<'_>) -> Option<Break> {
    let levels =
        [(Level::Section, 90), (Level::Block, 90), (Level::Line, 90), (Level::Sentence, 25)];
    levels.into_iter().find_map(|(level, percent)| reach.furthest(level, percent))
}
