//! One SQLite file to an index in memory.
//!
//! A checksum of every part is compared: damage is an error, never another answer.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    sync::Arc,
};

use rusqlite::{Connection, OpenFlags, Row};

use super::{
    FILE, FORMAT, Index, Manifest,
    file::{APPLICATION_ID, damaged, sqlite},
    manifest::{Checksums, Parts, hash_manifest},
};
use crate::{
    error::{Error, Result},
    lexical::Bm25,
    types::{Chunk, ChunkId, Document, Vectors},
};

impl Index {
    /// Reads the manifest alone of the index in the folder `dir`.
    ///
    /// # Errors
    /// No index there, one of a later version, or a damaged one.
    pub fn manifest(dir: &Path) -> Result<Manifest> {
        let path = dir.join(FILE);
        check_header(&path)?;
        let (manifest, checksums) = read_meta(&connect(&path)?).map_err(sqlite(&path))?;
        let unreadable = |error: serde_json::Error| damaged(&path, &error.to_string());
        let checksums: Checksums = serde_json::from_str(&checksums).map_err(unreadable)?;
        if hash_manifest(&manifest) != checksums.manifest {
            return Err(damaged(&path, "the checksum of its manifest does not fit"));
        }
        serde_json::from_str(&manifest).map_err(unreadable)
    }

    /// Reads the index in the folder `dir` and checks it.
    ///
    /// # Errors
    /// No index there, one of a later version, or a damaged one.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        check_header(&path)?;
        let failed = sqlite(&path);
        let connection = connect(&path)?;
        let (manifest_json, checksums) = read_meta(&connection).map_err(&failed)?;
        let unreadable = |error: serde_json::Error| damaged(&path, &error.to_string());
        let manifest: Manifest = serde_json::from_str(&manifest_json).map_err(unreadable)?;
        let checksums: Checksums = serde_json::from_str(&checksums).map_err(unreadable)?;
        let (documents, metadata) = read_documents(&connection).map_err(&failed)?;
        let documents = with_metadata(documents, &metadata).map_err(unreadable)?;
        let chunks = read_chunks(&connection, &documents).map_err(&failed)?;
        let chunks = chunks
            .into_iter()
            .collect::<Option<Vec<Chunk>>>()
            .ok_or_else(|| damaged(&path, "a chunk lies outside of its document"))?;
        let vectors = read_vectors(&connection).map_err(&failed)?;
        let vectors = Vectors::new(manifest.dim, vectors)
            .map_err(|error| damaged(&path, &error.to_string()))?;
        let lexical = read_blobs(&connection, "lexical").map_err(&failed)?;
        let parts = Parts { documents: &documents, chunks: &chunks, vectors: &vectors };
        let found = Checksums::new(&manifest_json, &parts, &lexical);
        if let Some(part) = found.difference(&checksums) {
            return Err(damaged(&path, &format!("the checksum of its {part} does not fit")));
        }
        let lexical =
            Bm25::deserialize(&lexical).map_err(|error| damaged(&path, &error.to_string()))?;
        let index = Self { manifest, documents, chunks, vectors, lexical };
        match index.faults().into_iter().next() {
            None => Ok(index),
            Some(fault) => Err(damaged(&path, &fault)),
        }
    }
}

/// True if there is a file of that name in `dir` that is not ours to replace.
pub(super) fn is_foreign(dir: &Path) -> bool {
    let path = dir.join(FILE);
    if fs::metadata(&path).is_ok_and(|about| !about.is_file()) {
        return true;
    }
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    read.is_ok() && header.get(68..72).is_none_or(|id| id != APPLICATION_ID.to_be_bytes())
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite(path))?;
    // The file may come from anyone: nothing that its schema names is to run.
    connection.execute_batch("PRAGMA trusted_schema = OFF;").map_err(sqlite(path))?;
    Ok(connection)
}

/// The manifest and the checksums, as JSON.
fn read_meta(from: &Connection) -> rusqlite::Result<(String, String)> {
    let value = |key: &str| {
        from.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
    };
    Ok((value("manifest")?, value("checksums")?))
}

