//! Warnings, through [`tracing`]: about tasks that run for long, standstills, and programs that wait too often.
//!
//! Threads that are blocked (in `wait`, in a fence, at the limit of tasks in flight) look for reasons to warn now and then.
//! There is no thread of its own for this, so a runtime that is at work or idle is not disturbed.

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

#[derive(Debug)]
pub(crate) struct Watchdog {
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

impl Watchdog {
    pub(crate) fn new(patience: Duration) -> Self {
        let now = Instant::now();
        let state = State { completed: 0, changed: now, warned: false, running: HashMap::new() };
        Self { patience, state: Mutex::new(state), habits: Mutex::default() }
    }

    /// How often a blocked thread looks for reasons to warn.
    pub(crate) fn interval(&self) -> Duration {
        (self.patience / 2).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// Looks for tasks that run for long and for a standstill. `completed` tasks have ended so far, `conflicting` tasks wait
    /// because of a conflict, and `live` are the tasks that are not done.
    pub(crate) fn look<'a>(
        &self,
        completed: u64,
        conflicting: usize,
        live: impl Iterator<Item = Progress<'a>>,
    ) {
        let Some(mut state) = self.state.try_lock() else { return };
        let now = Instant::now();
        let (mut running, mut names, mut waiting) = (HashMap::new(), Vec::new(), 0);
        for task in live {
            if !task.is_running {
                waiting += 1;
                continue;
            }
            let (since, mut warned) = state.running.get(&task.id).copied().unwrap_or((now, false));
            if now - since >= self.patience && !warned {
                warned = true;
                tracing::warn!("{} has been running for {:.1?}", task.label, now - since);
            }
            running.insert(task.id, (since, warned));
            names.push(task.label.to_string());
        }
        state.running = running;
        if completed != state.completed {
            (state.completed, state.changed, state.warned) = (completed, now, false);
        } else if now - state.changed >= self.patience && !state.warned && waiting + names.len() > 0 {
            state.warned = true;
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            tracing::warn!(
                "no task has ended for {:.1?}; running: {names}; waiting: {waiting}, of which {conflicting} \
                 because of a conflict with a running task",
                now - state.changed,
            );
        }
    }

    /// Counts a wait for all tasks. So far `submitted` tasks were submitted.
    pub(crate) fn count_wait(&self, submitted: u64) {
        let mut habits = self.habits.lock();
        habits.waits += 1;
        if habits.waits < WAITS || habits.warned_of_waits {
            return;
        }
        let tasks = submitted.saturating_sub(habits.submitted);
        (habits.waits, habits.submitted) = (0, submitted);
        if tasks < FEW * WAITS {
            habits.warned_of_waits = true;
            tracing::warn!(
                "{WAITS} waits with {:.1} tasks between them: each drains the runtime; dependencies order tasks \
                 without waiting, and fences and captures give their results",
                tasks as f64 / WAITS as f64,
            );
        }
    }

    /// Whether the submission of this task is a sample.
    #[inline]
    pub(crate) fn is_sample(&self, task: TaskId) -> bool {
        task.0.is_multiple_of(SAMPLE_EVERY)
    }

    /// Counts a sampled submission, which found the runtime idle or not.
    pub(crate) fn sample(&self, idle: bool) {
        let mut habits = self.habits.lock();
        habits.samples += 1;
        habits.idle += u32::from(idle);
        if habits.samples == SAMPLES {
            if habits.idle * 4 > SAMPLES * 3 && !habits.warned_of_idle {
                habits.warned_of_idle = true;
                tracing::warn!(
                    "the runtime had nothing to do at {} of {SAMPLES} sampled submissions: its threads \
                     starve; make tasks larger, submit them from several threads, or wait less",
                    habits.idle,
                );
            }
            (habits.samples, habits.idle) = (0, 0);
        }
    }
}
