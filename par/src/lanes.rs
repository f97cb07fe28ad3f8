//! Lanes: threads for jobs that may block, so that they never take a compute worker.
//!
//! A job that blocks must not hold up the jobs behind it, and a thousand jobs that do not block must not wake
//! dozens of threads on a machine with two processors. So a few lanes (the *eager* ones) are woken, or
//! started, as soon as there is a job for them. More are added only when the queue stands still: while jobs
//! wait, a *monitor* thread looks at the queue again and again, and adds a lane whenever no job was taken
//! since its last look. A lane that finds the queue empty spins for a moment and then sleeps; on one
//! processor it yields instead. Lanes with nothing to do use no processor.

use crate::{
    context::Marks,
    denormals::control,
    fork::{BuildProcess, Forked},
    jobs::{
        fifo::Fifo,
        job::{Job, run_caught},
    },
    patience::{self, Patience},
};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt, io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*, fence},
    },
    thread::JoinHandle,
    time::Duration,
};

/// How long a lane looks for the next job before it sleeps, if it may spin.
const SPIN: Duration = Duration::from_micros(30);

/// How long a lane that found no job spins before it looks again. If jobs come one by one faster than a lane
/// runs them, the lane would contend with the submitting thread for every cache line. So each time that it
/// finds a job at once, it waits twice as long the next time, and runs in one go the jobs that have come
/// meanwhile.
const PAUSE: Range<Duration> = Duration::from_micros(1)..Duration::from_micros(16);

/// How long the queue may stand still before another lane is added.
const STANDSTILL: Duration = Duration::from_micros(200);

/// Threads for jobs that may block.
///
/// A few lanes are woken as soon as there is a job for them, and more when the queue stands still. They are
/// started when they are needed, and stay.
///
/// ```
/// use anabranch_par::{Job, Lanes};
/// use std::sync::{Arc, mpsc};
///
/// struct Answer(mpsc::SyncSender<u32>);
/// impl Job for Answer {
///     fn run(self: Arc<Self>) {
///         self.0.send(42).unwrap();
///     }
/// }
///
/// let lanes: Lanes = Lanes::new(1, 16, "lane-")?;
/// let (sender, receiver) = mpsc::sync_channel(1);
/// lanes.submit(Arc::new(Answer(sender)));
/// assert_eq!(receiver.recv(), Ok(42));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Lanes<J: Job + ?Sized + 'static = dyn Job> {
    state: Arc<LanesState<J>>,
}

struct LanesState<J: ?Sized> {
    /// The process that the lanes are in.
    process: BuildProcess,
    /// Of a lane that finds no job.
    patience: Patience,
    jobs: Fifo<LaneJob<J>>,
    /// The number of lanes that look at the queue again and again.
    searching: AtomicUsize,
    /// Whether the queue needs no further lane now: enough lanes are awake, and the monitor is active or
    /// cannot add one.
    covered: AtomicBool,
    /// The number of jobs that lanes have taken. The monitor reads it.
    taken: AtomicUsize,
    threads: Mutex<LaneThreads>,
    wake: Condvar,
    wake_monitor: Condvar,
    eager: usize,
    max: usize,
    name: String,
}

/// A job in the queue, with the marks of the thread that submitted it.
struct LaneJob<J: ?Sized> {
    job: Arc<J>,
    marks: Marks,
}

#[derive(Default)]
struct LaneThreads {
    handles: Vec<JoinHandle<()>>,
    /// The number of lanes that have been started.
    lanes: usize,
    /// The number of lanes that do not sleep. Lanes that are being woken count.
    awake: usize,
    /// The number of lanes that are being woken and have not noticed yet.
    woken: usize,
    /// Whether the monitor looks at the queue.
    monitoring: bool,
    /// Whether the monitor's thread has been started.
    has_monitor: bool,
    stop: bool,
}

