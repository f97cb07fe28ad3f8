//! Lanes: threads for jobs that may block, so that they never take a compute worker.
//!
//! A job that blocks must not hold up those behind it, and a thousand that do not must not wake a crowd of threads on a
//! machine with two processors. So a few lanes (the *eager* ones) are woken, or started, as soon as there is a job for
//! them; more only when the queue stands still: a watch looks at it as long as jobs are waiting, and adds a lane
//! whenever none was taken since it looked last. Lanes that find the queue empty look around for a moment and then
//! sleep; a set of lanes with nothing to do uses no processor.

use crate::{
    Forked,
    fork::Home,
    thread_pool::{Job, Jobs, run_job},
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
    time::{Duration, Instant},
};

/// How long a lane looks for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(30);

/// How long a lane that has run dry waits before it looks again. Where jobs come one by one faster than a lane runs them, it
/// would fight for every line of memory with whoever hands them over; so each time that it finds something at once, it
/// waits twice as long the next time, and what has come in meanwhile is run in one go.
const PAUSE: Range<Duration> = Duration::from_micros(1)..Duration::from_micros(16);

/// How long the queue may stand still before another lane is added.
const STANDSTILL: Duration = Duration::from_micros(200);

/// Threads for jobs that may block.
///
/// A few lanes are woken as soon as there is a job for them, more when the queue stands still; they are started when they
/// are needed, and stay.
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
    shared: Arc<Shared<J>>,
}

struct Shared<J: ?Sized> {
    /// Where the lanes are.
    home: Home,
    jobs: Jobs<J>,
    /// Lanes that look at the queue again and again.
    searching: AtomicUsize,
    /// Whether everything is done that can be for jobs in the queue: enough lanes are awake, and the watch is on.
    covered: AtomicBool,
    /// How many jobs lanes have taken: what the watch looks at.
    taken: AtomicUsize,
    crew: Mutex<Crew>,
    wake: Condvar,
    wake_watch: Condvar,
    eager: usize,
    max: usize,
    name: String,
}

#[derive(Default)]
struct Crew {
    threads: Vec<JoinHandle<()>>,
    /// Lanes that have been started.
    lanes: usize,
    /// Lanes that do not sleep; those that are being woken count.
    awake: usize,
    /// How many of them are being woken and have not noticed yet.
    woken: usize,
    /// Whether the watch runs, and whether its thread exists.
    watching: bool,
    has_watch: bool,
    stop: bool,
}

impl<J: Job + ?Sized> Lanes<J> {
    /// At most `max` lanes, of which `eager` are woken without waiting for the queue to stand still. One is started now,
    /// so that a later refusal of the system costs only concurrency. `name` is the beginning of the threads' names.
    ///
    /// # Errors
    /// Where the system refuses the first thread.
    pub fn new(eager: usize, max: usize, name: impl Into<String>) -> io::Result<Self> {
        let (max, name) = (max.max(1), name.into());
        let shared = Arc::new(Shared {
            home: Home::here(&name)?,
            jobs: Jobs::default(),
            searching: AtomicUsize::new(0),
            covered: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            crew: Mutex::default(),
            wake: Condvar::new(),
            wake_watch: Condvar::new(),
            eager: eager.clamp(1, max),
            max,
            name,
        });
        shared.start_lane(&mut shared.crew.lock())?;
        Ok(Self { shared })
    }

    /// Hands over a job: a lane runs it some time later. Jobs begin in the order in which they were handed over.
    ///
    /// # Panics
    /// If this process was forked after the lanes were built.
    #[inline]
    pub fn submit(&self, job: Arc<J>) {
        self.shared.home.expect();
        self.shared.jobs.push(job);
        self.shared.provide();
    }

    /// Takes the oldest job that no lane has taken yet, for the caller to run. In a process that was forked after the lanes
    /// were built there is none: they are all run in the parent.
    #[inline]
    pub fn steal(&self) -> Option<Arc<J>> {
        self.check_fork().ok().and_then(|()| self.shared.jobs.pop())
    }

    /// Whether this process has the lanes: not if it was forked after they were built.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub fn check_fork(&self) -> Result<(), Forked> {
        self.shared.home.check()
    }

    /// Ends the lanes when the queue is empty, and waits for them. In a process that was forked after they were built it
    /// does nothing.
    pub fn stop(&self) {
        if self.check_fork().is_err() {
            return;
        }
        let threads = {
            let mut crew = self.shared.crew.lock();
            crew.stop = true;
            self.shared.wake.notify_all();
            self.shared.wake_watch.notify_all();
            std::mem::take(&mut crew.threads)
        };
        let me = std::thread::current().id();
        for thread in threads.into_iter().filter(|t| t.thread().id() != me) {
            // A lane catches everything that its jobs throw; there is nothing to hear from it.
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
        f.debug_struct("Lanes").field("max", &self.shared.max).finish_non_exhaustive()
    }
}

