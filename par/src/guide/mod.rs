//! The guide: how loops are written, and where their buffers come from.
//!
//! | chapter | questions |
//! |---|---|
//! | [Loops](loops) | Which schedule? Why is the result the same every time? What happens on an error? Also recipes. |
//! | [Scratch storage](scratch_storage) | Where does each thread get its buffer from, and what can go wrong? |
//!
//! `cargo run --release -p anabranch-par --example matmulsums` runs and compares all the variants of the
//! second chapter.

#[doc = include_str!("loops.md")]
pub mod loops {}

#[doc = include_str!("scratch_storage.md")]
pub mod scratch_storage {}
