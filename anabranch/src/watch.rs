//! Warnings, through [`tracing`]: what a program does that makes it slow, and what does not move.
//!
//! Nobody watches a runtime that nobody waits for: the threads that are blocked (in `wait`, in a fence, at the gate of a
//! submission that runs too far ahead) look around now and then. A runtime that is at work or idle is not disturbed.

use crate::node::Node;
use anabranch_graph::TaskId;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// After so many waits with few tasks between them, the program is told.
const WAITS: u64 = 1000;

/// So few tasks are few.
const FEW: u64 = 4;

/// Every so manieth submission is looked at, and after so many looks the program is told what was seen.
const SAMPLED: u64 = 64;
const SAMPLES: u32 = 64;

#[derive(Debug)]
pub(crate) struct Watch {
    /// What takes longer than this is told.
    patience: Duration,
    state: Mutex<State>,
    habits: Mutex<Habits>,
}

#[derive(Debug)]
struct State {
    completed: u64,
    /// When a task was last seen to have ended.
    moved: Instant,
    told: bool,
    /// Tasks that were seen running, since when, and whether that was told.
    running: HashMap<TaskId, (Instant, bool)>,
}

/// How the program uses the runtime.
#[derive(Debug, Default)]
struct Habits {
    waits: u64,
    submitted: u64,
    told_waits: bool,
    samples: u32,
    idle: u32,
    told_idle: bool,
}

impl Watch {
    pub(crate) fn new(patience: Duration) -> Self {
        let now = Instant::now();
        let state = State { completed: 0, moved: now, told: false, running: HashMap::new() };
        Self { patience, state: Mutex::new(state), habits: Mutex::default() }
    }

    /// How often a blocked thread is to look.
    pub(crate) fn interval(&self) -> Duration {
        (self.patience / 2).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// A blocked thread looks around: so many tasks have ended, so many are held up by conflicts, these are not done.
    pub(crate) fn look<'n>(&self, completed: u64, conflicting: usize, live: impl Iterator<Item = &'n Node>) {
        let Some(mut state) = self.state.try_lock() else { return };
        let now = Instant::now();
        let (mut running, mut names, mut waiting) = (HashMap::new(), Vec::new(), 0);
        for node in live.filter(|node| !node.is_done()) {
            if !node.is_claimed() {
                waiting += 1;
                continue;
            }
            let (since, mut told) = state.running.get(&node.id).copied().unwrap_or((now, false));
            if now - since >= self.patience && !told {
                told = true;
                tracing::warn!("{} has been running for {:.1?}", node.label, now - since);
            }
            running.insert(node.id, (since, told));
            names.push(node.label.to_string());
        }
        state.running = running;
        if completed != state.completed {
            (state.completed, state.moved, state.told) = (completed, now, false);
        } else if now - state.moved >= self.patience && !state.told && waiting + names.len() > 0 {
            state.told = true;
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            tracing::warn!(
                "no task has ended for {:.1?}; running: {names}; waiting: {waiting}, of which {conflicting} for \
                 others that they must not run beside",
                now - state.moved,
            );
        }
    }

    /// The program waits for everything; so many tasks were submitted so far.
    pub(crate) fn waits(&self, submitted: u64) {
        let mut habits = self.habits.lock();
        habits.waits += 1;
        if habits.waits < WAITS || habits.told_waits {
            return;
        }
        let tasks = submitted.saturating_sub(habits.submitted);
        (habits.waits, habits.submitted) = (0, submitted);
        if tasks < FEW * WAITS {
            habits.told_waits = true;
            tracing::warn!(
                "{WAITS} waits with {:.1} tasks between them: each drains the runtime; dependencies order tasks \
                 without waiting, and fences and captures give their results",
                tasks as f64 / WAITS as f64,
            );
        }
    }

    /// Whether this submission is one to look at.
    #[inline]
    pub(crate) fn samples(&self, task: TaskId) -> bool {
        task.0.is_multiple_of(SAMPLED)
    }

    /// A submission finds the runtime idle or not.
    pub(crate) fn sample(&self, idle: bool) {
        let mut habits = self.habits.lock();
        habits.samples += 1;
        habits.idle += u32::from(idle);
        if habits.samples == SAMPLES {
            if habits.idle * 4 > SAMPLES * 3 && !habits.told_idle {
                habits.told_idle = true;
                tracing::warn!(
                    "the runtime had nothing to do at {} of {SAMPLES} submissions that were looked at: its threads \
                     starve; make tasks larger, submit them from several threads, or wait less",
                    habits.idle,
                );
            }
            (habits.samples, habits.idle) = (0, 0);
        }
    }
}
