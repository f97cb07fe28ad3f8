//! The calling thread's own list of halves that wait to be run, and the offering of the oldest of them.
//!
//! The list is a chain through the stack frames of the joins that the thread is in the middle of: the newest half is
//! run next, the oldest is the largest piece of work and is offered first. It begins with a *mark*. Further marks lie where
//! the floating-point mode was changed, so that the mode of every half is known without asking for it in every join.
//! Everything is in `Cell`s without destructors: the list costs no atomic operation, and may be used while a thread ends.

use super::{
    backoff::Backoff,
    half::{Head, Share},
    latch::Outcome,
};
use crate::{
    current::{self, Participant},
    denormals,
    sync::{pause, thread},
    thread_pool::Shared,
};
use std::{cell::Cell, ptr};

/// How often the owner of a half looks for its outcome: so often at first; then so often while it counts as idle, and so
/// often, up to its patience, giving its processor up in between. Then it sleeps.
const GLANCES: usize = 50;
const SPINS: usize = 500;
const PATIENCE: usize = SPINS + 5;

thread_local! {
    static LOCAL: Local = const { Local::new() };
}

#[derive(Debug)]
pub(crate) struct Local {
    session: Cell<Session>,
    /// The end of the list: a half or a mark.
    newest: Cell<*const Head>,
    /// The half that this thread has taken last and still runs.
    running: Cell<*const Running>,
    backoff: Backoff,
}

/// What one list belongs to. Where a thread goes to another pool inside a join, it begins another list.
#[derive(Clone, Copy, Debug)]
struct Session {
    pool: *const Shared,
    /// The mark that the list begins with.
    oldest: *const Head,
    /// The cell of the board that this thread's offers go to.
    cell: Option<usize>,
}

/// A place in the list from which on halves are made in another floating-point mode.
#[derive(Debug)]
#[repr(C)]
struct Mark {
    /// First, so that a pointer to it is one to the whole.
    head: Head,
    flush: bool,
}

/// Calls `f` with the calling thread's list.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(f)
}

/// Calls `f`, in which the calling thread may make joins on `pool`.
pub(crate) fn in_session<R>(pool: &Shared, f: impl FnOnce() -> R) -> R {
    /// Goes back to the list before.
    struct Before(Session, *const Head);
    impl Drop for Before {
        fn drop(&mut self) {
            LOCAL.with(|local| {
                local.leave();
                local.session.set(self.0);
                local.newest.set(self.1);
            });
        }
    }
    let mark = Mark { head: Head::new(None), flush: denormals::is_flushing() };
    let oldest = ptr::from_ref(&mark).cast::<Head>();
    let session = Session { pool, oldest, cell: pool.current() };
    let _before = LOCAL.with(|local| Before(local.session.replace(session), local.newest.replace(oldest)));
    f()
}

/// Calls `f`, in which the floating-point mode is another one: marks the place in the list.
pub(crate) fn in_mode<R>(flush: bool, f: impl FnOnce() -> R) -> R {
    /// Takes the mark out again.
    struct Marked<'m>(&'m Mark);
    impl Drop for Marked<'_> {
        fn drop(&mut self) {
            LOCAL.with(|local| local.newest.set(self.0.head.older.get()));
        }
    }
    let mark = Mark { head: Head::new(None), flush };
    let _marked = LOCAL.with(|local| {
        (!local.newest.get().is_null()).then(|| {
            // SAFETY: the guard takes the mark out before it is gone.
            unsafe { local.push(ptr::from_ref(&mark).cast()) };
            Marked(&mark)
        })
    });
    f()
}

impl Local {
    const fn new() -> Self {
        // No pool is at this address; null is what a thread has that works for none.
        let pool = ptr::without_provenance(1);
        Self {
            session: Cell::new(Session { pool, oldest: ptr::null(), cell: None }),
            newest: Cell::new(ptr::null()),
            running: Cell::new(ptr::null()),
            backoff: Backoff::new(),
        }
    }

