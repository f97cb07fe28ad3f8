//! Standard output.

use crate::error::Error;
use std::{
    io::{self, Write},
    path::Path,
};

/// Writes to standard output. A reader that closes the pipe early (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("write to", Path::new("standard output"))(error))
        }
        _ => Ok(()),
    }
}
