//! The shader of a recording: its text, and what a launch must know about it.

use super::{
    combine::Combine,
    layout::{BlockPlace, Layout},
};
use crate::{fold::Fold, number::Kind, operation::Load};

/// The shader of a recording.
#[derive(Clone, Debug)]
pub struct Wgsl {
    pub(super) text: String,
    pub(super) bindings: Vec<Binding>,
    pub(super) layout: Layout,
    pub(super) loads: Vec<Load>,
    pub(super) folds: Vec<Fold>,
    pub(super) needs_f64: bool,
    pub(super) needs_i64: bool,
    pub(super) dimensions: usize,
    pub(super) combines: Vec<Combine>,
    pub(super) ends_at_leaves: bool,
}

/// An operand that the shader uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The number of the operand in the recording, from 0.
    pub operand: usize,
    /// The type of its elements.
    pub kind: Kind,
    /// Whether the shader writes it: it is bound as read and write, otherwise as read.
    pub is_written: bool,
}

impl Wgsl {
    /// The shader. Its entry point is `main`, in groups of [`GROUP`](super::GROUP) × 1 × 1.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The operands that the shader uses. All are storage buffers of group 0. The first one is binding 1, and
    /// so on; binding 0 is the [block](super::Dispatch::block), unless it is immediate data.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Where the shader has its block.
    pub fn block_place(&self) -> BlockPlace {
        self.layout.place()
    }

    /// The bytes of a block, a multiple of 16.
    pub fn block_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Whether the shader computes with 64-bit floating-point numbers.
    pub fn needs_f64(&self) -> bool {
        self.needs_f64
    }

    /// Whether the shader computes with 64-bit integers. The remainder of `f64` needs them too.
    pub fn needs_i64(&self) -> bool {
        self.needs_i64
    }
}
