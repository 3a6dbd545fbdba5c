//! One layer, after its attention.

use super::super::{BertConfig, HiddenAct};
use crate::{
    error::Result,
    nn::kernels::{self, Packed, Rows, RowsMut},
};

/// A linear layer.
pub(super) struct Linear {
    weight: Packed,
    bias: Vec<f32>,
}

/// A layer norm.
pub(super) struct Norm {
    pub(super) gamma: Vec<f32>,
    pub(super) beta: Vec<f32>,
    pub(super) eps: f32,
}

/// The weights of a layer.
pub(super) struct Layer {
    /// Query, key and value, side by side.
    pub(super) qkv: Linear,
    out: Linear,
    out_norm: Norm,
    up: Linear,
    act: HiddenAct,
    down: Linear,
    down_norm: Norm,
}

/// What a thread computes in, kept from one stretch to the next.
#[derive(Default)]
pub(super) struct Scratch {
    /// What attention gives, shape `(tokens, hidden)`.
    pub(super) context: Vec<f32>,
    pub(super) scores: Vec<f32>,
    middle: Vec<f32>,
    wide: Vec<f32>,
}

type Values<'a> = &'a dyn Fn(&str) -> Result<Vec<f32>>;

impl Linear {
    /// The layers of those names, side by side.
    fn new(names: &[String], inputs: usize, values: Values<'_>) -> Result<Self> {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weight.extend(values(&format!("{name}.weight"))?);
            bias.extend(values(&format!("{name}.bias"))?);
        }
        Ok(Self { weight: Packed::new(&weight, inputs), bias })
    }

    pub(super) fn multiply(&self, out: &mut [f32], x: &[f32]) {
        let (inputs, outputs) = (self.weight.inputs(), self.weight.outputs());
        let out = RowsMut { values: out, stride: outputs };
        self.weight.multiply(out, Rows { values: x, stride: inputs }, x.len() / inputs, &self.bias);
    }
}

impl Norm {
    pub(super) fn new(config: &BertConfig, name: &str, values: Values<'_>) -> Result<Self> {
        Ok(Self {
            gamma: values(&format!("{name}.weight"))?,
            beta: values(&format!("{name}.bias"))?,
            eps: config.layer_norm_eps as f32,
        })
    }

    fn add(&self, rows: &mut [f32], residual: &[f32]) {
        kernels::add_layer_norm(rows, residual, &self.gamma, &self.beta, self.eps);
    }
}

impl Layer {
    pub(super) fn new(config: &BertConfig, index: usize, values: Values<'_>) -> Result<Self> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, inputs| Linear::new(&[name(part)], inputs, values);
        let norm = |part: &str| Norm::new(config, &name(part), values);
        let qkv = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
        Ok(Self {
            qkv: Linear::new(&qkv, config.hidden_size, values)?,
            out: linear("attention.output.dense", config.hidden_size)?,
            out_norm: norm("attention.output.LayerNorm")?,
            up: linear("intermediate.dense", config.hidden_size)?,
            act: config.hidden_act,
            down: linear("output.dense", config.intermediate_size)?,
            down_norm: norm("output.LayerNorm")?,
        })
    }

    /// From a stretch of tokens `x`, shape `(n, hidden)`, and what attention made of it in
    /// `scratch.context` to the layer's result, in `x`'s place.
    pub(super) fn finish(&self, x: &mut [f32], scratch: &mut Scratch) {
        let Scratch { context, middle, wide, .. } = scratch;
        let n = x.len() / self.out.weight.outputs();
        middle.resize(x.len(), 0.0);
        wide.resize(n * self.up.weight.outputs(), 0.0);
        self.out.multiply(middle, context);
        self.out_norm.add(middle, x);
        self.up.multiply(wide, middle);
        match self.act {
            HiddenAct::Gelu => kernels::gelu(wide),
            HiddenAct::GeluTanh => kernels::gelu_tanh(wide),
            HiddenAct::Relu => kernels::relu(wide),
        }
        self.down.multiply(x, wide);
        self.down_norm.add(x, middle);
    }
}
