//! The executor: the threads that run tasks, or in a seeded runtime the order in which waiting threads run
//! them.
//!
//! Kernels and fences run on the workers of a pool, host tasks on *lanes*, which are threads that may block.
//! A runtime with [`Builder::seeded`](crate::Builder::seeded) has neither: there the threads of the program
//! run all tasks. Every difference between the two is decided here.

use super::{compute::Compute, seeded::Seeded};
use crate::{
    error::Error,
    events::event::Event,
    execute::{
        current_task::RuntimeId,
        task::{
            node::{Node, Task},
            place::{Place, Runner},
        },
    },
    random::Random,
    settings::Settings,
};
use anabranch_par::{Lanes, PoolError, ThreadPool};
use std::{
    any::Any,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

/// How often a waiting thread of a seeded runtime looks for tasks that another thread has made ready.
const SEEDED_INTERVAL: Duration = Duration::from_millis(1);

/// The threads of a runtime, not yet in its executor.
pub(crate) struct Threads {
    pool: ThreadPool,
    threads: usize,
    host_tasks: HostTasks,
    checked: bool,
    /// Whether threads that wait run tasks.
    helps: bool,
    /// Whether threads that wait for room to submit run tasks, too.
    helps_to_submit: bool,
}

/// What runs the host tasks.
enum HostTasks {
    Lanes(Lanes<dyn Task>),
    /// Threads of the program, in the order of this seed.
    Seed(u64),
}

impl Threads {
    /// Starts the threads.
    pub(crate) fn start(threads: usize, settings: &Settings) -> Result<Self, Error> {
        let workers = if settings.seed.is_some() { 0 } else { threads };
        let mut pool = ThreadPool::builder().workers(workers).name(settings.name.clone());
        if let Some(pin) = settings.pin {
            pool = pool.pin(pin);
        }
        let pool = pool.build()?;
        let host_tasks = match settings.seed {
            Some(seed) => HostTasks::Seed(seed),
            None => {
                // One fewer than threads: a thread of the program submits or waits meanwhile, and helps while
                // it waits.
                let eager = if settings.helps() { (threads - 1).max(1) } else { threads };
                let lanes = Lanes::new(eager, settings.host_lanes, format!("{}host-", settings.name));
                HostTasks::Lanes(lanes.map_err(|source| PoolError::Spawn { started: threads, source })?)
            }
        };
        let (helps, helps_to_submit) = (settings.helps(), settings.helps_to_submit());
        Ok(Self { pool, threads, host_tasks, checked: settings.is_checked(), helps, helps_to_submit })
    }
}

pub(crate) struct Executor {
    // The lanes end before the pool, on which their tasks run loops.
    mode: Mode,
    compute: Compute,
    /// Whether threads that wait run tasks, in a runtime that is not seeded.
    helps: bool,
    /// Whether threads that wait for room to submit run tasks, in a runtime that is not seeded.
    helps_to_submit: bool,
}

enum Mode {
    /// Workers run kernels, lanes run host tasks.
    Threaded(Lanes<dyn Task>),
    /// The threads that submit and wait run all tasks.
    Seeded(Arc<Seeded>),
}

impl Executor {
    /// `runtime` keeps the runtime alive while a thread of a seeded runtime runs its tasks.
    pub(crate) fn new(id: RuntimeId, runtime: Weak<dyn Any + Send + Sync>, threads: Threads) -> Self {
        let Threads { pool, threads, host_tasks, checked, helps, helps_to_submit } = threads;
        let (mode, random) = match host_tasks {
            HostTasks::Lanes(lanes) => (Mode::Threaded(lanes), None),
            HostTasks::Seed(seed) => {
                let random = Arc::new(Random::new(seed));
                (Mode::Seeded(Seeded::new(id, runtime, Arc::clone(&random))), Some(random))
            }
        };
        Self { compute: Compute::new(pool, threads, random, checked), mode, helps, helps_to_submit }
    }

    /// The threads that kernels run on.
    pub(crate) fn compute(&self) -> &Compute {
        &self.compute
    }

    /// Queues a task that can start.
    pub(crate) fn enqueue(&self, node: Node) {
        match &self.mode {
            Mode::Seeded(seeded) => seeded.push(node),
            // A node has its own marks. Those of the thread that happens to queue it are not the task's.
            Mode::Threaded(lanes) => match node.place {
                Place::Host | Place::Blocking => lanes.submit_unmarked(node.into_job()),
                Place::Compute | Place::Inline | Place::Transfer => {
                    self.compute.pool().submit_unmarked(node.into_job());
                }
            },
        }
    }

    /// Whether a thread of this kind may go on with a task for `place` without queueing it.
    pub(crate) fn may_follow(&self, runner: Runner, place: Place) -> bool {
        matches!(self.mode, Mode::Threaded(_)) && runner.takes(place)
    }

    /// Runs some of the tasks that can start, after a submission to a seeded runtime.
    pub(crate) fn after_submission(&self) {
        if let Mode::Seeded(seeded) = &self.mode {
            seeded.step_some();
        }
    }

    /// In a seeded runtime, runs tasks while `condition` holds and there is one that can start; returns
    /// `true`. In any other runtime, does nothing; returns `false`.
    pub(crate) fn run_while(&self, mut condition: impl FnMut() -> bool) -> bool {
        let Mode::Seeded(seeded) = &self.mode else { return false };
        while condition() && seeded.step() {}
        true
    }

    /// Polls an event for a future. In a seeded runtime, first runs tasks until the event is set or no task
    /// can start, and wakes the future when one can.
    pub(crate) fn poll(&self, event: &Event, context: &mut Context<'_>) -> Poll<()> {
        let Mode::Seeded(seeded) = &self.mode else { return event.poll(context) };
        loop {
            while !event.is_set() && seeded.step() {}
            let poll = event.poll(context);
            if poll.is_ready() || seeded.leave_waker(context) {
                return poll;
            }
        }
    }

    /// Runs this task on the calling thread, if it can start and no thread has claimed it. Returns whether
    /// any task was run.
    pub(crate) fn help_with(&self, node: &Node) -> bool {
        if let Mode::Seeded(seeded) = &self.mode {
            return seeded.step();
        }
        // Only the scheduler of conflicts may start a task that may conflict with others.
        // A look at a task that another thread runs writes nothing.
        let can_start = !node.contends() && !node.is_claimed() && node.is_ready();
        let claimed = self.may_help(node) && can_start && node.claim();
        if claimed {
            node.clone().run_on(Runner::Program);
        }
        claimed
    }

    /// Whether a thread that waits may run this task. It always runs what takes only a moment: no code of the
    /// program.
    fn may_help(&self, node: &Node) -> bool {
        match node.place {
            Place::Inline | Place::Transfer => true,
            Place::Blocking => false,
            Place::Compute | Place::Host => self.helps && node.may_help(),
        }
    }

    /// Runs a queued host task on the calling thread, if `waits_for` says that it may. Returns whether any
    /// task was run. If the first task in the queue is another one, declared as blocking, or not begun where
    /// the caller is, `helps` becomes `false`: the caller must not be delayed by it.
    pub(crate) fn help_with_any(&self, waits_for: impl Fn(&Node) -> bool, helps: &mut bool) -> bool {
        let lanes = match &self.mode {
            Mode::Seeded(seeded) => return seeded.step(),
            Mode::Threaded(lanes) => lanes,
        };
        if !self.helps {
            *helps = false;
            return false;
        }
        let Some(task) = lanes.steal() else { return false };
        let node = Node::from_job(task);
        if !waits_for(&node) || !self.may_help(&node) {
            *helps = false;
            self.enqueue(node);
            return false;
        }
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// Whether a thread that waits for room to submit runs tasks meanwhile.
    pub(crate) fn helps_to_submit(&self) -> bool {
        self.helps_to_submit
    }

    /// How often a blocked thread looks around, which is every `interval` unless it has tasks to look for.
    pub(crate) fn watch_interval(&self, interval: Duration) -> Duration {
        match self.mode {
            Mode::Seeded(_) => SEEDED_INTERVAL,
            Mode::Threaded(_) => interval,
        }
    }

    /// Ends the threads. No task may be in flight.
    pub(crate) fn stop(&self) {
        if let Mode::Threaded(lanes) = &self.mode {
            lanes.stop();
        }
        self.compute.pool().stop();
    }
}
