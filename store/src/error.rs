//! The errors of this crate, in words for the person who has to act on them.

use crate::file::holder::Holder;
use std::{fmt, io, ops::Range, path::PathBuf, sync::Arc};

/// The result type of this crate.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of creating, writing or reading a file.
///
/// Errors can be cloned: the error of a frame is reported again by every later call of its writer.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The options contradict themselves or lack something.
    #[error("{0}")]
    InvalidOptions(String),

    /// The path is taken, and overwriting is not allowed.
    #[error("{path} exists already; choose another path or allow overwriting", path = path.display())]
    Exists {
        /// The requested path.
        path: PathBuf,
    },

    /// Another writer has the file: it was created or resumed, and is not finished yet.
    #[error("{path} is being written by {holder}; wait until it ends, or choose another path",
        path = path.display(),
        holder = holder.as_ref().map_or("another process".into(), Holder::to_string))]
    Busy {
        /// The requested path.
        path: PathBuf,
        /// The process of that writer, if it is known. It may be this process.
        holder: Option<Holder>,
    },

    /// The file at the path is not the one whose writer has announced it to this process.
    #[error("the file at {path} is not the one that is to be written in parts: {reason}; give all processes a path to one \
        file on a file system that they share", path = path.display())]
    NotAnnounced {
        /// The path, as this process sees it.
        path: PathBuf,
        /// The difference.
        reason: String,
    },

    /// The path is that of a directory, or of something else that is not a file.
    #[error("{path} is not a regular file; choose the path of a file", path = path.display())]
    NotAFile {
        /// The requested path.
        path: PathBuf,
    },

    /// The folder of the path does not exist.
    #[error("the folder {folder} does not exist; create it or choose another path for {path}",
        folder = folder.display(), path = path.display())]
    NoFolder {
        /// The requested path.
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
        /// Bytes that are free for this user.
        available: u64,
        /// The requested path.
        path: PathBuf,
    },

    /// The operating system refused an operation other than the write of a frame.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The operation, as in "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// The HDF5 library refused an operation.
    #[error("HDF5 cannot {action} {path}: {message}", path = path.display())]
    Hdf5 {
        /// The operation, as in "lay out".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The library's message.
        message: String,
    },

    /// A frame could not be written. The frames before it are stored and stay readable.
    #[error("frame {frame} could not be written to {path}: {source}; the first {stored} frames are stored \
        and stay readable; {advice}, then resume from frame {stored}",
        path = path.display(), advice = advice(source))]
    Write {
        /// The index of the frame that failed.
        frame: u64,
        /// The file.
        path: PathBuf,
        /// How many frames the file holds.
        stored: u64,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// The file could not be completed after its frames were written.
    #[error("{path} could not be completed: {source}; its {stored} frames may not survive a power failure; {advice}, \
        then resume the file from frame {stored} and finish it", path = path.display(), advice = advice(source))]
    Finish {
        /// The file.
        path: PathBuf,
        /// How many frames the file holds.
        stored: u64,
        /// The operating system's error.
        source: Arc<io::Error>,
    },

    /// The file at the path is no longer the one that was written.
    #[error("{path} is no longer the file that was written: another program removed, moved or replaced it, and its \
        {stored} frames with it; look for it under another name, or write it again", path = path.display())]
    Displaced {
        /// The path at which the file was created or resumed.
        path: PathBuf,
        /// How many frames the file held.
        stored: u64,
    },

    /// Another program has written to the file at the path while it was written here.
    #[error("{path} was overwritten by another program while its {stored} frames were written: its contents are not \
        reliable; end that program, remove the file, and write it again", path = path.display())]
    Overwritten {
        /// The file.
        path: PathBuf,
        /// How many frames the file held.
        stored: u64,
    },

    /// A frame has the wrong number of elements.
    #[error("a frame of {path} of shape {shape:?} has {expected} elements, not {found}; pass a slice of one whole frame",
        path = path.display())]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// The file's frame shape.
        shape: Vec<usize>,
        /// Elements of a frame.
        expected: usize,
        /// Elements of the slice.
        found: usize,
    },

    /// A part of a frame reaches beyond the frame.
    #[error("elements {} to {} are not all in a frame of {path}, which has {elements} elements; write the part of each \
        process at its place in the frame", range.start, range.end, path = path.display())]
    OutsideFrame {
        /// The file.
        path: PathBuf,
        /// Elements of a frame.
        elements: usize,
        /// The elements of the part.
        range: Range<usize>,
    },

    /// The file has no room for another frame.
    #[error("{path} was created for {frames} frames and all of them are written; create a file for more frames",
        path = path.display())]
    TooManyFrames {
        /// The file.
        path: PathBuf,
        /// Frames it has room for.
        frames: u64,
    },

    /// A frame that is needed is not stored: one that is read, or the one before the frame to resume from.
    #[error("frame {frame} of {path} is not stored: the file holds {stored} of its {frames} frames; {advice}",
        path = path.display(), advice = earlier(*stored))]
    NotStored {
        /// The file.
        path: PathBuf,
        /// The index of the frame.
        frame: u64,
        /// Frames that are stored.
        stored: u64,
        /// Frames the file has room for.
        frames: u64,
    },

    /// The file differs from the options, or from the requested element type.
    #[error("{path} does not match: {what} is {found}, expected {expected}; ask for what the file has, or choose \
        another file", path = path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The property that differs, as in `attribute "feed"`.
        what: String,
        /// The value in the file.
        found: String,
        /// The expected value.
        expected: String,
    },

    /// The file is of another kind, or damaged.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
}

/// Prints the message like `Display`, for `unwrap` and `main`.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The remedy for a frame that is not stored.
fn earlier(stored: u64) -> String {
    match stored {
        0 => "write frame 0 first".into(),
        _ => format!(
            "read a frame before frame {stored}, resume from frame {stored} or an earlier one, or write the frames in between"
        ),
    }
}

/// The remedy for a failed write.
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

    /// The index of the frame that could not be written, if this is a [`Write`](Self::Write) error.
    pub fn frame(&self) -> Option<u64> {
        match self {
            Self::Write { frame, .. } => Some(*frame),
            _ => None,
        }
    }
}
