//! What becomes of pools in a process that was made by `fork`: only the thread that called it lives on there, so the
//! workers are gone, while everything that they shared looks as if they were at work.
//!
//! A counter tells how many forks lie between the start of the program and this process; pools and lanes remember what it
//! was when they were built. A use of them compares the two, and is an error where they differ instead of a wait without
//! end.

use std::{
    error, fmt, io,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// How many forks have led to this process, as far as they were watched.
///
/// Relaxed, everywhere: it changes only while its process has a single thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that a pool's threads are in.
#[derive(Debug)]
pub(crate) struct Home {
    generation: u32,
    /// The beginning of the threads' names, for error messages.
    name: Box<str>,
}

impl Home {
    /// This process. Fails where the system does not let us watch forks.
    pub(crate) fn here(name: &str) -> io::Result<Self> {
        watch()?;
        Ok(Self { generation: GENERATION.load(Relaxed), name: name.into() })
    }

    /// Whether this process is still the one. Costs two loads.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Forked> {
        if GENERATION.load(Relaxed) == self.generation { Ok(()) } else { Err(self.forked()) }
    }

    /// The same for those that cannot return an error.
    #[inline]
    #[track_caller]
    pub(crate) fn expect(&self) {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
    }

    #[cold]
    fn forked(&self) -> Forked {
        Forked { name: self.name.clone() }
    }
}

/// Has forks counted from now on.
#[cfg(unix)]
fn watch() -> io::Result<()> {
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
fn watch() -> io::Result<()> {
    Ok(())
}

/// A [`ThreadPool`](crate::ThreadPool) or [`Lanes`](crate::Lanes) was used in a process that was forked after it had been built:
/// its threads are in the parent process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    name: Box<str>,
}

impl Forked {
    /// The beginning of the names of the threads.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Forked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the thread pool {:?} cannot be used in this process, which was forked after the pool was built: its threads \
             are in the parent process; build a new pool in this one, and `install` it for loops that name none",
            self.name
        )
    }
}

impl error::Error for Forked {}
