//! The `gray-scott` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gray_scott::main(std::env::args_os())
}