/// Tells what is no index of ours from the first 100 bytes, which say more than SQLite would.
fn check_header(path: &Path) -> Result<()> {
    let about = fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::format(path, "no index there: make one with `index --corpus PATH --index DIR`")
        }
        _ => Error::io(path)(source),
    })?;
    let none = || {
        let cure = "name a folder that `index` has made, or run `index` to make one";
        Error::format(path, format!("not an index: {cure}"))
    };
    // Opening a pipe would wait for ever.
    if !about.is_file() {
        return Err(none());
    }
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut header = [0; 100];
    let whole = file.read_exact(&mut header).is_ok();
    if !whole || !header.starts_with(b"SQLite format 3\0") {
        return Err(none());
    }
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if number(68) != APPLICATION_ID {
        return Err(Error::format(path, "a database, but not one that `index` has made"));
    }
    if number(60) != FORMAT {
        let (got, cure) = (number(60), "update minirag, or run `index` to build it again");
        let message = format!("the index has format {got}, this minirag reads {FORMAT}: {cure}");
        return Err(Error::format(path, message));
    }
    let page = u64::from(u16::from_be_bytes([header[16], header[17]]));
    let expected = u64::from(number(28)) * if page == 1 { 65536 } else { page };
    if about.len() != expected {
        let got = about.len();
        return Err(damaged(path, &format!("it has {got} bytes and should have {expected}")));
    }
    Ok(())
}

fn read_documents(from: &Connection) -> rusqlite::Result<(Vec<Document>, Vec<String>)> {
    let mut select =
        from.prepare("SELECT id, title, text, metadata FROM documents ORDER BY document")?;
    let rows = select.query_map([], |row| {
        let (id, title): (String, String) = (row.get(0)?, row.get(1)?);
        let (id, title) = (id.as_str().into(), title.into());
        let document = Document { id, title, text: row.get(2)?, metadata: Default::default() };
        Ok((document, row.get(3)?))
    })?;
    rows.collect()
}

fn with_metadata(
    mut documents: Vec<Document>,
    metadata: &[String],
) -> serde_json::Result<Vec<Document>> {
    for (document, metadata) in documents.iter_mut().zip(metadata) {
        document.metadata = serde_json::from_str(metadata)?;
    }
    Ok(documents)
}

/// `None` for a chunk that points to nothing.
fn read_chunks(from: &Connection, documents: &[Document]) -> rusqlite::Result<Vec<Option<Chunk>>> {
    let mut select = from.prepare(
        "SELECT id, document, ordinal, token_offset, tokens, overlap, span_start, span_end,
            heading, table_header, chunker FROM chunks ORDER BY row",
    )?;
    let mut last: Arc<str> = "".into();
    let rows = select.query_map([], |row| {
        let chunker = row.get_ref(10)?.as_str()?;
        if *last != *chunker {
            last = chunker.into();
        }
        read_chunk(row, documents, &last)
    })?;
    rows.collect()
}

fn read_chunk(
    row: &Row<'_>,
    documents: &[Document],
    chunker: &Arc<str>,
) -> rusqlite::Result<Option<Chunk>> {
    let span = row.get(6)?..row.get(7)?;
    let document = documents.get(row.get::<_, usize>(1)?);
    let Some((document, text)) =
        document.and_then(|document| Some((document, document.text.get(span.clone())?)))
    else {
        return Ok(None);
    };
    Ok(Some(Chunk {
        id: ChunkId(row.get(0)?),
        document: document.id.clone(),
        title: document.title.clone(),
        ordinal: row.get(2)?,
        token_offset: row.get(3)?,
        tokens: row.get(4)?,
        overlap: row.get(5)?,
        span,
        text: text.to_owned(),
        heading: row.get(8)?,
        table_header: row.get(9)?,
        chunker: chunker.clone(),
    }))
}

/// Bytes after the last whole value are left out; the checksum notices.
fn read_vectors(from: &Connection) -> rusqlite::Result<Vec<f32>> {
    let mut values = Vec::new();
    each_blob(from, "vectors", |blob| {
        values.extend(blob.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    })?;
    Ok(values)
}

fn read_blobs(from: &Connection, table: &str) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    each_blob(from, table, |blob| bytes.extend_from_slice(blob))?;
    Ok(bytes)
}

fn each_blob(
    from: &Connection,
    table: &str,
    mut on_blob: impl FnMut(&[u8]),
) -> rusqlite::Result<()> {
    let mut select = from.prepare(&format!("SELECT data FROM {table} ORDER BY segment"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        on_blob(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}