impl<J: Job + ?Sized + 'static> Shared<J> {
    /// Sees to it that somebody comes for the jobs in the queue.
    #[inline]
    fn provide(self: &Arc<Self>) {
        // Pairs with the fences where a lane stops searching and where `covered` is taken back: either we see that, or
        // whoever did it sees our job.
        fence(SeqCst);
        if self.searching.load(Relaxed) == 0 && !self.covered.load(Relaxed) {
            self.rouse();
        }
    }

    /// Wakes or starts a lane, or where enough are awake the watch.
    #[cold]
    fn rouse(self: &Arc<Self>) {
        let mut crew = self.crew.lock();
        if self.searching.load(Relaxed) > 0 || crew.stop {
            return;
        }
        if crew.awake < self.eager {
            // If the system refuses another thread, those that there are will come to the job.
            let _ = self.add_lane(&mut crew);
        } else if !crew.watching && crew.awake < self.max {
            // If the system refuses the watch, the next one who comes tries again.
            crew.has_watch = crew.has_watch || self.start_watch(&mut crew).is_ok();
            crew.watching = crew.has_watch;
            self.wake_watch.notify_one();
        }
        let enough = crew.awake >= self.eager && (crew.watching || crew.awake >= self.max);
        self.covered.store(enough, Relaxed);
    }

    /// One lane more: one that sleeps, or a new one.
    fn add_lane(self: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        if crew.awake < crew.lanes {
            crew.awake += 1;
            crew.woken += 1;
            self.wake.notify_one();
            Ok(())
        } else {
            self.start_lane(crew)
        }
    }

    fn start_lane(self: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        let shared = Arc::clone(self);
        let name = format!("{}{}", self.name, crew.lanes);
        crew.threads.push(std::thread::Builder::new().name(name).spawn(move || shared.work())?);
        crew.lanes += 1;
        crew.awake += 1;
        Ok(())
    }

    fn start_watch(self: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        let shared = Arc::clone(self);
        let name = format!("{}watch", self.name);
        crew.threads.push(std::thread::Builder::new().name(name).spawn(move || shared.watch())?);
        Ok(())
    }

    /// A lane's life.
    fn work(self: &Arc<Self>) {
        crate::denormals::reset();
        let mut pause = PAUSE.start;
        loop {
            while let Some(job) = self.search(&mut pause) {
                run_job(job);
            }
            let mut crew = self.crew.lock();
            crew.awake -= 1;
            self.uncover();
            if !self.jobs.is_empty() {
                // It came after our search.
                crew.awake += 1;
                continue;
            }
            while crew.woken == 0 {
                if crew.stop {
                    return;
                }
                self.wake.wait(&mut crew);
            }
            crew.woken -= 1;
        }
    }

    /// The next job, if one comes soon. `pause`: how long to wait before looking again.
    fn search(self: &Arc<Self>, pause: &mut Duration) -> Option<Arc<J>> {
        if let Some(job) = self.take() {
            return Some(job);
        }
        self.searching.fetch_add(1, SeqCst);
        let begin = Instant::now();
        let mut looks = 0;
        let job = loop {
            let job = self.take();
            if job.is_some() || begin.elapsed() >= SPIN {
                break job;
            }
            looks += 1;
            let looked = Instant::now();
            while looked.elapsed() < *pause {
                (0..8).for_each(|_| std::hint::spin_loop());
            }
            *pause = if looks == 1 { *pause } else { PAUSE.start };
        };
        if looks == 1 && job.is_some() {
            *pause = (*pause * 2).min(PAUSE.end);
        }
        self.searching.fetch_sub(1, SeqCst);
        // Somebody may have handed over a job and relied on our search.
        fence(SeqCst);
        let job = job.or_else(|| self.take());
        if job.is_some() && !self.jobs.is_empty() {
            self.provide();
        }
        job
    }

    fn take(&self) -> Option<Arc<J>> {
        let job = self.jobs.pop();
        if job.is_some() {
            self.taken.fetch_add(1, Relaxed);
        }
        job
    }

    /// Lanes or the watch have become fewer: whoever hands over a job must look again.
    fn uncover(&self) {
        self.covered.store(false, Relaxed);
        // Pairs with the fence in `provide`.
        fence(SeqCst);
    }

    /// The watch's life: adds lanes while the queue stands still.
    fn watch(self: &Arc<Self>) {
        let mut crew = self.crew.lock();
        while !crew.stop {
            if !crew.watching {
                self.wake_watch.wait(&mut crew);
                continue;
            }
            let before = self.taken.load(Relaxed);
            self.wake_watch.wait_for(&mut crew, STANDSTILL);
            let standstill = self.taken.load(Relaxed) == before && !self.jobs.is_empty();
            if standstill && crew.awake < self.max && !crew.stop {
                // If the system refuses, the lanes that there are will come to the jobs.
                let _ = self.add_lane(&mut crew);
            }
            if self.jobs.is_empty() || crew.awake >= self.max {
                crew.watching = false;
                self.uncover();
                // It may have come just now.
                crew.watching = !self.jobs.is_empty() && crew.awake < self.max;
            }
        }
    }
}
