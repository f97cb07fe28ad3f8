//! The pool: worker threads that live as long as it, look for open regions and jobs, and sleep when there are none.

mod builder;
mod fifo;
mod jobs;
mod owed;
pub(crate) mod sleep;

pub use builder::{Builder, MAX_WORKERS, PoolError, WaitPolicy, default_threads};
pub(crate) use fifo::Fifo;
pub use jobs::Job;
pub(crate) use jobs::Jobs;
pub(crate) use owed::Busy;

use crate::{
    Forked,
    current::{self, Participant},
    denormals::{self, keep_denormals},
    fork,
    join::{self, board::Board},
    panic::discard,
    region::{
        Body,
        claims::Counters,
        slot::{Patience, Slot},
    },
    sync::{
        Padded,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    tasks::{Runnable, SpawnError, Spawned},
    team::Reservations,
};
use parking_lot::Mutex;
use sleep::Sleep;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    ptr,
    sync::{Arc, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How many regions can be open at a time; more are run by their callers alone. One bit each in a word.
const SLOTS: usize = 32;

/// A persistent team of threads for parallel regions and jobs.
///
/// `ThreadPool::new(n)` is for programs that call regions from outside: the caller takes part, so `n` threads work in a
/// region on `n - 1` workers. Idle workers spin for a moment, then sleep; a pool with nothing to do uses no processor.
///
/// Dropping the pool runs the jobs that are still queued, then ends the workers and waits for them. (Two pools whose
/// workers drop each other would wait for ever.)
///
/// After a `fork` the workers are in the parent process only. In the child, every use of a pool that was built before is an
/// error that says so ([`check_fork`](Self::check_fork)), whatever its number of workers; dropping it waits for nobody. Pools
/// that are built in the child work.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl ThreadPool {
    /// A pool whose regions have `threads` participants when they are opened from outside: `threads - 1` workers.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        Self::builder().threads(threads).build()
    }

    /// Settings; by default one thread for each processor that this process may use, the caller included.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The number of threads that a region can have when it is opened by the calling thread.
    pub fn threads(&self) -> usize {
        self.shared.threads()
    }

    /// The number of worker threads.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// The calling thread's index among this pool's workers, if it is one.
    pub fn worker_index(&self) -> Option<usize> {
        self.shared.current()
    }

    /// The pool that loops run on where the program names none: started at its first use, with the settings of
    /// [`ThreadPool::builder`].
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn global() -> &'static Self {
        current::global()
    }

    /// Calls `f` with this pool as the calling thread's own: loops inside it that name no pool run here.
    #[inline]
    pub fn install<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = current::install(&self.shared);
        f()
    }

    /// Hands a job to the workers. It runs later, on one of them.
    ///
    /// In a pool without workers the calling thread runs it: before this returns, or where the thread is inside a region
    /// or job, when it leaves the outermost one.
    ///
    /// # Panics
    /// If this process was forked after the pool was built.
    pub fn submit(&self, job: Arc<dyn Job>) {
        self.shared.expect_not_forked();
        self.shared.jobs.push(job);
        self.shared.see_to_jobs();
    }

    /// Takes the oldest job that no worker has taken yet, for the caller to run. In a process that was forked after the
    /// pool was built there is none: they are all run in the parent.
    pub fn steal(&self) -> Option<Arc<dyn Job>> {
        self.shared.check_fork().ok().and_then(|()| self.shared.jobs.pop())
    }

    /// Whether this process has the pool's workers: not if it was forked after the pool was built.
    ///
    /// ```
    /// let pool = anabranch_par::ThreadPool::new(2)?;
    /// assert_eq!(pool.check_fork(), Ok(()));
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub fn check_fork(&self) -> Result<(), Forked> {
        self.shared.check_fork()
    }

    /// Runs the jobs that are still queued, ends the workers and waits for them. Regions are run by their callers alone
    /// from then on, and jobs that are submitted later stay where they are. In a process that was forked after the pool was
    /// built it does nothing.
    pub fn stop(&self) {
        if self.check_fork().is_err() {
            return;
        }
        self.shared.reservations.close();
        self.shared.stop.store(true, SeqCst);
        self.shared.sleep.wake_all();
        if self.shared.workers == 0 {
            // They were handed over by a thread that is still inside something.
            self.shared.run_queued();
        }
        let workers = std::mem::take(&mut *self.workers.lock());
        let me = std::thread::current().id();
        for worker in workers {
            // The last owner may be a job on one of our own workers: that thread ends by itself.
            if worker.thread().id() != me {
                // A worker catches everything that its work throws; there is nothing to hear from it.
                let _ = worker.join();
            }
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

// A panic in a region or a job is caught and leaves the pool as it was.
impl UnwindSafe for ThreadPool {}
impl RefUnwindSafe for ThreadPool {}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.check_fork().is_err() {
            // Others were at work on all this when they ceased to be; and the handles of threads that do not exist here
            // may be those of new ones.
            std::mem::forget(std::mem::take(self.workers.get_mut()));
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        self.stop();
    }
}

pub(crate) fn run_job<J: Job + ?Sized>(job: Arc<J>) {
    // The panic hook has printed the message; the worker lives on.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.run())) {
        discard(payload);
    }
}

