//! The swap: a new file beside the old one, brought to the disk, then renamed over it.

use std::{
    fs::{self, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode};

use super::FILE;
use crate::error::{Error, Result};

/// A file that vanishes unless it replaces another.
pub(super) struct NewFile(PathBuf);

impl NewFile {
    /// An empty file of its own in `dir`, whatever others are writing there. No name comes twice,
    /// not even on another machine: a rename must never take a file that is not the writer's.
    pub(super) fn create(dir: &Path) -> Result<Self> {
        let id = RandomState::new().build_hasher().finish();
        let path = dir.join(format!("{FILE}.{id:016x}.tmp"));
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(Error::io(&path))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file, which must be on the disk, over `target`; says how many bytes it has.
    pub(super) fn replace(self, target: &Path) -> Result<u64> {
        let bytes = fs::metadata(&self.0).map_err(Error::io(&self.0))?.len();
        fs::rename(&self.0, target).map_err(Error::io(target))?;
        // The new name must reach the disk as well; only Unix opens folders.
        #[cfg(unix)]
        if let Some(dir) = target.parent() {
            fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io(dir))?;
        }
        Ok(bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a successful rename there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes what killed processes left in `dir`: new files that nobody has locked.
pub(super) fn remove_leftovers(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(FILE) && name.ends_with(".tmp") && !is_locked(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_locked(path: &Path) -> bool {
    let lock = || -> rusqlite::Result<()> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK;")
    };
    let locked = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    lock().is_err_and(|error| error.sqlite_error_code().is_some_and(|code| locked.contains(&code)))
}
