//! Tensors in, tensors out: parameters, layers, losses and optimisers. Knows no text.
//!
//! candle gives tensors, matrix products and the backward walk; what a network spends its time on
//! is here. A layer has two forms. In training it is an operation with its own gradient ([`ops`]),
//! each tested against the same formula spelt in candle's slow operations; in inference it is a
//! loop over plain slices ([`kernels`]) that allocates once.
//!
//! Two traps that this module exists to avoid: candle's fused softmax, layer norm and rotary
//! embedding let no gradient through and say nothing, and its random initialisation has no seed.

pub mod kernels;
pub mod ops;
pub mod params;
pub mod loss;
pub mod adamw;
pub mod schedule;
pub mod bi_encoder;
pub mod bert;
pub mod cross_encoder;

pub use adamw::{AdamW, AdamWSettings};
pub use bi_encoder::BiEncoder;
pub use params::{Gradients, Init, Param, Params, Plan};
pub use schedule::Schedule;
