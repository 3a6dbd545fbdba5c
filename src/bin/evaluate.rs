//! Measures the chain on questions whose answers are known.

use std::{env, ffi::OsString, process::ExitCode};

use minirag::cli::{self, Evaluate};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    cli::print(Evaluate::from_arguments(&arguments).execute(&arguments))
}
