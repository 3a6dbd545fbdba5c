//! Markdown to its outline: headings, blocks and what must stay whole, by a CommonMark parser.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{breaks::Level, pack::content_start};
use crate::text::{MARKDOWN, char_floor, plain};

/// Bytes of a heading that its path keeps; more is no heading but text.
const HEADING_BYTES: usize = 200;

/// A heading outside of lists and quotes.
#[derive(Debug)]
pub(super) struct Heading {
    /// Its lines.
    pub(super) span: Range<usize>,
    /// 1 to 6.
    pub(super) depth: usize,
    /// The line that its text begins with, or the next heading's.
    pub(super) body: usize,
    /// Its words, without marks.
    pub(super) text: String,
}

/// A block of code or a table.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) span: Range<usize>,
    /// The header row of a table; empty for code.
    pub(super) header: Range<usize>,
    /// Where the rows of a table begin; empty for code, whose lines do.
    pub(super) rows: Vec<usize>,
}

/// What the blocks of a document are; everything in order.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) headings: Vec<Heading>,
    /// Where blocks begin, always at the start of a line.
    pub(super) blocks: Vec<(usize, Level)>,
    pub(super) fixed: Vec<Fixed>,
    /// A byte and the start of its line, so that no long line is searched twice.
    line: (usize, usize),
}

/// The outline of `text`.
pub(super) fn outline(text: &str) -> Outline {
    let mut outline = Outline::default();
    // Lists, quotes and footnotes that are open.
    let mut containers = 0;
    let mut heading: Option<Heading> = None;
    for (event, range) in Parser::new_ext(text, MARKDOWN).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if containers == 0 => {
                outline.block(text, range.start, Level::Section);
                let span = outline.line_start(text, range.start)..range.end;
                let body = content_start(text, range.end, text.len());
                let text = String::new();
                heading = Some(Heading { span, depth: level as usize, body, text });
            }
            Event::End(TagEnd::Heading(_)) => outline.headings.extend(heading.take().map(finish)),
            Event::Text(words) | Event::Code(words) => push(&mut heading, &words),
            Event::SoftBreak | Event::HardBreak => push(&mut heading, " "),
            Event::Start(tag) => {
                let level = if containers == 0 { Level::Block } else { Level::Line };
                outline.start(text, &tag, range, level);
                containers += usize::from(is_container(&tag.to_end()));
            }
            Event::End(tag) => containers -= usize::from(is_container(&tag)),
            Event::Rule => outline.block(text, range.start, Level::Block),
            _ => {}
        }
    }
    outline
}

fn is_container(tag: &TagEnd) -> bool {
    matches!(tag, TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition)
}

fn push(heading: &mut Option<Heading>, words: &str) {
    if let Some(heading) = heading
        && heading.text.len() <= HEADING_BYTES
    {
        heading.text.push_str(words);
    }
}

fn finish(mut heading: Heading) -> Heading {
    heading.text.truncate(char_floor(&heading.text, HEADING_BYTES));
    heading.text = plain(&heading.text);
    heading
}

impl Outline {
    fn start(&mut self, text: &str, tag: &Tag<'_>, range: Range<usize>, level: Level) {
        match tag {
            Tag::CodeBlock(_) | Tag::Table(_) => {
                self.block(text, range.start, level);
                let span = self.line_start(text, range.start)..range.end;
                self.fixed.push(Fixed { span, header: 0..0, rows: Vec::new() });
            }
            Tag::TableHead => {
                if let Some(table) = self.fixed.last_mut() {
                    table.header = range;
                }
            }
            Tag::TableRow => {
                let row = self.line_start(text, range.start);
                if let Some(table) = self.fixed.last_mut() {
                    table.rows.push(row);
                }
            }
            // The first item begins with its list, whose level is the better one.
            Tag::Item => self.block(text, range.start, Level::Line),
            Tag::Paragraph
            | Tag::List(_)
            | Tag::BlockQuote(_)
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_) => self.block(text, range.start, level),
            _ => {}
        }
    }

    /// Notes that a block begins on the line of byte `at`.
    fn block(&mut self, text: &str, at: usize, level: Level) {
        let at = self.line_start(text, at);
        // Of several blocks that begin on one line (a list, its item, its paragraph) the
        // outermost counts.
        if self.blocks.last().is_none_or(|&(last, _)| last < at) {
            self.blocks.push((at, level));
        }
    }

    /// The start of the line of byte `at`.
    fn line_start(&mut self, text: &str, at: usize) -> usize {
        let (known, start) = if self.line.0 <= at { self.line } else { (0, 0) };
        let start = text[known..at].rfind('\n').map_or(start, |newline| known + newline + 1);
        self.line = (at, start);
        start
    }
}
