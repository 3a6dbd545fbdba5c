//! Sequences in, vectors out, differentiable: what fine-tunes a bi-encoder.

use candle_core::{Device, Tensor};

use super::{Batch, Bert, BertConfig, Pooling, Sequence};
use crate::{
    error::{Error, Result},
    nn::{Params, ops},
};

/// BERT with pooling and, if wanted, unit length.
pub struct BertEncoder {
    bert: Bert,
    pooling: Pooling,
    normalize: bool,
}

impl BertEncoder {
    /// The encoder over parameters that follow [`BertConfig::plan`] without prefix.
    ///
    /// # Errors
    /// A parameter that is missing; pooling by the maximum, which has no differentiable form here.
    pub fn new(
        config: &BertConfig,
        params: &Params,
        pooling: Pooling,
        normalize: bool,
    ) -> Result<Self> {
        if pooling == Pooling::Max {
            let message = "a model that pools by the maximum cannot be trained".to_owned();
            return Err(Error::Setting(message));
        }
        Ok(Self { bert: Bert::new(config, params, "")?, pooling, normalize })
    }

    /// The network below the pooling.
    pub fn bert(&self) -> &Bert {
        &self.bert
    }

    /// Embeds lists of token ids, special ones among them, shape `(n, hidden)`.
    ///
    /// # Errors
    /// A sequence that [`BertConfig::check`] refuses.
    pub fn encode(&self, ids: &[&[u32]]) -> Result<Tensor> {
        let sequences: Vec<Sequence<'_>> = ids.iter().map(|ids| Sequence::from(*ids)).collect();
        let batch = Batch::new(self.bert.config(), &sequences)?;
        let x = self.bert.forward(&batch)?;
        let (n, width, hidden) = x.dims3()?;
        let mut weights = vec![0.0; n * width];
        for (row, length) in weights.chunks_exact_mut(width).zip(batch.lengths()) {
            if let Some(counted) = self.pooling.weights(*length, 0) {
                row[..*length].copy_from_slice(&counted);
            }
        }
        let weights = Tensor::from_vec(weights, (n, 1, width), &Device::Cpu)?;
        // (n, 1, width) by (n, width, hidden) is (n, 1, hidden).
        let pooled = weights.matmul(&x)?.reshape((n, hidden))?;
        Ok(if self.normalize { ops::l2_normalize(&pooled)? } else { pooled })
    }
}
