//! What `index` does: read, compare with what is there, build, swap.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{BuildReport, Changes, FILE, Index, Manifest, Origin, Tools};
use crate::{
    chunk::{ChunkSettings, Strategy},
    corpus::{self, Corpus, Kind, Skipped},
    error::{Error, Result},
};

/// What to index, and where to.
#[derive(Debug, Clone)]
pub struct Request {
    /// A folder, a file, a BEIR folder; `None` is the default corpus.
    pub corpus: Option<PathBuf>,
    /// The folder of the index.
    pub dir: PathBuf,
    /// Write nothing.
    pub dry_run: bool,
    /// Write nothing if a file was skipped.
    pub strict: bool,
    /// How documents are cut; what is not said is as in the old index, else the default.
    pub chunks: ChunkChoice,
    /// The embedder's name on the command line.
    pub embedder: String,
}

/// The settings of the chunker that were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkChoice {
    /// Where chunks begin and end.
    pub strategy: Option<Strategy>,
    /// Tokens that a chunk aims at.
    pub tokens: Option<usize>,
    /// Tokens that neighbours share.
    pub overlap: Option<usize>,
}

impl ChunkChoice {
    /// The choice completed: by the settings of the `old` index, else by the defaults; a document
    /// of a BEIR folder is one chunk by default.
    ///
    /// # Errors
    /// An old index whose settings cannot be read.
    pub fn complete(self, kind: Kind, old: Option<&Manifest>) -> Result<ChunkSettings> {
        let mut settings = ChunkSettings::default();
        match (old, kind) {
            (Some(old), _) => settings = old.chunker.parse()?,
            (None, Kind::Beir) => settings.strategy = Strategy::Whole,
            (None, Kind::Folder) => {}
        }
        settings.strategy = self.strategy.unwrap_or(settings.strategy);
        settings.tokens = self.tokens.unwrap_or(settings.tokens);
        settings.overlap = self.overlap.unwrap_or(settings.overlap);
        Ok(settings)
    }
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Report {
    /// Number of files, or of lines in a BEIR folder.
    pub found: usize,
    /// Number of documents.
    pub read: usize,
    /// Files that are not among the documents.
    pub skipped: Vec<Skipped>,
    /// In comparison with the index that was there.
    pub changes: Changes,
    /// Why the index that was there could not be compared: everything counts as added.
    pub unreadable: Option<String>,
    /// Tokens of the documents.
    pub tokens: usize,
    /// Time for reading documents.
    pub reading: Duration,
    /// Times of the build.
    pub build: BuildReport,
    /// Time for writing.
    pub writing: Duration,
    /// Time for everything.
    pub total: Duration,
    /// Size of the file; `None` if none was written.
    pub bytes: Option<u64>,
}

/// Brings the index in a folder up to date with its documents, as a whole: the old one stays in
/// place until the new one is on the disk.
///
/// # Errors
/// Documents that cannot be read, a folder that cannot be written or holds the documents itself.
pub fn update(request: &Request, tools: &Tools<'_>, on_stage: &dyn Fn(&str)) -> Result<Report> {
    let start = Instant::now();
    let dir = &request.dir;
    if let Some(corpus) = &request.corpus {
        keep_apart(corpus, dir)?;
    }
    on_stage("reading documents");
    let (mut corpus, path) = corpus::load_or_default(request.corpus.as_deref())?;
    leave_out(&mut corpus, Path::new(&path), dir);
    let reading = start.elapsed();
    on_stage("comparing with the old index");
    let (old, unreadable) = match Index::open(dir) {
        Ok(old) => (Some(old), None),
        Err(error) => (None, dir.join(FILE).exists().then(|| error.to_string())),
    };
    // The manifest may be whole though the rest is damaged.
    let manifest = old.as_ref().map(|old| old.manifest.clone());
    let manifest = manifest.or_else(|| Index::manifest(dir).ok());
    on_stage("indexing");
    let read = corpus.documents.len();
    let settings = request.chunks.complete(corpus.kind, manifest.as_ref())?;
    let unreadable = unreadable.map(|reason| match manifest {
        Some(_) => reason,
        None => format!("{reason}; nor could its settings be read, `{settings}` is used"),
    });
    let arguments = arguments(&path, settings, &request.embedder);
    let origin = Origin { path, kind: corpus.kind, arguments };
    let (index, build) = Index::build(corpus.documents, origin, settings, tools)?;
    let changes = index.changes_since(old.as_ref());
    drop(old);
    let refused = request.strict && !corpus.skipped.is_empty();
    let write = !(request.dry_run || refused);
    on_stage("writing");
    let before = Instant::now();
    let bytes = if write { Some(index.save(dir)?) } else { None };
    Ok(Report {
        found: corpus.found,
        read,
        skipped: corpus.skipped,
        changes,
        unreadable,
        tokens: index.manifest.tokens,
        reading,
        build,
        writing: before.elapsed(),
        total: start.elapsed(),
        bytes,
    })
}

/// The arguments that make the same index again, wherever it is written to.
fn arguments(corpus: &str, settings: ChunkSettings, embedder: &str) -> Vec<String> {
    let ChunkSettings { strategy, tokens, overlap } = settings;
    let corpus = (corpus != corpus::EMBEDDED_NAME).then(|| ["--corpus".into(), corpus.to_owned()]);
    let (tokens, overlap) = (tokens.to_string(), overlap.to_string());
    let rest = [
        ["--chunker".into(), strategy.to_string()],
        ["--chunk-tokens".into(), tokens],
        ["--chunk-overlap".into(), overlap],
        ["--embedder".into(), embedder.to_owned()],
    ];
    corpus.into_iter().chain(rest).flatten().collect()
}

/// Drops the index that lies among its documents from what was found: it is no document that
/// could not be read, whatever a `.gitignore` there says.
fn leave_out(corpus: &mut Corpus, documents: &Path, dir: &Path) {
    let Ok(dir) = dir.canonicalize() else { return };
    let Ok(inside) = dir.strip_prefix(documents) else { return };
    let parts = inside.iter().map(|part| part.to_string_lossy());
    let own = parts.chain([FILE.into()]).collect::<Vec<_>>().join("/");
    let before = corpus.skipped.len();
    corpus.skipped.retain(|skipped| !skipped.path.starts_with(&own));
    corpus.found -= before - corpus.skipped.len();
}

/// An index folder inside the documents' folder is fine: its file is left out.
fn keep_apart(corpus: &Path, dir: &Path) -> Result<()> {
    let same = corpus.is_dir()
        && matches!((corpus.canonicalize(), dir.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if !same {
        return Ok(());
    }
    let message = format!(
        "{}: the index and its documents in one folder: name another for the index, e.g. {}",
        dir.display(),
        dir.join("index").display()
    );
    Err(Error::Setting(message))
}

impl Report {
    /// The report for scripts; times in seconds, memory in MB.
    pub fn json(&self) -> Value {
        let Changes { documents, chunks } = &self.changes;
        let seconds = |time: Duration| (time.as_secs_f64() * 1e4).round() / 1e4;
        json!({
            "documents": {
                "found": self.found,
                "read": self.read,
                "skipped": self.skipped,
                "added": documents.added.len(),
                "changed": documents.changed.len(),
                "removed": documents.removed.len(),
                "unchanged": documents.unchanged,
            },
            "chunks": {"added": chunks.added, "kept": chunks.kept, "removed": chunks.removed},
            "tokens": self.tokens,
            "bytes": self.bytes,
            "old_index_unreadable": self.unreadable,
            "seconds": {
                "read": seconds(self.reading),
                "chunk": seconds(self.build.chunk),
                "embed": seconds(self.build.embed),
                "lexical": seconds(self.build.lexical),
                "write": seconds(self.writing),
                "total": seconds(self.total),
            },
            "peak_rss_mb": peak_memory_mb(),
        })
    }
}

/// The report for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changes { documents, chunks } = &self.changes;
        if let Some(reason) = &self.unreadable {
            writeln!(f, "the old index could not be compared: {reason}")?;
        }
        for Skipped { path, reason } in &self.skipped {
            writeln!(f, "skipped {path}: {reason}")?;
        }
        let (found, read, skipped) = (self.found, self.read, self.skipped.len());
        writeln!(f, "documents: {found} found, {read} read, {skipped} skipped")?;
        let [added, changed, removed] =
            [&documents.added, &documents.changed, &documents.removed].map(Vec::len);
        let unchanged = documents.unchanged;
        writeln!(
            f,
            "           {added} added, {changed} changed, {removed} removed, {unchanged} unchanged"
        )?;
        let (added, kept, removed) = (chunks.added, chunks.kept, chunks.removed);
        writeln!(f, "chunks:    {added} added, {kept} kept, {removed} removed")?;
        writeln!(f, "tokens:    {}", self.tokens)?;
        let seconds = self.total.as_secs_f64();
        match self.bytes {
            Some(bytes) => write!(f, "written:   {bytes} bytes in {seconds:.2} s"),
            None => write!(f, "nothing written ({seconds:.2} s)"),
        }
    }
}

/// The most memory that the process has held, in MB (10^6 bytes), where the system says so.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((kibibytes * 1.024).round() / 1e3)
}
