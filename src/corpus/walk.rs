//! A folder in; its files with their ids, and what is no file with a reason.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
};

use ignore::WalkBuilder;
use unicode_normalization::UnicodeNormalization;

use super::Skipped;
use crate::error::{Error, Result};

/// A file to read.
pub(super) struct Found {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its path below the root, `/`-separated, NFC.
    pub(super) id: String,
}

impl Found {
    /// The file at `path`, which is `relative` to the root.
    pub(super) fn new(path: &Path, relative: &Path) -> Self {
        Self { path: path.to_owned(), id: below(relative).nfc().collect() }
    }
}

/// What a walk brings.
pub(super) struct Walk {
    /// No id twice.
    pub(super) files: Vec<Found>,
    /// What cannot be read as a file.
    pub(super) skipped: Vec<Skipped>,
}

/// The one file at `path`.
pub(super) fn file(path: &Path) -> Walk {
    let name = path.file_name().map(Path::new).unwrap_or(path);
    Walk { files: vec![Found::new(path, name)], skipped: Vec::new() }
}

/// All files below `path`.
pub(super) fn folder(path: &Path) -> Result<Walk> {
    // The root itself may be a link.
    let root = path.canonicalize().map_err(Error::io(path))?;
    let mut walk = Walk { files: Vec::new(), skipped: Vec::new() };
    // Only rules inside the folder count, and inside or outside of a git repository alike: a
    // copy of the folder elsewhere must give the same documents.
    let entries = WalkBuilder::new(&root)
        .parents(false)
        .ignore(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(|a, b| a.cmp(b))
        .build();
    let mut names: HashMap<String, PathBuf> = HashMap::new();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                walk.skipped.push(unreadable(&error, &root));
                continue;
            }
        };
        let relative = entry.path().strip_prefix(&root).unwrap_or(entry.path());
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            continue;
        }
        let mut skip = |reason| walk.skipped.push(Skipped { path: below(relative), reason });
        if kind.is_some_and(|kind| kind.is_symlink()) {
            skip(link_reason(entry.path(), &root));
        } else if !kind.is_some_and(|kind| kind.is_file()) {
            // Opening a pipe would wait for ever.
            skip("not a regular file".into());
        } else {
            let found = Found::new(entry.path(), relative);
            match names.insert(found.id.clone(), relative.to_owned()) {
                None => walk.files.push(found),
                Some(first) => {
                    skip(format!(
                        "its name equals that of {} after Unicode normalisation (NFC): rename one",
                        first.display().to_string().escape_unicode()
                    ));
                    names.insert(found.id, first);
                }
            }
        }
    }
    Ok(walk)
}

/// `relative` with `/` between its parts; bytes that are not UTF-8 become U+FFFD.
fn below(relative: &Path) -> String {
    let parts = relative.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn link_reason(link: &Path, root: &Path) -> String {
    match link.canonicalize() {
        Ok(target) if target.starts_with(root) => {
            let target = below(target.strip_prefix(root).unwrap_or(&target));
            format!("a link to ./{target}, not followed")
        }
        Ok(_) => "a link that leads out of the folder, not followed".into(),
        Err(_) => "a broken link".into(),
    }
}

fn unreadable(error: &ignore::Error, root: &Path) -> Skipped {
    let mut inner = error;
    let mut path = String::new();
    loop {
        inner = match inner {
            ignore::Error::WithPath { path: at, err } => {
                path = below(at.strip_prefix(root).unwrap_or(at));
                err
            }
            ignore::Error::WithLineNumber { err, .. } | ignore::Error::WithDepth { err, .. } => err,
            _ => return Skipped { path, reason: format!("could not be read: {inner}") },
        };
    }
}
