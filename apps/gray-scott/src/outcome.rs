//! The outcome of a command that did not fail.

/// The exit status of an interrupted run, as shells report it: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command is complete.
    Done,
    /// The user stopped the command. Its results until then are kept.
    Interrupted,
    /// The command has ended on several nodes, and another node reports how.
    Reported,
}

impl Outcome {
    /// The exit status of the process.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Done | Self::Reported => 0,
            Self::Interrupted => INTERRUPTED,
        }
    }
}
