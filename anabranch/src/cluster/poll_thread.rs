//! The thread of a node that sees to it that some thread polls the transport while transfers are under way.
//! It sleeps otherwise.
//!
//! It also posts the hashes of what was submitted, if no other thread does for some time. A thread posts
//! before it waits for a task. A program that waits in another way (in a future, for a callback, for room for
//! more tasks) would hang without the post of this thread if another node runs a different program.
//!
//! When the run has ended and a task of this node stays in a call of MPI, which no error can wake, it ends
//! the process.

use crate::error::NodeError;
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long the thread rests while other threads poll: it takes the processor from one of them when it looks.
const OTHERS_POLL: Duration = Duration::from_micros(500);
/// How long it rests while it polls itself and something happens.
const SHORTEST: Duration = Duration::from_micros(100);
/// The longest rest while transfers are under way. A node that waits for long is late by at most this time.
const LONGEST: Duration = Duration::from_millis(1);
/// How long the thread goes on to poll after something has happened.
const BURST: Duration = Duration::from_micros(50);
/// How long after the last transfer it does not sleep yet, because waking it takes the thread that begins the
/// next one some time.
const LINGER: Duration = Duration::from_millis(5);
/// How often the thread posts while transfers are under way.
const POST: Duration = Duration::from_millis(50);
/// The longest sleep while no transfers are under way: tasks that need none may have been submitted, and are
/// posted then.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The methods of the node that the polling thread calls.
pub(super) trait Polled: Send + Sync + 'static {
    fn poll_thread(&self) -> &PollThread;
    /// Whether transfers are under way.
    fn is_busy(&self) -> bool;
    /// How often other threads have polled.
    fn polls(&self) -> u64;
    /// Polls, without counting it as a poll of another thread. Returns whether anything has happened.
    fn poll_uncounted(&self) -> bool;
    /// Posts the hashes of what was submitted.
    fn post(&self);
    /// Why the run has ended, if it has.
    fn stopped(&self) -> Option<&NodeError>;
    /// How many calls of MPI the tasks of the program have begun, and how many of these calls have returned.
    fn calls(&self) -> (u64, u64);
    /// Ends the process: a call of MPI waits for a node that has ended.
    fn abort_calls(&self, why: &NodeError) -> !;
}

/// How long tasks have been in calls of MPI since the end of the run, without one that has returned.
#[derive(Default)]
struct Stuck {
    time: Duration,
    looked: Option<Instant>,
    returned: u64,
}

impl Stuck {
    /// Looks again. A process that was stopped for long has not waited for long: a turn counts as at most
    /// `longest`.
    fn time(&mut self, cluster: &impl Polled, longest: Duration) -> Duration {
        let (begun, returned) = cluster.calls();
        let since = self.looked.replace(Instant::now()).map_or(Duration::ZERO, |looked| looked.elapsed());
        if begun == returned || returned != self.returned {
            *self = Self { returned, looked: self.looked, time: Duration::ZERO };
        } else {
            self.time += since.min(longest);
        }
        self.time
    }
}

#[derive(Default)]
pub(super) struct PollThread {
    thread: Mutex<Option<JoinHandle<()>>>,
    ends: AtomicBool,
    /// Whether it sleeps, or is about to.
    sleeps: AtomicBool,
    /// Whether tasks of the program may be in calls of MPI.
    watches_calls: AtomicBool,
}

/// Starts the thread of this node. It polls at least once in each `interval`, so that the other nodes see
/// that this one is alive.
pub(super) fn start(cluster: &Arc<impl Polled>, interval: Option<Duration>, name: String) -> io::Result<()> {
    let shared = Arc::clone(cluster);
    let sleep = interval.map_or(LONGEST_SLEEP, |interval| LONGEST_SLEEP.min(interval / 2));
    // As long as a node that does not answer.
    let patience = interval.map(|interval| 8 * interval);
    let run = move || shared.poll_thread().run(&*shared, sleep, patience);
    *cluster.poll_thread().thread.lock() = Some(thread::Builder::new().name(name).spawn(run)?);
    Ok(())
}

impl PollThread {
    fn run(&self, cluster: &impl Polled, sleep: Duration, patience: Option<Duration>) {
        let mut posted = Instant::now();
        let mut stuck = Stuck::default();
        // Since when nothing has happened, as far as this thread knows.
        let mut quiet = Instant::now();
        let mut shortest = SHORTEST;
        while !self.ends.load(Acquire) {
            if cluster.is_busy() || quiet.elapsed() < LINGER {
                let polls = cluster.polls();
                thread::park_timeout((quiet.elapsed() / 8).clamp(shortest, LONGEST));
                let others_poll = cluster.polls() != polls;
                shortest = if others_poll { OTHERS_POLL } else { SHORTEST };
                if others_poll || self.burst(cluster) {
                    quiet = Instant::now();
                }
                if posted.elapsed() > POST {
                    cluster.post();
                    posted = Instant::now();
                }
                continue;
            }
            cluster.post();
            cluster.poll_uncounted();
            if let Some(why) = cluster.stopped().filter(|_| self.watches_calls.load(Relaxed))
                && patience.is_some_and(|patience| stuck.time(cluster, 2 * sleep) > patience)
            {
                cluster.abort_calls(why);
            }
            // SeqCst, here and in `wake`: either this thread sees the transfers, or the other thread sees
            // that this one sleeps.
            self.sleeps.store(true, SeqCst);
            if !cluster.is_busy() && !self.ends.load(SeqCst) {
                thread::park_timeout(sleep);
            }
            self.sleeps.store(false, SeqCst);
            if cluster.is_busy() {
                quiet = Instant::now();
            }
        }
    }

    /// Polls. Goes on for a while if something happens. Returns whether anything did.
    fn burst(&self, cluster: &impl Polled) -> bool {
        if !cluster.poll_uncounted() {
            return false;
        }
        let mut last = Instant::now();
        while last.elapsed() < BURST && cluster.is_busy() {
            match cluster.poll_uncounted() {
                true => last = Instant::now(),
                // A thread that goes on with what has happened may share a processor with this one.
                false => thread::yield_now(),
            }
        }
        true
    }

    /// From now on tasks of the program may be in calls of MPI.
    pub(super) fn watch_calls(&self) {
        self.watches_calls.store(true, Relaxed);
    }

    /// Wakes the thread if it sleeps: transfers have begun.
    pub(super) fn wake(&self) {
        if self.sleeps.load(SeqCst)
            && let Some(thread) = &*self.thread.lock()
        {
            thread.thread().unpark();
        }
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.ends.store(true, SeqCst);
        let thread = self.thread.lock().take();
        let Some(thread) = thread else { return };
        thread.thread().unpark();
        // The thread may be the one that ends the runtime, in the waker of a future.
        if thread.thread().id() != thread::current().id()
            && let Err(payload) = thread.join()
        {
            anabranch_par::discard_payload(payload);
        }
    }
}
