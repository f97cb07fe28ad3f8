//! What can go wrong with a file of frames, in words for the person who has to act on it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of everything in this crate.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a file could not be created, written or read.
///
/// Errors can be cloned: an error from the I/O thread is reported again by every later call.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The options contradict themselves or lack something.
    #[error("{0}")]
    InvalidOptions(String),

    /// There is a file at this path and overwriting is not allowed.
    #[error("{path} exists already; choose another path or allow overwriting", path = path.display())]
    Exists {
        /// The path asked for.
        path: PathBuf,
    },

    /// The path names a directory (or something else that is not a file).
    #[error("{path} is not a regular file; choose the path of a file", path = path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },

    /// The folder that the file should be in does not exist.
    #[error("the folder {folder} does not exist; create it or choose another path for {path}",
        folder = folder.display(), path = path.display())]
    NoFolder {
        /// The path asked for.
        path: PathBuf,
        /// Its parent folder.
        folder: PathBuf,
    },

    /// The file system lacks room for the complete file.
    #[error("{path} needs {needed} bytes, and its file system has {available} free; \
        store fewer frames, make room, or choose another path", path = path.display())]
    NoSpace {
        /// Size of the complete file.
        needed: u64,
        /// Bytes free for this user.
        available: u64,
        /// The path asked for.
        path: PathBuf,
    },

    /// The operating system refused something other than the write of a frame.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was attempted, as in "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// The HDF5 library refused something.
    #[error("HDF5 cannot {action} {path}: {message}", path = path.display())]
    Hdf5 {
        /// What was attempted, as in "lay out".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The library's message.
        message: String,
    },

    /// A frame could not be written; the frames before it are stored and stay readable.
    #[error("frame {frame} could not be written to {path}: {source}; the first {stored} frames are stored \
        and stay readable; {advice}, then resume from frame {stored}",
        path = path.display(), advice = advice(source))]
    Write {
        /// Index of the frame that failed.
        frame: u64,
        /// The file.
        path: PathBuf,
        /// How many frames the file holds.
        stored: u64,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// The last bytes could not be made safe after all frames were written.
    #[error("{path} could not be completed: {source}; its {stored} frames may not survive a power failure",
        path = path.display())]
    Finish {
        /// The file.
        path: PathBuf,
        /// How many frames the file holds.
        stored: u64,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// A frame has the wrong number of elements.
    #[error("a frame of shape {shape:?} has {expected} elements, not {found}")]
    WrongLength {
        /// The file's frame shape.
        shape: Vec<usize>,
        /// Elements of a frame.
        expected: usize,
        /// Elements given.
        found: usize,
    },

    /// More frames than the file was created for.
    #[error("{path} was created for {frames} frames and all of them are written", path = path.display())]
    TooManyFrames {
        /// The file.
        path: PathBuf,
        /// Frames it has room for.
        frames: u64,
    },

    /// A frame that is not stored was asked for, or writing should go on behind a gap.
    #[error("frame {frame} of {path} is not stored: {stored} of {frames} frames are", path = path.display())]
    NotStored {
        /// The file.
        path: PathBuf,
        /// The frame asked for.
        frame: u64,
        /// Frames that are stored.
        stored: u64,
        /// Frames the file has room for.
        frames: u64,
    },

    /// The file differs from what was expected of it.
    #[error("{path} does not fit: {what} is {found}, expected {expected}", path = path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs, as in `attribute "feed"`.
        what: String,
        /// The value in the file.
        found: String,
        /// The value asked for.
        expected: String,
    },

    /// The file is not of the kind that was expected, or is damaged.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a user can do about a failed write.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the file system",
        io::ErrorKind::FileTooLarge => "use a file system or a limit that allows larger files",
        _ => "check the device",
    }
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source: Arc::new(source) }
    }

    pub(crate) fn hdf5(action: &'static str, path: impl Into<PathBuf>, error: hdf5::Error) -> Self {
        let mut message = error.to_string();
        if message.contains("unable to lock file") {
            message += "; another program has it open for writing with a lock: wait for it, \
                or set the environment variable HDF5_USE_FILE_LOCKING=FALSE";
        }
        Self::Hdf5 { action, path: path.into(), message }
    }

    pub(crate) fn format(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Format { path: path.into(), reason: reason.into() }
    }

    /// The index of the frame that could not be written, if that is what went wrong.
    pub fn frame(&self) -> Option<u64> {
        match self {
            Self::Write { frame, .. } => Some(*frame),
            _ => None,
        }
    }
}