thread_local! {
    /// Which pool's worker this thread is: the address of its shared state (null for other threads), and the index.
    static WORKER: Cell<(*const Shared, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// Where one region at a time is open.
#[derive(Debug)]
struct Gate {
    slot: Slot<Body>,
    counters: Counters,
}

/// What the workers and the pool's users share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where the workers are.
    home: fork::Home,
    workers: usize,
    /// How long an idle worker looks for work before it sleeps.
    spin: Duration,
    /// The same for the opener of a region that waits for the others.
    patience: Patience,
    stop: AtomicBool,
    /// A bit for every slot that may be joined: all that an idle worker looks at.
    open: Padded<AtomicU64>,
    gates: Box<[Padded<Gate>]>,
    jobs: Jobs,
    spawned: Spawned,
    /// Halves of joins that anybody may take.
    pub(crate) offers: Board,
    pub(crate) sleep: Sleep,
    reservations: Reservations,
    me: Weak<Self>,
}

impl Shared {
    fn new(home: fork::Home, workers: usize, spin: Duration, patience: Patience, me: Weak<Self>) -> Self {
        let slots = if workers == 0 { 0 } else { SLOTS };
        Self {
            home,
            workers,
            spin,
            patience,
            stop: AtomicBool::new(false),
            open: Padded(AtomicU64::new(0)),
            gates: (0..slots)
                .map(|_| Padded(Gate { slot: Slot::new(), counters: Counters::new(workers + 1) }))
                .collect(),
            jobs: Jobs::default(),
            spawned: Spawned::new(workers),
            offers: Board::new(workers),
            sleep: Sleep::new(workers),
            reservations: Reservations::new(workers),
            me,
        }
    }

    pub(crate) fn current(&self) -> Option<usize> {
        let (pool, index) = WORKER.get();
        ptr::eq(pool, self).then_some(index)
    }

    /// Whether the workers are in this process, not in the one that it was forked from.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub(crate) fn check_fork(&self) -> Result<(), Forked> {
        self.home.check()
    }

    /// The same for those that cannot return an error.
    #[inline]
    #[track_caller]
    pub(crate) fn expect_not_forked(&self) {
        self.home.expect();
    }

    /// The number of threads that a region can have when it is opened by the calling thread.
    #[inline]
    pub(crate) fn threads(&self) -> usize {
        self.workers + usize::from(self.current().is_none())
    }

    /// The block that the calling thread, which is inside a region, works on first in a static schedule: by thread, so that
    /// caches stay warm; or where not all threads take part by its place, so that no two have the same. The opener begins
    /// with the first one.
    pub(crate) fn home(&self) -> usize {
        match (current::participant(), self.current()) {
            (Some(me), _) if me.count() < self.workers => me.index(),
            (_, Some(worker)) => worker + 1,
            (_, None) => 0,
        }
    }

    /// Which workers belong to teams.
    pub(crate) fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// A free slot, for a region that the calling thread is about to open; `None` where all are taken.
    pub(crate) fn claim(&self) -> Option<Claimed<'_>> {
        let slot = self.gates.iter().position(|gate| gate.slot.try_claim())?;
        Some(Claimed { shared: self, slot })
    }

    /// Nobody needs to look at the slot any more.
    fn hide(&self, slot: usize) {
        if self.open.load(Relaxed) & 1 << slot != 0 {
            self.open.fetch_and(!(1 << slot), Relaxed);
        }
    }

    /// Whether there is anything that an idle worker could do.
    pub(crate) fn has_work(&self) -> bool {
        self.has_work_outside(0)
    }

    /// The same, leaving out the slots whose bits are set in `except`.
    fn has_work_outside(&self, except: u64) -> bool {
        let mut open = self.open.load(Acquire) & !except;
        while open != 0 {
            let slot = open.trailing_zeros() as usize;
            if self.gates[slot].slot.joinable() {
                return true;
            }
            open &= open - 1;
        }
        self.offers.any() || !self.jobs.is_empty() || !self.spawned.is_empty()
    }

    /// A worker's life.
    fn work(&self, index: usize) {
        WORKER.set((self, index));
        let _installed = current::install(self);
        denormals::reset();
        self.sleep.register(index);
        join::local::in_session(self, || self.look_for_work(index));
        // Thread-local destructors that run from here on may meet another pool at the same address.
        WORKER.set((ptr::null(), 0));
    }

    fn look_for_work(&self, index: usize) {
        self.sleep.start_search();
        let mut idle_since = None;
        loop {
            // Each has its turn: none can keep the others waiting for ever.
            if self.help()
                | join::help(self, index)
                | self.run_own(index)
                | self.run_next_job()
                | self.run_next_spawned(index)
            {
                idle_since = None;
                if self.check_fork().is_err() {
                    // What it did was to fork, and this is the child: all that is left is the parent's.
                    return;
                }
                owed::settle();
            } else if self.stop.load(SeqCst) && self.jobs.is_empty() && self.spawned.close(index) {
                // Looked at again after `stop` was seen: what was queued before that is run.
                break;
            } else {
                self.idle(index, &mut idle_since);
            }
        }
        self.sleep.end_search(|| self.has_work());
    }

    /// Joins an open region, if there is one, and works in it until nothing is left to claim.
    fn help(&self) -> bool {
        let mut open = self.open.load(Acquire);
        while open != 0 {
            let slot = open.trailing_zeros() as usize;
            open &= open - 1;
            let Gate { slot: door, counters } = &*self.gates[slot];
            let Some(seat) = door.join() else { continue };
            let body = seat.body();
            let surplus = || door.joinable() && body.surplus(counters);
            self.sleep.end_search(|| surplus() || self.has_work_outside(1 << slot));
            let entered = body.enter(self, seat.left());
            // SAFETY: `seat` counts this thread as inside the region.
            unsafe { body.participate(counters, self.home()) };
            // Everything is claimed: spare the others the way.
            door.shut();
            self.hide(slot);
            drop((seat, entered));
            self.sleep.start_search();
            return true;
        }
        false
    }

    fn run_next_job(&self) -> bool {
        let Some(job) = self.jobs.pop() else { return false };
        self.sleep.end_search(|| self.has_work());
        self.run_job(job);
        self.sleep.start_search();
        true
    }

    /// Runs all jobs that are queued, on the calling thread: in a pool without workers.
    fn run_queued(&self) {
        while self.check_fork().is_ok() {
            if let Some(job) = self.jobs.pop() {
                // As it would run on a worker.
                keep_denormals(|| self.run_job(job));
            } else if let Some(job) = self.spawned.pop() {
                self.run_spawned(&*job);
            } else {
                break;
            }
        }
    }

    fn run_job(&self, job: Arc<dyn Job>) {
        let _entered = current::enter(self, Participant::NONE);
        run_job(job);
    }

    /// Runs a job that was taken from the queue.
    fn run_spawned(&self, job: &dyn Runnable) {
        if !job.run(self) {
            self.spawned.popped_stale();
        }
    }

    /// Runs the oldest of the jobs that were spawned, and then those behind it while there is nothing else to do.
    fn run_next_spawned(&self, index: usize) -> bool {
        let Some(job) = self.spawned.pop() else { return false };
        self.sleep.end_search(|| self.has_work());
        self.run_spawned(&*job);
        drop(job);
        while self.open.load(Relaxed) == 0
            && self.jobs.is_empty()
            && !self.spawned.has_own(index)
            && let Some(job) = self.spawned.pop()
        {
            self.run_spawned(&*job);
        }
        self.sleep.start_search();
        true
    }

    /// Runs the oldest of the jobs that only this worker may run.
    fn run_own(&self, index: usize) -> bool {
        let Some(job) = self.spawned.pop_own(index) else { return false };
        self.sleep.end_search(|| self.has_work());
        job.run(self);
        self.sleep.start_search();
        true
    }

    /// To be called after jobs were queued.
    fn see_to_jobs(&self) {
        if self.workers == 0 {
            owed::see_to(self);
        } else {
            self.sleep.wake_one();
        }
    }

    /// Queues a spawned job.
    pub(crate) fn publish(&self, job: Arc<dyn Runnable>) {
        self.spawned.push(job);
        self.see_to_jobs();
    }

    /// Queues a spawned job for one worker.
    pub(crate) fn publish_on(&self, worker: usize, job: Arc<dyn Runnable>) -> Result<(), SpawnError> {
        self.spawned.push_own(worker, job)?;
        self.sleep.wake(worker);
        Ok(())
    }

    /// To be called by who has begun a spawned job without taking it from the queue.
    pub(crate) fn left_stale(&self) {
        if self.check_fork().is_ok() && self.spawned.left_stale() {
            self.see_to_jobs();
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn spawned(&self) -> &Spawned {
        &self.spawned
    }

    pub(crate) fn to_arc(&self) -> Arc<Self> {
        self.me.upgrade().expect("whoever has a reference has it from an owner")
    }

    /// Spins for a while; then sleeps until there is work.
    fn idle(&self, index: usize, since: &mut Option<Instant>) {
        let since = since.get_or_insert_with(Instant::now);
        for _ in 0..16 {
            crate::sync::pause();
        }
        if since.elapsed() >= self.spin {
            self.sleep
                .sleep(index, || self.has_work() || self.spawned.has_own(index) || self.stop.load(SeqCst));
            *since = Instant::now();
        }
    }
}

/// A claimed slot, and the region that is opened there. Dropping it closes the region and waits until everyone has
/// left.
#[derive(Debug)]
pub(crate) struct Claimed<'a> {
    shared: &'a Shared,
    slot: usize,
}

impl<'a> Claimed<'a> {
    /// The counters for the region's units.
    pub(crate) fn counters(&self) -> &'a Counters {
        &self.shared.gates[self.slot].counters
    }

    /// Opens the region for up to `seats` threads beside the caller.
    pub(crate) fn open(&self, body: Body, seats: usize) {
        self.shared.gates[self.slot].slot.open(body, seats);
        // Release: whoever sees the bit sees the slot open.
        self.shared.open.fetch_or(1 << self.slot, Release);
        self.shared.sleep.wake_one();
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.check_fork() {
            // Forked from inside the region: nobody is left to wait for, and what the others had begun is lost.
            assert!(std::thread::panicking(), "{error}");
            return;
        }
        self.shared.hide(self.slot);
        self.shared.gates[self.slot].slot.close(self.shared.patience);
    }
}
