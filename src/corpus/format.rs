//! A file's name and bytes in; a document out, or the reason why there is none.

use std::{collections::BTreeMap, path::Path};

use super::{decode::decode, markdown, walk::Found};
use crate::types::Document;

const MARKDOWN: [&str; 3] = ["markdown", "md", "mdx"];

/// Formats that hold text, but not as text: reading their bytes would index the marks.
const NO_READER: [&str; 38] = [
    "doc", "docm", "docx", "dot", "dotx", "eps", "epub", "fb2", "htm", "html", "ipynb", "key",
    "mht", "mhtml", "mobi", "msg", "numbers", "odg", "odp", "ods", "odt", "one", "pages", "pdf",
    "pot", "potx", "pps", "ppsx", "ppt", "pptm", "pptx", "ps", "rtf", "svg", "xhtml", "xls",
    "xlsm", "xlsx",
];

/// The same, known by how they begin, for files that have lost their extension.
const SIGNATURES: [(&[u8], &str); 4] =
    [(b"%PDF-", "PDF"), (b"%!PS", "PostScript"), (b"{\\rtf", "RTF"), (b"PK\x03\x04", "zip")];

/// Says by the name alone that a file cannot be read, which saves reading it.
pub(super) fn check_name(found: &Found) -> Result<(), String> {
    let name = found.id.rsplit('/').next().unwrap_or_default();
    if name.ends_with('~') || name.len() > 1 && name.starts_with('#') && name.ends_with('#') {
        return Err("an editor's backup copy".into());
    }
    let extension = extension(&found.id);
    match NO_READER.binary_search(&extension.as_str()) {
        Ok(_) => Err(format!("no reader for .{extension} files yet")),
        Err(_) => Ok(()),
    }
}

/// The document that `bytes` hold.
pub(super) fn read(found: &Found, bytes: Vec<u8>) -> Result<Document, String> {
    check_name(found)?;
    if let Some((_, name)) = SIGNATURES.iter().find(|(start, _)| bytes.starts_with(start)) {
        return Err(format!("not text: it begins like a {name} file, which has no reader yet"));
    }
    let decoded = decode(bytes)?;
    let is_markdown = MARKDOWN.binary_search(&extension(&found.id).as_str()).is_ok();
    let stem = Path::new(&found.id).file_stem().unwrap_or_default().to_string_lossy();
    let heading = if is_markdown { markdown::title(&decoded.text) } else { None };
    let format = if is_markdown { "markdown" } else { "text" };
    let mut metadata = BTreeMap::from([
        ("format".to_owned(), format.to_owned()),
        ("encoding".to_owned(), decoded.encoding),
    ]);
    if decoded.replaced > 0 {
        metadata.insert("replaced".to_owned(), decoded.replaced.to_string());
    }
    let title = heading.unwrap_or_else(|| stem.into_owned());
    Ok(Document { id: found.id.as_str().into(), title: title.into(), text: decoded.text, metadata })
}

fn extension(id: &str) -> String {
    Path::new(id).extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_named(name: &str, bytes: &[u8]) -> Result<Document, String> {
        read(&Found::new(Path::new(name), Path::new(name)), bytes.to_vec())
    }

    #[test]
    fn extensions_are_sorted_for_the_search() {
        assert!(NO_READER.is_sorted() && MARKDOWN.is_sorted());
    }

    #[test]
    fn the_title_is_the_first_heading_or_the_stem() {
        let title = |name: &str, text: &str| read_named(name, text.as_bytes()).unwrap().title;
        assert_eq!(&*title("a/notes.v2.md", "no heading"), "notes.v2");
        assert_eq!(&*title("a/notes.MD", "x\n\n## Real *one* ##\n"), "Real one");
        assert_eq!(&*title("Makefile", "# comment\nall:\n"), "Makefile");
    }

    #[test]
    fn what_has_no_reader_is_named() {
        let reason = |name: &str, bytes: &[u8]| read_named(name, bytes).unwrap_err();
        assert_eq!(reason("x.HTML", b"<p>"), "no reader for .html files yet");
        assert_eq!(reason("notes.md~", b"old"), "an editor's backup copy");
        assert!(reason("report", b"%PDF-1.7\n").contains("PDF"));
        assert!(reason("photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").starts_with("not text"));
    }
}
