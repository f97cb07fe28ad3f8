//! Gray-Scott reaction-diffusion on the Anabranch runtime.
//!
//! The library behind the `gray-scott` program. [`run`] takes the parsed command line; each
//! subcommand has a module of its own ([`simulate`], [`render`], [`info`],
//! [`bench`](mod@bench)). The model and its kernel
//! are in [`model`] and [`kernel`]. Around them stand [`parameters`] (what a run is), [`output`] and
//! [`checkpoint`] (what it leaves on the disk), [`progress`] and [`interrupt`] (what the user sees and does
//! meanwhile), and [`stats`] (what it says at the end).

#![forbid(unsafe_code)]

pub mod bench;
pub mod checkpoint;
pub mod drive;
pub mod error;
pub mod frames;
pub mod human;
pub mod info;
pub mod interrupt;
pub mod kernel;
pub mod model;
pub mod options;
pub mod output;
pub mod parameters;
pub mod presets;
pub mod progress;
pub mod render;
pub mod simulate;
pub mod start;
pub mod stats;

use std::io::{self, Write};
use std::path::Path;

use error::Error;
use options::{Cli, Command};

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did all that it was asked to.
    Done,
    /// The user stopped it; what it did until then is kept.
    Interrupted,
}

impl Outcome {
    /// The exit status of the process.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Interrupted => interrupt::EXIT_STATUS,
        }
    }
}

/// Does what the command line asks for.
///
/// # Errors
/// Those of the subcommand.
pub fn run(cli: &Cli) -> Result<Outcome, Error> {
    match &cli.command {
        Command::Simulate(args) => simulate::run(args),
        Command::Render(args) => render::run(args).map(|()| Outcome::Done),
        Command::Info(args) => info::run(args).map(|()| Outcome::Done),
        Command::Bench(args) => bench::run(args).map(|()| Outcome::Done),
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("write to", Path::new("standard output"))(error))
        }
        _ => Ok(()),
    }
}
