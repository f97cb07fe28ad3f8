//! The processor's control word for denormal floating-point numbers.

/// Whether the calling thread treats denormal numbers as zero.
pub(crate) fn is_flushing() -> bool {
    FLUSH != 0 && control() & FLUSH == FLUSH
}

/// Makes the calling thread keep denormal numbers. A new thread begins in the mode of the thread that started
/// it; a worker must not.
pub(crate) fn reset() {
    set_flush(0);
}

/// Sets the flush bits and no others. Returns the former ones.
pub(super) fn set_flush(flush: Control) -> Control {
    let before = control();
    if before & FLUSH != flush {
        set_control(before & !FLUSH | flush);
    }
    before & FLUSH
}

#[cfg(target_arch = "x86_64")]
pub(super) type Control = u32;
/// Flush-to-zero (bit 15) and denormals-are-zero (bit 6).
#[cfg(target_arch = "x86_64")]
pub(super) const FLUSH: Control = 0x8040;

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
    // SAFETY: `word` differs from the register's value in the two flush bits only. They change how the
    // hardware treats denormals and nothing else: no exception is unmasked. Formally the language has no such
    // mode. The code that runs in it is called out of line (see `flush_denormals`), so that no computation is
    // moved into or out of it.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
pub(super) type Control = u64;
/// `FZ`, bit 24.
#[cfg(target_arch = "aarch64")]
pub(super) const FLUSH: Control = 1 << 24;

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
    // SAFETY: as on x86-64: only the flush bit differs from the register's value.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) type Control = u32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const FLUSH: Control = 0;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control() -> Control {
    0
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_control(_: Control) {}
