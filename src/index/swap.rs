//! The swap: a new file beside the old one, brought to the disk, then renamed over it.
//!
//! One writer at a time in a folder: a second waits. The lock is the operating system's, on a file
//! that stays, so that it ends with its process, however that ends.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
};

use super::FILE;
use crate::error::{Error, Result};

/// Hidden, so that nobody takes it for a document where the index lies among documents.
const LOCK: &str = ".index.db.lock";

/// A file that vanishes unless it replaces another; the folder is locked as long as it lives.
pub(super) struct NewFile {
    path: PathBuf,
    _lock: File,
}

impl NewFile {
    /// An empty file in `dir`, as soon as no other writer is there. No name comes twice, not even
    /// on another machine: a rename must never take a file that is not the writer's.
    pub(super) fn create(dir: &Path) -> Result<Self> {
        let lock = open_lock(dir)?;
        lock.lock().map_err(Error::io(dir.join(LOCK)))?;
        let id = RandomState::new().build_hasher().finish();
        let path = dir.join(format!("{FILE}.{id:016x}.tmp"));
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(Error::io(&path))?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file, which must be on the disk, over `target`; says how many bytes it has.
    pub(super) fn replace(self, target: &Path) -> Result<u64> {
        let bytes = fs::metadata(&self.path).map_err(Error::io(&self.path))?.len();
        fs::rename(&self.path, target).map_err(Error::io(target))?;
        // The new name must reach the disk as well; only Unix opens folders.
        #[cfg(unix)]
        if let Some(dir) = target.parent() {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io(dir))?;
        }
        Ok(bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a successful rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what killed processes left in `dir`, unless somebody is writing there.
pub(super) fn remove_leftovers(dir: &Path) {
    let Ok(lock) = open_lock(dir) else { return };
    if lock.try_lock().is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(FILE) && name.ends_with(".tmp") {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The file whose lock its holder may write in `dir` under.
fn open_lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    // Opening a pipe would wait for ever.
    if fs::symlink_metadata(&path).is_ok_and(|about| !about.is_file()) {
        return Err(Error::format(path, "not a regular file: remove it"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(&path).map_err(Error::io(&path))
}
