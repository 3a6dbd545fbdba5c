//! A folder, a file, a BEIR folder or the default corpus in; documents out.
//!
//! Nothing vanishes: every file that is found is either read or listed as skipped with its
//! reason. What is not found: names that begin with a dot and what a `.gitignore` in the folder
//! excludes, so that neither `.git` nor build output becomes part of the answers. Links are never
//! followed, so there are no loops and no way out of the folder. The order is that of the ids,
//! whatever the file system's is.

pub(crate) mod beir;
mod decode;
mod format;
mod markdown;
mod walk;

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

pub use decode::{Decoded, decode};

use crate::{
    error::{Error, Result},
    types::Document,
};
use walk::Found;

/// Files larger than this many bytes are skipped.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The grammar corpus as it was when the crate was compiled.
static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data/rag-kb");

/// What manifests call the embedded corpus.
pub const EMBEDDED_NAME: &str = "embedded";

/// Where the default corpus lies below a home (see [`shipped`]).
const DEFAULT_CORPUS: &str = "data/rag-kb";

/// How the documents are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One file a document.
    Folder,
    /// One line of `corpus.jsonl` a document.
    Beir,
}

/// A file that is not among the documents.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Its path below the root, `/`-separated.
    pub path: String,
    /// Why it could not be read.
    pub reason: String,
}

/// What was read from one place; `documents.len() + skipped.len() == found`.
#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    /// Sorted by id, no id twice.
    pub documents: Vec<Document>,
    /// Sorted by path.
    pub skipped: Vec<Skipped>,
    /// Number of files, or of lines in a BEIR folder.
    pub found: usize,
    /// How they are stored.
    pub kind: Kind,
}

/// Reads the documents of a folder, of one file, or of a BEIR folder (one with `corpus.jsonl`).
///
/// # Errors
/// A path that does not exist, a place without a single readable document, a malformed or
/// repeated line of a `corpus.jsonl`.
pub fn load(path: &Path) -> Result<Corpus> {
    let about = std::fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::format(
            path,
            "no such folder or file: name a folder of documents, one document, or a BEIR folder",
        ),
        _ => Error::io(path)(source),
    })?;
    let lines = path.join("corpus.jsonl");
    if about.is_dir() && lines.is_file() {
        return beir::load(&lines);
    }
    if about.is_file() && path.file_name().is_some_and(|name| name == "corpus.jsonl") {
        return beir::load(path);
    }
    if !about.is_dir() && !about.is_file() {
        return Err(Error::format(path, "neither a folder nor a regular file"));
    }
    let found = if about.is_dir() { walk::folder(path)? } else { walk::file(path) };
    let read = found.files.par_iter().map(read_file).collect();
    gather(path, found.skipped, read)
}

/// The documents at `path` or, without one, the default corpus (from the first of the homes that
/// has it, see [`shipped`], else [`embedded`]); and the place's name for manifests: its absolute
/// path, or [`EMBEDDED_NAME`].
///
/// # Errors
/// As [`load`].
pub fn load_or_default(path: Option<&Path>) -> Result<(Corpus, String)> {
    let Some(path) = path.map(Path::to_owned).or_else(|| shipped(Path::new(DEFAULT_CORPUS))) else {
        return Ok((embedded()?, EMBEDDED_NAME.to_owned()));
    };
    let corpus = load(&path)?;
    let absolute = path.canonicalize().map_err(Error::io(&path))?;
    Ok((corpus, absolute.to_string_lossy().into_owned()))
}

/// The default corpus as compiled into the binary.
///
/// # Errors
/// A binary that was built without any document.
pub fn embedded() -> Result<Corpus> {
    let mut files = Vec::new();
    let mut folders = vec![&EMBEDDED];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        files.extend(folder.files());
    }
    let read = files
        .iter()
        .filter(|file| !is_hidden(file.path()))
        .map(|file| {
            let found = Found::new(file.path(), file.path());
            format::read(&found, file.contents().to_vec())
                .map_err(|reason| Skipped { path: found.id, reason })
        })
        .collect();
    gather(Path::new("the embedded corpus"), Vec::new(), read)
}

