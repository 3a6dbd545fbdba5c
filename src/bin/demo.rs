//! Shows the whole chain at work, with its figures beside their bounds.

use std::process::ExitCode;

use clap::Parser;
use minirag::cli::{self, Demo};

fn main() -> ExitCode {
    cli::print(Demo::parse().execute())
}
