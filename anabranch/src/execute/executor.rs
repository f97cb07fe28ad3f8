//! The executor: the threads that run tasks, or in a seeded runtime the order in which waiting threads run them.
//!
//! Kernels and fences run on the workers of a pool, host tasks on *lanes*, which are threads that may block. A runtime with
//! [`Builder::seeded`](crate::Builder::seeded) has neither: there the threads of the program run all tasks. Every difference
//! between the two is decided here.

use super::{
    compute::Compute,
    current_task::RuntimeId,
    draw::Draw,
    event::Event,
    node::{Node, Task},
    place::{Place, Runner},
    seeded::Seeded,
};
use crate::{error::Error, settings::Settings};
use anabranch_par::{Lanes, PoolError, ThreadPool};
use std::{sync::Arc, time::Duration};

/// How often a waiting thread of a seeded runtime looks for tasks that another thread has made ready.
const SEEDED_INTERVAL: Duration = Duration::from_millis(1);

/// The threads of a runtime, not yet in its executor.
pub(super) struct Threads {
    pool: ThreadPool,
    threads: usize,
    host_tasks: HostTasks,
    checked: bool,
}

/// What runs the host tasks.
enum HostTasks {
    Lanes(Lanes<dyn Task>),
    /// Threads of the program, in the order of this seed.
    Seed(u64),
}

impl Threads {
    /// Starts the threads.
    pub(super) fn start(threads: usize, settings: &Settings) -> Result<Self, Error> {
        let workers = if settings.seed.is_some() { 0 } else { threads };
        let mut pool = ThreadPool::builder().workers(workers).name(settings.name.clone());
        if let Some(pin) = settings.pin {
            pool = pool.pin(pin);
        }
        let pool = pool.build()?;
        let host_tasks = match settings.seed {
            Some(seed) => HostTasks::Seed(seed),
            None => {
                // One fewer than threads: a thread of the program submits or waits meanwhile, and helps while it waits.
                let eager = (threads - 1).max(1);
                let lanes = Lanes::new(eager, settings.host_lanes, format!("{}host-", settings.name));
                HostTasks::Lanes(lanes.map_err(|source| PoolError::Spawn { started: threads, source })?)
            }
        };
        Ok(Self { pool, threads, host_tasks, checked: settings.is_checked() })
    }
}

pub(super) struct Executor {
    // The lanes end before the pool, on which their tasks run loops.
    mode: Mode,
    compute: Compute,
}

enum Mode {
    /// Workers run kernels, lanes run host tasks.
    Threaded(Lanes<dyn Task>),
    /// The threads that submit and wait run all tasks.
    Seeded(Seeded),
}

impl Executor {
    pub(super) fn new(runtime: RuntimeId, threads: Threads) -> Self {
        let Threads { pool, threads, host_tasks, checked } = threads;
        let (mode, draw) = match host_tasks {
            HostTasks::Lanes(lanes) => (Mode::Threaded(lanes), None),
            HostTasks::Seed(seed) => {
                let draw = Arc::new(Draw::new(seed));
                (Mode::Seeded(Seeded::new(runtime, Arc::clone(&draw))), Some(draw))
            }
        };
        Self { compute: Compute::new(runtime, pool, threads, draw, checked), mode }
    }

    /// The threads that kernels run on.
    pub(super) fn compute(&self) -> &Compute {
        &self.compute
    }

    /// Queues a task that can start.
    pub(super) fn enqueue(&self, node: Node) {
        match &self.mode {
            Mode::Seeded(seeded) => seeded.push(node),
            Mode::Threaded(lanes) => match node.place {
                Place::Host => lanes.submit(node.into_job()),
                Place::Compute | Place::Inline => self.compute.pool().submit(node.into_job()),
            },
        }
    }

    /// Whether a thread of this kind may go on with a task for `place` without queueing it.
    pub(super) fn may_follow(&self, runner: Runner, place: Place) -> bool {
        matches!(self.mode, Mode::Threaded(_)) && runner.takes(place)
    }

    /// Runs some of the tasks that can start, after a submission to a seeded runtime.
    pub(super) fn after_submission(&self) {
        if let Mode::Seeded(seeded) = &self.mode {
            seeded.step_some();
        }
    }

    /// In a seeded runtime, runs tasks while `condition` holds and there is one that can start; returns `true`. In any other
    /// runtime, does nothing; returns `false`.
    pub(super) fn run_while(&self, mut condition: impl FnMut() -> bool) -> bool {
        let Mode::Seeded(seeded) = &self.mode else { return false };
        while condition() && seeded.step() {}
        true
    }

    /// Runs tasks until the event is set or no task can start, in a seeded runtime.
    pub(super) fn run_until(&self, event: &Event) {
        self.run_while(|| !event.is_set());
    }

    /// Runs this task on the calling thread, if it can start and no thread has claimed it. Returns whether any task was run.
    pub(super) fn help_with(&self, node: &Node) -> bool {
        if let Mode::Seeded(seeded) = &self.mode {
            return seeded.step();
        }
        // Only the scheduler of conflicts may start a task that may conflict with others.
        let claimed = !node.contends() && node.is_ready() && node.claim();
        if claimed {
            node.clone().run_on(Runner::Program);
        }
        claimed
    }

    /// Runs a queued host task on the calling thread, if the caller waits for it. Returns whether any task was run. If the first
    /// task in the queue is another one, `helps` becomes `false`: the caller must not be delayed by it.
    pub(super) fn help_with_any(&self, waits_for: impl Fn(&Node) -> bool, helps: &mut bool) -> bool {
        let lanes = match &self.mode {
            Mode::Seeded(seeded) => return seeded.step(),
            Mode::Threaded(lanes) => lanes,
        };
        let Some(task) = lanes.steal() else { return false };
        let node = Node::from_job(task);
        if !waits_for(&node) {
            *helps = false;
            lanes.submit(node.into_job());
            return false;
        }
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// How often a blocked thread looks around, which is every `interval` unless it has tasks to look for.
    pub(super) fn watch_interval(&self, interval: Duration) -> Duration {
        match self.mode {
            Mode::Seeded(_) => SEEDED_INTERVAL,
            Mode::Threaded(_) => interval,
        }
    }

    /// Ends the threads. No task may be in flight.
    pub(super) fn stop(&self) {
        if let Mode::Threaded(lanes) = &self.mode {
            lanes.stop();
        }
        self.compute.pool().stop();
    }
}