/// Finds a file or folder that comes with minirag, e.g. `models/tokenizer`: below the folder
/// that `MINIRAG_HOME` names, else below the current folder, else beside the executable.
pub fn shipped(relative: &Path) -> Option<PathBuf> {
    let named = std::env::var_os("MINIRAG_HOME").filter(|home| !home.is_empty());
    let executable = std::env::current_exe().ok();
    let beside = executable.and_then(|path| path.parent().map(Path::to_owned));
    [named.map(PathBuf::from), Some(PathBuf::new()), beside]
        .into_iter()
        .flatten()
        .map(|home| home.join(relative))
        .find(|path| path.exists())
}

/// `sha256` over ids and texts in the order given, 64 hex digits; names the corpus in manifests,
/// and tells the grammar corpus from others.
pub fn content_hash(documents: &[Document]) -> String {
    let mut hash = Sha256::new();
    for field in documents.iter().flat_map(|document| [&document.id.0[..], &document.text]) {
        // The length first, so that no two lists of fields run together to the same bytes.
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    format!("{:x}", hash.finalize())
}

/// True for the default corpus, wherever its documents were read from.
pub fn is_default(documents: &[Document]) -> bool {
    let visible = |file: &&include_dir::File<'_>| !is_hidden(file.path());
    let same = |document: &Document| {
        let file = EMBEDDED.get_file(&*document.id.0);
        file.is_some_and(|file| file.contents() == document.text.as_bytes())
    };
    EMBEDDED.files().filter(visible).count() == documents.len() && documents.iter().all(same)
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

fn read_file(found: &Found) -> Result<Document, Skipped> {
    let skip = |reason| Skipped { path: found.id.clone(), reason };
    let read = || -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        // A file may have grown since it was found: never read more than one byte too many.
        std::fs::File::open(&found.path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    format::check_name(found).map_err(skip)?;
    let bytes = read().map_err(|error| skip(format!("could not be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(skip(format!("larger than {} MiB: split it", MAX_FILE_BYTES >> 20)));
    }
    format::read(found, bytes).map_err(skip)
}

/// Sorts what was read from what was not.
fn gather(
    place: &Path,
    mut skipped: Vec<Skipped>,
    read: Vec<Result<Document, Skipped>>,
) -> Result<Corpus> {
    let mut documents = Vec::with_capacity(read.len());
    for result in read {
        match result {
            Ok(document) => documents.push(document),
            Err(skip) => skipped.push(skip),
        }
    }
    documents.sort_by(|a, b| a.id.cmp(&b.id));
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    let found = documents.len() + skipped.len();
    if documents.is_empty() {
        let why = match skipped.first() {
            None => "it holds no file (dot-files and what .gitignore names do not count)".into(),
            Some(Skipped { path, reason }) => {
                format!("all {found} files were skipped, the first, {path}, because: {reason}")
            }
        };
        let cure = "put .md or .txt files there, or name another folder";
        return Err(Error::format(place, format!("no document to read: {why}; {cure}")));
    }
    Ok(Corpus { documents, skipped, found, kind: Kind::Folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_corpus_equals_its_folder() {
        let folder = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_CORPUS)).unwrap();
        assert_eq!(embedded().unwrap(), folder);
    }

    #[test]
    fn the_content_hash_keeps_fields_apart() {
        let document = |id: &str, text: &str| Document {
            id: id.into(),
            title: "".into(),
            text: text.into(),
            metadata: Default::default(),
        };
        assert_ne!(content_hash(&[document("a", "bc")]), content_hash(&[document("ab", "c")]));
        assert_eq!(content_hash(&[document("a", "b")]), content_hash(&[document("a", "b")]));
    }
}
