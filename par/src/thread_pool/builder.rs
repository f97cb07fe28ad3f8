//! The settings of a pool: what the program says, or else the environment, or else a default.

use super::{Shared, ThreadPool};
use crate::{fork::Home, region::slot::Patience};
use parking_lot::Mutex;
use std::{fmt, io, sync::Arc, time::Duration};

/// The most workers that a pool may have.
pub const MAX_WORKERS: usize = 1024;

/// How long an idle worker looks for work before it sleeps, where nothing else is said.
const SPIN: Duration = Duration::from_micros(50);

/// Settings of a [`ThreadPool`]: see [`ThreadPool::builder`].
///
/// What is not set here is taken from the environment, where it has a variable, when the pool is built:
///
/// | variable | values | the same as |
/// |---|---|---|
/// | `ANABRANCH_NUM_THREADS` | a number from 1 to 1024 | [`threads`](Self::threads) |
/// | `ANABRANCH_PIN` | `0`, `1`, `true`, `false` | [`pin`](Self::pin) |
/// | `ANABRANCH_WAIT_POLICY` | `spin`, `adaptive`, `passive` | [`wait_policy`](Self::wait_policy) |
///
/// A variable that is empty counts as one that is not there.
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
}

/// How many workers were asked for.
#[derive(Clone, Copy, Debug)]
enum Workers {
    Exactly(usize),
    /// One less than this: the thread that opens a region is the other one.
    ForThreads(usize),
}

/// What threads do that have nothing to do: idle workers, and a thread that waits for the others at the end of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// They never sleep. Work begins soonest; every thread keeps its processor busy for as long as the pool lives. For a
    /// machine that runs nothing else.
    Spin,
    /// They spin for a moment ([`Builder::spin`]), then sleep.
    #[default]
    Adaptive,
    /// They sleep at once. For a machine that is shared, or where power counts more than time.
    Passive,
}

/// A pool that could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// More threads than [`MAX_WORKERS`] were asked for, or none.
    Threads {
        /// The number that was asked for.
        asked: usize,
    },
    /// The operating system refused a thread.
    Spawn {
        /// How many workers had been started.
        started: usize,
        /// What it said.
        source: io::Error,
    },
    /// An environment variable has a value that it must not have: see [`Builder`].
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads { asked } => {
                write!(f, "a pool of {asked} threads was asked for; choose between 1 and {MAX_WORKERS}")
            }
            Self::Spawn { started, source } => {
                write!(f, "the system refused worker thread {started}: {source}; ask for fewer threads")
            }
            Self::Environment { variable, value, allowed } => {
                write!(f, "the environment variable {variable} is {value:?}; it must be {allowed}")
            }
        }
    }
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn { source, .. } => Some(source),
            Self::Threads { .. } | Self::Environment { .. } => None,
        }
    }
}

impl Builder {
    pub(super) fn new() -> Self {
        Self { workers: None, name: "anabranch-".into(), pin: None, policy: None, spin: SPIN }
    }

    /// The number of threads that work in a region which is opened from outside: the caller and `threads - 1` workers. By
    /// default as many as this process may use processors.
    pub fn threads(mut self, threads: usize) -> Self {
        self.workers = Some(Workers::ForThreads(threads));
        self
    }

    /// The number of worker threads (0 is allowed: then callers work alone). A thread that opens a region from
    /// outside the pool takes part beside them.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(Workers::Exactly(workers));
        self
    }

    /// The beginning of the workers' thread names; the index follows.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Binds each worker to a processor of its own, where the system can. Off by default.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = Some(pin);
        self
    }

    /// What threads do that have nothing to do ([`WaitPolicy::Adaptive`] by default).
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// How long a worker looks for work before it sleeps (50 µs by default) where the policy is
    /// [`WaitPolicy::Adaptive`].
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
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
        let processors = if pin { core_affinity::get_core_ids().unwrap_or_default() } else { Vec::new() };
        let home = Home::here(&self.name).map_err(|source| PoolError::Spawn { started: 0, source })?;
        let (spin, patience) = (policy.spin(self.spin), policy.patience());
        let shared = Arc::new_cyclic(|me| Shared::new(home, workers, spin, patience, me.clone()));
        let pool = ThreadPool { shared: Arc::clone(&shared), workers: Mutex::default() };
        for index in 0..workers {
            let shared = Arc::clone(&shared);
            let processor = (!processors.is_empty()).then(|| processors[index % processors.len()]);
            let thread = std::thread::Builder::new().name(format!("{}{index}", self.name)).spawn(move || {
                if let Some(processor) = processor {
                    // Where the system refuses, the worker runs unbound.
                    core_affinity::set_for_current(processor);
                }
                shared.work(index);
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

/// The number of threads where the program does not say one: what the environment variable `ANABRANCH_NUM_THREADS` says,
/// or else as many as this process may use processors.
///
/// # Errors
/// [`PoolError::Environment`].
pub fn default_threads() -> Result<usize, PoolError> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    Ok(or_environment(None, &NUM_THREADS)?.unwrap_or_else(processors))
}

impl WaitPolicy {
    /// How long a worker looks for work before it sleeps.
    fn spin(self, adaptive: Duration) -> Duration {
        match self {
            Self::Spin => Duration::MAX,
            Self::Adaptive => adaptive,
            Self::Passive => Duration::ZERO,
        }
    }

    /// How long the thread that has opened a region waits for its participants before it sleeps.
    fn patience(self) -> Patience {
        match self {
            Self::Spin => Patience::ENDLESS,
            Self::Adaptive => Patience::ADAPTIVE,
            Self::Passive => Patience::SHORT,
        }
    }
}

/// A setting that the environment can make.
struct Variable<T> {
    name: &'static str,
    allowed: &'static str,
    parse: fn(&str) -> Option<T>,
}

const NUM_THREADS: Variable<usize> = Variable {
    name: "ANABRANCH_NUM_THREADS",
    allowed: "a number from 1 to 1024",
    parse: |value| value.parse().ok().filter(|threads| (1..=MAX_WORKERS).contains(threads)),
};

const PIN: Variable<bool> = Variable {
    name: "ANABRANCH_PIN",
    allowed: "0, 1, true or false",
    parse: |value| match value {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    },
};

const WAIT_POLICY: Variable<WaitPolicy> = Variable {
    name: "ANABRANCH_WAIT_POLICY",
    allowed: "spin, adaptive or passive",
    parse: |value| match value {
        "spin" => Some(WaitPolicy::Spin),
        "adaptive" => Some(WaitPolicy::Adaptive),
        "passive" => Some(WaitPolicy::Passive),
        _ => None,
    },
};

/// What was set, or else what the environment says. A variable that is not needed is not looked at.
fn or_environment<T>(set: Option<T>, variable: &Variable<T>) -> Result<Option<T>, PoolError> {
    let value = match (set, std::env::var_os(variable.name)) {
        (None, Some(value)) if !value.is_empty() => value,
        (set, _) => return Ok(set),
    };
    let Variable { name: variable, allowed, parse } = *variable;
    match value.to_str().and_then(parse) {
        Some(setting) => Ok(Some(setting)),
        None => Err(PoolError::Environment { variable, value: value.display().to_string(), allowed }),
    }
}
