//! The files of the program: the attributes of an output file, checkpoints, and files that are whole or do
//! not exist.

pub mod attributes;
pub mod checkpoint;
pub mod extend;
pub mod whole;
