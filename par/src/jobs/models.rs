//! Models of a job's cell and of a scope's count, checked by loom: see the crate's `models`.

use super::{
    cell::{JobCell, Outcome, Owner},
    pending::Pending,
    ticket::Ticket,
};
use crate::{
    models::model,
    panic::Payload,
    patience::Patience,
    sync::{
        atomic::{AtomicUsize, Ordering::*, fence},
        thread,
    },
};
use loom::cell::UnsafeCell;
use std::sync::Arc;

/// A result that must be dropped once, by one thread.
struct Result(Arc<Drops>);

#[derive(Default)]
struct Drops {
    count: AtomicUsize,
    /// Written by the thread that drops the result, so loom reports a race if two do.
    place: Place,
}

struct Place(UnsafeCell<usize>);
impl Default for Place {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}
// SAFETY: loom checks every access.
unsafe impl Sync for Place {}

impl Drop for Result {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Relaxed);
        // SAFETY: loom reports it if this races with another write.
        self.0.place.0.with_mut(|p| unsafe { *p += 1 });
    }
}

struct Free;

impl Owner for Free {
    fn lost(&self, _: Payload) {
        panic!("no job panics here");
    }
    fn finished(&self) {}
}

fn call<R>(f: impl FnOnce() -> R) -> Outcome<R> {
    Ok(f())
}

/// A worker and the joiner both want to run the job. One of them does, and the joiner gets the result, not
/// before it is there. If the wake-up were lost, loom would report a deadlock.
#[test]
fn a_job_is_run_once_and_its_result_is_the_joiners() {
    model(|| {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let job = Arc::new(JobCell::new(move || counted.fetch_add(1, Relaxed) + 41, Free));
        let worker = {
            let job = Arc::clone(&job);
            thread::spawn(move || job.run(call))
        };
        let here = job.run_here(call);
        let ran_here = here.is_some();
        let result = here.unwrap_or_else(|| job.wait(Patience::SHORT));
        assert!(matches!(result, Ok(41)));
        assert_eq!(worker.join().unwrap(), !ran_here);
        assert_eq!(runs.load(Relaxed), 1);
    });
}

/// When `wait` returns, the joiner sees what the job wrote, and the worker does not touch the result any
/// more.
#[test]
fn a_job_is_waited_for() {
    model(|| {
        let drops = Arc::new(Drops::default());
        let inner = Arc::clone(&drops);
        let job = Arc::new(JobCell::new(move || Result(inner), Free));
        let worker = {
            let job = Arc::clone(&job);
            thread::spawn(move || assert!(job.run(call)))
        };
        drop(job.wait(Patience::SHORT));
        // SAFETY: the result was dropped by this thread.
        assert_eq!(drops.place.0.with(|p| unsafe { *p }), 1);
        worker.join().unwrap();
    });
}

/// The handle is dropped while a worker ends the job. One of the two threads drops the result.
#[test]
fn a_result_without_a_handle_is_dropped_once() {
    model(|| {
        let drops = Arc::new(Drops::default());
        let inner = Arc::clone(&drops);
        let job = Arc::new(JobCell::new(move || Result(inner), Free));
        let worker = {
            let job = Arc::clone(&job);
            thread::spawn(move || assert!(job.run(call)))
        };
        job.detach();
        worker.join().unwrap();
        assert_eq!(drops.count.load(Relaxed), 1);
    });
}

/// A pointer to a count that the opener reads once it has seen the last job end.
#[derive(Clone, Copy)]
struct Pointer(*const UnsafeCell<usize>);
// SAFETY: the models keep the target alive, and loom checks every access to it.
unsafe impl Send for Pointer {}

impl Pointer {
    fn add(self) {
        // SAFETY: as above; the models' jobs write one after the other, or loom reports it.
        unsafe { (*self.0).with_mut(|v| *v += 1) };
    }
}

