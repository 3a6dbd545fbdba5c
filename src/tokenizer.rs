//! Byte-level BPE: text in, token ids with the bytes they stand for out.
//!
//! [`train()`] makes a tokenizer, [`Tokenizer::load`] reads any `tokenizer.json`. Files of the two
//! forms that `train` writes run on a lean reader (`byte_bpe`), all others (WordPiece, Unigram,
//! ...) on the tokenizers crate. Offsets always count bytes of the text as it was brought: the
//! cased form normalises nothing, and for the uncased one the crate, which keeps track of what
//! NFKC and lower case do, is asked for them. Text is never parsed into special tokens; padding
//! and truncation that a file carries are switched off.

mod byte_bpe;
mod cache;
mod frame;
mod train;
mod uncased;
mod words;

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use sha2::{Digest, Sha256};

pub use frame::ModelInput;
pub use train::{TrainReport, TrainSettings, train};

use crate::{
    error::{Error, Result},
    text::{char_ceil, char_floor},
};
use byte_bpe::ByteBpe;
use frame::Frame;

/// A tokenizer, ready to encode on any number of threads.
pub struct Tokenizer {
    engine: Engine,
    /// The special tokens around texts, or why they are not known.
    frame: Result<Frame, String>,
    json: Vec<u8>,
    fingerprint: String,
}

enum Engine {
    Lean(Box<ByteBpe>),
    /// Ids by the lean reader, offsets by the crate, made when first asked for.
    Uncased(Box<ByteBpe>, OnceLock<Result<Library, String>>),
    Library(Library),
}

