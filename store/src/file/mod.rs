//! The file: where everything is in it, and the order of writes that keeps it valid at every moment.
//!
//! # A new file
//!
//! 1. The writer takes the [`lock`] of the path, and holds it until it ends. So does a writer that resumes a
//!    file.
//! 2. [`partial`] creates an empty file beside the final path, as `.NAME.PID-NUMBER.partial`.
//! 3. HDF5 creates every object in it, with all of its space, and closes it ([`layout`]). For compressed
//!    frames it also builds the whole chunk index ([`chunks`]).
//! 4. The file is synchronised, if the [`SyncLevel`](crate::SyncLevel) asks for that, and renamed to its
//!    final path. Then the folder is synchronised. The [`system`] does this, and fault tests put their own
//!    there.
//!
//! From then on HDF5 takes no part. Every write goes to a known position through a [`device`].
//!
//! # A frame ([`contiguous`])
//!
//! 1. The frame's bytes are written at its place.
//! 2. Its step and time are written, if the file has stamps.
//! 3. The count is advanced ([`ledger`]). Now the frame is *acknowledged*: readers see it.
//!
//! With [`SyncLevel::Frame`](crate::SyncLevel::Frame) the device is synchronised before and after step 3.
//! With [`SyncLevel::End`](crate::SyncLevel::End) it is synchronised every 64 MiB. Then it works while the
//! program computes, and not after the last frame.
//!
//! With both, step 1 goes past the page cache of the system, where it can ([`direct`]): that takes a tenth of
//! the processor time. Otherwise, with `SyncLevel::End`, the system begins to write the frame to the device
//! after step 1.
//!
//! Before step 1, the space of the next 64 MiB is reserved, where the file system can. Otherwise it would
//! look for a place for each page when the page goes to the device.
//!
//! # A compressed frame ([`compressed`])
//!
//! 1. The frame's chunks are compressed and appended to the file.
//! 2. Its step and time are written.
//! 3. The chunks' entries in HDF5's index are redirected to the new chunks, by one small write each.
//! 4. The count is advanced.
//!
//! With [`SyncLevel::Frame`](crate::SyncLevel::Frame) the device is also synchronised before step 3. With
//! [`SyncLevel::End`](crate::SyncLevel::End) it is so for a frame that is already counted, because an earlier
//! writer may have promised that frame. A program that stops between two steps leaves a file in which every
//! entry points at a complete chunk, and in which every counted frame is complete. With `SyncLevel::Frame` so
//! does a power failure.
//!
//! HDF5 refuses a file that is shorter than its superblock says. So the end of a compressed file moves in
//! this order: to grow, the file is extended first and the superblock is changed second; to shrink, the
//! superblock first and the file second. The device is synchronised in between.
//!
//! # The end
//!
//! The last writes are synchronised, if the level asks for that. The file that was written must still be the
//! one at the path, and must still begin and end as the writer left it ([`immutable_part`]). If another
//! program has removed, moved, replaced or overwritten it, the writer reports that as an error.

pub(crate) mod chunks;
pub(crate) mod compressed;
pub(crate) mod contiguous;
pub(crate) mod device;
#[cfg(target_os = "linux")]
mod direct;
pub(crate) mod frame_file;
pub(crate) mod holder;
pub(crate) mod immutable_part;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod library;
pub(crate) mod lock;
pub(crate) mod partial;
pub(crate) mod space;
pub(crate) mod system;
