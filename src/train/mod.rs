//! Training: what each network learns from, and how.

pub mod pairs;