type Library = Box<tokenizers::Tokenizer>;

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoding {
    /// Token ids, in order.
    pub ids: Vec<u32>,
    /// The bytes of the text that each token stands for; a token that is a part of a character
    /// has the whole character.
    pub offsets: Vec<Range<usize>>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`, or the one in a folder.
    ///
    /// # Errors
    /// No such file, or one that holds no tokenizer.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let mut path = path.as_ref().to_owned();
        if path.is_dir() {
            path.push("tokenizer.json");
        }
        // Reading a pipe would wait for ever.
        if !std::fs::metadata(&path).map_err(Error::io(&path))?.is_file() {
            return Err(Error::format(path, "not a regular file: a tokenizer.json is to be there"));
        }
        let json = std::fs::read(&path).map_err(Error::io(&path))?;
        Self::parse(json, &path)
    }

    /// Reads the content of a `tokenizer.json`.
    ///
    /// # Errors
    /// Bytes that hold no tokenizer.
    pub fn from_bytes(json: &[u8]) -> Result<Self> {
        Self::parse(json.to_vec(), Path::new("tokenizer.json"))
    }

    fn parse(json: Vec<u8>, path: &Path) -> Result<Self> {
        let fingerprint = hex(&Sha256::digest(&json)[..6]);
        let engine = match ByteBpe::parse(&json).map(Box::new) {
            Some(bpe) if bpe.is_uncased() => Engine::Uncased(bpe, OnceLock::new()),
            Some(bpe) => Engine::Lean(bpe),
            None => Engine::Library(
                library(&json)
                    .map_err(|e| Error::format(path, format!("not a tokenizer.json: {e}")))?,
            ),
        };
        let frame = post_processor(&json).and_then(|json| Frame::parse(&json));
        Ok(Self { engine, frame, json, fingerprint })
    }

    /// Writes `tokenizer.json` into the folder `dir`, which is made if need be; a reader sees the
    /// old file or the new one, never a part.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<PathBuf> {
        let dir = dir.as_ref();
        std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let path = dir.join("tokenizer.json");
        replace(&path, &self.json)?;
        Ok(path)
    }

    /// The tokens of `text`, without any added around it.
    ///
    /// # Errors
    /// A loaded model that cannot encode the text (one without a token for the unknown).
    pub fn encode(&self, text: &str) -> Result<Encoding> {
        let mut encoding = Encoding::default();
        self.for_each_token(text, |id, token| {
            encoding.ids.push(id);
            encoding.offsets.push(token);
        })?;
        Ok(encoding)
    }

    /// Appends the ids of the tokens of `text` to `ids`: as [`Tokenizer::encode`], several times
    /// as fast for want of offsets.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_ids_into(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.for_each_id(text, |id| ids.push(id))
    }

    /// Number of tokens of `text`.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count(&self, text: &str) -> Result<usize> {
        let mut count = 0;
        self.for_each_id(text, |_| count += 1)?;
        Ok(count)
    }

    /// The byte at which each token of `text` ends, never decreasing, always between characters.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; a text of 4 GiB or more.
    pub fn ends(&self, text: &str) -> Result<Vec<u32>> {
        if u32::try_from(text.len()).is_err() {
            let message = format!("a text of {} bytes is too long: split it first", text.len());
            return Err(Error::Setting(message));
        }
        let mut ends: Vec<u32> = Vec::with_capacity(text.len() / 4);
        self.for_each_token(text, |_, token| {
            let last = ends.last().copied().unwrap_or(0);
            ends.push(last.max(token.end as u32));
        })?;
        Ok(ends)
    }

    /// Calls `on_id` with the id of each token.
    fn for_each_id(&self, text: &str, mut on_id: impl FnMut(u32)) -> Result<()> {
        match &self.engine {
            Engine::Lean(bpe) | Engine::Uncased(bpe, _) => bpe.tokens(text, |id, _| on_id(id)),
            Engine::Library(library) => {
                let encoding = library.encode_fast(text, false).map_err(cannot_encode)?;
                encoding.get_ids().iter().copied().for_each(on_id);
            }
        }
        Ok(())
    }

    /// Calls `on_token` with the id and the bytes of each token.
    fn for_each_token(
        &self,
        text: &str,
        mut on_token: impl FnMut(u32, Range<usize>),
    ) -> Result<()> {
        let library = match &self.engine {
            Engine::Lean(bpe) => {
                let mut start = 0;
                bpe.tokens(text, |id, length| {
                    let end = start + length as usize;
                    on_token(id, char_floor(text, start)..char_ceil(text, end));
                    start = end;
                });
                return Ok(());
            }
            Engine::Uncased(_, made) => {
                made.get_or_init(|| library(&self.json)).as_ref().map_err(cannot_encode)?
            }
            Engine::Library(library) => library,
        };
        let encoding = library.encode(text, false).map_err(cannot_encode)?;
        for (&id, &(start, end)) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            on_token(id, start..end);
        }
        Ok(())
    }

    /// The text of `ids`, special tokens left out; bytes that form no character become U+FFFD.
    ///
    /// # Errors
    /// An id that the vocabulary lacks.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab_size()) {
            let size = self.vocab_size();
            return Err(Error::Setting(format!("no token {id} in a vocabulary of {size}")));
        }
        match &self.engine {
            Engine::Lean(bpe) | Engine::Uncased(bpe, _) => {
                let bytes: Vec<u8> =
                    ids.iter().filter_map(|&id| bpe.bytes_of(id)).flatten().copied().collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Engine::Library(library) => library
                .decode(ids, true)
                .map_err(|e| Error::Setting(format!("the tokenizer cannot decode: {e}"))),
        }
    }

    /// The id of a special token, e.g. `<|endoftext|>`.
    pub fn special_id(&self, token: &str) -> Option<u32> {
        match &self.engine {
            Engine::Lean(bpe) | Engine::Uncased(bpe, _) => bpe.special_id(token),
            Engine::Library(library) => library
                .get_added_tokens_decoder()
                .into_iter()
                .find(|(_, added)| added.special && added.content == token)
                .map(|(id, _)| id),
        }
    }

    /// Number of token ids.
    pub fn vocab_size(&self) -> usize {
        match &self.engine {
            Engine::Lean(bpe) | Engine::Uncased(bpe, _) => bpe.vocab_size(),
            Engine::Library(library) => library.get_vocab_size(true),
        }
    }

    /// The first 12 hex digits of the sha256 of the file's bytes.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokenizer({} tokens, {})", self.vocab_size(), self.fingerprint)
    }
}

/// The part of a file that says which special tokens stand around a text.
fn post_processor(json: &[u8]) -> Result<serde_json::Value, String> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(default)]
        post_processor: serde_json::Value,
    }
    let file: File = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    Ok(file.post_processor)
}

/// The tokenizers crate's reading of a file, without padding, truncation and special tokens.
fn library(json: &[u8]) -> Result<Library, String> {
    let read = || {
        let mut library = tokenizers::Tokenizer::from_bytes(json)?;
        library.with_padding(None);
        library.with_truncation(None)?;
        library.set_encode_special_tokens(true);
        Ok(Box::new(library))
    };
    read().map_err(|e: tokenizers::Error| e.to_string())
}

fn cannot_encode(reason: impl fmt::Display) -> Error {
    Error::Setting(format!("the tokenizer cannot encode: {reason}"))
}

/// Writes the file beside its place, then renames it: a reader sees the old one or the new.
fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&temporary, content).map_err(Error::io(&temporary))?;
    std::fs::rename(&temporary, path).map_err(Error::io(path))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
