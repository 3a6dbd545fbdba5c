//! Trains a bi-encoder on a person's own documents, on labelled pairs, or on both.

use std::process::ExitCode;

use clap::Parser;
use minirag::cli::{self, TrainBiencoder};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::print(TrainBiencoder::parse().execute())
}
