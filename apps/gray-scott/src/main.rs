//! The `gray-scott` program.

use std::process::ExitCode;

use clap::Parser;
use gray_scott::error::describe;
use gray_scott::options::Cli;

fn main() -> ExitCode {
    match gray_scott::run(&Cli::parse()) {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::from(error.exit_status())
        }
    }
}
