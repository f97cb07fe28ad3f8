//! Pools and lanes after a `fork`: only the thread that called `fork` lives on in the child, so the workers
//! are gone, while the state that they shared looks as if they were at work.
//!
//! A counter says how many forks lie between the start of the program and this process. Pools and lanes
//! remember its value at the time they were built. A use compares the two values, and is an error if they
//! differ instead of a wait without end.

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// How many forks have led to this process, as far as they were counted.
///
/// Relaxed everywhere, because it changes only while its process has a single thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A process, for code that must know whether it was forked since: only the thread that called `fork` lives
/// on in the child.
///
/// ```
/// use anabranch_par::Process;
///
/// let process = Process::current()?;
/// assert!(process.is_current());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    generation: u32,
}

impl Process {
    /// The process that the calling thread is in.
    ///
    /// # Errors
    /// If the system refuses to report forks.
    pub fn current() -> io::Result<Self> {
        count_forks()?;
        Ok(Self { generation: GENERATION.load(Relaxed) })
    }

    /// Whether the calling thread is in this process, and not in one that was forked from it. Costs one load.
    #[inline]
    pub fn is_current(self) -> bool {
        GENERATION.load(Relaxed) == self.generation
    }
}

/// The process in which a pool or a set of lanes was built: its threads are there.
#[derive(Debug)]
pub(crate) struct BuildProcess {
    process: Process,
    /// The beginning of the threads' names, for error messages.
    name: Box<str>,
}

impl BuildProcess {
    /// This process. Fails if the system refuses to report forks.
    pub(crate) fn this(name: &str) -> io::Result<Self> {
        Ok(Self { process: Process::current()?, name: name.into() })
    }

    /// Whether this process is the one. Costs two loads.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Forked> {
        if self.process.is_current() { Ok(()) } else { Err(self.forked()) }
    }

    /// Panics with [`Forked`] unless this process is the one.
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

/// Begins to count forks.
#[cfg(unix)]
fn count_forks() -> io::Result<()> {
    use std::sync::atomic::AtomicBool;

    /// Not a lock, which another thread could hold at the fork. If two threads register at once, a fork
    /// counts twice.
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Relaxed);
    }
    if REGISTERED.load(Relaxed) {
        return Ok(());
    }
    // SAFETY: the handler may run in the child of any fork: it only changes an atomic variable, as a signal
    // handler may, and does not unwind.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => REGISTERED.store(true, Relaxed),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    Ok(())
}

/// This system has no `fork`.
#[cfg(not(unix))]
fn count_forks() -> io::Result<()> {
    Ok(())
}

/// A [`ThreadPool`](crate::ThreadPool) or [`Lanes`](crate::Lanes) was used in a process that was forked after
/// it had been built: its threads are in the parent process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the thread pool {name:?} cannot be used in this process, which was forked after the pool was built: its threads are in \
     the parent process; build a new pool in this one, and `install` it for loops that name none"
)]
pub struct Forked {
    name: Box<str>,
}

impl Forked {
    /// The beginning of the names of the threads.
    pub fn name(&self) -> &str {
        &self.name
    }
}
