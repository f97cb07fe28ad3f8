//! What a device makes programs of.

use super::Shader;
use crate::recorded::Recording;

/// What a device makes a program of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A recorded kernel. Every device runs it, apart from types and operations that the device lacks.
    Recording(&'a Recording),
    /// A shader that the program has written.
    Shader(&'a Shader),
}
