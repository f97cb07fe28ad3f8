//! How an endpoint behaves.

use super::header;
use std::time::Duration;

/// How an endpoint behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// After how long a node that does not answer is lost; `None`: never. Each node must call
    /// [`poll`](crate::Endpoint::poll) at least every eighth of this time. 60 s by default.
    pub timeout: Option<Duration>,
    /// Up to this number of bytes go in one message. Larger transfers are announced, and go from place to
    /// place, but for boxes of short rows. 16 KiB by default, which is the largest value. With a smaller one,
    /// short tests try what large transfers do.
    pub eager: usize,
    /// Whether the program [makes communicators](crate::Endpoint::make_communicator), and so calls MPI
    /// itself. Then MPI permits calls by several threads at the same time, which may make each of them
    /// slower. Not by default.
    pub communicators: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Some(Duration::from_secs(60)), eager: header::PAYLOAD, communicators: false }
    }
}

impl Options {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// After how long a node that does not answer is lost; `None`: never.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Up to this number of bytes go in one message; at most 16 KiB.
    #[must_use]
    pub fn eager(mut self, bytes: usize) -> Self {
        self.eager = bytes.min(header::PAYLOAD);
        self
    }

    /// Whether the program makes communicators.
    #[must_use]
    pub fn communicators(mut self, communicators: bool) -> Self {
        self.communicators = communicators;
        self
    }
}
