//! The execution of all replays of a plan, by the threads that take part.

use super::{
    plan::{Parts, Plan, Step},
    progress::Progress,
};
use crate::{
    random::Random,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence},
    },
};
use anabranch_par::Patience;
use crossbeam_utils::CachePadded;
use std::ops::ControlFlow;

/// How often a thread that waits looks again before it gives its strand back.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// What ends a run before its last replay.
pub(crate) enum End<E> {
    /// A unit has failed.
    Failed {
        /// The number of the replay, from 0.
        replay: u64,
        /// The number of the task of the unit.
        task: usize,
        why: E,
    },
    /// A unit has returned that this replay is the last one.
    Met,
    /// `is_over` has returned this reason.
    Over(E),
}

/// A run: some replays of a plan. `execute` does the units of a step in a replay, one after the other, and
/// returns whether the replay is the last one, or why a unit has failed. A unit that may end the run is one
/// that all units of the next replay come after. `is_over` is called before each replay, with its number, and
/// returns why the run is to end, if it is.
pub(crate) struct Run<'p, X, O, E> {
    plan: &'p Plan,
    replays: u64,
    execute: X,
    is_over: O,
    strands: Box<[CachePadded<Strand>]>,
    progress: Progress,
    /// The number of threads that take part.
    active: AtomicUsize,
    /// A step whose first unit has this serial number or a larger one does not begin.
    end: AtomicU64,
    ended: Mutex<Option<(u64, End<E>)>>,
}

/// A strand, as threads take it and give it back.
#[derive(Default)]
struct Strand {
    is_taken: AtomicBool,
    /// The next step. Only the thread that has the strand uses it.
    replay: AtomicU64,
    step: AtomicUsize,
}

/// A strand that this thread has. It is given back when this is dropped.
struct Taken<'s>(&'s Strand);

impl Strand {
    /// Takes the strand, unless another thread has it.
    fn take(&self) -> Option<Taken<'_>> {
        if self.is_taken.load(Relaxed) {
            return None;
        }
        // Acquire: the position is that which the last thread has left.
        let taken = self.is_taken.compare_exchange(false, true, Acquire, Relaxed);
        taken.is_ok().then(|| Taken(self))
    }
}

impl Taken<'_> {
    fn replay(&self) -> u64 {
        self.0.replay.load(Relaxed)
    }

    fn step(&self) -> usize {
        self.0.step.load(Relaxed)
    }

    fn go_to(&self, replay: u64, step: usize) {
        self.0.replay.store(replay, Relaxed);
        self.0.step.store(step, Relaxed);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Release: as above.
        self.0.is_taken.store(false, Release);
    }
}

