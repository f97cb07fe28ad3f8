//! What a writer says of itself in its lock file.

use crate::file::device::Device;
use std::{fmt, fs::File, io};

/// The process that is writing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The number of the process.
    pub process: u32,
    /// The name of its host.
    pub host: String,
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        #[cfg(unix)]
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        #[cfg(not(unix))]
        let host = std::env::var("COMPUTERNAME").unwrap_or_default();
        Self { process: std::process::id(), host }
    }

    /// Reads what the holder of the lock has written. `None` if it has written nothing.
    pub(super) fn read(file: &File) -> Option<Self> {
        let mut text = vec![0; file.metadata().ok()?.len().min(512) as usize];
        file.read_exact_at(&mut text, 0).ok()?;
        let text = String::from_utf8(text).ok()?;
        let (process, host) = text.trim_end().split_once(' ')?;
        Some(Self { process: process.parse().ok()?, host: host.into() })
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        file.set_len(0)?;
        Device::write_all_at(file, format!("{} {}\n", self.process, self.host).as_bytes(), 0)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on host {}", self.process, self.host)
    }
}
