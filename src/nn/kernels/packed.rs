//! The matrix product with a matrix that is laid out once.
//!
//! A general product lays both matrices out anew at every call, which costs most where few rows
//! are multiplied, as when one question is embedded. A [`Packed`] matrix is kept in panels of 16
//! outputs, which the innermost loop reads in order; the rows are read where they are.
//!
//! Each value of a result is one chain of multiplications and additions, in the order of the
//! inputs and from the bias on, whatever the number of rows: a text has the same vector alone and
//! in a batch, bit by bit. With AVX-512 and with AVX2 the chain is fused, and the bits are equal.

use super::tile::{Job, run};

/// One row of a panel: what an input gives to 16 outputs.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Line(pub(super) [f32; Line::LEN]);

impl Line {
    pub(super) const LEN: usize = 16;
    const ZERO: Self = Self([0.0; Self::LEN]);
}

/// A matrix laid out for products, shape `(inputs, outputs)`.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    inputs: usize,
    outputs: usize,
    /// Panel after panel, an even number of them; what is beyond `outputs` is zero.
    lines: Vec<Line>,
}

/// Rows of a matrix, `stride` values from one to the next.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The values from the first of the first row on.
    pub values: &'a [f32],
    /// From row to row.
    pub stride: usize,
}

/// Rows to write to.
#[derive(Debug)]
pub struct RowsMut<'a> {
    /// The values from the first of the first row on.
    pub values: &'a mut [f32],
    /// From row to row.
    pub stride: usize,
}

impl Packed {
    /// Lays out `weight`, shape `(outputs, inputs)`, as a linear layer has it.
    pub fn new(weight: &[f32], inputs: usize) -> Self {
        let mut packed = Self::default();
        packed.set_transposed(
            Rows { values: weight, stride: inputs },
            weight.len() / inputs,
            inputs,
        );
        packed
    }

    /// Values of a row that goes in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Values of a row that comes out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Lays out `outputs` rows of `inputs` values: each is what one output is made by.
    pub fn set_transposed(&mut self, rows: Rows<'_>, outputs: usize, inputs: usize) {
        self.reset(inputs, outputs);
        for output in 0..outputs {
            let row = &rows.values[output * rows.stride..][..inputs];
            let panel = &mut self.lines[output / Line::LEN * inputs..][..inputs];
            for (line, value) in panel.iter_mut().zip(row) {
                line.0[output % Line::LEN] = *value;
            }
        }
    }

    /// Lays out `inputs` rows of `outputs` values: each is what one input gives.
    pub fn set(&mut self, rows: Rows<'_>, inputs: usize, outputs: usize) {
        self.reset(inputs, outputs);
        for input in 0..inputs {
            let row = &rows.values[input * rows.stride..][..outputs];
            for (panel, values) in row.chunks(Line::LEN).enumerate() {
                self.lines[panel * inputs + input].0[..values.len()].copy_from_slice(values);
            }
        }
    }

    /// Keeps the memory.
    fn reset(&mut self, inputs: usize, outputs: usize) {
        let panels = outputs.div_ceil(Line::LEN).next_multiple_of(2);
        (self.inputs, self.outputs) = (inputs, outputs);
        self.lines.clear();
        self.lines.resize(panels * inputs, Line::ZERO);
    }

    /// `out = x W + bias` for `count` rows; an empty `bias` adds nothing.
    ///
    /// # Panics
    /// Rows that the slices do not hold.
    pub fn multiply(&self, out: RowsMut<'_>, x: Rows<'_>, count: usize, bias: &[f32]) {
        let width = self.outputs;
        if count == 0 || width == 0 {
            return;
        }
        assert!((count - 1) * out.stride + width <= out.values.len(), "room for {count} rows");
        assert!(bias.is_empty() || bias.len() == width, "a bias for each output");
        let job = self.job(out.values, out.stride, (x.values, x.stride, count), bias);
        // SAFETY: the pointers are those of slices that hold what the sizes say, as checked here
        // and there; `out` is borrowed alone.
        unsafe { run(&job) }
    }

    /// The product as its loops take it.
    pub(super) fn job(
        &self,
        out: &mut [f32],
        out_stride: usize,
        (x, x_stride, rows): (&[f32], usize, usize),
        bias: &[f32],
    ) -> Job {
        assert!((rows - 1) * x_stride + self.inputs <= x.len(), "{rows} rows to multiply");
        Job {
            rows,
            inputs: self.inputs,
            outputs: self.outputs,
            x: x.as_ptr(),
            x_stride,
            lines: self.lines.as_ptr(),
            out: out.as_mut_ptr(),
            out_stride,
            bias: if bias.is_empty() { std::ptr::null() } else { bias.as_ptr() },
        }
    }
}
