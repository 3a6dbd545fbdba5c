//! An index in memory to one SQLite file.
//!
//! A new index is written to a file of its own beside the old one, brought to the disk and then
//! renamed over it, so that a reader sees the old index or the new one, whole, whatever happens
//! in between. Vectors lie in blobs of 1,024 rows.

use std::{fs, path::Path};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use super::{
    Index,
    manifest::{Checksums, Parts},
    open::is_foreign,
    swap::{NewFile, remove_leftovers},
};
use crate::{
    error::{Error, Result},
    types::Document,
};

/// The name of the file in an index folder.
pub const FILE: &str = "index.db";

/// Marks the file as ours among all SQLite files.
pub(super) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"mrag");

/// Rows of vectors in one blob.
const SEGMENT_ROWS: usize = 1024;

/// Bytes of the lexical index in one blob.
const SEGMENT_BYTES: usize = 16 << 20;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    document INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    metadata TEXT NOT NULL);
CREATE TABLE chunks (
    row INTEGER PRIMARY KEY, id BLOB NOT NULL, document INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, token_offset INTEGER NOT NULL, tokens INTEGER NOT NULL,
    overlap INTEGER NOT NULL, span_start INTEGER NOT NULL, span_end INTEGER NOT NULL,
    heading TEXT NOT NULL, table_header TEXT NOT NULL, chunker TEXT NOT NULL);
CREATE TABLE vectors (segment INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE lexical (segment INTEGER PRIMARY KEY, data BLOB NOT NULL);
";

impl Index {
    /// Writes the index into the folder `dir`, which is made if need be, in place of the one
    /// that is there; says how many bytes the file has.
    ///
    /// A new index gets a `.gitignore`, unless the folder has one, so that it is neither committed
    /// nor, where it lies inside the documents' folder, read as a document.
    ///
    /// # Errors
    /// A folder or file that cannot be written, a file of that name that is no index; what is
    /// there is then as it was.
    pub fn save(&self, dir: &Path) -> Result<u64> {
        if is_foreign(dir) {
            let cure = "name another folder, or remove the file";
            let message = format!("in the place of the index is a file that is none: {cure}");
            return Err(Error::format(dir.join(FILE), message));
        }
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let ignore = dir.join(".gitignore");
        if !dir.join(FILE).exists() && !ignore.exists() {
            // Only what is ours: the folder may hold documents as well.
            let ours = format!("/.gitignore\n/{FILE}*\n");
            fs::write(&ignore, ours).map_err(Error::io(&ignore))?;
        }
        remove_leftovers(dir);
        let new = NewFile::create(dir)?;
        self.write(new.path())?;
        new.replace(&dir.join(FILE))
    }

    fn write(&self, path: &Path) -> Result<()> {
        let failed = sqlite(path);
        let mut connection = Connection::open(path).map_err(&failed)?;
        // No journal: a file that fails is thrown away. The commit waits for the disk, and the
        // lock, which tells others that the file is no leftover, stays until the end.
        let settings = "PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL;
                        PRAGMA locking_mode = EXCLUSIVE;";
        connection.execute_batch(settings).map_err(&failed)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(&failed)?;
        connection.pragma_update(None, "user_version", self.manifest.format).map_err(&failed)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Exclusive)
            .map_err(&failed)?;
        transaction.execute_batch(SCHEMA).map_err(&failed)?;
        let (manifest, metadata) = (json(&self.manifest)?, self.metadata()?);
        let lexical = self.lexical.serialize();
        self.insert_texts(&transaction, &metadata).map_err(&failed)?;
        self.insert_blobs(&transaction, &lexical).map_err(&failed)?;
        let parts =
            Parts { documents: &self.documents, chunks: &self.chunks, vectors: &self.vectors };
        let checksums = json(&Checksums::new(&manifest, &parts, &lexical))?;
        for (key, value) in [("manifest", manifest), ("checksums", checksums)] {
            transaction
                .execute("INSERT INTO meta VALUES (?1, ?2)", params![key, value])
                .map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        connection.close().map_err(|(_, error)| failed(error))
    }

    fn metadata(&self) -> Result<Vec<String>> {
        self.documents.iter().map(|document| json(&document.metadata)).collect()
    }

    fn insert_texts(&self, to: &Transaction<'_>, metadata: &[String]) -> rusqlite::Result<()> {
        let mut insert = to.prepare("INSERT INTO documents VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for (at, (document, metadata)) in self.documents.iter().zip(metadata).enumerate() {
            let Document { id, title, text, .. } = document;
            insert.execute(params![at, &*id.0, &**title, text, metadata])?;
        }
        let mut insert = to.prepare(
            "INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let mut document = 0;
        for (row, chunk) in self.chunks.iter().enumerate() {
            // Both are in the order of the ids.
            while self.documents[document].id != chunk.document {
                document += 1;
            }
            insert.execute(params![
                row,
                chunk.id.0,
                document,
                chunk.ordinal,
                chunk.token_offset,
                chunk.tokens,
                chunk.overlap,
                chunk.span.start,
                chunk.span.end,
                chunk.heading,
                chunk.table_header,
                &*chunk.chunker,
            ])?;
        }
        Ok(())
    }

    fn insert_blobs(&self, to: &Transaction<'_>, lexical: &[u8]) -> rusqlite::Result<()> {
        let mut insert = to.prepare("INSERT INTO vectors VALUES (?1, ?2)")?;
        let values = self.vectors.data().chunks(SEGMENT_ROWS * self.vectors.dim());
        for (segment, values) in values.enumerate() {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            insert.execute(params![segment, bytes])?;
        }
        let mut insert = to.prepare("INSERT INTO lexical VALUES (?1, ?2)")?;
        for (segment, bytes) in lexical.chunks(SEGMENT_BYTES).enumerate() {
            insert.execute(params![segment, bytes])?;
        }
        Ok(())
    }
}

/// What SQLite says of the file at `path`, as our error.
pub(super) fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |error| match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::DatabaseBusy
            | ErrorCode::ReadOnly,
        ) => Error::format(path, error.to_string()),
        _ => damaged(path, &error.to_string()),
    }
}

pub(super) fn damaged(path: &Path, what: &str) -> Error {
    Error::format(path, format!("the index is damaged ({what}): run `index` to build it again"))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Setting(format!("no JSON: {error}")))
}