/// The opener waits for two jobs, of which the first counts the second: it sees what both did, and no wake-up
/// is lost.
#[test]
fn the_opener_sees_what_its_jobs_did() {
    model(|| {
        let pending = Arc::new(Pending::new());
        let target = Arc::new(UnsafeCell::new(0));
        let pointer = Pointer(&*target);
        pending.add();
        let first = {
            let pending = Arc::clone(&pending);
            thread::spawn(move || {
                pending.add();
                let second = {
                    let pending = Arc::clone(&pending);
                    pointer.add();
                    thread::spawn(move || {
                        pointer.add();
                        pending.finish();
                    })
                };
                pending.finish();
                second
            })
        };
        assert!(pending.wait(Patience::SHORT, || false));
        // SAFETY: both jobs have ended. If one had not, loom would report the race.
        assert_eq!(target.with(|v| unsafe { *v }), 2);
        first.join().unwrap().join().unwrap();
    });
}

/// A job spawns another one while the opener waits, and only the opener can run it.
#[test]
fn the_opener_wakes_up_for_a_job_that_is_spawned_while_it_waits() {
    model(|| {
        let pending = Arc::new(Pending::new());
        let list = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        pending.add();
        let job = {
            let (pending, list, done) = (Arc::clone(&pending), Arc::clone(&list), Arc::clone(&done));
            thread::spawn(move || {
                pending.add();
                list.fetch_add(1, Relaxed);
                fence(SeqCst);
                pending.wake_opener();
                pending.finish();
                done.store(1, Relaxed);
            })
        };
        let mut ran = 0;
        while !pending.wait(Patience::SHORT, || list.load(Relaxed) > 0) {
            list.fetch_sub(1, Relaxed);
            ran += 1;
            pending.finish();
        }
        assert_eq!(ran, 1);
        // A wake-up may come late, which loom does not allow for a thread that joins another one.
        while done.load(Relaxed) == 0 {
            thread::yield_now();
        }
        job.join().unwrap();
    });
}

/// Two threads spawn a job each, and a worker takes tickets. In the end no job waits without a ticket, and
/// there are no two tickets.
#[test]
fn a_job_that_waits_has_a_ticket() {
    model(|| {
        let ticket = Arc::new(Ticket::default());
        let [jobs, tickets] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let spawn = |ticket: &Ticket, jobs: &AtomicUsize, tickets: &AtomicUsize| {
            jobs.fetch_add(1, Relaxed);
            fence(SeqCst);
            if !ticket.is_queued() && ticket.queue() {
                assert_eq!(tickets.fetch_add(1, Relaxed), 0);
            }
        };
        let spawner = {
            let (ticket, jobs, tickets) = (Arc::clone(&ticket), Arc::clone(&jobs), Arc::clone(&tickets));
            thread::spawn(move || spawn(&ticket, &jobs, &tickets))
        };
        let worker = {
            let (ticket, jobs, tickets) = (Arc::clone(&ticket), Arc::clone(&jobs), Arc::clone(&tickets));
            thread::spawn(move || {
                for _ in 0..2 {
                    if tickets.load(Relaxed) == 0 {
                        continue;
                    }
                    tickets.fetch_sub(1, Relaxed);
                    assert!(!ticket.take());
                    jobs.swap(0, Relaxed);
                }
            })
        };
        spawn(&ticket, &jobs, &tickets);
        spawner.join().unwrap();
        worker.join().unwrap();
        let waiting = jobs.load(Relaxed);
        assert!(waiting == 0 || tickets.load(Relaxed) == 1, "{waiting} jobs wait");
        // The scope ends: the ticket that is left is counted as stale, and found to be so.
        let is_left = ticket.close();
        assert_eq!(is_left, tickets.load(Relaxed) == 1);
        assert!(ticket.take());
    });
}

/// A worker has taken the ticket, and finds entries of jobs that have ended elsewhere while the scope ends. A
/// ticket that is left is counted as stale, and no other one is.
#[test]
fn a_ticket_that_is_left_is_counted() {
    model(|| {
        let ticket = Arc::new(Ticket::default());
        assert!(ticket.queue());
        assert!(!ticket.take());
        let worker = {
            let ticket = Arc::clone(&ticket);
            thread::spawn(move || ticket.queue())
        };
        let is_counted = ticket.close();
        assert_eq!(is_counted, worker.join().unwrap());
    });
}
