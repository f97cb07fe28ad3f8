//! Bounded, crash-safe output of frames to HDF5.
//!
//! A [`Writer`] writes the frames of a simulation into a file of [`FileOptions`], on the thread that calls
//! it. A program that should compute the next frame meanwhile has two ways:
//!
//! - a program on the Anabranch runtime calls [`Writer::append`] in a host task, beside its kernels;
//! - any other program calls [`Writer::queued`] and gets a [`QueuedWriter`]: a bounded queue, and an I/O
//!   thread that writes. The queue evens out the two sides, and slows the program down when storage is the
//!   limit, so that memory stays bounded. The statistics say which side waited ([`Stats`]).
//!
//! A program of several processes creates the file in one of them; each of the others writes its part of
//! every frame with a [`PartWriter`].
//!
//! A [`Reader`] reads the frames back, also while they are written. The module [`checkpoint`] saves the state
//! of a computation.
//!
//! ```
//! use anabranch_store::{FileOptions, Reader, Stamp};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("output.h5");
//!
//! let (rows, cols) = (20, 30);
//! let options = FileOptions::new(&path)
//!     .frames(5)
//!     .frame_shape(&[rows, cols])
//!     .attribute("dt", 1.0_f64)
//!     .stamps(true);
//! let mut writer = options.create::<f32>()?.queued(2)?;
//! for step in 0..5 {
//!     let mut frame = writer.frame()?; // recycled memory
//!     frame.fill(step as f32);
//!     writer.submit(frame, Stamp { step, time: step as f64 })?;
//! }
//! let summary = writer.finish()?; // reports any error that is left
//! assert!(summary.is_complete());
//!
//! let reader = Reader::open(&path)?;
//! assert_eq!(reader.read_frame::<f32>(3)?[[7, 7]], 3.0);
//! assert_eq!(reader.stamp(3)?.unwrap().step, 3);
//! # Ok::<(), anabranch_store::StoreError>(())
//! ```
//!
//! # Promises
//!
//! - The file is a valid HDF5 file from the moment it has its name, for every reader, also while it is
//!   written and after `kill -9`: HDF5 lays it out completely under a temporary name; after that, frames go
//!   to their places by positioned writes, and HDF5's own structures stay as they are.
//! - `/stored_frames` counts the complete frames. The count is advanced after a frame's bytes are written, so
//!   that every frame up to the count is complete. The contents of the frames after it are undefined (mostly
//!   zeros).
//! - Compressed files ([`FileOptions::compress`]) keep the same promises by another protocol: chunks are
//!   appended, and the entries of a chunk index that HDF5 built beforehand are redirected to them. Such a
//!   file is up to 64 MiB longer than its contents while it is written (a hole, where the file system knows
//!   holes), and frames that are written again after [`FileOptions::resume`] take space again. A frame that
//!   is already counted and is being written again is replaced by one small write, so that readers get its
//!   old or its new content.
//! - A frame that cannot be written is reported by its index, with the operating system's error: by the call
//!   that wrote it ([`Writer`]), or by the next call ([`QueuedWriter`]). The stored frames stay readable, and
//!   the file can be resumed when the cause is gone.
//! - A file has one writer at a time. [`FileOptions::create`] and [`FileOptions::resume`] are refused while
//!   another writer has the file, in this process or another, with an error that names that process. After a
//!   writer was killed, another one can open the file at once. The lock is on a file beside the data file, `.NAME.lock`, which is
//!   there while a writer is at work (and after it was killed), so readers are never refused.
//! - [`Writer::finish`] succeeds only if the file at the path is still the one that was written, and no other
//!   program has written over it. A writer that is dropped instead prints a failure that no call has returned
//!   to standard error.
//! - [`SyncLevel`] chooses what survives a *power* failure.
//!
//! # Building
//!
//! HDF5 is built from source and linked in (feature `static`, on by default; a C compiler and
//! CMake are needed). To link an installed one: `--no-default-features --features system-hdf5`.

#![forbid(unsafe_code)]

mod attribute;
pub mod checkpoint;
mod element;
mod error;
mod file;
mod options;
mod reader;
mod write;

pub use attribute::Attr;
pub use element::Element;
pub use error::{Result, StoreError};
pub use file::{holder::Holder, ledger::Stamp, lock::WriteLock, space::available_bytes};
pub use options::{FileOptions, SyncLevel};
pub use reader::Reader;
pub use write::{
    announcement::Announcement,
    part::PartWriter,
    queued::{FrameBuffer, QueuedWriter},
    stats::{Monitor, QueueStats, Stats},
    writer::{Summary, Writer},
};

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
