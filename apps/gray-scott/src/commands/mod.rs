//! The command line: one module for each subcommand, with its options.

pub(crate) mod arguments;
pub mod bench;
pub mod devices;
pub mod info;
pub mod render;
pub(crate) mod room;
pub mod simulate;

use crate::{Outcome, error::Error};
use anabranch::Runtime;
use clap::{Parser, Subcommand};

/// Gray-Scott reaction-diffusion: simulate it, store every frame, render the frames.
#[derive(Debug, Parser)]
#[command(name = "gray-scott", version, arg_required_else_help = true, max_term_width = 110)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Advance a simulation and store its frames in an HDF5 file
    Simulate(simulate::SimulateArgs),
    /// Turn the frames of a file into pictures or an animation
    Render(render::RenderArgs),
    /// Show the contents of a file, and whether it is complete
    Info(info::InfoArgs),
    /// List the devices that can compute, or say why no GPU can
    Devices(devices::DevicesArgs),
    /// Measure the speed of the simulation on this machine
    Bench(bench::BenchArgs),
}

impl Cli {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// Those of the subcommand.
    pub fn run(&self) -> Result<Outcome, Error> {
        let together = matches!(&self.command, Command::Simulate(args) if !args.list_presets);
        if !together && is_silent() {
            return Ok(Outcome::Reported);
        }
        match &self.command {
            Command::Simulate(args) => simulate::run(args),
            Command::Render(args) => alone("render").and_then(|()| render::run(args)).map(|()| Outcome::Done),
            Command::Info(args) => info::run(args).map(|()| Outcome::Done),
            Command::Devices(args) => devices::run(args).map(|()| Outcome::Done),
            Command::Bench(args) => alone("bench").and_then(|()| bench::run(args)).map(|()| Outcome::Done),
        }
    }
}

/// Whether another process of the same launcher prints what this one would print, too.
pub(crate) fn is_silent() -> bool {
    // A wrong variable is reported when the runtime is built.
    Runtime::launched().is_ok_and(|launched| launched.is_some_and(|launched| launched.node > 0))
}

/// Refuses a command that several processes would all run, and write the same files.
fn alone(command: &str) -> Result<(), Error> {
    if Runtime::launched()?.is_none() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{command} runs in one process, on all of its threads: start it without mpirun"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