impl<J: Job + ?Sized> Lanes<J> {
    /// At most `max` lanes, of which `eager` are woken without waiting for the queue to stand still. One is
    /// started now, so that a later refusal of the system costs only concurrency. `name` is the beginning of
    /// the threads' names.
    ///
    /// # Errors
    /// If the system refuses the first thread.
    pub fn new(eager: usize, max: usize, name: impl Into<String>) -> io::Result<Self> {
        let (max, name) = (max.max(1), name.into());
        let state = Arc::new(LanesState {
            process: BuildProcess::this(&name)?,
            patience: Patience::spinning(SPIN, SPIN).on(patience::processors()),
            jobs: Fifo::default(),
            searching: AtomicUsize::new(0),
            covered: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            threads: Mutex::default(),
            wake: Condvar::new(),
            wake_monitor: Condvar::new(),
            eager: eager.clamp(1, max),
            max,
            name,
        });
        state.start_lane(&mut state.threads.lock())?;
        Ok(Self { state })
    }

    /// Hands over a job, which a lane runs some time later. Jobs begin in the order in which they were handed
    /// over.
    ///
    /// # Panics
    /// If this process was forked after the lanes were built.
    #[inline]
    pub fn submit(&self, job: Arc<J>) {
        self.submit_with(job, Marks::current());
    }

    /// Hands over a job like [`submit`](Self::submit), but without the [marks](Marks) that are set for the
    /// calling thread: for a job that does not belong to the work which the thread is in the middle of.
    ///
    /// # Panics
    /// See [`submit`](Self::submit).
    #[inline]
    pub fn submit_unmarked(&self, job: Arc<J>) {
        self.submit_with(job, Marks::default());
    }

    #[inline]
    fn submit_with(&self, job: Arc<J>, marks: Marks) {
        self.state.process.expect();
        self.state.jobs.push(LaneJob { job, marks });
        self.state.find_lane();
    }

    /// Takes the oldest job that no lane has taken yet, for the caller to run, with the caller's own
    /// [marks](Marks). In a process that was forked after the lanes were built there is none: the parent runs
    /// them all.
    #[inline]
    pub fn steal(&self) -> Option<Arc<J>> {
        self.check_fork().ok().and_then(|()| self.state.jobs.pop()).map(|queued| queued.job)
    }

    /// Whether this process has the lanes: not if it was forked after they were built.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub fn check_fork(&self) -> Result<(), Forked> {
        self.state.process.check()
    }

    /// The patience of a lane that finds no job.
    #[cfg(all(test, not(loom), target_os = "linux"))]
    pub(crate) fn patience(&self) -> Patience {
        self.state.patience
    }

    /// Ends the lanes when the queue is empty, and waits for them. In a process that was forked after they
    /// were built it does nothing.
    pub fn stop(&self) {
        if self.check_fork().is_err() {
            return;
        }
        let handles = {
            let mut threads = self.state.threads.lock();
            threads.stop = true;
            self.state.wake.notify_all();
            self.state.wake_monitor.notify_all();
            std::mem::take(&mut threads.handles)
        };
        let me = std::thread::current().id();
        for thread in handles.into_iter().filter(|t| t.thread().id() != me) {
            // A lane catches all panics of its jobs, so joining it returns no error.
            let _ = thread.join();
        }
    }
}

impl<J: Job + ?Sized + 'static> Drop for Lanes<J> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<J: Job + ?Sized + 'static> fmt::Debug for Lanes<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("max", &self.state.max).finish_non_exhaustive()
    }
}

