//! Paths to lines of JSON, and bytes to files that are whole or absent.

use std::{fs, io::Write, path::Path};

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The text of a file, without a byte order mark.
pub(crate) fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// A fault in one line of a file; the message begins `path:line`.
pub(crate) fn at_line(path: &Path, line: usize, message: impl Into<String>) -> Error {
    Error::format(format!("{}:{line}", path.display()), message)
}

/// Each line that is not blank, parsed, with its number from 1.
pub(crate) fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<(usize, T)>> {
    let text = read(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| match serde_json::from_str(line) {
            Ok(value) => Ok((at + 1, value)),
            Err(e) => Err(at_line(path, at + 1, e.to_string())),
        })
        .collect()
}

/// Writes a file beside its place, then renames it, so that no reader ever sees half of it.
pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|e| {
        // The first failure is the one worth telling.
        let _ = fs::remove_file(&temporary);
        Error::io(path)(e)
    })
}
