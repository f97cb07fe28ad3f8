//! The records of all members: taken while a thread is one, free otherwise, and never destroyed.
//!
//! They form a list that only grows. Free records are counted: a thread that joins takes one off the count and then looks
//! for a record that it can have, which there is; or it adds a new one where the count is zero. So there are never more
//! records than threads were members at once. The record that was given back last is looked at first. As there is no
//! lock, none can be held by a thread that a `fork` has left behind.

use crate::{
    scratch::Bump,
    sync::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*},
        pause,
    },
};
use std::{iter, marker::PhantomData, ptr};

/// How much scratch memory, in bytes, a free record keeps at most.
const KEEP: usize = 1 << 20;

/// What a thread keeps between its calls.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Scratch memory, while no scope is open on it. A nested scope finds the outer one's gone and takes the next.
    #[expect(clippy::vec_box, reason = "every scope takes one out and puts it back: a pointer moves faster")]
    pub(crate) scratch: Vec<Box<Bump>>,
    /// How many guards keep the thread a member.
    pub(super) guards: usize,
}

#[derive(Debug)]
struct Record {
    index: usize,
    older: Option<&'static Record>,
    taken: AtomicBool,
    /// Belongs to whoever has taken the record.
    held: UnsafeCell<Held>,
    /// The size of the scratch memory, when the record was last given back.
    kept_bytes: AtomicUsize,
}

// SAFETY: `held` is reached only through the one `Membership` that there is while `taken` is set, and passes from one
// thread to the next by the Release and Acquire of `taken`. What it holds may be sent between threads.
unsafe impl Sync for Record where Held: Send {}

/// The list of all records of a process.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Both point to records that live for ever, or are null.
    newest: AtomicPtr<Record>,
    last_given_back: AtomicPtr<Record>,
    /// Free records that nobody looks for: never more than there are.
    free: AtomicUsize,
}

#[cfg(not(loom))]
pub(super) static REGISTRY: Registry = Registry {
    newest: AtomicPtr::new(ptr::null_mut()),
    last_given_back: AtomicPtr::new(ptr::null_mut()),
    free: AtomicUsize::new(0),
};

#[cfg(loom)]
loom::lazy_static! {
    pub(super) static ref REGISTRY: Registry = Registry::new();
}

/// A record that the calling thread has taken. One that is dropped is lost; it has no destructor so that a thread-local
/// that holds it has none.
#[derive(Debug)]
pub(crate) struct Membership {
    record: &'static Record,
    _of_this_thread: PhantomData<*const ()>,
}

/// Numbers of member records: see [`statistics`](super::statistics()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Threads that have joined and not left.
    pub members: usize,
    /// Records that wait for a thread to join. With `members`, this is the largest number of members that there ever
    /// were at once.
    pub kept: usize,
    /// The scratch memory in those that wait, in bytes: at most 1 MiB in each.
    pub kept_bytes: usize,
}

impl Registry {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { newest: null(), last_given_back: null(), free: AtomicUsize::new(0) }
    }

    /// A record for the calling thread: one that is free, or a new one.
    pub(crate) fn take(&self) -> Membership {
        // Acquire: pairs with the Release of whoever counted the record; we see that it is free.
        if self.free.fetch_update(Acquire, Relaxed, |free| free.checked_sub(1)).is_err() {
            return self.add();
        }
        loop {
            let first = load(&self.last_given_back).into_iter();
            if let Some(member) = first.chain(self.records()).find_map(Record::try_take) {
                return member;
            }
            // All were taken when we looked at them; but one was given back meanwhile, behind us.
            pause();
        }
    }

    /// The calling thread needs the record no longer.
    pub(crate) fn give_back(&self, mut member: Membership) {
        let bytes = member.with(Held::tidy);
        let record = member.record;
        record.kept_bytes.store(bytes, Relaxed);
        // Release: the next one to take it sees what is in it.
        record.taken.store(false, Release);
        // Release: whoever finds the record here sees that it has been initialised.
        self.last_given_back.store(ptr::from_ref(record).cast_mut(), Release);
        // Release: whoever takes it off the count sees that it is free.
        self.free.fetch_add(1, Release);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.records().fold(Statistics::default(), |mut sum, record| {
            if record.taken.load(Relaxed) {
                sum.members += 1;
            } else {
                sum.kept += 1;
                sum.kept_bytes += record.kept_bytes.load(Relaxed);
            }
            sum
        })
    }

    /// All records, the newest first.
    fn records(&self) -> impl Iterator<Item = &'static Record> {
        iter::successors(load(&self.newest), |record| record.older)
    }

    #[cold]
    fn add(&self) -> Membership {
        let record = Box::leak(Box::new(Record {
            index: 0,
            older: None,
            taken: AtomicBool::new(true),
            held: UnsafeCell::new(Held::default()),
            kept_bytes: AtomicUsize::new(0),
        }));
        loop {
            record.older = load(&self.newest);
            record.index = record.older.map_or(0, |older| older.index + 1);
            let older = record.older.map_or(ptr::null_mut(), |older| ptr::from_ref(older).cast_mut());
            // Release: whoever finds the record sees that it has been initialised.
            if self.newest.compare_exchange(older, record, Release, Relaxed).is_ok() {
                return Membership { record, _of_this_thread: PhantomData };
            }
        }
    }
}

/// Follows a pointer of a registry.
fn load(pointer: &AtomicPtr<Record>) -> Option<&'static Record> {
    // Acquire: pairs with the Release of whoever stored the pointer; the record has been initialised.
    // SAFETY: a registry's pointers are null or come from `Registry::add`, where the record is leaked, and is not changed
    // any more except through its cells once it is in the list.
    unsafe { pointer.load(Acquire).as_ref() }
}

impl Record {
    fn try_take(&'static self) -> Option<Membership> {
        // Acquire: pairs with the Release of whoever gave it back.
        let free =
            !self.taken.load(Relaxed) && self.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        free.then_some(Membership { record: self, _of_this_thread: PhantomData })
    }
}

impl Membership {
    pub(super) fn index(&self) -> usize {
        self.record.index
    }

    #[inline]
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut Held) -> R) -> R {
        // SAFETY: the record is taken, and this is its only membership, borrowed mutably: nobody else reaches `held`.
        self.record.held.with_mut(|held| f(unsafe { &mut *held }))
    }
}

impl Held {
    /// Frees what a thread that leaves does not leave to the next one; how much scratch memory is left.
    fn tidy(&mut self) -> usize {
        self.guards = 0;
        let mut bytes = 0;
        self.scratch.retain(|bump| {
            let fits = bytes + bump.capacity() <= KEEP;
            bytes += if fits { bump.capacity() } else { 0 };
            fits
        });
        bytes
    }
}
