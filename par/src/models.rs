//! Models of the lock-free parts. Loom checks every interleaving, up to a bound on preemptions:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --profile loom -p anabranch-par --lib models
//! ```

use crate::{
    foreign::Registry,
    patience::Patience,
    region::{
        claims::{Claimer, Counters, Kind, Partition},
        slot::Slot,
    },
    sync::{
        atomic::{AtomicUsize, Ordering::*},
        thread,
    },
    team::barrier::Barrier,
    thread_pool::{
        search::{Work, search},
        sleep::Sleep,
    },
};
use loom::{cell::UnsafeCell, sync::Arc};

/// The number of preemptions, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS: usize = 3;

pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(f);
}

/// A model whose interleavings with more preemptions take hours, whatever `LOOM_MAX_PREEMPTIONS` says.
pub(crate) fn large_model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound =
        builder.preemption_bound.map_or(Some(PREEMPTIONS), |asked| Some(asked.min(PREEMPTIONS)));
    builder.check(f);
}

/// The target of a region's body in these models: a cell that must not be read once the opener has closed the
/// region.
type Target = Arc<UnsafeCell<usize>>;

/// The body is a pointer that can be copied, as in the pool.
#[derive(Clone, Copy)]
struct Pointer(*const UnsafeCell<usize>);
// SAFETY: the models keep the target alive, and loom checks every access to it.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    fn read(self) -> usize {
        // SAFETY: the target is alive as long as the model runs; loom reports a read that races with a write.
        unsafe { (*self.0).with(|v| *v) }
    }
}

fn target() -> Target {
    Arc::new(UnsafeCell::new(0))
}

/// Opens a region whose body points to a cell, closes it, and overwrites the cell. A joiner must have read
/// the cell before the close.
fn open_and_close(slot: &Slot<Pointer>, target: &Target, value: usize, tickets: usize) {
    assert!(slot.try_claim());
    // SAFETY: no thread is inside, because the slot was free.
    target.with_mut(|v| unsafe { *v = value });
    slot.open(Pointer(&**target), tickets);
    slot.close(&Patience::SHORT);
    // SAFETY: every participant has left. If one had not, loom would report the race.
    target.with_mut(|v| unsafe { *v = usize::MAX });
}

#[test]
fn a_joiner_is_out_before_close_returns() {
    model(|| {
        let slot = Arc::new(Slot::<Pointer>::new());
        let target = target();
        let joiner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if let Some(joined) = slot.join() {
                    assert_eq!(joined.body().read(), 7);
                }
            })
        };
        open_and_close(&slot, &target, 7, 1);
        joiner.join().unwrap();
    });
}

#[test]
fn two_joiners_and_one_ticket() {
    model(|| {
        let slot = Arc::new(Slot::<Pointer>::new());
        let target = target();
        let inside = Arc::new(AtomicUsize::new(0));
        let joiners: Vec<_> = (0..2)
            .map(|_| {
                let (slot, inside) = (Arc::clone(&slot), Arc::clone(&inside));
                thread::spawn(move || {
                    if let Some(joined) = slot.join() {
                        assert_eq!(inside.fetch_add(1, Relaxed), 0, "one ticket, one participant ever");
                        assert_eq!(joined.body().read(), 3);
                        slot.shut();
                    }
                })
            })
            .collect();
        open_and_close(&slot, &target, 3, 1);
        joiners.into_iter().for_each(|j| j.join().unwrap());
    });
}

#[test]
fn a_reused_slot_shows_the_new_body() {
    model(|| {
        let slot = Arc::new(Slot::<Pointer>::new());
        let target = target();
        let joiner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if let Some(joined) = slot.join() {
                    let seen = joined.body().read();
                    assert!(seen == 1 || seen == 2);
                }
            })
        };
        open_and_close(&slot, &target, 1, 1);
        open_and_close(&slot, &target, 2, 1);
        joiner.join().unwrap();
    });
}

#[test]
fn every_unit_is_claimed_once() {
    for kind in [
        Kind::Dynamic { grain: 1 },
        Kind::Guided { participants: 2, grain: 1 },
        Kind::Greedy { most: 2 },
        Kind::Blocks { participants: 2, grain: 1 },
        Kind::RoundRobin { participants: 2 },
    ] {
        model(move || {
            let partition = Partition::new(3, kind);
            let counters = Arc::new(Counters::new(2));
            counters.lay_out(&partition);
            let taken: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
            let take = |own_block: usize| {
                let (counters, taken) = (Arc::clone(&counters), Arc::clone(&taken));
                move || {
                    let mut claimer = Claimer::new(partition, &counters, own_block);
                    while let Some(run) = claimer.claim(usize::MAX) {
                        run.for_each(|i| assert_eq!(taken[i].fetch_add(1, Relaxed), 0));
                    }
                }
            };
            let other = thread::spawn(take(0));
            take(1)();
            other.join().unwrap();
            assert!(taken.iter().all(|t| t.load(Relaxed) == 1));
        });
    }
}

