//! Idle workers make progress: while transfers are under way, one of them polls the transport.
//!
//! The worker that receives the completion of a transfer goes on with the last of the steps that waited for
//! it, also with kernels. It queues the kernels of the other steps. So a chain of small steps on several
//! nodes stays on one thread of each node, and no other thread has to wake up.
//!
//! 1. The first transfer that is under way queues a job for the workers. There is at most one such job.
//! 2. The worker that has no other work runs the job, which polls a few times and queues itself again, behind
//!    all other jobs.
//! 3. The job ends when no transfer is under way, or when nothing has happened for a while ([`QUIET`]). Then
//!    the worker may sleep. The [polling thread](crate::cluster) polls from there on, and also while all
//!    workers are busy.

use super::super::core::Core;
use crate::cluster::Cluster;
use anabranch_par::Job;
use parking_lot::Mutex;
use std::{
    hint,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// After this time without an event the workers poll no more. It is several times longer than the shortest
/// rest of the thread that polls then. Otherwise the workers of two nodes that wait for each other in turn
/// would never poll again: each node would be late by such a rest, and so make the workers of the other one
/// sleep.
const QUIET: Duration = Duration::from_millis(1);

/// How often a worker polls before it looks for other work.
const POLLS: usize = 16;

/// The job that polls.
pub(in crate::execute) struct Progress {
    cluster: Weak<Cluster>,
    core: Weak<Core>,
    /// Whether the job is in the queue, or runs.
    is_queued: AtomicBool,
    /// Since when nothing has happened.
    quiet: Mutex<Option<Instant>>,
}

impl Progress {
    /// Lets the workers of a runtime poll the transport.
    pub(in crate::execute) fn start(cluster: &Arc<Cluster>, core: Weak<Core>) {
        let (is_queued, quiet) = (AtomicBool::new(false), Mutex::default());
        // The cluster has the job, and not the other way round.
        let progress = Self { cluster: Arc::downgrade(cluster), core, is_queued, quiet };
        let progress = Arc::new(progress);
        cluster.when_busy(move || progress.queue());
    }

    /// Queues the job, unless it is queued.
    fn queue(self: &Arc<Self>) {
        if !self.is_queued.swap(true, SeqCst) {
            *self.quiet.lock() = None;
            self.queue_again();
        }
    }

    fn queue_again(self: &Arc<Self>) {
        // The runtime ends its workers before it goes, and this runs on one of them or inside the runtime.
        let Some(core) = self.core.upgrade() else { return };
        let job: Arc<dyn Job> = Arc::<Self>::clone(self);
        core.executor.compute().pool().submit_unmarked(job);
    }

    /// Polls a few times. Returns whether to go on.
    fn poll(&self, cluster: &Cluster) -> bool {
        for _ in 0..POLLS {
            if cluster.poll() {
                *self.quiet.lock() = None;
                return cluster.is_busy();
            }
            hint::spin_loop();
        }
        let quiet = *self.quiet.lock().get_or_insert_with(Instant::now);
        quiet.elapsed() < QUIET && cluster.is_busy()
    }
}

impl Job for Progress {
    fn run(self: Arc<Self>) {
        let Some(cluster) = self.cluster.upgrade() else { return };
        if self.poll(&cluster) {
            // The other threads of this process may share a processor with this one.
            thread::yield_now();
            return self.queue_again();
        }
        self.is_queued.store(false, SeqCst);
        // A transfer that has begun since the last poll did not queue the job.
        if self.quiet.lock().is_none() && cluster.is_busy() {
            self.queue();
        }
    }
}
