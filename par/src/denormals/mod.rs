//! Flushing of denormal floating-point numbers, for the time of a call.
//!
//! Denormal numbers, which are so small that they are stored without a leading one, cost a processor ten to
//! twenty times as much as normal ones. Decaying fields are full of them.

pub(crate) mod control;

use crate::join::local;
use control::{Control, FLUSH, set_flush};
use std::hint::black_box;

/// Calls `f` with denormal numbers treated as zero on this thread, in operands and in results. Then it
/// restores the former mode, also if `f` panics.
///
/// On x86-64 it sets *flush-to-zero* and *denormals-are-zero* in MXCSR, on AArch64 `FZ` in FPCR; elsewhere it
/// only calls `f`. The mode belongs to the thread. The compiler knows nothing of it: results that it computes
/// from constants are not flushed. `f` is called out of line, so that nothing of it is moved out of the mode.
///
/// ```
/// use anabranch_par::flush_denormals;
/// use std::hint::black_box;
///
/// let half_of_smallest_normal = || black_box(f32::MIN_POSITIVE) * black_box(0.5);
/// # #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
/// assert_eq!(flush_denormals(half_of_smallest_normal), 0.0);
/// assert!(half_of_smallest_normal() > 0.0);
/// ```
pub fn flush_denormals<R>(f: impl FnOnce() -> R) -> R {
    with_flush(FLUSH, f)
}

fn with_flush<R>(flush: Control, f: impl FnOnce() -> R) -> R {
    /// Restores the mode.
    struct Mode(Control);
    impl Drop for Mode {
        fn drop(&mut self) {
            set_flush(self.0);
        }
    }
    #[inline(never)]
    fn out_of_line<R>(f: impl FnOnce() -> R) -> R {
        black_box(f)()
    }
    let _mode = Mode(set_flush(flush));
    // Halves of joins that were made outside of `f` run in the mode that they were made in, on whatever
    // thread.
    local::in_mode(flush != 0, || out_of_line(f))
}

/// Calls `f` in the given mode.
pub(crate) fn in_mode<R>(flush: bool, f: impl FnOnce() -> R) -> R {
    with_flush(if flush { FLUSH } else { 0 }, f)
}

/// Calls `f` with denormal numbers kept as they are on this thread, and then restores the former mode: for
/// work whose results must not depend on the mode of the thread that runs it.
pub fn keep_denormals<R>(f: impl FnOnce() -> R) -> R {
    with_flush(0, f)
}
