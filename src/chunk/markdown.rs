//! `markdown`: as `recursive`, by the blocks of a real parser; pieces know their headings.
//!
//! A heading is never cut from what it heads, and nothing is repeated across one. Small sections
//! share a piece: its path is what they have in common, and their own headings stand in its
//! text. Code and tables stay whole up to twice the target; a longer table is cut between rows,
//! and its header row is kept beside each piece that goes on.

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
        let pieces = recursive::split(layout);
        let named = pieces.into_iter().map(|piece| Piece {
            heading: self.heading(self.path(&piece.span), title),
            table_header: self.table_header(layout, piece.span.start),
            ..piece
        });
        named.collect()
    }

    /// The headings above a piece: those of its first section, without those that stand in the
    /// piece itself unless all of it is below them.
    fn path(&self, piece: &Range<usize>) -> &[usize] {
        let from = self.sections.partition_point(|section| section.span.end <= piece.start);
        let Some(first) = self.sections.get(from) else { return &[] };
        let mut shared = first.path.len();
        for next in self.sections[from + 1..].iter().take_while(|s| s.span.start < piece.end) {
            let common = first.path.iter().zip(&next.path).take_while(|(a, b)| a == b).count();
            shared = shared.min(common);
        }
        let above = |&i: &usize| self.outline.headings[i].span.start < piece.start;
        let outside = first.path.iter().take_while(|i| above(i)).count();
        &first.path[..shared.max(outside)]
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