impl<'p, X, O, E> Run<'p, X, O, E>
where
    X: Fn(usize, &Parts, u64) -> Result<ControlFlow<()>, E>,
    O: Fn(u64) -> Option<E>,
{
    pub(crate) fn new(plan: &'p Plan, replays: u64, execute: X, is_over: O) -> Self {
        let strands: Box<[_]> = (0..plan.strands()).map(|_| CachePadded::default()).collect();
        let progress = Progress::new(strands.len());
        let end = AtomicU64::new(replays.saturating_mul(plan.units));
        let (active, ended) = (AtomicUsize::new(0), Mutex::new(None));
        Self { plan, replays, execute, is_over, strands, progress, active, end, ended }
    }

    /// What has ended the run before its last replay, if anything has.
    pub(crate) fn into_end(self) -> Option<End<E>> {
        self.ended.lock().take().map(|(_, end)| end)
    }

    /// Takes part until all replays are done. `own` is the strand that the thread begins with.
    pub(crate) fn take_part(&self, own: usize) {
        self.active.fetch_add(1, Relaxed);
        let (count, mut at, mut patience) = (self.strands.len(), own, Patience::new());
        while !self.progress.is_finished() {
            let mut strands = (0..count).map(|distance| (at + distance) % count);
            match strands.find(|&strand| self.advance(strand, usize::MAX)) {
                Some(strand) => (at, patience) = (strand, Patience::new()),
                None if patience.pause() => {}
                None => {
                    // What it finds it takes first: meanwhile another thread may have found it taken.
                    let found = || (0..count).find(|&strand| self.can_advance(strand));
                    at = self.progress.sleep(found).unwrap_or(at);
                    patience = Patience::new();
                }
            }
        }
        self.active.fetch_sub(1, Relaxed);
    }

    /// Executes all replays on this thread, in a random order.
    pub(crate) fn run_in_random_order(&self, random: &Random) {
        while !self.progress.is_finished() {
            self.advance(random.below(self.strands.len()), 1);
        }
    }

    /// Executes steps of a strand, at most this many, until one has to wait. Returns whether it has executed
    /// any: not if another thread has the strand.
    fn advance(&self, number: usize, most: usize) -> bool {
        let steps = &self.plan.strands[number];
        let mut has_advanced = false;
        while let Some(strand) = self.strands[number].take() {
            let begin = (strand.replay(), strand.step());
            let (replay, at) = self.advance_from(begin, number, most);
            has_advanced |= (replay, at) != begin;
            strand.go_to(replay, at);
            drop(strand);
            // A thread that looked at the strand before it sleeps may have found it taken, and this thread may
            // go on with another strand. So if what the next step waits for has been done meanwhile, this
            // thread goes on with this one. SeqCst: that is seen here, or that thread sees that the strand is
            // not taken.
            fence(SeqCst);
            if most < usize::MAX || replay == self.replays || !self.is_ready(&steps[at], replay) {
                break;
            }
        }
        has_advanced
    }

    /// Executes steps of a strand that this thread has, from this position: see [`advance`](Self::advance).
    /// Returns the position of the next one.
    fn advance_from(&self, (mut replay, mut at): (u64, usize), number: usize, most: usize) -> (u64, usize) {
        let steps = &self.plan.strands[number];
        for _ in 0..most {
            if replay == self.replays {
                break;
            }
            let step = &steps[at];
            if !self.is_ready(step, replay) && !self.spin(step, replay) {
                break;
            }
            if (number, at) == (0, 0)
                && let Some(why) = (self.is_over)(replay)
            {
                self.stop(replay.saturating_mul(self.plan.units), End::Over(why));
            }
            let serial = replay.saturating_mul(self.plan.units) + step.unit;
            if serial < self.end.load(Relaxed) {
                match (self.execute)(step.task, &step.parts, replay) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => self.stop(serial - step.unit + self.plan.units, End::Met),
                    // Steps with larger serial numbers do not begin. The rest of this one has not run.
                    Err(why) => self.stop(serial + 1, End::Failed { replay, task: step.task, why }),
                }
                at += 1;
                if at == steps.len() {
                    (replay, at) = (replay + 1, 0);
                }
            } else {
                replay = self.replays;
            }
            if replay == self.replays {
                self.progress.finish(number);
            } else if step.is_awaited {
                self.progress.set_done(number, replay * steps.len() as u64 + at as u64);
            }
        }
        (replay, at)
    }

    /// Whether all that a step waits for is done.
    #[inline]
    fn is_ready(&self, step: &Step, replay: u64) -> bool {
        step.waits.iter().all(|wait| {
            let length = self.plan.strands[wait.strand].len() as i64;
            self.progress.done(wait.strand) as i64 >= replay as i64 * length + wait.more
        })
    }

    /// Waits a moment for what a step waits for, if no strand is without a thread. Returns whether it is done
    /// then.
    fn spin(&self, step: &Step, replay: u64) -> bool {
        self.active.load(Relaxed) >= self.strands.len()
            && (0..SPINS).any(|_| {
                std::hint::spin_loop();
                self.is_ready(step, replay)
            })
    }

    /// Whether no thread has the strand, and its next step need not wait.
    fn can_advance(&self, number: usize) -> bool {
        self.strands[number].take().is_some_and(|strand| {
            let replay = strand.replay();
            replay < self.replays && self.is_ready(&self.plan.strands[number][strand.step()], replay)
        })
    }

    /// Ends the run before the unit with this serial number, unless something ends it earlier.
    #[cold]
    fn stop(&self, serial: u64, why: End<E>) {
        let mut ended = self.ended.lock();
        let comes_first = match (ended.as_ref(), &why) {
            (None, _) => true,
            // A cancellation gives way to a failure, as everywhere.
            (Some((_, End::Over(_))), End::Failed { .. }) => true,
            (Some((_, End::Failed { .. })), End::Over(_)) => false,
            (Some((first, _)), _) => serial < *first,
        };
        if comes_first {
            *ended = Some((serial, why));
        }
        self.end.fetch_min(serial, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        super::plan::{Part, PlannedUnit},
        *,
    };
    use anabranch_graph::repeat::UnitOrder;
    use proptest::prelude::*;
    use std::{cell::RefCell, collections::BTreeSet};

    /// What has ended a run that these ask to end, in this order.
    fn end(stops: impl IntoIterator<Item = (u64, End<&'static str>)>) -> (u64, Option<End<&'static str>>) {
        let plan = Plan::new(&[], &[], 1);
        let run = Run::new(&plan, 1, |_, _, _| Ok(ControlFlow::Continue(())), |_| None);
        run.end.store(100, Relaxed);
        stops.into_iter().for_each(|(serial, why)| run.stop(serial, why));
        (run.end.load(Relaxed), run.into_end())
    }

    #[test]
    fn the_first_serial_number_counts_and_a_failure_before_a_cancellation() {
        let failed = |why| End::Failed { replay: 0, task: 0, why };
        assert!(matches!(end([]), (100, None)));
        let firsts = end([(9, failed("late")), (5, failed("early")), (7, failed("between"))]);
        assert!(matches!(firsts, (5, Some(End::Failed { why: "early", .. }))));
        assert!(matches!(end([(8, End::Met), (8, End::Over("late"))]), (8, Some(End::Met))));
        assert!(matches!(end([(8, End::Met), (5, failed("early"))]), (5, Some(End::Failed { .. }))));
        assert!(matches!(end([(4, End::Over("over")), (6, failed("late"))]), (4, Some(End::Failed { .. }))));
        assert!(matches!(end([(6, failed("late")), (4, End::Over("over"))]), (4, Some(End::Failed { .. }))));
    }

    /// The units of some tasks, and what each comes after.
    fn recorded() -> impl Strategy<Value = (Vec<PlannedUnit>, Vec<UnitOrder>)> {
        let tasks = prop::collection::vec((1..=8_usize, any::<bool>()), 1..=4);
        let bits = prop::collection::vec(any::<(u8, u8)>(), 36 * 36);
        (tasks, bits, 0..=255_u8).prop_map(|(tasks, bits, few)| {
            let (mut units, mut orders): (Vec<PlannedUnit>, Vec<UnitOrder>) = Default::default();
            for (task, (chunks, reduces)) in tasks.into_iter().enumerate() {
                let before = units.len();
                for unit in 0..chunks {
                    units.push(PlannedUnit { task, part: Part::Chunk(unit), chunks });
                    let within = (0..before).filter(|other| bits[36 * units.len() + other].0 > few).collect();
                    orders.push(UnitOrder { within, across: Vec::new() });
                }
                if reduces {
                    units.push(PlannedUnit { task, part: Part::End, chunks });
                    orders
                        .push(UnitOrder { within: (before..units.len() - 1).collect(), across: Vec::new() });
                }
            }
            for (unit, order) in orders.iter_mut().enumerate() {
                order.across = (0..units.len()).filter(|other| bits[36 * unit + other].1 > few).collect();
            }
            (units, orders)
        })
    }

    proptest! {
        #[test]
        fn every_unit_runs_once_in_each_replay_and_after_those_that_it_comes_after(
            (units, orders) in recorded(),
            threads in 1..=4_usize,
            seed: u64,
        ) {
            let _deadline = testing::deadline();
            const REPLAYS: u64 = 3;
            let done = RefCell::new(BTreeSet::new());
            let execute = |task: usize, parts: &Parts, replay: u64| {
                let wanted = |unit: &PlannedUnit| unit.task == task && match (unit.part, parts) {
                    (Part::Chunk(chunk), Parts::Chunks(chunks)) => chunks.contains(&chunk),
                    (part, parts) => Parts::from(part) == *parts,
                };
                for unit in (0..units.len()).filter(|&unit| wanted(&units[unit])) {
                    let mut done = done.borrow_mut();
                    for &before in &orders[unit].within {
                        assert!(done.contains(&(replay, before)), "{unit} before {before} in replay {replay}");
                    }
                    for &before in orders[unit].across.iter().filter(|_| replay > 0) {
                        assert!(done.contains(&(replay - 1, before)), "{unit} of replay {replay} before {before}");
                    }
                    assert!(done.insert((replay, unit)), "{unit} twice in replay {replay}");
                }
                Ok::<_, ()>(ControlFlow::Continue(()))
            };
            let plan = Plan::new(&units, &orders, threads);
            let (run, random) = (Run::new(&plan, REPLAYS, execute, |_| None), Random::new(seed));
            let mut attempts = 0..100_000;
            while !run.progress.is_finished() {
                prop_assert!(attempts.next().is_some(), "the strands wait for each other");
                run.advance(random.below(run.strands.len()), 1);
            }
            drop(run);
            prop_assert_eq!(done.into_inner().len(), units.len() * REPLAYS as usize);
        }
    }
}
