//! Models of how halves are offered, stolen, taken back and waited for: see `crate::models`.

use super::{half::Head, latch::Outcome, offers::Offers, wait::wait};
use crate::{
    context::Context,
    models::{large_model, model},
    patience::Patience,
    sync::{
        UnsafeCell,
        atomic::{Ordering::*, fence},
        thread,
    },
    thread_pool::{
        search::{Work, search},
        sleep::Sleep,
    },
};
use loom::sync::Arc;
use std::cell::Cell;

type Part = Box<dyn FnOnce() + Send>;

/// Runs all parts at the same time, none of them on the thread that waits for the threads: loom would take a
/// late wake-up for the end of a thread.
fn run_all(parts: impl IntoIterator<Item = Part>) {
    let threads: Vec<_> = parts.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// A half with a result that loom watches. First it offers the half `inside`, if there is one.
#[repr(C)]
struct Piece {
    head: Head,
    result: UnsafeCell<usize>,
    inside: Option<(Arc<Offers>, usize, Arc<Piece>)>,
}

// SAFETY: the models reach it as the offers and the latch allow, and loom checks the result.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    fn new(inside: Option<(Arc<Offers>, usize, Arc<Piece>)>) -> Arc<Self> {
        Arc::new(Self { head: Head::new(Some(Self::run)), result: UnsafeCell::new(0), inside })
    }

    unsafe fn run(head: *const Head) {
        // SAFETY: `Piece` is `repr(C)` and begins with the head.
        let piece = unsafe { &*head.cast::<Self>() };
        if let Some((offers, cell, inner)) = &piece.inside {
            inner.offer(offers, *cell);
            fence(SeqCst);
            // SAFETY: this half was offered, so it is prepared.
            unsafe { (*Head::share(head)).latch.wake_owner() };
            inner.reclaim(offers, *cell);
        }
        // SAFETY: the thread that runs a half has it alone; loom reports a race otherwise.
        piece.result.with_mut(|r| unsafe { *r += 1 });
    }

    fn pointer(&self) -> *const Head {
        std::ptr::from_ref(self).cast()
    }

    fn offer(&self, offers: &Offers, cell: usize) {
        self.head.prepare(false, Context::capture());
        offers.offer(cell, self.pointer());
    }

    fn await_outcome(&self, offers: &Offers) -> Outcome {
        // SAFETY: it was offered, so it is prepared.
        let share = unsafe { &*Head::share(self.pointer()) };
        wait(offers, &Sleep::new(0), Patience::SHORT, share, false, |_| {
            unreachable!("this thread does not help")
        })
    }

    /// Gets an offered half back and runs it if no thief has, as a join does.
    fn reclaim(&self, offers: &Offers, cell: usize) {
        if offers.take_back(cell, self.pointer()) || self.await_outcome(offers) == Outcome::Returned {
            // SAFETY: this thread alone has it.
            unsafe { Self::run(self.pointer()) };
        }
        self.leave();
    }

    /// The frame of the half ends: the half has been run once, and no thread touches it any more.
    fn leave(&self) {
        // SAFETY: the protocol guarantees it; loom reports a race otherwise.
        self.result.with_mut(|r| unsafe { assert_eq!(std::mem::replace(&mut *r, 100), 1, "run once") });
        // SAFETY: as above.
        unsafe { self.head.clear() };
    }
}

/// A thread that looks once for an offer, and runs it.
fn thief(offers: &Arc<Offers>, cell: usize) -> Part {
    let offers = Arc::clone(offers);
    Box::new(move || {
        if let Some(stolen) = offers.steal(cell) {
            // SAFETY: it was just stolen.
            unsafe { Head::run(stolen, cell, || ()) };
        }
    })
}

#[test]
fn a_half_is_run_once() {
    model(|| {
        let offers = Arc::new(Offers::new(2));
        let thief = thief(&offers, 0);
        let owner = move || {
            let half = Piece::new(None);
            half.offer(&offers, 1);
            half.reclaim(&offers, 1);
            assert!(!offers.any());
        };
        run_all([thief, Box::new(owner)]);
    });
}

