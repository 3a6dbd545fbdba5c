//! The command line: shared options to parts, commands to what they print.
//!
//! Every shared option is also an environment variable (`MINIRAG_INDEX` and so on). The binaries
//! parse, call a function here and print; they hold no logic.

mod args;
mod demo;
mod evaluate;
mod open;
mod show;
mod train;
mod train_biencoder;

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use args::{ModelArgs, SourceArgs, VerboseArgs};
pub use demo::Demo;
pub use evaluate::Evaluate;
pub use open::{EMBEDDER, Opened, embedder, embedder_name, open, tokenizer};
pub use train::TrainArgs;
pub use train_biencoder::TrainBiencoder;

/// Ends a command: its exit code, or its failure on standard error and 1. A reader that has gone
/// away (`| head`) is no failure.
pub fn exit(result: anyhow::Result<ExitCode>) -> ExitCode {
    let Err(error) = result else { return result.unwrap_or(ExitCode::SUCCESS) };
    let gone = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(gone) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "error: {}", printable(&format!("{error:#}")));
    ExitCode::FAILURE
}

/// The text as a terminal may have it: control characters, which could move its cursor or rename
/// its window, are escaped, but for the ends of lines and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, &['\n', '\t'])
}

/// As [`printable`], and on one line: a name must not look like two.
fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, &[])
}

fn escape<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let raw = |c: char| c.is_control() && !kept.contains(&c);
    if !text.contains(raw) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // Documents from Windows end their lines so.
            '\r' if kept.contains(&'\n') && rest.peek() == Some(&'\n') => {}
            c if raw(c) => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped.into()
}

/// Prints what a command has to say and ends it.
pub fn print(result: crate::Result<(String, ExitCode)>) -> ExitCode {
    exit(result.map_err(anyhow::Error::from).and_then(|(text, code)| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
        Ok(code)
    }))
}

/// A bar on standard error; hidden where that is no terminal, or when quiet.
pub fn progress(quiet: bool, steps: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    if quiet || !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
}

/// The name that an option's value has on the command line.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("a\x1b[2J\u{9b}b\x07\r\n\tc\rd"),
            "a\\u{1b}[2J\\u{9b}b\\u{7}\n\tc\\rd"
        );
        assert_eq!(one_line("two\nlines\t\r\n"), "two\\nlines\\t\\r\\n");
        assert!(matches!(printable("café 🦀\n"), Cow::Borrowed(_)));
    }
}
