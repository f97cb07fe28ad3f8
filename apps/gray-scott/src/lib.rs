//! Gray-Scott reaction-diffusion on the Anabranch runtime: the library behind the `gray-scott` program.
//!
//! [`main`] runs the program with a command line. From the top down:
//!
//! - [`commands`]: the subcommands, each with its options;
//! - [`run`](mod@run): a run of the simulation, as tasks of the runtime; [`start`]: the state that it starts
//!   from;
//!   [`not_finite`]: a value that ends it;
//! - [`files`]: the contents of an output file and of a checkpoint;
//! - [`report`]: progress, statistics, and how numbers and commands are printed;
//! - `device`: the choice of the device that computes a run;
//! - [`memory`]: the memory of the process and of the machine;
//! - [`kernel`]: the fast stencil; [`model`]: the equations, the edges, the initial state, the presets;
//! - [`parameters`]: everything that the result of a run depends on.

#![forbid(unsafe_code)]

pub mod commands;
mod device;
pub mod error;
pub mod files;
pub mod kernel;
pub mod memory;
pub mod model;
pub mod not_finite;
mod outcome;
pub mod parameters;
pub mod report;
pub mod run;
pub mod start;

pub use commands::Cli;
pub use outcome::Outcome;

use clap::Parser;
use std::{ffi::OsString, process::ExitCode};

/// Runs the program with this command line, whose first word is the name of the program. Errors go to
/// standard error.
///
/// A command line that does not parse, `--help` and `--version` end the process.
pub fn main<W: Into<OsString> + Clone>(command_line: impl IntoIterator<Item = W>) -> ExitCode {
    let cli = match Cli::try_parse_from(command_line) {
        Ok(cli) => cli,
        // A process that fails first would end the one that reports.
        Err(_) if commands::is_silent() => return ExitCode::SUCCESS,
        Err(error) => error.exit(),
    };
    match cli.run() {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => {
            eprintln!("error: {}", error::describe(&error));
            ExitCode::from(error.exit_status())
        }
    }
}

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
