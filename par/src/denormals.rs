//! Flushing of denormal floating-point numbers, for the time of a scope.
//!
//! Numbers so small that they are stored without a leading one cost a processor ten to twenty times as much as
//! others; decaying fields are full of them. While a [`FlushDenormals`] lives, the calling thread treats them as
//! zero, in operands and in results.

use std::marker::PhantomData;

/// Denormal numbers are zero on this thread while this value lives; then the former mode is restored.
///
/// On x86-64 it sets *flush-to-zero* and *denormals-are-zero* in MXCSR, on AArch64 `FZ` in FPCR; elsewhere it does
/// nothing. The mode belongs to the thread: it holds for code that this thread runs meanwhile and for no other.
///
/// ```
/// use anabranch_par::FlushDenormals;
/// use std::hint::black_box;
///
/// let half_of_smallest_normal = || black_box(f32::MIN_POSITIVE) * black_box(0.5);
/// let flushed = {
///     let _mode = FlushDenormals::new();
///     half_of_smallest_normal()
/// };
/// # #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
/// assert_eq!(flushed.to_bits(), 0);
/// assert!(half_of_smallest_normal().to_bits() != 0);
/// ```
#[derive(Debug)]
#[must_use = "the mode ends when this is dropped"]
pub struct FlushDenormals {
    before: Control,
    /// The mode is the thread's own: not `Send`.
    _thread: PhantomData<*const ()>,
}

impl FlushDenormals {
    /// Turns the mode on for the calling thread.
    #[inline]
    pub fn new() -> Self {
        let before = control();
        set_control(before | FLUSH);
        Self { before, _thread: PhantomData }
    }
}

impl Default for FlushDenormals {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for FlushDenormals {
    #[inline]
    fn drop(&mut self) {
        set_control(self.before);
    }
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
    // SAFETY: `word` is a value read from the register with at most the two flush bits added. Those change how the
    // hardware rounds denormals and nothing else: no exception is unmasked. The memory clobber keeps the compiler
    // from moving memory accesses, and with them the computations of a region's body, across the switch.
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