/// Pieces of work for one worker, which ends when it has done all of them.
struct Pieces {
    sleep: Sleep,
    published: AtomicUsize,
    /// Changed by the worker.
    done: AtomicUsize,
    all: usize,
}

impl Pieces {
    /// Publishes all pieces, with a wake-up for each, while a worker runs its loop. If a wake-up were lost,
    /// loom would report a deadlock.
    fn are_done(all: usize) {
        let pieces = Arc::new(Self {
            sleep: Sleep::new(1),
            published: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            all,
        });
        let worker = {
            let pieces = Arc::clone(&pieces);
            thread::spawn(move || {
                pieces.sleep.register(0);
                search(&pieces.sleep, 0, &Patience::SHORT, &*pieces);
            })
        };
        for _ in 0..all {
            pieces.published.fetch_add(1, Release);
            pieces.sleep.wake_one();
        }
        worker.join().unwrap();
        assert_eq!(pieces.done.load(Relaxed), all);
    }
}

impl Work for Pieces {
    const KINDS: usize = 1;

    fn help(&self, _: usize) -> bool {
        let found = self.is_left();
        if found {
            self.done.fetch_add(1, Relaxed);
            self.sleep.end_search(|| self.is_left());
        }
        found
    }

    fn is_left(&self) -> bool {
        self.published.load(Acquire) > self.done.load(Relaxed)
    }

    fn is_over(&self) -> bool {
        self.done.load(Relaxed) == self.all
    }
}

/// A worker that finds no work sleeps, and the publisher wakes it.
#[test]
fn no_wake_up_is_lost() {
    model(|| Pieces::are_done(1));
}

/// Two pieces of work, and at most one wake-up for each. Both are done although a publisher that sees a
/// searcher wakes no worker.
#[test]
fn work_that_a_searcher_leaves_is_found_later() {
    model(|| Pieces::are_done(2));
}

/// A record belongs to one thread at a time (loom reports a race if not), each thread sees the contents that
/// the former one left, and there are no more records than threads were attached at once.
#[test]
fn a_record_is_taken_by_one_thread_at_a_time() {
    model(|| {
        let registry = Arc::new(Registry::new());
        let use_it = |registry: &Registry| {
            for _ in 0..2 {
                let mut record = registry.take();
                record.with(|kept| kept.scratch.push(Box::default()));
                registry.give_back(record);
            }
        };
        let other = {
            let registry = Arc::clone(&registry);
            thread::spawn(move || use_it(&registry))
        };
        use_it(&registry);
        other.join().unwrap();
        let statistics = registry.statistics();
        assert!(statistics.attached == 0 && (1..=2).contains(&statistics.free), "{statistics:?}");
        let mut all: Vec<_> = (0..statistics.free).map(|_| registry.take()).collect();
        assert_eq!(all.iter_mut().map(|record| record.with(|kept| kept.scratch.len())).sum::<usize>(), 4);
    });
}

/// Three members wait twice: one may sleep for the second round before those that slept for the first one are
/// awake. Each sees what the others have done before a round.
#[test]
fn three_members_meet_twice() {
    model(|| {
        let barrier = Arc::new(Barrier::new(3, Patience::SHORT));
        let done = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
        let meets_twice = |own: usize| {
            let (barrier, done) = (Arc::clone(&barrier), Arc::clone(&done));
            move || {
                for round in 1..=2 {
                    done[own].store(round, Relaxed);
                    assert!(barrier.wait().is_ok());
                    assert!(done.iter().all(|done| done.load(Relaxed) >= round));
                }
            }
        };
        let others = [1, 2].map(|own| thread::spawn(meets_twice(own)));
        meets_twice(0)();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// Two members wait twice, and one leaves. When the other one waits again, the barrier is broken.
#[test]
fn a_member_that_leaves_after_a_round_does_not_break_it() {
    model(|| {
        let barrier = Arc::new(Barrier::new(2, Patience::SHORT));
        let other = {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                assert!(barrier.wait().is_ok() && barrier.wait().is_ok());
                barrier.leave();
            })
        };
        assert!(barrier.wait().is_ok() && barrier.wait().is_ok());
        assert!(barrier.wait().is_err(), "the other member never comes");
        barrier.leave();
        other.join().unwrap();
    });
}
