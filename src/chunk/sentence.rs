//! `sentence`: as many whole sentences (list items, table rows, lines of code) as fit.

use super::{
    breaks::Level,
    pack::{Layout, Piece},
};

pub(super) fn split(layout: &Layout<'_>) -> Vec<Piece> {
    // A sentence longer than the rest of a piece is cut at a word.
    layout.pack(0..layout.text.len(), |reach| reach.furthest(Level::Sentence, 25))
}