    /// The pool whose joins this thread may make here.
    #[inline(always)]
    pub(super) fn pool(&self) -> *const Shared {
        self.session.get().pool
    }

    /// Whether no half is pending here that others cannot see.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        ptr::eq(self.newest.get(), self.session.get().oldest)
    }

    /// Appends to the list.
    ///
    /// # Safety
    /// A session must be open, and `head` stay where it is until it is taken out.
    #[inline(always)]
    pub(super) unsafe fn push(&self, head: *const Head) {
        let newest = self.newest.get();
        // SAFETY: what is in the list is alive, and so is `head`.
        unsafe {
            (*head).older.set(newest);
            (*newest).newer.set(head);
        }
        self.newest.set(head);
    }

    /// Takes the newest half out of the list; `false` where it is not there, because it was offered.
    #[inline(always)]
    pub(super) fn pop(&self, head: &Head) -> bool {
        let older = head.older.get();
        if older.is_null() {
            return false;
        }
        self.newest.set(older);
        true
    }

    /// Takes the oldest half out of the list. Also the floating-point mode that it was made in.
    fn take_oldest(&self) -> Option<(*const Head, bool)> {
        let mut mark = self.session.get().oldest;
        // SAFETY: everything in the list is alive, and what has no `run` is the head of a mark.
        unsafe {
            while mark != self.newest.get() {
                let first = (*mark).newer.get();
                if (*first).run.is_none() {
                    mark = first;
                    continue;
                }
                if first == self.newest.get() {
                    self.newest.set(mark);
                } else {
                    let second = (*first).newer.get();
                    (*mark).newer.set(second);
                    (*second).older.set(mark);
                }
                (*first).older.set(ptr::null());
                return Some((first, (*mark.cast::<Mark>()).flush));
            }
        }
        None
    }

    /// Offers the oldest half, unless it is better not to. Because somebody is idle; or because it is the `first`, which is
    /// offered also to those who are idle later: its owner may not make another join for long.
    #[cold]
    #[inline(never)]
    pub(super) fn offer(&self, pool: &Shared, first: bool) {
        if !self.backoff.may_offer() {
            return;
        }
        let Some(cell) = self.cell(pool) else { return self.backoff.rest() };
        let board = &pool.offers;
        let waiting = board.has_waiting(cell);
        if !board.is_empty(cell) || !(first || waiting || pool.sleep.worker_idle()) {
            return self.backoff.skip_some();
        }
        let Some((half, flush)) = self.take_oldest() else { return };
        // SAFETY: its frame is further down on this thread's stack.
        unsafe { (*half).prepare(flush) };
        board.offer(cell, half);
        pool.sleep.wake_one();
        if waiting {
            self.nudge_owners();
        }
    }

    /// Wakes those who wait for what this thread runs: there is something to do for them.
    fn nudge_owners(&self) {
        let mut running = self.running.get();
        // SAFETY: these are alive as long as this thread is inside, and so is what they point to.
        while let Some(Running { share, outer }) = unsafe { running.as_ref() } {
            // SAFETY: as above: there is no outcome yet.
            unsafe { (**share).latch.nudge() };
            running = *outer;
        }
    }

    /// The cell for this thread's offers. A thread from outside is lent one at its first offer.
    fn cell(&self, pool: &Shared) -> Option<usize> {
        let session = self.session.get();
        let cell = session.cell.or_else(|| pool.offers.lend());
        self.session.set(Session { cell, ..session });
        cell
    }

    /// Ends the session: gives a lent cell back.
    fn leave(&self) {
        let Session { pool, cell, .. } = self.session.get();
        // SAFETY: whoever has opened the session borrows the pool.
        let pool = unsafe { &*pool };
        if let Some(cell) = cell.filter(|_| pool.current().is_none()) {
            pool.offers.give_back(cell);
        }
    }

    /// Gets a half back that was offered. Whether it is still to be run, by the caller; else it has been, elsewhere.
    /// Meanwhile this thread may run what descends from the half, where `help` allows it.
    ///
    /// # Safety
    /// The half must be the newest that this thread has offered, in this session.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn settle(&self, half: &Head, help: bool) -> bool {
        let session = self.session.get();
        // SAFETY: whoever has opened the session borrows the pool.
        let pool = unsafe { &*session.pool };
        let cell = session.cell.expect("what is offered has a cell");
        let outcome = if pool.offers.take_back(cell, half) {
            None
        } else {
            // SAFETY: the half was prepared when it was offered.
            let share = unsafe { &*Head::share(half) };
            // Forked since it was taken: whoever has it is in the parent, and here nobody touches it any more.
            pool.expect_not_forked();
            Some(wait(pool, share, cell, help))
        };
        // SAFETY: nobody else has the half: it was taken back, or has an outcome.
        unsafe { half.clear() };
        match outcome {
            Some(Outcome::Long) => self.backoff.reset(),
            _ => self.backoff.rest(),
        }
        !matches!(outcome, Some(Outcome::Long | Outcome::Short))
    }
}

