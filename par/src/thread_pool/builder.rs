//! The settings of a pool: those of the program, or else of the environment, or else the defaults.

use super::{
    ThreadPool, affinity,
    environment::{PIN, WAIT_POLICY, default_threads, or_environment},
    error::{MAX_WORKERS, PoolError},
    policy::WaitPolicy,
    state::PoolState,
    worker,
};
use crate::{fork::BuildProcess, patience, region::claims::Stopwatch};
use parking_lot::Mutex;
use std::{sync::Arc, thread, time::Duration};

/// How long an idle worker looks for work before it sleeps, by default.
const SPIN: Duration = Duration::from_micros(150);

/// Settings of a [`ThreadPool`]: see [`ThreadPool::builder`].
///
/// A setting that the program does not make is read from its environment variable when the pool is built:
///
/// | variable | values | setting |
/// |---|---|---|
/// | `ANABRANCH_NUM_THREADS` | a number from 1 to 1024 | [`threads`](Self::threads) |
/// | `ANABRANCH_PIN` | `0`, `1`, `true`, `false` | [`pin`](Self::pin) |
/// | `ANABRANCH_WAIT_POLICY` | `spin`, `adaptive`, `passive` | [`wait_policy`](Self::wait_policy) |
///
/// An empty variable counts as not set.
///
/// ```
/// use anabranch_par::{ThreadPool, WaitPolicy};
///
/// let pool = ThreadPool::builder().threads(4).pin(false).wait_policy(WaitPolicy::Passive).build()?;
/// assert_eq!(pool.threads(), 4);
/// # Ok::<(), anabranch_par::PoolError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until the pool is built"]
pub struct Builder {
    workers: Option<Workers>,
    name: String,
    pin: Option<bool>,
    policy: Option<WaitPolicy>,
    spin: Duration,
    share_short_loops: bool,
    /// A clock that a test stops.
    #[cfg(test)]
    pub(crate) stopwatch: Option<Stopwatch>,
}

/// The number of workers that the program asked for.
#[derive(Clone, Copy, Debug)]
enum Workers {
    Exactly(usize),
    /// One less than this, because the thread that opens a region takes part.
    ForThreads(usize),
}

impl ThreadPool {
    /// A pool whose regions have `threads` participants if they are opened from outside: `threads - 1`
    /// workers.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        Self::builder().threads(threads).build()
    }

    /// Settings of a new pool. By default it has one thread for each processor that this process may use, the
    /// caller included.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            workers: None,
            name: "anabranch-".into(),
            pin: None,
            policy: None,
            spin: SPIN,
            share_short_loops: false,
            #[cfg(test)]
            stopwatch: None,
        }
    }

    /// The number of threads that work in a region which is opened from outside: the caller and `threads - 1`
    /// workers. By default, the number of processors that this process may use.
    pub fn threads(mut self, threads: usize) -> Self {
        self.workers = Some(Workers::ForThreads(threads));
        self
    }

    /// The number of worker threads. A thread that opens a region from outside the pool takes part beside
    /// them; without workers it works alone.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(Workers::Exactly(workers));
        self
    }

    /// The beginning of the workers' thread names; the index follows.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Binds each worker to a processor of its own, in turn if there are more workers than processors. Off by
    /// default. A system that cannot bind threads is an error ([`PoolError::Pin`]); a worker whose binding is
    /// refused runs unbound.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = Some(pin);
        self
    }

    /// How threads wait ([`WaitPolicy::Adaptive`] by default).
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// How long a worker looks for work before it sleeps (150 µs by default) under [`WaitPolicy::Adaptive`].
    /// It spins for a third of this time, and then yields its processor to other threads. If the process may
    /// use one processor only, no thread spins, however long this is.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Whether loops are shared however short they were before. By default, the thread that opens a loop does
    /// it alone after the same loop (the same code, with the same number of items) took one thread less than
    /// 1.5 µs several times in a row; or less than 50 µs, while all workers sleep that could help, unless
    /// many such loops follow each other. It looks at the clock meanwhile, and shares what is left if it takes
    /// longer, this time or the next. What it has done until then takes as long as on one thread: that is most of a loop
    /// of a few long items that was almost empty the times before.
    pub fn share_short_loops(mut self, share: bool) -> Self {
        self.share_short_loops = share;
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// See [`PoolError`]; no thread is left behind.
    pub fn build(self) -> Result<ThreadPool, PoolError> {
        let workers = self.checked_workers()?;
        let pin = or_environment(self.pin, &PIN)?.unwrap_or(false);
        let policy = or_environment(self.policy, &WAIT_POLICY)?.unwrap_or_default();
        let processors = match pin {
            true => affinity::allowed_processors().map_err(|source| PoolError::Pin { source })?,
            false => Vec::new(),
        };
        let process =
            BuildProcess::this(&self.name).map_err(|source| PoolError::Spawn { started: 0, source })?;
        let usable = patience::processors();
        let (idle, waiting) = (policy.idle(self.spin).on(usable), policy.waiting().on(usable));
        let stopwatch = Stopwatch::calibrated();
        #[cfg(test)]
        let stopwatch = self.stopwatch.or(stopwatch);
        let state = PoolState::new(process, workers, idle, waiting, stopwatch, self.share_short_loops);
        let pool = ThreadPool { state, workers: Mutex::default() };
        for index in 0..workers {
            let state = Arc::clone(&pool.state);
            let processor = (!processors.is_empty()).then(|| processors[index % processors.len()]);
            let thread = thread::Builder::new().name(format!("{}{index}", self.name)).spawn(move || {
                if let Some(processor) = processor {
                    // If the system refuses, the worker runs unbound.
                    let _ = affinity::bind(processor);
                }
                worker::main_loop(&state, index);
            });
            match thread {
                Ok(thread) => pool.workers.lock().push(thread),
                Err(source) => return Err(PoolError::Spawn { started: index, source }),
            }
        }
        Ok(pool)
    }

    fn checked_workers(&self) -> Result<usize, PoolError> {
        let (asked, workers) = match self.workers {
            Some(Workers::Exactly(workers)) => (workers, Some(workers)),
            Some(Workers::ForThreads(threads)) => (threads, threads.checked_sub(1)),
            None => {
                let threads = default_threads()?;
                (threads, threads.checked_sub(1))
            }
        };
        workers.filter(|&workers| workers <= MAX_WORKERS).ok_or(PoolError::Threads { asked })
    }
}
