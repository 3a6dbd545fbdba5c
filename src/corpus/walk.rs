//! A folder in; its files with their ids, and what is no file with a reason.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ignore::{DirEntry, WalkBuilder};
use unicode_normalization::UnicodeNormalization;

use super::Skipped;
use crate::{
    error::{Error, Result},
    text::{char_ceil, char_floor},
};

/// A `.gitignore` of more bytes is none that a person wrote.
const MAX_RULES_BYTES: u64 = 1 << 20;

/// Of a path that is too long for the system, so many bytes are shown at both ends.
const SHOWN_BYTES: usize = 100;

/// A file to read.
pub(super) struct Found {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its path below the root, `/`-separated, NFC; bytes that are not UTF-8 as `%XX`.
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
    if let Some(reason) = rules_fault(&root) {
        return Err(Error::format(path, reason));
    }
    let mut walk = Walk { files: Vec::new(), skipped: Vec::new() };
    let shut = Arc::new(Mutex::new(Vec::new()));
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
        .filter_entry(only_sound_rules(root.clone(), shut.clone()))
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
                    skip(same_name(&first));
                    names.insert(found.id, first);
                }
            }
        }
    }
    walk.skipped.append(&mut shut.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(walk)
}

/// Keeps the walk out of folders whose rules it could not read, and lists them in `shut`.
fn only_sound_rules(
    root: PathBuf,
    shut: Arc<Mutex<Vec<Skipped>>>,
) -> impl Fn(&DirEntry) -> bool + Send + Sync + 'static {
    move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let Some(reason) = is_folder.then(|| rules_fault(entry.path())).flatten() else {
            return true;
        };
        let path = below(entry.path().strip_prefix(&root).unwrap_or(entry.path()));
        shut.lock().unwrap_or_else(PoisonError::into_inner).push(Skipped { path, reason });
        false
    }
}

/// Why the `.gitignore` of `folder` must not be opened: a pipe would wait for ever, a device
/// never end.
fn rules_fault(folder: &Path) -> Option<String> {
    let about = folder.join(".gitignore").symlink_metadata().ok()?;
    let sound = about.is_file() && about.len() <= MAX_RULES_BYTES;
    (!sound).then(|| {
        let most = MAX_RULES_BYTES >> 20;
        format!("its .gitignore is no regular file of at most {most} MiB, so none of it was read")
    })
}

/// `relative` with `/` between its parts; bytes that are not UTF-8 become `%XX`, so that different
/// names stay different.
fn below(relative: &Path) -> String {
    let mut path = String::new();
    for part in relative.components() {
        let Component::Normal(name) = part else { continue };
        if !path.is_empty() {
            path.push('/');
        }
        for chunk in name.as_encoded_bytes().utf8_chunks() {
            path.push_str(chunk.valid());
            path.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
        }
    }
    path
}

/// Marks that combine are escaped: only they tell the two names apart.
fn same_name(first: &Path) -> String {
    let first: String = below(first).chars().flat_map(char::escape_debug).collect();
    format!("its name equals that of {first} after Unicode normalisation (NFC): rename one")
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
            _ => break,
        };
    }
    // The error around the system's own repeats the path.
    let mut cause: &dyn std::error::Error = match inner {
        ignore::Error::Io(error) => error,
        other => other,
    };
    while let Some(source) = cause.source() {
        cause = source;
    }
    Skipped { path: shorten(path), reason: format!("could not be read: {cause}") }
}

/// `path` without its middle where it is very long.
fn shorten(path: String) -> String {
    if path.len() <= 4 * SHOWN_BYTES {
        return path;
    }
    let start = &path[..char_floor(&path, SHOWN_BYTES)];
    let end = &path[char_ceil(&path, path.len() - SHOWN_BYTES)..];
    format!("{start}[... {} bytes ...]{end}", path.len() - start.len() - end.len())
}
