//! An unfinished run on disk: one file, replaced by renaming, so that it is whole or not there.

use std::{collections::BTreeMap, fs, path::Path};

use candle_core::Tensor;
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    nn::params::{read_tensors, write_tensors},
};

/// Where a run is, but for its tensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Steps done.
    pub(super) step: u64,
    /// The best dev metric, and the step after which it was measured.
    pub(super) best: Option<(f64, u64)>,
    /// Losses since the last line of the log, and how many.
    pub(super) losses: (f64, u64),
    /// Mean loss of the last line of the log.
    pub(super) last_loss: f64,
    /// Seconds of all sittings.
    pub(super) seconds: f64,
    /// Length of the log: what a killed run wrote after its last state is cut off.
    pub(super) log_bytes: u64,
}

/// All that a run needs to go on.
pub(super) struct State {
    /// What the run depends on.
    pub(super) arguments: Map<String, Value>,
    /// Where it is.
    pub(super) progress: Progress,
    /// The parameters.
    pub(super) params: BTreeMap<String, Tensor>,
    /// The optimiser's state.
    pub(super) optimiser: BTreeMap<String, Tensor>,
    /// The parameters that were best on the dev set; empty before the first evaluation.
    pub(super) best: BTreeMap<String, Tensor>,
}

const PARTS: [&str; 3] = ["params", "optimiser", "best"];

impl State {
    /// Writes the state to `path`, in place of an older one.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let parts = [&self.params, &self.optimiser, &self.best];
        let mut tensors = BTreeMap::new();
        for (part, of) in PARTS.iter().zip(parts) {
            let named = of.iter().map(|(name, tensor)| (format!("{part}/{name}"), tensor.clone()));
            tensors.extend(named);
        }
        let json = serde_json::json!({ "arguments": self.arguments, "progress": self.progress });
        let new = path.with_extension("tmp");
        write_tensors(&new, &tensors, ("run", &json.to_string()))?;
        fs::rename(&new, path).map_err(Error::io(path))
    }

    /// Reads the state at `path`.
    pub(super) fn load(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Run {
            arguments: Map<String, Value>,
            progress: Progress,
        }
        let bytes = fs::read(path).map_err(Error::io(path))?;
        let invalid = |error: String| {
            Error::format(path, format!("not the state of a run: {error}; start it anew"))
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| invalid(e.to_string()))?;
        let json = header.metadata().as_ref().and_then(|metadata| metadata.get("run"));
        let json = json.ok_or_else(|| invalid("it says nothing of a run".to_owned()))?;
        let run: Run = serde_json::from_str(json).map_err(|e| invalid(e.to_string()))?;
        let mut parts: [BTreeMap<String, Tensor>; 3] = Default::default();
        for (name, tensor) in read_tensors(path)? {
            for (part, tensors) in PARTS.iter().zip(&mut parts) {
                if let Some(name) = name.strip_prefix(part).and_then(|n| n.strip_prefix('/')) {
                    tensors.insert(name.to_owned(), tensor.clone());
                }
            }
        }
        let [params, optimiser, best] = parts;
        let Run { arguments, progress } = run;
        Ok(Self { arguments, progress, params, optimiser, best })
    }
}
