//! The calling thread's list of halves that are pending, and the offering of the oldest one.
//!
//! The list is a chain through the stack frames of the joins that the thread is in the middle of. The newest
//! half is run next. The oldest is the largest piece of work, and is offered first. The list begins with a
//! *divider*. Further dividers are where the floating-point mode or the thread's [chain](Chain) was changed,
//! so both are known of every half and a join need not read them. Everything is in `Cell`s without
//! destructors: the list costs no atomic operation, and may be used while a thread ends.

use super::{
    backoff::Backoff,
    half::{Head, Share},
};
use crate::{
    context::{Chain, Context, held_values},
    denormals::control::is_flushing,
    thread_pool::state::PoolState,
};
use std::{cell::Cell, ptr};

thread_local! {
    static LOCAL: Local = const { Local::new() };
}

#[derive(Debug)]
pub(crate) struct Local {
    pub(super) session: Cell<Session>,
    /// The end of the list: a half or a divider.
    newest: Cell<*const Head>,
    /// The half that this thread has stolen last and still runs.
    pub(super) running: Cell<*const Running>,
    pub(super) backoff: Backoff,
}

/// The pool that a list belongs to. A thread that goes to another pool inside a join begins another list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) pool: *const PoolState,
    /// The divider that the list begins with.
    oldest: *const Head,
    /// The cell that this thread offers halves in.
    pub(super) cell: Option<usize>,
}

/// A place in the list where something changes that halves after it were made in. `None` is no change.
#[derive(Debug)]
#[repr(C)]
struct Divider {
    /// First, so that a pointer to it is one to the whole.
    head: Head,
    /// The floating-point mode.
    flush: Option<bool>,
    chain: Option<Chain>,
}

/// Calls `f` with the calling thread's list.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(f)
}

/// Calls `f`, in which the calling thread may make joins on `pool`.
pub(crate) fn in_session<R>(pool: &PoolState, f: impl FnOnce() -> R) -> R {
    /// Restores the former list.
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
    let (flush, chain) = (Some(is_flushing()), Some(Chain::current()));
    let divider = Divider { head: Head::new(None), flush, chain };
    let oldest = ptr::from_ref(&divider).cast::<Head>();
    let session = Session { pool, oldest, cell: pool.worker_index() };
    let _before = LOCAL.with(|local| Before(local.session.replace(session), local.newest.replace(oldest)));
    f()
}

/// Calls `f`, in which the floating-point mode is `flush`.
pub(crate) fn in_mode<R>(flush: bool, f: impl FnOnce() -> R) -> R {
    divided(Divider { head: Head::new(None), flush: Some(flush), chain: None }, f)
}

/// Whether the calling thread has a list, in which a change of the chain leaves a divider.
#[inline]
pub(crate) fn is_in_session() -> bool {
    LOCAL.with(|local| !local.newest.get().is_null())
}

/// Calls `f`, in which the calling thread is in `chain`.
#[inline(never)]
pub(crate) fn in_chain<R>(chain: Chain, f: impl FnOnce() -> R) -> R {
    divided(Divider { head: Head::new(None), flush: None, chain: Some(chain) }, f)
}

/// Calls `f` with the divider in the list, if there is one.
#[inline]
fn divided<R>(divider: Divider, f: impl FnOnce() -> R) -> R {
    /// Takes the divider out again.
    struct Divided<'d>(&'d Divider);
    impl Drop for Divided<'_> {
        fn drop(&mut self) {
            LOCAL.with(|local| local.newest.set(self.0.head.older.get()));
        }
    }
    let _divided = LOCAL.with(|local| {
        (!local.newest.get().is_null()).then(|| {
            // SAFETY: the guard takes the divider out before it is gone.
            unsafe { local.push(ptr::from_ref(&divider).cast()) };
            Divided(&divider)
        })
    });
    f()
}

impl Local {
    const fn new() -> Self {
        // No pool is at this address. Null is the pool of a thread that works for none.
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
    pub(super) fn pool(&self) -> *const PoolState {
        self.session.get().pool
    }

    /// Whether no half is pending except offered ones.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        ptr::eq(self.newest.get(), self.session.get().oldest)
    }

