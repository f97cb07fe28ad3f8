//! What becomes of pools in a process that was made by `fork`: only the thread that called it lives on there, so the
//! workers are gone, while everything that they shared looks as if they were at work.
//!
//! A counter tells how many forks lie between the start of the program and this process; every pool remembers what it was
//! when it was built. A use of a pool compares the two, and is an error where they differ instead of a wait without end.

use std::{
    error, fmt, io,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// How many forks have led to this process, as far as they were watched.
///
/// Relaxed, everywhere: it changes only while its process has a single thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The generation of this process.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Has forks counted from now on.
#[cfg(unix)]
pub(crate) fn watch() -> io::Result<()> {
    use std::sync::atomic::AtomicBool;

    /// Not a lock: another thread could hold it at the fork. If two threads come here at once, a fork counts twice.
    static WATCHED: AtomicBool = AtomicBool::new(false);

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Relaxed);
    }
    if WATCHED.load(Relaxed) {
        return Ok(());
    }
    // SAFETY: the handler may run in the child of any fork: it only changes an atomic variable, as signal handlers may, and
    // does not unwind.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => WATCHED.store(true, Relaxed),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    Ok(())
}

/// There is no `fork` here.
#[cfg(not(unix))]
pub(crate) fn watch() -> io::Result<()> {
    Ok(())
}

/// A pool was used in a process that was forked after the pool had been built: its workers are in the parent process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    pub(super) pool: Box<str>,
    pub(super) workers: usize,
}

impl Forked {
    /// The beginning of the names of the pool's threads.
    pub fn pool(&self) -> &str {
        &self.pool
    }
}

impl fmt::Display for Forked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, workers } = self;
        write!(
            f,
            "the thread pool {pool:?} cannot be used in this process, which was forked after the pool was built: its \
             {workers} workers are in the parent process; build a new pool in this one, and `install` it for loops \
             that name none"
        )
    }
}

impl error::Error for Forked {}
