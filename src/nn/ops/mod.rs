//! Operations with a gradient of their own, fused where candle's stock ones copy.
//!
//! Each keeps only its inputs for the backward walk, works in fixed blocks so that the number of
//! threads changes no bit, and has a twin in candle's slow operations that its tests compare with.

mod cross_entropy;
mod embedding_bag;
mod layer_norm;
mod linear;
mod normalize;
mod softmax;

use candle_core::{CpuStorage, Device, Layout, Result, Shape, Storage, Tensor, bail};

pub use cross_entropy::cross_entropy;
pub use embedding_bag::{Bags, embedding_bag};
pub use layer_norm::layer_norm;
pub use linear::{linear, linear_gelu};
pub use normalize::l2_normalize;
pub use softmax::masked_softmax;

/// Rows of a parallel block; a constant, so that sums do not depend on the number of threads.
const BLOCK: usize = 64;

/// The values of an operation's argument, which must be contiguous.
fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let CpuStorage::F32(values) = storage else { bail!("an operation for f32 only") };
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&values[from..to]),
        None => bail!("an operation for contiguous tensors only, got {layout:?}"),
    }
}

/// Runs `f` on a tensor's values, row after row.
pub(super) fn with_values<T>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> T) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(f(values(storage, layout)?)),
        _ => bail!("an operation for the CPU only"),
    }
}

/// An operation's result.
fn output(values: Vec<f32>, shape: impl Into<Shape>) -> Result<(CpuStorage, Shape)> {
    Ok((CpuStorage::F32(values), shape.into()))
}

/// A tensor of those values.
fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::from_vec(values, shape.into(), &Device::Cpu)
}
