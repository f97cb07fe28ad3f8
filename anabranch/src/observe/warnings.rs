//! Warnings, through [`tracing`]: about tasks that run for long, standstills, and programs that wait too
//! often.
//!
//! Threads that are blocked (in `wait`, in a fence, at the limit of tasks in flight) look for reasons to warn
//! now and then. There is no thread of its own for this, so a runtime that is at work or idle is not
//! disturbed. A subscriber of [`tracing`] is the program's code and may use the runtime, so every warning is
//! given after all locks are released.

use crate::label::TaskLabel;
use anabranch_graph::TaskId;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The number of waits after which the tasks between them are counted.
const WAITS: u64 = 1000;

/// Fewer tasks than this for each wait are a reason to warn.
const FEW: u64 = 4;

/// One submission of this many is a sample.
const SAMPLE_EVERY: u64 = 64;

/// The number of samples that are judged together.
const SAMPLES: u32 = 64;

/// What the runtime has seen of its tasks and of the habits of the program.
#[derive(Debug)]
pub(crate) struct Warnings {
    /// Tasks and standstills that last longer than this are reasons to warn.
    patience: Duration,
    state: Mutex<State>,
    habits: Mutex<Habits>,
}

#[derive(Debug)]
struct State {
    completed: u64,
    /// When the count last changed.
    changed: Instant,
    /// Whether a standstill since then was reported.
    warned: bool,
    /// Tasks that were seen running, since when, and whether that was reported.
    running: HashMap<TaskId, (Instant, bool)>,
}

/// How the program uses the runtime: its waits, and whether the runtime was idle at sampled submissions.
#[derive(Debug, Default)]
struct Habits {
    waits: u64,
    submitted: u64,
    warned_of_waits: bool,
    samples: u32,
    idle: u32,
    warned_of_idle: bool,
}

/// The progress of a task that is not done.
pub(crate) struct Progress<'a> {
    pub(crate) id: TaskId,
    pub(crate) label: &'a TaskLabel,
    pub(crate) is_running: bool,
}

impl Warnings {
    pub(crate) fn new(patience: Duration) -> Self {
        let now = Instant::now();
        let state = State { completed: 0, changed: now, warned: false, running: HashMap::new() };
        Self { patience, state: Mutex::new(state), habits: Mutex::default() }
    }

    /// How often a blocked thread looks for reasons to warn.
    pub(crate) fn interval(&self) -> Duration {
        (self.patience / 2).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// Looks for tasks that run for long and for a standstill, and warns of them. `completed` tasks have
    /// ended so far, `conflicting` tasks wait because of a conflict, and `live` are the tasks that are not
    /// done.
    ///
    /// The caller holds no lock.
    pub(crate) fn look<'a>(
        &self,
        completed: u64,
        conflicting: usize,
        live: impl Iterator<Item = Progress<'a>>,
    ) {
        let warnings = match self.state.try_lock() {
            Some(mut state) => state.look(self.patience, completed, conflicting, live),
            None => return,
        };
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }

    /// Counts a wait for all tasks. So far `submitted` tasks were submitted. The caller holds no lock.
    pub(crate) fn count_wait(&self, submitted: u64) {
        let warning = self.habits.lock().count_wait(submitted);
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
    }

    /// Whether the submission of this task is a sample.
    #[inline]
    pub(crate) fn is_sample(&self, task: TaskId) -> bool {
        task.0.is_multiple_of(SAMPLE_EVERY)
    }

    /// Counts a sampled submission, which found the runtime idle or not. The caller holds no lock.
    #[cold]
    pub(crate) fn sample(&self, idle: bool) {
        let warning = self.habits.lock().sample(idle);
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
    }
}

impl State {
    /// Looks for reasons to warn: see [`Warnings::look`].
    fn look<'a>(
        &mut self,
        patience: Duration,
        completed: u64,
        conflicting: usize,
        live: impl Iterator<Item = Progress<'a>>,
    ) -> Vec<String> {
        let now = Instant::now();
        let (mut running, mut names, mut waiting) = (HashMap::new(), Vec::new(), 0);
        let mut warnings = Vec::new();
        for task in live {
            if !task.is_running {
                waiting += 1;
                continue;
            }
            let (since, mut warned) = self.running.get(&task.id).copied().unwrap_or((now, false));
            if now - since >= patience && !warned {
                warned = true;
                warnings.push(format!("{} has been running for {:.1?}", task.label, now - since));
            }
            running.insert(task.id, (since, warned));
            names.push(task.label.to_string());
        }
        self.running = running;
        if completed != self.completed {
            (self.completed, self.changed, self.warned) = (completed, now, false);
        } else if now - self.changed >= patience && !self.warned && waiting + names.len() > 0 {
            self.warned = true;
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            warnings.push(format!(
                "no task has ended for {:.1?}; running: {names}; waiting: {waiting}, of which {conflicting} \
                 because of a conflict with a running task",
                now - self.changed,
            ));
        }
        warnings
    }
}

impl Habits {
    /// Counts a wait. Returns a warning if there are too many.
    fn count_wait(&mut self, submitted: u64) -> Option<String> {
        self.waits += 1;
        if self.waits < WAITS || self.warned_of_waits {
            return None;
        }
        let tasks = submitted.saturating_sub(self.submitted);
        (self.waits, self.submitted) = (0, submitted);
        self.warned_of_waits = tasks < FEW * WAITS;
        self.warned_of_waits.then(|| {
            format!(
                "{WAITS} waits with {:.1} tasks between them: each time the runtime runs out of work; \
                 dependencies order tasks without waiting, and fences and captures give their results",
                tasks as f64 / WAITS as f64,
            )
        })
    }

    /// Counts a sampled submission. Returns a warning if the runtime is idle too often.
    fn sample(&mut self, idle: bool) -> Option<String> {
        self.samples += 1;
        self.idle += u32::from(idle);
        if self.samples < SAMPLES {
            return None;
        }
        let idle = self.idle;
        (self.samples, self.idle) = (0, 0);
        if idle * 4 <= SAMPLES * 3 || self.warned_of_idle {
            return None;
        }
        self.warned_of_idle = true;
        Some(format!(
            "the runtime had nothing to do at {idle} of {SAMPLES} sampled submissions: its threads are idle \
             most of the time; make tasks larger, submit them from several threads, or wait less",
        ))
    }
}
