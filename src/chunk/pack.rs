//! The one loop that all strategies cut with: from a start, a strategy chooses among the breaks
//! within reach; where it finds none, a word or a grapheme ends the piece.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::{
    breaks::{Break, Level},
    ruler::Ruler,
};
use crate::text::{char_ceil, char_floor};

/// A document laid out for cutting.
pub(super) struct Layout<'a> {
    pub(super) text: &'a str,
    pub(super) ruler: &'a Ruler<'a>,
    /// Units of length that a piece aims at.
    pub(super) target: usize,
    /// Units that it shares with the piece before.
    pub(super) overlap: usize,
    /// Ascending.
    pub(super) breaks: Vec<Break>,
    /// What should stay whole (code, tables) and is never repeated; ascending, disjoint.
    pub(super) fixed: Vec<Range<usize>>,
}

/// A piece of a document; blanks around it are not yet taken off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Piece {
    pub(super) span: Range<usize>,
    /// The heading path.
    pub(super) heading: String,
    /// The header row of the table that the piece begins inside.
    pub(super) table_header: Range<usize>,
}

/// What a strategy chooses from.
pub(super) struct Reach<'a> {
    /// The breaks within 1.1 times the target.
    pub(super) breaks: &'a [Break],
    /// The place of the first of them among all breaks.
    pub(super) first: usize,
    /// Units before the piece.
    pub(super) start: usize,
    /// Units that the piece aims at.
    pub(super) target: usize,
}

impl Reach<'_> {
    /// The furthest break of at least `level` that fills at least `percent` of the target.
    pub(super) fn furthest(&self, level: Level, percent: usize) -> Option<Break> {
        let fills = |b: &&Break| (b.rank - self.start) * 100 >= self.target * percent;
        self.breaks.iter().rev().take_while(fills).find(|b| b.level >= level).copied()
    }
}

