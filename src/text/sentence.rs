//! Text to sentences, list items and table rows, by byte span.
//!
//! Works on markdown and on plain text alike: a blank line, a heading, a list item, a table row
//! and a code line begin a unit of their own; inside a paragraph a unit ends after a full stop,
//! question or exclamation mark (also the full-width ones) that an abbreviation does not explain.
//!
//! A chunk may begin inside a code block, whose opening fence it then lacks. It is taken to where
//! its fences are odd in number and the first names no language and follows a line that is not
//! blank: an opening fence has a blank line before it, or a partner.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser};

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// A sentence, or a list item of one.
    Sentence,
    /// A heading.
    Heading,
    /// A table's header row.
    TableHeader,
    /// A row of a table.
    TableRow,
    /// A line of a code block.
    Code,
}

/// A sentence-like piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Bytes of the text, without surrounding blanks and list markers.
    pub span: Range<usize>,
    /// What it is.
    pub kind: UnitKind,
}

/// Abbreviations that a full stop does not end a sentence after.
/// "no" only before a number: "He said no. She left."
const ABBREVIATIONS: [&str; 27] = [
    "a.m", "al", "approx", "ca", "cf", "dr", "e.g", "eq", "etc", "fig", "i.e", "inc", "jr", "mr",
    "mrs", "ms", "no", "p.m", "pp", "prof", "sb", "sen", "sr", "st", "sth", "u.s", "vs",
];

/// The units of `text` in order; what lies between them is blank space, list and table marks.
pub fn units(text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut paragraph: Option<Range<usize>> = None;
    let mut open = open_at_start(text);
    let mut lines = lines(text).peekable();
    while let Some(line) = lines.next() {
        let content = &text[line.clone()];
        let kind = match (open, fence(content)) {
            (None, Some(opening)) => {
                open = Some(opening);
                None
            }
            (Some(opening), Some(closing)) if closing.closes(opening) => {
                open = None;
                None
            }
            (Some(_), _) => Some(UnitKind::Code),
            _ if content.is_empty() || is_table_rule(content) => None,
            _ if is_heading(content) => Some(UnitKind::Heading),
            _ if content.starts_with('|') => {
                let header = lines.peek().is_some_and(|next| is_table_rule(&text[next.clone()]));
                Some(if header { UnitKind::TableHeader } else { UnitKind::TableRow })
            }
            _ => {
                let item = list_marker(content);
                if item > 0 {
                    flush(text, &mut paragraph, &mut units);
                }
                let start = paragraph.as_ref().map_or(line.start + item, |p| p.start);
                paragraph = Some(start..line.end);
                continue;
            }
        };
        flush(text, &mut paragraph, &mut units);
        if let Some(kind) = kind
            && !content.is_empty()
        {
            units.push(Unit { span: line, kind });
        }
    }
    flush(text, &mut paragraph, &mut units);
    units
}

/// Byte ranges of the lines of `text`, blanks at both ends and quote marks taken off.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let indent =
            line.len() - line.trim_start_matches(|c: char| c.is_whitespace() || c == '>').len();
        let content = line[indent..].trim_end();
        let range = start + indent..start + indent + content.len();
        start += line.len();
        range
    })
}

/// A line that opens or closes a block of code.
#[derive(Clone, Copy)]
struct Fence {
    mark: u8,
    length: usize,
    /// Nothing follows the marks.
    bare: bool,
}

impl Fence {
    fn closes(self, opening: Self) -> bool {
        self.bare && self.mark == opening.mark && self.length >= opening.length
    }
}

fn fence(line: &str) -> Option<Fence> {
    let mark = line.bytes().next().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = line.bytes().take_while(|b| *b == mark).count();
    let info = &line[length..];
    // "```x```" is code inside a paragraph.
    let inline = mark == b'`' && info.contains('`');
    (length >= 3 && !inline).then(|| Fence { mark, length, bare: info.trim().is_empty() })
}

/// The fence that is open where `text` begins, by the rule in the module's head.
fn open_at_start(text: &str) -> Option<Fence> {
    let mut first = None;
    let (mut fences, mut after_blank) = (0, true);
    for line in lines(text) {
        let content = &text[line];
        if let Some(fence) = fence(content) {
            fences += 1;
            first = first.or(Some((fence, after_blank)));
        }
        after_blank = content.is_empty();
    }
    let (fence, after_blank) = first?;
    (fences % 2 == 1 && fence.bare && !after_blank).then_some(fence)
}

fn is_heading(line: &str) -> bool {
    let marks = line.bytes().take_while(|&b| b == b'#').count();
    (1..=6).contains(&marks) && line[marks..].starts_with([' ', '\t'])
}

fn is_table_rule(line: &str) -> bool {
    line.contains('-')
        && line.contains('|')
        && line.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'\t'))
}

