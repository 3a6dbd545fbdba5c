//! `recursive`: blocks where they fill half a piece, else lines, else sentences, else words; the
//! order of LangChain's RecursiveCharacterTextSplitter, in one pass.

use super::{
    breaks::{Break, Level},
    pack::{Layout, Piece, Reach},
};

pub(super) fn split(layout: &Layout<'_>) -> Vec<Piece> {
    layout.pack(0..layout.text.len(), choose)
}

/// The furthest break of the best level that fills enough of the target.
pub(super) fn choose(reach: &Reach<'_>) -> Option<Break> {
    let levels = [(Level::Block, 50), (Level::Line, 50), (Level::Sentence, 25)];
    levels.into_iter().find_map(|(level, percent)| reach.furthest(level, percent))
}
