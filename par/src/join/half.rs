//! The second half of a join. It waits in its owner's stack frame until the owner runs it or another thread
//! steals it.

use super::latch::{Latch, Outcome};
use crate::{
    context::Context,
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

/// A half that took less than this was not worth stealing.
const WORTH_STEALING: Duration = Duration::from_micros(1);

const NO_THIEF: usize = usize::MAX;

/// The part of a half that does not depend on types: a link of the owner's list, and everything that a thief
/// needs.
#[derive(Debug)]
pub(crate) struct Head {
    /// The half or divider before it in the list; null once the half is offered.
    pub(super) older: Cell<*const Head>,
    /// The half or divider after it in the list; not valid at the end of the list.
    pub(super) newer: Cell<*const Head>,
    /// Runs the half and writes its result; `None` for a divider.
    pub(super) run: Option<unsafe fn(*const Head)>,
    /// Written when the half is offered.
    share: UnsafeCell<MaybeUninit<Share>>,
}

/// The part of a half that its owner and its thief share.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) latch: Latch,
    /// The cell that the thief offers its own halves in.
    thief: AtomicUsize,
    /// The floating-point mode that the half was made in.
    pub(super) flush: bool,
    /// The values that the owner holds while it waits, and the chain that the half was made in.
    pub(super) context: Context,
}

impl Share {
    /// The cell that the thief offers its own halves in, once the thief has announced it.
    pub(super) fn thief(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `announce_thief`. The cell was empty before.
        match self.thief.load(Acquire) {
            NO_THIEF => None,
            cell => Some(cell),
        }
    }

    /// The calling thread has stolen the half, and offers its own halves in `cell`.
    pub(super) fn announce_thief(&self, cell: usize) {
        // Release: see `thief`.
        self.thief.store(cell, Release);
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

    /// Prepares the half for being offered. The owner calls this before it offers the half.
    pub(crate) fn prepare(&self, flush: bool, context: Context) {
        let share = Share { latch: Latch::new(), thief: AtomicUsize::new(NO_THIEF), flush, context };
        // SAFETY: no other thread knows the half yet.
        unsafe { (*self.share.get()).write(share) };
    }

    /// Drops the shared part. The owner calls this when it has taken the half back or has seen an outcome.
    ///
    /// # Safety
    /// The half must have been prepared, and no other thread may know it any more.
    pub(crate) unsafe fn clear(&self) {
        // SAFETY: the caller guarantees it.
        unsafe { (*self.share.get()).assume_init_drop() };
    }

    /// The part of an offered half that both threads share.
    ///
    /// # Safety
    /// `head` must be alive, and have been prepared.
    pub(crate) unsafe fn share(head: *const Self) -> *const Share {
        // SAFETY: the caller vouches for `head`; `MaybeUninit` has the layout of what it holds.
        unsafe { (*head).share.get().cast::<Share>() }
    }

    /// Runs a half that was stolen, for a thread that offers its own halves in `cell`. Then calls `leave`,
    /// and publishes the outcome.
    ///
    /// # Safety
    /// The calling thread must have stolen `head`, and call this once.
    pub(crate) unsafe fn run(head: *const Self, cell: usize, leave: impl FnOnce()) {
        // SAFETY: the owner keeps the half alive until it sees an outcome.
        let (share, run) = unsafe { (&*Self::share(head), (*head).run) };
        share.announce_thief(cell);
        let begun = Instant::now();
        if let Some(run) = run {
            // SAFETY: `run` belongs to this very half, and this thread alone has it.
            unsafe { run(head) };
        }
        let outcome = if begun.elapsed() >= WORTH_STEALING { Outcome::Long } else { Outcome::Short };
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
    /// `head` must be the head of a `Half<B, R>` whose body the calling thread may take.
    unsafe fn run(head: *const Head) {
        // SAFETY: `Half` is `repr(C)` and begins with the head; the pointer comes from a reference to the
        // whole.
        let half = unsafe { &*head.cast::<Self>() };
        // SAFETY: the caller guarantees it.
        let body = unsafe { half.take_body() };
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: only the thread that runs the body touches the result before there is an outcome.
        unsafe { (*half.result.get()).write(result) };
    }

    /// # Safety
    /// Only the thread that has the half may call this, once: the owner as long as the half is not offered,
    /// or after it was taken back or returned; else the thief.
    #[inline(always)]
    pub(super) unsafe fn take_body(&self) -> B {
        // SAFETY: the caller guarantees it.
        unsafe { ManuallyDrop::take(&mut *self.body.get()) }
    }

    /// # Safety
    /// Only the owner may call this, once, after an outcome that says that the half was run.
    pub(super) unsafe fn take_result(&self) -> Caught<R> {
        // SAFETY: the thread that ran the half has written its result before the outcome.
        unsafe { (*self.result.get()).assume_init_read() }
    }

    /// Drops the result, or the payload of the panic.
    ///
    /// # Safety
    /// As [`take_result`](Self::take_result).
    pub(super) unsafe fn drop_result(&self) {
        // SAFETY: the caller guarantees it.
        if let Err(payload) = unsafe { self.take_result() } {
            discard(payload);
        }
    }
}
