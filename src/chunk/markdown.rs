//! `markdown`: pieces that stay within a section and know its heading path.
//!
//! Sections smaller than the target are joined with their neighbours while no heading above the
//! first is lost: the path of a joined piece is what its sections have in common, and their own
//! headings stand in its text. A heading is never cut from what it heads. Code and tables stay
//! whole up to twice the target; a longer table is cut between rows, and its header row is kept
//! beside each piece that goes on.

use std::ops::Range;

use super::{
    breaks::{Break, Level, breaks},
    outline::{Fixed, Heading, Outline, outline},
    pack::{Layout, Piece},
    recursive,
    ruler::Ruler,
};

/// A heading and what stands below it, up to the next heading; a heading without text of its own
/// is one with the section after it.
struct Section {
    span: Range<usize>,
    /// The headings above the text, outermost first.
    path: Vec<usize>,
}

/// Breaks and whole parts of a markdown text.
pub(super) struct Markdown {
    outline: Outline,
    sections: Vec<Section>,
}

impl Markdown {
    pub(super) fn parse(text: &str) -> Self {
        let outline = outline(text);
        let sections = sections(text, &outline.headings);
        Self { outline, sections }
    }

    /// The places to cut, those between a heading and its text left out.
    pub(super) fn breaks(&self, text: &str, ruler: &Ruler<'_>) -> Vec<Break> {
        let mut places: Vec<(usize, Level)> = self.outline.blocks.clone();
        let fixed = &self.outline.fixed;
        let inside = |at: usize| {
            let next = fixed.partition_point(|f| f.span.end <= at);
            fixed.get(next).is_some_and(|f| f.span.start < at)
        };
        places.extend(breaks(text, ruler).iter().filter(|b| !inside(b.at)).map(|b| {
            // What is a block, the parser says better.
            (b.at, b.level.min(Level::Line))
        }));
        fixed.iter().for_each(|fixed| places.extend(inner(text, fixed)));
        // Of equal places the block's, which came first.
        places.sort_by_key(|&(at, _)| at);
        places.dedup_by_key(|&mut (at, _)| at);
        let headings = &self.outline.headings;
        places.retain(|&(at, _)| {
            let above = headings.partition_point(|h| h.span.start < at).checked_sub(1);
            above.is_none_or(|i| headings[i].body < at)
        });
        let places = places.into_iter().filter(|&(at, _)| at > 0);
        places
            .map(|(at, level)| {
                // "For example:" belongs to what it announces.
                let announces = text[..at].trim_end().ends_with(':');
                let level = if announces { level.min(Level::Sentence) } else { level };
                Break { at, rank: ruler.rank(at), level }
            })
            .collect()
    }

    /// What should stay whole.
    pub(super) fn fixed(&self) -> Vec<Range<usize>> {
        self.outline.fixed.iter().map(|fixed| fixed.span.clone()).collect()
    }

    pub(super) fn split(&self, layout: &Layout<'_>, title: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = self.sections.as_slice();
        while !rest.is_empty() {
            let (group, path, after) = self.join(layout, rest);
            let heading = self.heading(&path, title);
            let packed = layout.pack(group, recursive::choose);
            pieces.extend(packed.into_iter().map(|piece| Piece {
                heading: heading.clone(),
                table_header: self.table_header(layout, piece.span.start),
                ..piece
            }));
            rest = after;
        }
        pieces
    }

    /// The first of `sections` with those that join it, their common path, and the rest.
    fn join<'s>(
        &self,
        layout: &Layout<'_>,
        sections: &'s [Section],
    ) -> (Range<usize>, Vec<usize>, &'s [Section]) {
        let first = &sections[0];
        let (mut span, mut path) = (first.span.clone(), first.path.clone());
        let mut joined = 1;
        for next in &sections[1..] {
            let common = path.iter().zip(&next.path).take_while(|(a, b)| a == b).count();
            let fits = layout.ruler.size(span.start, next.span.end) <= layout.target;
            // A heading that the path would lose must stand in the text.
            let above = |&i: &usize| self.outline.headings[i].span.start < span.start;
            let loses = path[common..].iter().any(above);
            if !fits || loses {
                break;
            }
            path.truncate(common);
            span.end = next.span.end;
            joined += 1;
        }
        (span, path, &sections[joined..])
    }

    /// The path as text, the document's title left out.
    fn heading(&self, path: &[usize], title: &str) -> String {
        let names = path.iter().map(|&i| self.outline.headings[i].text.as_str());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let same = |name: &str| letters(name).eq(letters(title));
        let names = if names.first().is_some_and(|n| same(n)) { &names[1..] } else { &names };
        names.join(" > ")
    }

    /// The header row of the table that byte `at` lies below the header of.
    fn table_header(&self, layout: &Layout<'_>, at: usize) -> Range<usize> {
        let next = self.outline.fixed.partition_point(|fixed| fixed.span.end <= at);
        let table = self.outline.fixed.get(next).filter(|table| table.header.end <= at);
        let header = table.map_or(0..0, |table| table.header.clone());
        // A header longer than a piece would drown what it heads.
        let short = layout.ruler.size(header.start, header.end) <= layout.target;
        if short { header } else { 0..0 }
    }
}

/// Letters and digits in lower case, to compare a heading with a title however it is marked.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// The rows of a table, or the lines of code.
fn inner(text: &str, fixed: &Fixed) -> Vec<(usize, Level)> {
    let starts = match fixed.header.is_empty() {
        false => fixed.rows.iter().skip(1).copied().collect(),
        true => {
            let lines = text[fixed.span.clone()].match_indices('\n');
            let starts: Vec<usize> = lines.map(|(at, _)| fixed.span.start + at + 1).collect();
            // Neither the opening fence nor the closing one alone.
            let code = starts.get(1..starts.len().saturating_sub(1)).unwrap_or_default();
            code.to_vec()
        }
    };
    starts.into_iter().map(|at| (at, Level::Inner)).collect()
}

fn sections(text: &str, headings: &[Heading]) -> Vec<Section> {
    let first = headings.first().map_or(text.len(), |heading| heading.span.start);
    let mut sections = Vec::with_capacity(headings.len() + 1);
    if !text[..first].trim_start().is_empty() {
        sections.push(Section { span: 0..first, path: Vec::new() });
    }
    let mut path: Vec<usize> = Vec::new();
    // Where headings without text of their own began.
    let mut open: Option<usize> = None;
    for (i, heading) in headings.iter().enumerate() {
        while path.last().is_some_and(|&above| headings[above].depth >= heading.depth) {
            path.pop();
        }
        path.push(i);
        let next = headings.get(i + 1);
        let end = next.map_or(text.len(), |next| next.span.start);
        let start = *open.get_or_insert(heading.span.start);
        if next.is_none() || heading.body < end {
            sections.push(Section { span: start..end, path: path.clone() });
            open = None;
        }
    }
    sections
}
