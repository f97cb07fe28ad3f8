//! A value that is not finite, and its place.

use std::fmt;

/// The first value of a frame that is infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite {
    /// The frame, counted from 0.
    pub frame: u64,
    /// The steps up to the frame.
    pub step: u64,
    /// The field: `U` or `V`, or `U or V` where a device has computed, which does not tell.
    pub field: &'static str,
    /// The row, counted from 0.
    pub row: usize,
    /// The column, counted from 0.
    pub col: usize,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame, step, field, row, col } = self;
        write!(f, "{field} is not finite in row {row}, column {col} after {step} steps (frame {frame})")
    }
}
