//! Messages of the runtime on standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// Prints a message on a line of its own.
///
/// It is written in one piece, because `mpirun` mixes what several processes write. If that fails, the
/// program goes on: standard error may be closed.
pub(crate) fn print(message: fmt::Arguments<'_>) {
    let line = format!("anabranch: {message}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}