/// Length of `- `, `* `, `+ `, `1. ` or `1) ` at the start of a line.
fn list_marker(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let mark = match digits {
        0 => rest.starts_with(['-', '*', '+']),
        1..=9 => rest.starts_with(['.', ')']),
        _ => false,
    };
    if !mark || !rest[1..].starts_with([' ', '\t']) {
        return 0;
    }
    line.len() - rest[1..].trim_start().len()
}

/// Cuts the open paragraph into sentences.
fn flush(text: &str, paragraph: &mut Option<Range<usize>>, units: &mut Vec<Unit>) {
    let Some(range) = paragraph.take() else { return };
    let mut start = range.start;
    let mut chars = text[range.clone()].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।') {
            continue;
        }
        let mut end = range.start + at + c.len_utf8();
        while let Some(&(_, closing)) = chars.peek()
            && matches!(
                closing,
                '.' | '!' | '?' | '"' | '\'' | '”' | '’' | ')' | ']' | '*' | '_' | '」'
            )
        {
            end += closing.len_utf8();
            chars.next();
        }
        let full_width = matches!(c, '。' | '！' | '？');
        let rest = &text[end..range.end];
        let goes_on = rest.trim_start().starts_with(|next: char| next.is_lowercase());
        let blank_follows = rest.starts_with(char::is_whitespace);
        if full_width
            || blank_follows
                && !goes_on
                && !(c == '.' && ends_abbreviated(&text[start..end], rest.trim_start()))
        {
            push_sentence(text, start..end, units);
            start = end;
        }
    }
    push_sentence(text, start..range.end, units);
}

/// True if the full stop that ends `sentence`, before `rest`, belongs to an abbreviation or an
/// initial.
fn ends_abbreviated(sentence: &str, rest: &str) -> bool {
    let Some(before) = sentence.strip_suffix('.') else { return false };
    let word = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '.')).next().unwrap_or("");
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let word = word.to_lowercase();
    let number_follows = rest.starts_with(|c: char| c.is_ascii_digit());
    initial
        || ABBREVIATIONS.binary_search(&word.as_str()).is_ok() && (word != "no" || number_follows)
}

fn push_sentence(text: &str, range: Range<usize>, units: &mut Vec<Unit>) {
    let content = &text[range.clone()];
    let start = range.start + content.len() - content.trim_start().len();
    let span = start..start + content.trim().len();
    if !span.is_empty() {
        units.push(Unit { span, kind: UnitKind::Sentence });
    }
}

/// The cells of a table row, marks taken off.
pub fn table_cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, cells.last_mut()) {
            ('\\', Some(cell)) if chars.peek() == Some(&'|') => cell.extend(chars.next()),
            ('|', _) => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            _ => {}
        }
    }
    cells.iter().map(|cell| plain(cell)).collect()
}

/// A table row as a sentence, its first cell in front and the others named by their headers:
/// `eat — Past simple: ate; Past participle: eaten`.
pub fn spell_row(header: &[String], cells: &[String]) -> String {
    let name = |at: usize| header.get(at).filter(|name| !name.is_empty());
    let filled = cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
    let mut spelt = filled.map(|(at, cell)| match name(at) {
        Some(name) if at > 0 => format!("{name}: {cell}"),
        _ => cell.clone(),
    });
    let first = spelt.next().unwrap_or_default();
    let rest: Vec<String> = spelt.collect();
    if rest.is_empty() { first } else { format!("{first} — {}", rest.join("; ")) }
}

/// `text` with its table rows spelt out, one list item each, and the marks of tables left out.
/// `header` is the header row of a table that goes on at the start of `text`; it may be empty.
pub fn spell_tables(text: &str, header: &str) -> String {
    let units = units(text);
    let is_table = |kind| matches!(kind, UnitKind::TableHeader | UnitKind::TableRow);
    if !units.iter().any(|unit| is_table(unit.kind)) {
        return text.to_owned();
    }
    let mut header = table_cells(header);
    let mut spelt = String::with_capacity(text.len());
    let mut at = 0;
    for unit in units.into_iter().filter(|unit| is_table(unit.kind)) {
        let between = &text[at..unit.span.start];
        // Between two rows there are only line breaks and the rule below the header.
        let rule = between.bytes().all(|b| b"|-: \t\r\n".contains(&b));
        spelt.push_str(if rule { "" } else { between });
        let cells = table_cells(&text[unit.span.clone()]);
        at = unit.span.end;
        if unit.kind == UnitKind::TableHeader {
            header = cells;
        } else {
            spelt.push_str(&format!("- {}\n", spell_row(&header, &cells)));
        }
    }
    spelt + &text[at..]
}

/// Stands in front of a line that is parsed as the middle of a paragraph.
const GUARD: &str = "x";