impl<J: Job + ?Sized + 'static> LanesState<J> {
    /// Finds a lane for the jobs in the queue.
    #[inline]
    fn find_lane(self: &Arc<Self>) {
        // Pairs with the fences after a lane stops searching and after `covered` is cleared: either we see
        // that, or the thread that did it sees our job.
        fence(SeqCst);
        if self.searching.load(Relaxed) == 0 && !self.covered.load(Relaxed) {
            self.wake_or_start();
        }
    }

    /// Wakes or starts a lane or, if enough are awake, the monitor.
    #[cold]
    fn wake_or_start(self: &Arc<Self>) {
        let mut threads = self.threads.lock();
        if self.searching.load(Relaxed) > 0 || threads.stop {
            return;
        }
        if threads.awake < self.eager {
            // If the system refuses another thread, the lanes that there are will run the job.
            let _ = self.add_lane(&mut threads);
        } else if !threads.monitoring && threads.awake < self.max {
            // If the system refuses the monitor, the next thread that submits a job tries again.
            threads.has_monitor = threads.has_monitor || self.start_monitor(&mut threads).is_ok();
            threads.monitoring = threads.has_monitor;
            self.wake_monitor.notify_one();
        }
        let enough = threads.awake >= self.eager && (threads.monitoring || threads.awake >= self.max);
        self.covered.store(enough, Relaxed);
    }

    /// Adds a lane: wakes one that sleeps, or starts a new one.
    fn add_lane(self: &Arc<Self>, threads: &mut LaneThreads) -> io::Result<()> {
        if threads.awake < threads.lanes {
            threads.awake += 1;
            threads.woken += 1;
            self.wake.notify_one();
            Ok(())
        } else {
            self.start_lane(threads)
        }
    }

    fn start_lane(self: &Arc<Self>, threads: &mut LaneThreads) -> io::Result<()> {
        let state = Arc::clone(self);
        let name = format!("{}{}", self.name, threads.lanes);
        threads.handles.push(std::thread::Builder::new().name(name).spawn(move || state.main_loop())?);
        threads.lanes += 1;
        threads.awake += 1;
        Ok(())
    }

    fn start_monitor(self: &Arc<Self>, threads: &mut LaneThreads) -> io::Result<()> {
        let state = Arc::clone(self);
        let name = format!("{}monitor", self.name);
        threads.handles.push(std::thread::Builder::new().name(name).spawn(move || state.monitor())?);
        Ok(())
    }

    /// The main loop of a lane.
    fn main_loop(self: &Arc<Self>) {
        control::reset();
        let mut pause = PAUSE.start;
        loop {
            while let Some(LaneJob { job, marks }) = self.search(&mut pause) {
                marks.enter(|| run_caught(job));
            }
            let mut threads = self.threads.lock();
            threads.awake -= 1;
            self.uncover();
            if !self.jobs.is_empty() {
                // A job came after our search.
                threads.awake += 1;
                continue;
            }
            while threads.woken == 0 {
                if threads.stop {
                    return;
                }
                self.wake.wait(&mut threads);
            }
            threads.woken -= 1;
        }
    }

    /// The next job, if one comes soon. `pause` is how long to wait before looking again.
    fn search(self: &Arc<Self>, pause: &mut Duration) -> Option<LaneJob<J>> {
        if let Some(job) = self.take() {
            // The thread that woke or started this lane relies on it to find a lane for the next job.
            if !self.covered.load(Relaxed) && !self.jobs.is_empty() {
                self.find_lane();
            }
            return Some(job);
        }
        self.searching.fetch_add(1, SeqCst);
        let mut patience = self.patience;
        let mut looks = 0;
        let job = loop {
            let job = self.take();
            if job.is_some() || !patience.pause_for(*pause) {
                break job;
            }
            looks += 1;
            *pause = if looks == 1 { *pause } else { PAUSE.start };
        };
        if looks == 1 && job.is_some() {
            *pause = (*pause * 2).min(PAUSE.end);
        }
        self.searching.fetch_sub(1, SeqCst);
        // The thread that submitted a job may have relied on our search.
        fence(SeqCst);
        let job = job.or_else(|| self.take());
        if job.is_some() && !self.jobs.is_empty() {
            self.find_lane();
        }
        job
    }

    fn take(&self) -> Option<LaneJob<J>> {
        let job = self.jobs.pop();
        if job.is_some() {
            self.taken.fetch_add(1, Relaxed);
        }
        job
    }

    /// Fewer lanes are awake, or the monitor stops: a thread that submits a job must look for a lane again.
    fn uncover(&self) {
        self.covered.store(false, Relaxed);
        // Pairs with the fence in `find_lane`.
        fence(SeqCst);
    }

    /// The main loop of the monitor: adds lanes while the queue stands still.
    fn monitor(self: &Arc<Self>) {
        let mut threads = self.threads.lock();
        while !threads.stop {
            if !threads.monitoring {
                self.wake_monitor.wait(&mut threads);
                continue;
            }
            let before = self.taken.load(Relaxed);
            self.wake_monitor.wait_for(&mut threads, STANDSTILL);
            let standstill = self.taken.load(Relaxed) == before && !self.jobs.is_empty();
            if standstill && threads.awake < self.max && !threads.stop {
                // If the system refuses, the lanes that there are will run the jobs.
                let _ = self.add_lane(&mut threads);
            }
            if self.jobs.is_empty() || threads.awake >= self.max {
                threads.monitoring = false;
                self.uncover();
                // A job may have come just now.
                threads.monitoring = !self.jobs.is_empty() && threads.awake < self.max;
            }
        }
    }
}