impl Layout<'_> {
    /// Units that a piece may have, unless it keeps something whole.
    fn limit(&self) -> usize {
        self.target + self.target / 10
    }

    /// Units that a piece may have to keep code or a table whole.
    fn hard_limit(&self) -> usize {
        2 * self.target
    }

    /// Cuts `range` where `choose` says.
    pub(super) fn pack(
        &self,
        range: Range<usize>,
        choose: impl Fn(&Reach<'_>) -> Option<Break>,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = content_start(self.text, range.start, range.end);
        // The end of the piece before: the next must go beyond it.
        let mut floor = start;
        let piece_end = |start, floor| match self.ruler.size(start, range.end) <= self.limit() {
            true => range.end,
            false => self.end(start, floor, range.end, &choose),
        };
        while start < range.end {
            let mut end = piece_end(start, floor.max(start));
            if start < floor && self.text[floor..end].trim_start().is_empty() {
                // The overlap and blanks alone would repeat what was said.
                start = content_start(self.text, floor, range.end);
                end = piece_end(start, start);
            }
            pieces.push(Piece { span: start..end, ..Default::default() });
            floor = end;
            if content_start(self.text, end, range.end) >= range.end {
                break;
            }
            start = content_start(self.text, self.overlap_start(start, end), range.end);
        }
        pieces
    }

    /// The end of the piece that begins at `start`, beyond `floor`.
    fn end(
        &self,
        start: usize,
        floor: usize,
        range_end: usize,
        choose: &impl Fn(&Reach<'_>) -> Option<Break>,
    ) -> usize {
        let (rank, floor_rank) = (self.ruler.rank(start), self.ruler.rank(floor));
        let limit = rank + self.limit();
        let from = self.breaks.partition_point(|b| b.at <= floor || b.rank <= floor_rank);
        let to =
            from + self.breaks[from..].partition_point(|b| b.rank <= limit && b.at < range_end);
        let breaks = &self.breaks[from..to];
        let reach = Reach { breaks, first: from, start: rank, target: self.target };
        let chosen = match self.fixed_at(self.ruler.select(limit)) {
            Some(fixed) => self.end_near(fixed, start, &reach).or_else(|| Some(choose(&reach)?.at)),
            None => choose(&reach).map(|chosen| chosen.at),
        };
        chosen.unwrap_or_else(|| self.word_end(start, floor)).min(range_end)
    }

    /// The end of a piece whose limit falls inside `fixed`: before it if that fills half of the
    /// target, else after it if the hard limit allows, else at the next best of both.
    fn end_near(&self, fixed: &Range<usize>, start: usize, reach: &Reach<'_>) -> Option<usize> {
        let fits = |start| self.ruler.size(start, fixed.end) <= self.hard_limit();
        if let Some(before) = reach.furthest(Level::Line, 50) {
            return Some(before.at);
        }
        if fits(start) {
            return Some(fixed.end);
        }
        let before = reach.furthest(Level::Sentence, 0).filter(|_| fits(fixed.start));
        before.or(reach.breaks.last().copied()).map(|chosen| chosen.at)
    }

    /// The fixed range that byte `at` lies inside.
    fn fixed_at(&self, at: usize) -> Option<&Range<usize>> {
        let next = self.fixed.partition_point(|fixed| fixed.end <= at);
        self.fixed.get(next).filter(|fixed| fixed.start < at)
    }

    /// The last end of a word within 10% below the target, else of a grapheme, beyond `floor`.
    fn word_end(&self, start: usize, floor: usize) -> usize {
        let rank = self.ruler.rank(start);
        let goal = char_floor(self.text, self.ruler.select(rank + self.target)).max(start);
        let low = self.ruler.select(rank + self.target - self.target / 10);
        let low = char_ceil(self.text, low).max(floor).min(goal);
        let rest = &self.text[goal..];
        let end = match self.text[low..goal].rfind(char::is_whitespace) {
            _ if rest.starts_with(char::is_whitespace) => goal,
            Some(offset) => char_ceil(self.text, low + offset + 1),
            None => grapheme_floor(self.text, start, goal),
        };
        match end > floor && self.ruler.rank(end) > self.ruler.rank(floor) {
            true => end,
            // One grapheme longer than a piece: it stays whole.
            false => grapheme_ceil(self.text, start, goal.max(floor + 1)),
        }
    }

    /// Where the piece after `start..end` begins, so that it shares up to `overlap` units with
    /// it: at a sentence if one begins in the further half of them, else at a word, else at a
    /// grapheme.
    fn overlap_start(&self, start: usize, end: usize) -> usize {
        let rank = self.ruler.rank(end);
        let wanted = rank.saturating_sub(self.overlap).max(self.ruler.rank(start) + 1);
        let next = self.fixed.partition_point(|fixed| fixed.end < end);
        let forbidden = self.fixed.get(next).is_some_and(|fixed| fixed.start <= end);
        if self.overlap == 0 || forbidden || wanted >= rank {
            return end;
        }
        let low = char_ceil(self.text, self.ruler.select(wanted)).max(start + 1);
        let low = match next.checked_sub(1) {
            Some(before) => low.max(self.fixed[before].end),
            None => low,
        };
        let from = self.breaks.partition_point(|b| b.at < low);
        let nearest = rank - self.overlap / 2;
        if let Some(found) = self.breaks.get(from).filter(|b| b.at < end && b.rank <= nearest) {
            return found.at;
        }
        if low >= end || self.text[..low].ends_with(char::is_whitespace) {
            return low.min(end);
        }
        match self.text[low..end].find(char::is_whitespace) {
            Some(offset) => low + offset,
            None => grapheme_ceil(self.text, start, low).min(end),
        }
    }
}

/// The first byte of `start..end` that shows: blanks are skipped, but the indentation of a line
/// belongs to it.
pub(super) fn content_start(text: &str, start: usize, end: usize) -> usize {
    let rest = &text[start..end];
    let blanks = rest.len() - rest.trim_start().len();
    if blanks == rest.len() {
        return end;
    }
    match rest[..blanks].rfind('\n') {
        Some(newline) => start + newline + 1,
        None if start == 0 || text[..start].ends_with('\n') => start,
        None => start + blanks,
    }
}

/// The last end of a grapheme at or before `at`, not before `start`, which must be one itself.
fn grapheme_floor(text: &str, start: usize, at: usize) -> usize {
    // Seen from `start` only, so that a long run of joiners is not read again for every piece.
    let slice = &text[start..];
    let mut cursor = GraphemeCursor::new(at - start, slice.len(), true);
    if cursor.is_boundary(slice, 0).unwrap_or(true) {
        return at;
    }
    cursor.prev_boundary(slice, 0).ok().flatten().map_or(start, |before| start + before)
}

/// The first end of a grapheme at or after `at`.
fn grapheme_ceil(text: &str, start: usize, at: usize) -> usize {
    let at = char_ceil(text, at);
    let before = grapheme_floor(text, start, at);
    if before == at {
        return at;
    }
    text[before..].graphemes(true).next().map_or(text.len(), |grapheme| before + grapheme.len())
}