/// Waits for the outcome of a half that somebody has taken.
fn wait(pool: &Shared, share: &Share, cell: usize, help: bool) -> Outcome {
    for _ in 0..GLANCES {
        if let Some(outcome) = share.latch.outcome() {
            return outcome;
        }
        pause();
    }
    loop {
        match wait_for_either(pool, share, help) {
            Either::Outcome(outcome) => return outcome,
            // SAFETY: it was just taken, by this thread.
            Either::Descendant(half) => unsafe { run(pool, half, cell) },
        }
    }
}

/// What the owner of a half waits for: the outcome, or something to do that descends from the half.
enum Either {
    Outcome(Outcome),
    Descendant(*const Head),
}

fn wait_for_either(pool: &Shared, share: &Share, help: bool) -> Either {
    let mut waiting = None;
    let mut turn = 0;
    loop {
        if let Some(outcome) = share.latch.outcome() {
            return Either::Outcome(outcome);
        }
        if help && let Some(thief) = share.thief() {
            waiting.get_or_insert_with(|| Waiting::new(pool, thief));
            if let Some(half) = share.take_descendant(&pool.offers, thief) {
                return Either::Descendant(half);
            }
        }
        turn += 1;
        match turn {
            ..SPINS => pause(),
            SPINS..PATIENCE => thread::yield_now(),
            PATIENCE => share.latch.announce(),
            _ => {
                thread::park();
                // Whoever has woken this thread for an offer may have taken it back: there will be others.
                turn = SPINS;
            }
        }
    }
}

/// The calling thread counts among the idle ones, for what the owner of a cell offers.
struct Waiting<'p> {
    pool: &'p Shared,
    thief: usize,
}

impl<'p> Waiting<'p> {
    fn new(pool: &'p Shared, thief: usize) -> Self {
        pool.offers.count_waiting(thief, true);
        pool.sleep.count_waiting(true);
        Self { pool, thief }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pool.offers.count_waiting(self.thief, false);
        self.pool.sleep.count_waiting(false);
    }
}

/// A half that the calling thread has taken and runs.
#[derive(Debug)]
struct Running {
    share: *const Share,
    /// The one around it: taken earlier, waiting for something.
    outer: *const Running,
}

/// Runs a half that the calling thread has taken from the board; its own offers go to `cell`.
///
/// # Safety
/// As [`Head::run`].
pub(super) unsafe fn run(pool: &Shared, half: *const Head, cell: usize) {
    let outer = LOCAL.with(|local| local.running.get());
    // SAFETY: it was offered, and its owner waits for the outcome.
    let running = Running { share: unsafe { Head::share(half) }, outer };
    // SAFETY: as above.
    let held = unsafe { (*running.share).held };
    let _entered = current::enter_for(pool, Participant::NONE, held);
    LOCAL.with(|local| local.running.set(&running));
    // SAFETY: the caller says so. It does not unwind.
    unsafe { Head::run(half, cell, || LOCAL.with(|local| local.running.set(outer))) };
}