#[test]
fn two_thieves_and_two_halves() {
    large_model(|| {
        let offers = Arc::new(Offers::new(3));
        let (one, two) = (thief(&offers, 0), thief(&offers, 1));
        let owner = move || {
            for half in [Piece::new(None), Piece::new(None)] {
                half.offer(&offers, 2);
                half.reclaim(&offers, 2);
            }
        };
        run_all([one, two, Box::new(owner)]);
    });
}

/// The owner of a half helps its thief. It must not run a half that the thief offers in the same cell after
/// the end of the stolen one.
#[test]
fn a_thread_that_waits_runs_descendants_only() {
    model(|| {
        let offers = Arc::new(Offers::new(2));
        let inner = Piece::new(None);
        let half = Piece::new(Some((Arc::clone(&offers), 0, Arc::clone(&inner))));
        let thief = {
            let offers = Arc::clone(&offers);
            move || {
                if let Some(stolen) = offers.steal_from(1) {
                    // SAFETY: it was just stolen.
                    unsafe { Head::run(stolen, 0, || ()) };
                    let unrelated = Piece::new(None);
                    unrelated.offer(&offers, 0);
                    unrelated.reclaim(&offers, 0);
                }
            }
        };
        let owner = move || {
            half.offer(&offers, 1);
            if offers.take_back(1, half.pointer()) {
                // SAFETY: this thread alone has it.
                unsafe { Piece::run(half.pointer()) };
            } else {
                // SAFETY: it was offered, so it is prepared.
                let share = unsafe { &*Head::share(half.pointer()) };
                let run = |stolen| {
                    assert_eq!(stolen, inner.pointer());
                    // SAFETY: it was just stolen.
                    unsafe { Head::run(stolen, 1, || ()) };
                };
                let outcome = wait(&offers, &Sleep::new(0), Patience::SHORT, share, true, run);
                assert_ne!(outcome, Outcome::Returned);
            }
            half.leave();
        };
        run_all([Box::new(thief) as Part, Box::new(owner)]);
    });
}

/// A worker that runs one half.
struct Thief<'a> {
    offers: &'a Offers,
    sleep: &'a Sleep,
    ran: &'a Cell<bool>,
}

impl Work for Thief<'_> {
    const KINDS: usize = 1;

    fn help(&self, _: usize) -> bool {
        let Some(stolen) = self.offers.steal(0) else { return false };
        self.sleep.end_search(|| self.offers.any());
        // SAFETY: it was just stolen.
        unsafe { Head::run(stolen, 0, || ()) };
        self.ran.set(true);
        true
    }

    fn is_left(&self) -> bool {
        self.offers.any()
    }

    fn is_over(&self) -> bool {
        self.ran.get()
    }
}

/// The owner relies on the worker to run the half. If a wake-up were lost, loom would report a deadlock.
#[test]
fn an_offer_wakes_a_sleeper() {
    model(|| {
        let (offers, sleep) = (Arc::new(Offers::new(1)), Arc::new(Sleep::new(1)));
        let worker = {
            let (offers, sleep) = (Arc::clone(&offers), Arc::clone(&sleep));
            move || {
                sleep.register(0);
                let ran = Cell::new(false);
                search(&sleep, 0, &Patience::SHORT, &Thief { offers: &offers, sleep: &sleep, ran: &ran });
            }
        };
        let owner = move || {
            let half = Piece::new(None);
            half.offer(&offers, 1);
            sleep.wake_one();
            assert_ne!(half.await_outcome(&offers), Outcome::Returned);
            half.leave();
        };
        run_all([Box::new(worker) as Part, Box::new(owner)]);
    });
}

/// Two threads from outside, and one cell to lend.
#[test]
fn a_lent_cell_has_one_owner() {
    model(|| {
        let offers = Arc::new(Offers::new(1));
        let guest = || -> Part {
            let offers = Arc::clone(&offers);
            Box::new(move || {
                if let Some(cell) = offers.lend() {
                    let half = Piece::new(None);
                    half.offer(&offers, cell);
                    half.reclaim(&offers, cell);
                    offers.give_back(cell);
                }
            })
        };
        run_all([guest(), guest()]);
        assert!(offers.lend().is_some());
    });
}
