//! The C interface: threads, loops and jobs of [`anabranch_par`], for programs in C and in languages that can
//! call C.
//!
//! The functions are in [`ffi`], with documentation for callers in C. `include/anabranch.h` is generated from
//! it. `README.md` says how to build and link.
//!
//! ```text
//! ffi.rs      the functions: pointers are checked and become references, panics become statuses
//! error.rs    the last error of each thread
//! attach.rs   the counted attachments of each thread
//! ```
//!
//! # Safety
//! `unsafe` is in `ffi` alone. The documentation of each function says what a C program must guarantee; the
//! top of the header says it for all functions.

mod attach;
mod error;
pub mod ffi;

pub use ffi::*;
