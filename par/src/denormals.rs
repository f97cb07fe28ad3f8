//! Flushing of denormal floating-point numbers, for the time of a call.
//!
//! Numbers so small that they are stored without a leading one cost a processor ten to twenty times as much as
//! others; decaying fields are full of them.

use crate::join::local;
use std::hint::black_box;

/// Calls `f` with denormal numbers treated as zero on this thread, in operands and in results; then the former mode is
/// restored, also where `f` panics.
///
/// On x86-64 it sets *flush-to-zero* and *denormals-are-zero* in MXCSR, on AArch64 `FZ` in FPCR; elsewhere it only calls
/// `f`. The mode belongs to the thread. The compiler knows nothing of it: results that it computes itself, from
/// constants, are not flushed. `f` is called out of line, so that nothing of it is moved out of the mode.
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
    // Halves of joins outside of `f` are run in the mode that they were made in, wherever that is.
    local::in_mode(flush != 0, || out_of_line(f))
}

/// Calls `f` in the given mode.
pub(crate) fn in_mode<R>(flush: bool, f: impl FnOnce() -> R) -> R {
    with_flush(if flush { FLUSH } else { 0 }, f)
}

/// Calls `f` with denormal numbers kept as they are on this thread, and restores the former mode: for work whose results
/// must not depend on the mode of the thread that happens to do it.
pub fn keep_denormals<R>(f: impl FnOnce() -> R) -> R {
    with_flush(0, f)
}

/// Whether the calling thread treats denormal numbers as zero.
pub(crate) fn is_flushing() -> bool {
    FLUSH != 0 && control() & FLUSH == FLUSH
}

/// A new thread begins in the mode of the one that started it; a worker begins without.
pub(crate) fn reset() {
    set_flush(0);
}

/// Sets the flush bits and no others; what they were before.
fn set_flush(flush: Control) -> Control {
    let before = control();
    if before & FLUSH != flush {
        set_control(before & !FLUSH | flush);
    }
    before & FLUSH
}

#[cfg(target_arch = "x86_64")]
type Control = u32;
/// Flush-to-zero (bit 15) and denormals-are-zero (bit 6).
#[cfg(target_arch = "x86_64")]
const FLUSH: Control = 0x8040;

#[cfg(target_arch = "x86_64")]
#[inline]
fn control() -> Control {
    let mut word: Control = 0;
    // SAFETY: stores the 32-bit control register to the local variable; SSE is part of x86-64.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags)) };
    word
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn set_control(word: Control) {
    // SAFETY: `word` is the register's own value but for the two flush bits. Those change how the hardware rounds
    // denormals and nothing else: no exception is unmasked. Formally the language has no such mode; what it is used
    // for is called out of line (see `flush_denormals`), so that no computation is moved into or out of it.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
type Control = u64;
/// `FZ`, bit 24.
#[cfg(target_arch = "aarch64")]
const FLUSH: Control = 1 << 24;

#[cfg(target_arch = "aarch64")]
#[inline]
fn control() -> Control {
    let word: Control;
    // SAFETY: reads the floating-point control register.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
    word
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn set_control(word: Control) {
    // SAFETY: as on x86-64: only the flush bit differs from what the register held.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Control = u32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FLUSH: Control = 0;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control() -> Control {
    0
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_control(_: Control) {}