    /// Appends to the list.
    ///
    /// # Safety
    /// A session must be open, and `head` must stay where it is until it is taken out.
    #[inline(always)]
    pub(super) unsafe fn push(&self, head: *const Head) {
        let newest = self.newest.get();
        // SAFETY: everything in the list is alive, and so is `head`.
        unsafe {
            (*head).older.set(newest);
            (*newest).newer.set(head);
        }
        self.newest.set(head);
    }

    /// Takes the newest half out of the list; `false` if it is not there, because it was offered.
    #[inline(always)]
    pub(super) fn pop(&self, head: &Head) -> bool {
        let older = head.older.get();
        if older.is_null() {
            return false;
        }
        self.newest.set(older);
        true
    }

    /// Takes the oldest half out of the list. Also returns the floating-point mode and the chain that it was
    /// made in.
    fn take_oldest(&self) -> Option<(*const Head, bool, Chain)> {
        let mut divider = self.session.get().oldest;
        let (mut flush, mut chain) = (false, Chain::NONE);
        // SAFETY: everything in the list is alive, and a head without `run` belongs to a divider.
        unsafe {
            loop {
                let changes = &*divider.cast::<Divider>();
                flush = changes.flush.unwrap_or(flush);
                chain = changes.chain.unwrap_or(chain);
                if divider == self.newest.get() {
                    return None;
                }
                let first = (*divider).newer.get();
                if (*first).run.is_some() {
                    self.unlink(divider, first);
                    return Some((first, flush, chain));
                }
                divider = first;
            }
        }
    }

    /// Takes the half `first`, the one after `divider`, out of the list.
    ///
    /// # Safety
    /// Both must be in the list.
    unsafe fn unlink(&self, divider: *const Head, first: *const Head) {
        // SAFETY: everything in the list is alive.
        unsafe {
            if first == self.newest.get() {
                self.newest.set(divider);
            } else {
                let second = (*first).newer.get();
                (*divider).newer.set(second);
                (*second).older.set(divider);
            }
            (*first).older.set(ptr::null());
        }
    }

    /// Offers the oldest half, unless it is better not to: because a thread is idle; or because it is the
    /// `first`, which is also offered to threads that are idle later, because its owner may not make another
    /// join for long.
    #[cold]
    #[inline(never)]
    pub(super) fn offer(&self, pool: &PoolState, first: bool) {
        if !self.backoff.may_offer() {
            return;
        }
        let Some(cell) = self.cell(pool) else { return self.backoff.pause() };
        let waited_for = pool.offers.has_waiters(cell);
        if !pool.offers.is_empty(cell) || !(first || waited_for || pool.sleep.any_worker_idle()) {
            return self.backoff.skip_some();
        }
        let Some((half, flush, chain)) = self.take_oldest() else { return };
        // SAFETY: the half belongs to a join that this thread is inside.
        unsafe { (*half).prepare(flush, Context { held: held_values(), chain }) };
        pool.offers.offer(cell, half);
        pool.sleep.wake_one();
        if waited_for {
            self.wake_owners();
        }
    }

    /// Wakes the owners of the halves that this thread runs: they may take the offer while they wait.
    fn wake_owners(&self) {
        let mut running = self.running.get();
        // SAFETY: these are alive as long as this thread runs their halves, and so are the targets of their
        // pointers.
        while let Some(Running { share, outer }) = unsafe { running.as_ref() } {
            // SAFETY: as above: there is no outcome yet.
            unsafe { (**share).latch.wake_owner() };
            running = *outer;
        }
    }

    /// The cell for this thread's offers. A thread from outside is lent one at its first offer.
    fn cell(&self, pool: &PoolState) -> Option<usize> {
        let session = self.session.get();
        let cell = session.cell.or_else(|| pool.offers.lend());
        self.session.set(Session { cell, ..session });
        cell
    }

    /// Ends the session: gives a lent cell back.
    fn leave(&self) {
        let Session { pool, cell, .. } = self.session.get();
        // SAFETY: the frame that opened the session borrows the pool.
        let pool = unsafe { &*pool };
        if let Some(cell) = cell.filter(|_| pool.worker_index().is_none()) {
            pool.offers.give_back(cell);
        }
    }
}

/// A half that the calling thread has stolen and runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) share: *const Share,
    /// The one around it, which was stolen earlier and waits for something.
    pub(super) outer: *const Running,
}
