//! The one definition of a word and of a sentence.
//!
//! Everything that compares texts (BM25, overlap, the hashing embedder, the metrics) goes through
//! [`Analyzer`]; everything that quotes goes through [`units`], whose spans are bytes of the text
//! as it was brought.

mod sentence;
mod words;

use pulldown_cmark::Options;

pub use sentence::{Unit, UnitKind, plain, spell_row, spell_tables, table_cells, units};
pub use words::{Analyzer, TermStats, fold, idf, is_frame, is_solid};

/// What counts as markdown, for the title, the outline and the chunks alike.
pub(crate) const MARKDOWN: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_HEADING_ATTRIBUTES)
    .union(Options::ENABLE_YAML_STYLE_METADATA_BLOCKS)
    .union(Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS);

/// The last place at or before byte `at` that lies between two characters of `text`.
pub fn char_floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The first place at or after byte `at` that lies between two characters of `text`.
pub fn char_ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}
