//! Models of how halves are offered, taken, taken back and answered for: see `crate::models`.

use super::{board::Board, half::Head, latch::Outcome};
use crate::{
    sync::{
        UnsafeCell,
        atomic::{Ordering::*, fence},
        thread,
    },
    thread_pool::sleep::Sleep,
};
use loom::sync::Arc;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

type Part = Box<dyn FnOnce() + Send>;

/// Runs all parts at the same time. None of them on the thread that waits for the others: loom takes a wake-up that comes late
/// for the end of what that thread waits for.
fn run_all(parts: impl IntoIterator<Item = Part>) {
    let threads: Vec<_> = parts.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// A half with a result that loom watches. `inside` is what it does first.
#[repr(C)]
struct Piece {
    head: Head,
    result: UnsafeCell<usize>,
    inside: Option<(Arc<Board>, usize, Arc<Piece>)>,
}

// SAFETY: the models reach it as the board and the latch allow, and loom checks the result.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    fn new(inside: Option<(Arc<Board>, usize, Arc<Piece>)>) -> Arc<Self> {
        Arc::new(Self { head: Head::new(Some(Self::run)), result: UnsafeCell::new(0), inside })
    }

    unsafe fn run(head: *const Head) {
        // SAFETY: `Piece` is `repr(C)` and begins with the head.
        let piece = unsafe { &*head.cast::<Self>() };
        if let Some((board, cell, inner)) = &piece.inside {
            inner.offer(board, *cell);
            fence(SeqCst);
            // SAFETY: this half was offered, so it is prepared.
            unsafe { (*Head::share(head)).latch.nudge() };
            inner.settle(board, *cell);
        }
        // SAFETY: who runs a half has it alone; loom reports it where that is not so.
        piece.result.with_mut(|r| unsafe { *r += 1 });
    }

    fn pointer(&self) -> *const Head {
        std::ptr::from_ref(self).cast()
    }

    fn offer(&self, board: &Board, cell: usize) {
        self.head.prepare(false);
        board.offer(cell, self.pointer());
    }

    fn await_outcome(&self) -> Outcome {
        // SAFETY: it was offered, so it is prepared.
        let latch = unsafe { &(*Head::share(self.pointer())).latch };
        latch.announce();
        loop {
            match latch.outcome() {
                Some(outcome) => return outcome,
                None => thread::park(),
            }
        }
    }

    /// What a join does when it comes to a half that was offered.
    fn settle(&self, board: &Board, cell: usize) {
        if board.take_back(cell, self.pointer()) || self.await_outcome() == Outcome::Returned {
            // SAFETY: it is this thread's alone.
            unsafe { Self::run(self.pointer()) };
        }
        self.leave();
    }

    /// The frame of the half goes: it has been run once, and nobody touches it any more.
    fn leave(&self) {
        // SAFETY: the protocol says so; loom reports a race where it is not true.
        self.result.with_mut(|r| unsafe { assert_eq!(std::mem::replace(&mut *r, 100), 1, "run once") });
        // SAFETY: as above.
        unsafe { self.head.clear() };
    }
}

/// A thread that looks once whether there is something to take, and runs it.
fn thief(board: &Arc<Board>, cell: usize) -> Part {
    let board = Arc::clone(board);
    Box::new(move || {
        if let Some(taken) = board.take(cell) {
            // SAFETY: it was just taken.
            unsafe { Head::run(taken, cell, || ()) };
        }
    })
}

#[test]
fn a_half_is_run_once() {
    model(|| {
        let board = Arc::new(Board::new(2));
        let thief = thief(&board, 0);
        let owner = move || {
            let half = Piece::new(None);
            half.offer(&board, 1);
            half.settle(&board, 1);
            assert!(!board.any());
        };
        run_all([thief, Box::new(owner)]);
    });
}

#[test]
fn two_thieves_and_two_halves() {
    model(|| {
        let board = Arc::new(Board::new(3));
        let (one, two) = (thief(&board, 0), thief(&board, 1));
        let owner = move || {
            for half in [Piece::new(None), Piece::new(None)] {
                half.offer(&board, 2);
                half.settle(&board, 2);
            }
        };
        run_all([one, two, Box::new(owner)]);
    });
}

/// The owner of a half helps its thief. What the thief offers when it has done the half, from the same cell, is none
/// of its business.
#[test]
fn who_waits_runs_descendants_only() {
    model(|| {
        let board = Arc::new(Board::new(2));
        let inner = Piece::new(None);
        let half = Piece::new(Some((Arc::clone(&board), 0, Arc::clone(&inner))));
        let thief = {
            let board = Arc::clone(&board);
            move || {
                if let Some(taken) = board.take_from(1) {
                    // SAFETY: it was just taken.
                    unsafe { Head::run(taken, 0, || ()) };
                    let unrelated = Piece::new(None);
                    unrelated.offer(&board, 0);
                    unrelated.settle(&board, 0);
                }
            }
        };
        let owner = move || {
            half.offer(&board, 1);
            if board.take_back(1, half.pointer()) {
                // SAFETY: it is this thread's alone.
                unsafe { Piece::run(half.pointer()) };
            } else {
                // SAFETY: it was offered, so it is prepared.
                let share = unsafe { &*Head::share(half.pointer()) };
                share.latch.announce();
                if share.thief().is_none() {
                    // Perhaps somebody has something for us.
                    thread::park();
                }
                if let Some(cell) = share.thief()
                    && let Some(taken) = share.take_descendant(&board, cell)
                {
                    assert_eq!(taken, inner.pointer());
                    // SAFETY: it was just taken.
                    unsafe { Head::run(taken, 1, || ()) };
                }
                assert_ne!(half.await_outcome(), Outcome::Returned);
            }
            half.leave();
        };
        run_all([Box::new(thief) as Part, Box::new(owner)]);
    });
}

/// The owner relies on the worker. If a wake-up were lost, loom would report a deadlock.
#[test]
fn an_offer_wakes_a_sleeper() {
    model(|| {
        let (board, sleep) = (Arc::new(Board::new(1)), Arc::new(Sleep::new(1)));
        let worker = {
            let (board, sleep) = (Arc::clone(&board), Arc::clone(&sleep));
            move || {
                sleep.register(0);
                sleep.start_search();
                loop {
                    if let Some(taken) = board.take(0) {
                        sleep.end_search(|| board.any());
                        // SAFETY: it was just taken.
                        return unsafe { Head::run(taken, 0, || ()) };
                    }
                    sleep.sleep(0, || board.any());
                }
            }
        };
        let owner = move || {
            let half = Piece::new(None);
            half.offer(&board, 1);
            sleep.wake_one();
            assert_ne!(half.await_outcome(), Outcome::Returned);
            half.leave();
        };
        run_all([Box::new(worker) as Part, Box::new(owner)]);
    });
}

/// Two threads from outside, and one cell to lend.
#[test]
fn a_lent_cell_has_one_owner() {
    model(|| {
        let board = Arc::new(Board::new(1));
        let guest = || -> Part {
            let board = Arc::clone(&board);
            Box::new(move || {
                if let Some(cell) = board.lend() {
                    let half = Piece::new(None);
                    half.offer(&board, cell);
                    half.settle(&board, cell);
                    board.give_back(cell);
                }
            })
        };
        run_all([guest(), guest()]);
        assert!(board.lend().is_some());
    });
}
