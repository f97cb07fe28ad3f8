//! Asynchronous, bounded, crash-safe output of frames to HDF5.
//!
//! A simulation produces frames faster or slower than storage takes them. A [`FrameWriter`] takes frames off its
//! hands and writes them on an I/O thread of its own; a bounded queue in between
//! evens out the two sides, and slows the simulation down when storage is the limit, so that memory is bounded.
//! The statistics say which side waited ([`Stats`]).
//!
//! ```
//! use anabranch_store::{FileOptions, FrameReader, Stamp};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("output.h5");
//!
//! let (rows, cols) = (20, 30);
//! let mut writer = FileOptions::new(&path)
//!     .frames(5)
//!     .frame_shape(&[rows, cols])
//!     .attribute("dt", 1.0_f64)
//!     .stamps(true)
//!     .create::<f32>()?;
//! for step in 0..5 {
//!     let mut frame = writer.frame()?; // recycled memory
//!     frame.fill(step as f32);
//!     writer.submit(frame, Stamp { step, time: step as f64 })?;
//! }
//! let summary = writer.finish()?; // reports any error that is left
//! assert!(summary.is_complete());
//!
//! let reader = FrameReader::open(&path)?;
//! assert_eq!(reader.read_frame::<f32>(3)?[[7, 7]], 3.0);
//! assert_eq!(reader.stamp(3)?.unwrap().step, 3);
//! # Ok::<(), anabranch_store::StoreError>(())
//! ```
//!
//! # What is promised
//!
//! - The file is a valid HDF5 file whenever it has its name, for every reader, also while it is written and after
//!   `kill -9`: HDF5 lays it out completely under a temporary name; after that, frames go to
//!   their places by positioned writes, and HDF5's own structures stay as they are.
//! - `/stored_frames` says how many frames there are. It is advanced after a frame's bytes, so that
//!   every frame up to the count is complete. What is behind it is undefined (mostly zeros).
//! - The same holds for compressed files ([`FileOptions::compress`]), by another way: appending, and
//!   redirecting entries of a chunk index that HDF5 built beforehand. Such a file is up to 64 MiB longer than
//!   its contents while it is written (a hole, where the file system knows holes), and frames that are
//!   written again after [`FileOptions::resume`] take space again. A frame that is already counted and
//!   is being written again is replaced by one small write, so that readers get its old or its new content.
//! - A frame that cannot be written is reported by the next call, by index, with the operating
//!   system's error. What was stored stays readable, and the file can be resumed when the cause is gone.
//! - What holds when the *power* fails is chosen with [`SyncLevel`].
//!
//! # Building
//!
//! HDF5 is built from source and linked in (feature `static`, on by default; a C compiler and
//! CMake are needed). To link an installed one: `--no-default-features --features system-hdf5`.

#![forbid(unsafe_code)]

mod attribute;
pub mod checkpoint;
mod chunks;
mod device;
mod element;
mod error;
#[cfg(test)]
mod fault_tests;
mod layout;
mod options;
mod queue;
mod reader;
mod sink;
mod space;
mod stats;
mod writer;

pub use attribute::Attr;
pub use element::Element;
pub use error::{Result, StoreError};
pub use options::{FileOptions, SyncLevel};
pub use reader::FrameReader;
pub use sink::Stamp;
pub use space::available_bytes;
pub use stats::Stats;
pub use writer::{FrameBuffer, FrameWriter, Monitor, Summary};
