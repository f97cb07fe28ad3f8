//! The destination of a call of the kernel.

/// The state that a call of the kernel writes.
pub trait Output {
    /// U and V of a row of the band, in full width.
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]);
}
