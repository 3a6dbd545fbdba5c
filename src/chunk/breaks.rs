//! Where a text may be cut, from its units (blocks, lines, sentences).

use super::ruler::Ruler;
use crate::text::{UnitKind, units};

/// How good a place to cut is; the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Inside something that should stay whole: a line of code, a row of a table.
    Inner,
    /// Before a sentence.
    Sentence,
    /// Before a line that begins something: a list item, a row.
    Line,
    /// After a blank line, or before a heading.
    Block,
}

/// A place to cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Break {
    /// The byte that the next piece begins with.
    pub(super) at: usize,
    /// Units of length before it.
    pub(super) rank: usize,
    /// How good it is.
    pub(super) level: Level,
}

/// The breaks of `text`, ascending, one before each unit but the first.
pub(super) fn breaks(text: &str, ruler: &Ruler<'_>) -> Vec<Break> {
    let units = units(text);
    let places = units.windows(2).map(|pair| {
        let (at, level) = place(text, pair[0].span.end, pair[1].span.start);
        let heads = pair[1].kind == UnitKind::Heading;
        Break { at, rank: ruler.rank(at), level: if heads { Level::Block } else { level } }
    });
    places.collect()
}

/// The best place in the gap between two units, which holds blanks, list and table marks.
fn place(text: &str, start: usize, end: usize) -> (usize, Level) {
    let gap = &text[start..end];
    let Some(newline) = gap.find('\n') else {
        let blanks = gap.len() - gap.trim_start().len();
        return (start + blanks, Level::Sentence);
    };
    // After the last blank line: a closing fence stays with its code, an opening one goes along.
    let mut line = start + newline + 1;
    let (mut at, mut level) = (line, Level::Line);
    for content in text[line..end].split_inclusive('\n') {
        line += content.len();
        if content.ends_with('\n') && content.trim().is_empty() {
            (at, level) = (line, Level::Block);
        }
    }
    (at, level)
}
