//! The errors of the program, and their exit statuses.

use crate::{not_finite::NotFinite, parameters::Difference};
use anabranch::Cause;
use anabranch_store::StoreError;
use indicatif::DecimalBytes;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// An error of the program, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options contradict each other, or the file.
    #[error("{0}")]
    Usage(String),
    /// The disk has no room for the output.
    #[error(
        "storing {} needs {}, and the file system has {} free: store fewer or smaller frames, make room, or choose \
         another path",
        path.display(), DecimalBytes(*needed), DecimalBytes(*available)
    )]
    NoSpace {
        /// The output file.
        path: PathBuf,
        /// Bytes of the complete file and, in a run, of its checkpoints.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The machine has too little memory.
    #[error(
        "{what} needs {} of memory, and {} are available: {remedy}",
        DecimalBytes(*needed), DecimalBytes(*available)
    )]
    NoMemory {
        /// The work, as in `a grid of 3 × 4 cells`.
        what: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// The options to change.
        remedy: &'static str,
    },
    /// A value became infinite or NaN.
    #[error(
        "{place}: the run ends before this frame{}; choose a smaller --dt, or store such frames too with \
         --check-finite=false", saved.as_deref().unwrap_or_default()
    )]
    NotFinite {
        /// The value.
        place: NotFinite,
        /// What is left of the run.
        saved: Option<String>,
    },
    /// The output exists already.
    #[error("{} exists already: use --force to replace it, --resume to continue it, or --output for another", path.display())]
    Exists {
        /// The output file.
        path: PathBuf,
    },
    /// The HDF5 file cannot be written or read.
    #[error(transparent)]
    Store(StoreError),
    /// The file to resume was not written by this program.
    #[error("{} lacks the parameters of a simulation: gray-scott simulate did not write this file; move it away, or choose another --output", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The command line contradicts the parameters of the file to resume.
    #[error(
        "{} was made with --{} {}, not {}: a run is resumed with the parameters of its file; leave out --{}, or \
         start another run",
        path.display(), difference.name, difference.first, difference.second, difference.name
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The parameter, its value in the file, and its value on the command line.
        difference: Difference,
    },
    /// The checkpoint beside the file belongs to another run.
    #[error(
        "{} is the checkpoint of another run (--{} {}) than {} (--{} {}): remove the checkpoint to compute the run of the output file from its beginning",
        path.display(), difference.name, difference.second, output.display(), difference.name, difference.first
    )]
    ForeignCheckpoint {
        /// The checkpoint.
        path: PathBuf,
        /// The output file.
        output: PathBuf,
        /// The parameter, its value in the output file, and its value in the checkpoint.
        difference: Difference,
    },
    /// A task of the run failed with an error of this program.
    #[error("{}", describe(&**.0))]
    Task(Arc<dyn std::error::Error + Send + Sync>),
    /// The runtime refused something, or a task panicked.
    #[error(transparent)]
    Runtime(anabranch::Error),
    /// Two things went wrong, of which the second is not a consequence of the first.
    #[error("{}; besides, {}", describe(.0), describe(.1))]
    Both(Box<Error>, Box<Error>),
    /// The device that was asked for cannot be used.
    #[error("{0}")]
    Device(String),
    /// Ctrl-C cannot be handled.
    #[error("cannot handle the interrupt signal")]
    Signals(#[source] ctrlc::Error),
    /// A file or folder other than the HDF5 file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation: `write`, `create the folder`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSpace { path, needed, available } => Self::NoSpace { path, needed, available },
            StoreError::Exists { path } => Self::Exists { path },
            other => Self::Store(other),
        }
    }
}

impl From<anabranch::Error> for Error {
    /// Unwraps an error of this program from the failure of its task.
    fn from(error: anabranch::Error) -> Self {
        if let anabranch::Error::Failed(failures) = &error
            && let Some(Cause::Error(own)) = failures.iter().next().map(|failure| &failure.cause)
        {
            return Self::Task(Arc::clone(own));
        }
        Self::Runtime(error)
    }
}

impl From<anabranch::par::PoolError> for Error {
    fn from(error: anabranch::par::PoolError) -> Self {
        anabranch::Error::from(error).into()
    }
}

impl Error {
    /// For `map_err`: an error with the operation and the file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// This error, and beside it that of `other`, if it has failed, too.
    pub fn and<T>(self, other: Result<T, Self>) -> Self {
        match other {
            Ok(_) => self,
            Err(other) => Self::Both(Box::new(self), Box::new(other)),
        }
    }

    /// The exit status: 2 for wrong usage, 1 for everything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Mismatch { .. } => 2,
            Self::Both(first, _) => first.exit_status(),
            _ => 1,
        }
    }
}

/// The error and its causes in one line. Causes whose text the line already contains are left out.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text += &format!(": {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_an_error_contains_its_causes() {
        let cause = io::Error::new(io::ErrorKind::PermissionDenied, "permission denied");
        let error = Error::io("write", Path::new("frames/a.png"))(cause);
        assert_eq!(describe(&error), "cannot write frames/a.png: permission denied");
        assert_eq!(error.exit_status(), 1);
        let wrong = || Error::Usage("wrong".into());
        assert_eq!(describe(&wrong().and(Ok(()))), "wrong");
        let both = wrong().and::<()>(Err(error));
        assert_eq!(describe(&both), "wrong; besides, cannot write frames/a.png: permission denied");
        assert_eq!(both.exit_status(), 2);
    }
}
