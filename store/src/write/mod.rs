//! Writers: one that writes on the calling thread, and one with a queue and an I/O thread in front.
//!
//! [`writer`] owns the open file and is all that a program on the runtime needs. [`queued`] is its face for
//! other programs: the frames go through the [`queue`] to a thread that owns a [`writer`]. [`open`] creates
//! and resumes files. [`stats`] counts for both. A [`part`] is written by another process, which knows the
//! file from the [`announcement`] of its writer.

pub(crate) mod announcement;
#[cfg(test)]
mod fault_tests;
mod open;
pub(crate) mod part;
mod queue;
pub(crate) mod queued;
pub(crate) mod stats;
pub(crate) mod writer;
