//! A clock that takes less time to read than [`Instant`]: on x86-64, the counter of the processor.
//!
//! `Instant` waits until all instructions before it are done, and converts what it reads. A reading of the
//! counter takes a third of that time. It may come before instructions that wait for memory, and the counters
//! of two processors may differ. So ticks serve to decide what a thread does next, and nothing that must be
//! right depends on them. On other processors they are read from `Instant`.

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use std::{sync::OnceLock, time::Instant};

/// The time now, in ticks of unknown length.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(super) fn now() -> u64 {
    // SAFETY: all x86-64 processors have the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The time now, in nanoseconds since the first call.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(super) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
