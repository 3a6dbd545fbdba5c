//! The weights of a folder: one safetensors file, or several with an index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use candle_core::Tensor;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::super::bi_encoder::read_json;
use crate::{
    error::{Error, Result},
    nn::params::parse_tensors,
};

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The tensors of the folder's files as `f32`, and the hash of the files' bytes.
///
/// # Errors
/// No weights, or none that can be read; a file that is cut short.
pub(super) fn read(folder: &Path) -> Result<(BTreeMap<String, Tensor>, Sha256)> {
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    let files: Vec<_> = if single.exists() {
        vec![single]
    } else if index.exists() {
        let Index { weight_map } = read_json(&index)?;
        let names: BTreeSet<String> = weight_map.into_values().collect();
        // A name with a folder in it could lead anywhere.
        if let Some(name) =
            names.iter().find(|name| Path::new(name).file_name().is_none_or(|f| f != name.as_str()))
        {
            return Err(Error::format(index, format!("`{name}` is no file beside it")));
        }
        names.iter().map(|name| folder.join(name)).collect()
    } else if folder.join("pytorch_model.bin").exists() {
        return Err(Error::format(
            folder.join("pytorch_model.bin"),
            "a pickle, which is not read: make a model.safetensors of it with `python -c \"from \
             transformers import AutoModel as M; M.from_pretrained('FOLDER').save_pretrained('FOLDER')\"`",
        ));
    } else {
        return Err(Error::format(single, "there is no such file, which holds the weights"));
    };
    let mut all = BTreeMap::new();
    let mut hash = Sha256::new();
    for path in files {
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        let (tensors, ()) = rayon::join(|| parse_tensors(&bytes, &path), || hash.update(&bytes));
        all.extend(tensors?);
    }
    Ok((all, hash))
}
