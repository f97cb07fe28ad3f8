//! The second half of a join, waiting in its owner's stack frame until the owner comes to it or somebody takes it.

use super::{
    board::Board,
    latch::{Latch, Outcome},
};
use crate::{
    current::{self, Held},
    denormals,
    panic::{Payload, discard},
    sync::atomic::{AtomicUsize, Ordering::*},
};
use std::{
    cell::{Cell, UnsafeCell},
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    time::{Duration, Instant},
};

/// A half that took less than this was not worth handing over.
const WORTH: Duration = Duration::from_micros(1);

const NOBODY: usize = usize::MAX;

/// The part of a half that does not depend on types: a link of the owner's list, and what it takes to run it elsewhere.
#[derive(Debug)]
pub(crate) struct Head {
    /// The one before it in the list (older); null once it is offered to others.
    pub(super) older: Cell<*const Head>,
    /// The one after it; means something only where the list goes on.
    pub(super) newer: Cell<*const Head>,
    /// Runs the half and keeps its result; `None` for what only marks a place in the list.
    pub(super) run: Option<unsafe fn(*const Head)>,
    /// Written when the half is offered.
    share: UnsafeCell<MaybeUninit<Share>>,
}

/// What the owner of a half and the thread that takes it have to say to each other.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) latch: Latch,
    /// The cell that the thief's own offers go to.
    thief: AtomicUsize,
    /// The floating-point mode that the half was made in.
    flush: bool,
    /// What the owner holds, who waits for it.
    pub(super) held: Held,
}

impl Share {
    /// The cell that the thief's own offers go to, once it has said so.
    pub(super) fn thief(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `Head::run`; the thief's cell was empty before.
        match self.thief.load(Acquire) {
            NOBODY => None,
            cell => Some(cell),
        }
    }

    /// Takes something from the thief's cell that descends from this half, if there is such a thing.
    ///
    /// A thread takes a half only where it has none of its own that are not done, so its cell is empty then. What is found there
    /// while it runs the half was therefore put there by the half. Whether it still ran it is looked up *afterwards*: if the
    /// offer was put there later, then taking it (Acquire) has made the outcome visible. Such an offer is not ours to run, and
    /// goes back to its owner.
    pub(crate) fn take_descendant(&self, board: &Board, thief: usize) -> Option<*const Head> {
        let taken = board.take_from(thief)?;
        if self.latch.outcome().is_none() {
            return Some(taken);
        }
        // SAFETY: it was taken from the board, by this thread alone, and its outcome is set once.
        unsafe { Latch::set(&raw const (*Head::share(taken)).latch, Outcome::Returned) };
        None
    }
}

impl Head {
    #[inline(always)]
    pub(crate) fn new(run: Option<unsafe fn(*const Head)>) -> Self {
        Self {
            older: Cell::new(ptr::null()),
            newer: Cell::new(ptr::null()),
            run,
            share: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Prepares the half for being offered. For the owner, before it offers the half.
    pub(crate) fn prepare(&self, flush: bool) {
        let share =
            Share { latch: Latch::new(), thief: AtomicUsize::new(NOBODY), flush, held: current::held() };
        // SAFETY: nobody else knows the half yet.
        unsafe { (*self.share.get()).write(share) };
    }

    /// Clears away what `prepare` has made. For the owner, when the half has been taken back or has an outcome.
    ///
    /// # Safety
    /// The half must have been prepared, and nobody else may know it any more.
    pub(crate) unsafe fn clear(&self) {
        // SAFETY: the caller says so.
        unsafe { (*self.share.get()).assume_init_drop() };
    }

    /// What a half that was offered holds for both sides.
    ///
    /// # Safety
    /// `head` must be alive, and have been prepared.
    pub(crate) unsafe fn share(head: *const Self) -> *const Share {
        // SAFETY: the caller vouches for `head`; `MaybeUninit` has the layout of what it holds.
        unsafe { (*head).share.get().cast::<Share>() }
    }

    /// Runs a half that was taken from the board, for a thread whose offers go to `cell`. Then calls `leave`, and tells its owner.
    ///
    /// # Safety
    /// The calling thread must have taken `head` from the board, and this is called once.
    pub(crate) unsafe fn run(head: *const Self, cell: usize, leave: impl FnOnce()) {
        // SAFETY: the owner keeps the half alive until it sees an outcome.
        let (share, run) = unsafe { (&*Self::share(head), (*head).run) };
        // Release: see `Share::thief`.
        share.thief.store(cell, Release);
        let begun = Instant::now();
        if let Some(run) = run {
            // SAFETY: `run` came with this very half, and this thread alone has it.
            denormals::in_mode(share.flush, || unsafe { run(head) });
        }
        let outcome = if begun.elapsed() >= WORTH { Outcome::Long } else { Outcome::Short };
        leave();
        let latch = &raw const share.latch;
        // SAFETY: there is no outcome yet.
        unsafe { Latch::set(latch, outcome) };
    }
}

type Caught<R> = Result<R, Payload>;

/// A closure, and then its result.
#[repr(C)]
pub(super) struct Half<B, R> {
    /// First, so that a pointer to it is one to the whole.
    pub(super) head: Head,
    body: UnsafeCell<ManuallyDrop<B>>,
    result: UnsafeCell<MaybeUninit<Caught<R>>>,
}

impl<R, B: FnOnce() -> R> Half<B, R> {
    #[inline(always)]
    pub(super) fn new(body: B) -> Self {
        Self {
            head: Head::new(Some(Self::run)),
            body: UnsafeCell::new(ManuallyDrop::new(body)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// # Safety
    /// `head` must be that of such a half, whose body the calling thread may take.
    unsafe fn run(head: *const Head) {
        // SAFETY: `Half` is `repr(C)` and begins with the head; the pointer comes from a reference to the whole.
        let half = unsafe { &*head.cast::<Self>() };
        // SAFETY: the caller says so.
        let body = unsafe { half.take_body() };
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: only the thread that runs the body touches the result before there is an outcome.
        unsafe { (*half.result.get()).write(result) };
    }

    /// # Safety
    /// Once, by the one thread whose the half is: the owner's as long as it is not offered, or after it was taken back or
    /// returned; else that of who has taken it.
    #[inline(always)]
    pub(super) unsafe fn take_body(&self) -> B {
        // SAFETY: the caller says so.
        unsafe { ManuallyDrop::take(&mut *self.body.get()) }
    }

    /// # Safety
    /// Once, by the owner, after an outcome that says that the half was run.
    pub(super) unsafe fn take_result(&self) -> Caught<R> {
        // SAFETY: the thread that ran the half has written its result before the outcome.
        unsafe { (*self.result.get()).assume_init_read() }
    }

    /// Drops the result, or what the panic carried.
    ///
    /// # Safety
    /// As [`take_result`](Self::take_result).
    pub(super) unsafe fn drop_result(&self) {
        // SAFETY: the caller says so.
        if let Err(payload) = unsafe { self.take_result() } {
            discard(payload);
        }
    }
}
