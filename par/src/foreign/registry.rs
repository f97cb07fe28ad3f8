//! The records of all threads: taken while a thread is attached, free otherwise, and never destroyed.
//!
//! The records form a list that only grows. A counter says how many free records no thread has been promised.
//!
//! 1. *Take*: a thread subtracts 1 from `free` (Acquire). If it was 0, the thread adds a new record to the
//!    front of the list.
//! 2. Otherwise one record is promised to the thread. It looks for a record whose `taken` it can set: first
//!    the one that was given back last, then the list. If all were taken when it looked at them, one was
//!    given back behind it, and it looks again.
//! 3. *Give back*: the thread clears `taken` (Release), notes the record in `last_given_back` and only then
//!    adds 1 to `free` (Release).
//!
//! So there are never more records than threads were attached at once. As there is no lock, a `fork` cannot
//! leave one locked by a thread that does not exist in the child.
//!
//! | state of a record | `taken` | counted in `free` | left by | to |
//! |---|---|---|---|---|
//! | taken | true | no | its thread, which clears `taken` | being given back |
//! | being given back | false | not yet | the same thread, which counts it; or a thread with a promise, which takes it | free; taken |
//! | free | false | yes | a thread that subtracts from `free`, and then sets `taken` of this or another record | taken |
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `index`, `older` | the thread that adds the record, before it is in the list | all threads |
//! | `kept` | the thread that has set `taken` | the same |
//! | `kept_bytes` | the thread that gives the record back | `statistics` |
//!
//! Loom checks this in `models.rs` (`a_record_is_taken_by_one_thread_at_a_time`). It is the list of records
//! of M. M. Michael, [*Hazard pointers*](https://doi.org/10.1109/TPDS.2004.8), IEEE TPDS 15(6), 2004, with a
//! counter of free records.

use crate::{
    scratch::bump::Bump,
    sync::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*},
        pause,
    },
};
use std::{iter, marker::PhantomData, ptr};

/// The largest amount of scratch memory, in bytes, that a free record keeps.
const KEEP: usize = 1 << 20;

/// The contents of a record: everything that a thread keeps between its calls.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Scratch memory on which no scope is open. A nested scope takes the next one.
    #[expect(
        clippy::vec_box,
        reason = "every scope takes one out and puts it back, and a pointer moves faster"
    )]
    pub(crate) scratch: Vec<Box<Bump>>,
    /// The number of guards that keep the thread attached.
    pub(super) guards: usize,
}

#[derive(Debug)]
struct Record {
    index: usize,
    older: Option<&'static Record>,
    taken: AtomicBool,
    /// Belongs to the thread that has taken the record.
    kept: UnsafeCell<Kept>,
    /// The size of the scratch memory, when the record was last given back.
    kept_bytes: AtomicUsize,
}

// SAFETY: `kept` is reached only through the one `TakenRecord` that there is while `taken` is set, and passes
// from one thread to the next by the Release and Acquire of `taken`. Its contents may be sent between
// threads.
unsafe impl Sync for Record where Kept: Send {}

/// The list of all records of a process.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Both point to records that live forever, or are null.
    newest: AtomicPtr<Record>,
    last_given_back: AtomicPtr<Record>,
    /// The number of free records that are promised to no thread: never more than there are.
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

/// A record that the calling thread has taken. If it is dropped, the record is lost. It has no destructor, so
/// that a thread-local that holds it has none.
#[derive(Debug)]
pub(crate) struct TakenRecord {
    record: &'static Record,
    _of_this_thread: PhantomData<*const ()>,
}

/// Numbers of records: see [`statistics`](super::statistics()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of attached threads.
    pub attached: usize,
    /// The number of free records, which wait for a thread. With `attached`, this is the largest number of
    /// threads that were ever attached at once.
    pub free: usize,
    /// The scratch memory in free records, in bytes: at most 1 MiB in each.
    pub free_bytes: usize,
}

impl Registry {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { newest: null(), last_given_back: null(), free: AtomicUsize::new(0) }
    }

    /// Takes a record for the calling thread: a free one, or a new one.
    pub(crate) fn take(&self) -> TakenRecord {
        // Acquire: pairs with the Release of the thread that counted the record, so we see that it is free.
        if self.free.fetch_update(Acquire, Relaxed, |free| free.checked_sub(1)).is_err() {
            return self.add();
        }
        loop {
            let first = load(&self.last_given_back).into_iter();
            if let Some(record) = first.chain(self.records()).find_map(Record::try_take) {
                return record;
            }
            // All were taken when we looked at them, but one has been given back behind us.
            pause();
        }
    }

    /// Gives a record back. The calling thread does not need it any more.
    pub(crate) fn give_back(&self, mut taken: TakenRecord) {
        let bytes = taken.with(Kept::tidy);
        let record = taken.record;
        record.kept_bytes.store(bytes, Relaxed);
        // Release: the next thread that takes the record sees its contents.
        record.taken.store(false, Release);
        // Release: a thread that finds the record here sees it initialised.
        self.last_given_back.store(ptr::from_ref(record).cast_mut(), Release);
        // Release: the thread that this record is promised to sees that it is free.
        self.free.fetch_add(1, Release);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.records().fold(Statistics::default(), |mut sum, record| {
            if record.taken.load(Relaxed) {
                sum.attached += 1;
            } else {
                sum.free += 1;
                sum.free_bytes += record.kept_bytes.load(Relaxed);
            }
            sum
        })
    }

    /// All records, the newest first.
    fn records(&self) -> impl Iterator<Item = &'static Record> {
        iter::successors(load(&self.newest), |record| record.older)
    }

    #[cold]
    fn add(&self) -> TakenRecord {
        let record = Box::leak(Box::new(Record {
            index: 0,
            older: None,
            taken: AtomicBool::new(true),
            kept: UnsafeCell::new(Kept::default()),
            kept_bytes: AtomicUsize::new(0),
        }));
        loop {
            record.older = load(&self.newest);
            record.index = record.older.map_or(0, |older| older.index + 1);
            let older = record.older.map_or(ptr::null_mut(), |older| ptr::from_ref(older).cast_mut());
            // Release: a thread that finds the record sees it initialised.
            if self.newest.compare_exchange(older, record, Release, Relaxed).is_ok() {
                return TakenRecord { record, _of_this_thread: PhantomData };
            }
        }
    }
}

/// Follows a pointer of a registry.
fn load(pointer: &AtomicPtr<Record>) -> Option<&'static Record> {
    // Acquire: pairs with the Release of the thread that stored the pointer, so the record is initialised.
    // SAFETY: a registry's pointers are null or come from `Registry::add`, where the record is leaked. Once
    // it is in the list, it is changed only through its cells.
    unsafe { pointer.load(Acquire).as_ref() }
}

impl Record {
    fn try_take(&'static self) -> Option<TakenRecord> {
        // Acquire: pairs with the Release of the thread that gave it back.
        let free =
            !self.taken.load(Relaxed) && self.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        free.then_some(TakenRecord { record: self, _of_this_thread: PhantomData })
    }
}

impl TakenRecord {
    pub(super) fn index(&self) -> usize {
        self.record.index
    }

    #[inline]
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut Kept) -> R) -> R {
        // SAFETY: the record is taken, and this is its only `TakenRecord`, borrowed mutably: no other thread
        // reaches `kept`.
        self.record.kept.with_mut(|kept| f(unsafe { &mut *kept }))
    }
}

impl Kept {
    /// Frees everything that the next thread should not inherit. Returns the size of the scratch memory that
    /// is left.
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
