//! The files of a run: the attributes of its output file, and its checkpoint.

pub mod attributes;
pub mod checkpoint;