/// The text that a piece of markdown shows: marks, link targets, comments and tags taken off, blanks
/// run together.
pub fn plain(text: &str) -> String {
    // `[text][label]` is a link even where its definition is elsewhere; `a[1]` and `[#1]` are not.
    let mut resolve = |link: BrokenLink<'_>| {
        matches!(link.link_type, LinkType::Reference | LinkType::ReferenceUnknown)
            .then(|| ("".into(), "".into()))
    };
    let options = Options::ENABLE_STRIKETHROUGH;
    let mut plain = String::with_capacity(text.len());
    // A word in front: `1914. A year` at the start of a line would be a list.
    let line = text.trim().trim_start_matches('#').split_whitespace();
    let line = [GUARD].into_iter().chain(line).collect::<Vec<_>>().join(" ");
    for event in Parser::new_with_broken_link_callback(&line, options, Some(&mut resolve)) {
        match event {
            Event::Text(text) | Event::Code(text) => plain.push_str(&text),
            _ => {}
        }
    }
    let plain = plain.strip_prefix(GUARD).unwrap_or(&plain);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let got: Vec<&str> = units(text).iter().map(|unit| &text[unit.span.clone()]).collect();
        assert_eq!(expected, got);
    }

    #[test]
    fn sentences_end_at_stops_that_no_abbreviation_explains() {
        check(
            "He left. She, e.g. Ann, stayed! Really? yes. Mr. Smith paid 3.50 there.",
            &["He left.", "She, e.g. Ann, stayed!", "Really? yes.", "Mr. Smith paid 3.50 there."],
        );
        check(
            "She said \"go.\" Then **stop.** The end",
            &["She said \"go.\"", "Then **stop.**", "The end"],
        );
        check("今天。明天！", &["今天。", "明天！"]);
    }

    #[test]
    fn blocks_of_markdown_are_units_of_their_own() {
        let text = "# Title\nOne line\ngoes on. Two.\n\n- item a\n- item b.\n  1. deep\n\
                    | a | b |\n|---|---|\n| c | d |\n```sh\n# no heading\n```\n> quoted";
        check(
            text,
            &[
                "# Title",
                "One line\ngoes on.",
                "Two.",
                "item a",
                "item b.",
                "deep",
                "| a | b |",
                "| c | d |",
                "# no heading",
                "quoted",
            ],
        );
        let kinds: Vec<UnitKind> = units(text).iter().map(|unit| unit.kind).collect();
        assert_eq!(kinds[6..9], [UnitKind::TableHeader, UnitKind::TableRow, UnitKind::Code]);
    }

    #[test]
    fn no_is_an_abbreviation_only_before_a_number() {
        check("She said no. He left.", &["She said no.", "He left."]);
        check("See No. 7 there.", &["See No. 7 there."]);
    }

    #[track_caller]
    fn check_kinds(text: &str, expected: &[UnitKind]) {
        let got: Vec<UnitKind> = units(text).iter().map(|unit| unit.kind).collect();
        assert_eq!(expected, got, "{text}");
    }

    #[test]
    fn fences_are_paired() {
        use UnitKind::{Code, Sentence};
        check_kinds(
            "````\n```sh\nls\n```\n~~~\n````\nEnd.",
            &[Code; 4].into_iter().chain([Sentence]).collect::<Vec<_>>(),
        );
        check_kinds("```inline``` code.\nGoes on.", &[Sentence, Sentence]);
        // The chunk begins inside a block ...
        check_kinds("let x;\n```\n\nProse. More.", &[Code, Sentence, Sentence]);
        check_kinds("let x;\n```\nProse.\n\n```sh\nls\n```\n", &[Code, Sentence, Code]);
        // ... or ends in one.
        check_kinds("Prose.\n\n```\nlet x;", &[Sentence, Code]);
        check_kinds("Prose.\n```sh\nls", &[Sentence, Code]);
        check_kinds("```\nls", &[Code]);
    }

    #[test]
    fn table_rows_are_spelt_out_with_their_headers() {
        let text = "Verbs:\n\n| Base | Past | Note |\n|---|---|---|\n| **eat** | ate | |\n\
                    | go | went | no -ed |\n\nEnd.";
        assert_eq!(
            spell_tables(text, ""),
            "Verbs:\n\n- eat — Past: ate\n- go — Past: went; Note: no -ed\n\n\nEnd."
        );
        assert_eq!(spell_tables("| go | went |", "| Base | Past |"), "- go — Past: went\n");
        assert_eq!(spell_tables("No table.", "| Base |"), "No table.");
    }

    #[test]
    fn marks_are_taken_off() {
        assert_eq!(plain("**eat** _is_ `a_b` 2 * 3\n x"), "eat is a_b 2 * 3 x");
        assert_eq!(
            plain("[ ] *Ann*: see [the page][p]<!-- no --> and [it](x.md), a[1] [#1]"),
            "[ ] Ann: see the page and it, a[1] [#1]"
        );
        assert_eq!(plain("<a id=\"x\"></a>"), "");
        assert_eq!(plain("1914. A year"), "1914. A year");
        assert_eq!(table_cells("| **eat** | a \\| b |  |"), ["eat", "a | b", ""]);
    }
}
