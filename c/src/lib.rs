//! The C interface: threads, loops and jobs of [`anabranch_par`], for programs in C and for what can call C.
//!
//! The functions are in [`ffi`], with documentation for those who call them from C; `include/anabranch.h` is made from it.
//! `README.md` says how to build and link.
//!
//! ```text
//! ffi.rs      the functions: pointers are checked and become references, panics become statuses
//! error.rs    the last error of each thread
//! attach.rs   attachments, which count
//! ```
//!
//! # Safety
//! `unsafe` is in `ffi` alone. What a C program must keep is said at each function and, for all of them, in the header.

mod attach;
mod error;
pub mod ffi;

pub use ffi::*;
