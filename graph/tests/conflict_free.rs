//! The promises of the conflict scheduler, against a model that knows every pair of tasks in conflict.

mod optimum;

use anabranch_graph::schedule::{CANDIDATES, PATIENCE};
use anabranch_graph::{ConflictScheduler, Contender, Effect, ObjectId, Order, TaskId, TaskState};
use optimum::optimum;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A small deterministic generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn exclusive(object: u64) -> Effect {
    Effect { object: ObjectId(object), order: Order::Exclusive }
}

fn relaxed(object: u64) -> Effect {
    Effect { object: ObjectId(object), order: Order::Relaxed }
}

#[derive(Clone, Debug)]
struct Known {
    effects: Vec<Effect>,
    partners: Vec<TaskId>,
    state: TaskState,
    /// The call in which it became due.
    due: usize,
}

/// Everything that was reported to the scheduler, and a check of each answer.
#[derive(Default)]
struct Model {
    tasks: BTreeMap<TaskId, Known>,
    /// Those of all tasks, also of tasks that have finished.
    contenders: BTreeMap<TaskId, Contender>,
    scheduler: ConflictScheduler,
    calls: usize,
    last: u64,
    log: Vec<TaskId>,
}

impl Model {
    fn insert(&mut self, priority: i32, effects: Vec<Effect>, partners: Vec<TaskId>) -> TaskId {
        self.last += 1;
        let id = TaskId(self.last);
        let contender = self.scheduler.insert_with(id, priority, &effects, &self.contenders(&partners));
        assert_eq!(contender.task(), id);
        self.contenders.insert(id, contender);
        self.tasks.insert(id, Known { effects, partners, state: TaskState::Submitted, due: usize::MAX });
        id
    }

    fn contenders(&self, tasks: &[TaskId]) -> Vec<Contender> {
        tasks.iter().map(|id| self.contenders[id]).collect()
    }

    fn state(&self, task: TaskId) -> Option<TaskState> {
        self.scheduler.state(self.contenders[&task])
    }

    fn conflict(&self, a: TaskId, b: TaskId) -> bool {
        let (x, y) = (&self.tasks[&a], &self.tasks[&b]);
        let shared = |e: &Effect, f: &Effect| {
            e.object == f.object
                && ![e.order, f.order].contains(&Order::Sequential)
                && [e.order, f.order].contains(&Order::Exclusive)
        };
        let effects = x.effects.iter().any(|e| y.effects.iter().any(|f| shared(e, f)));
        a != b && (effects || x.partners.contains(&b) || y.partners.contains(&a))
    }

    fn all(&self, what: impl Fn(TaskState) -> bool) -> Vec<TaskId> {
        self.tasks.iter().filter(|(_, t)| what(t.state)).map(|(&id, _)| id).collect()
    }

    fn running(&self) -> Vec<TaskId> {
        self.all(|state| state == TaskState::Running)
    }

    fn waiting(&self) -> Vec<TaskId> {
        self.all(|state| matches!(state, TaskState::Waiting { .. }))
    }

    fn update(&mut self, finished: &[TaskId], eligible: &[TaskId]) -> Vec<TaskId> {
        let mut start = Vec::new();
        // A single change has a call of its own, which a runtime makes.
        match (&self.contenders(finished)[..], &self.contenders(eligible)[..]) {
            ([], &[task]) => self.scheduler.eligible(task, &mut start),
            (&[task], []) => self.scheduler.finished(task, &mut start),
            (finished, eligible) => self.scheduler.update(finished, eligible, &mut start),
        }
        let start: Vec<TaskId> = start.into_iter().map(Contender::task).collect();
        self.calls += 1;
        finished.iter().for_each(|id| drop(self.tasks.remove(id)));
        for id in eligible {
            self.tasks.get_mut(id).unwrap().state = TaskState::Waiting { due: false };
        }
        for (i, &id) in start.iter().enumerate() {
            assert!(self.waiting().contains(&id), "{id} was started, but did not wait");
            assert!(!start[..i].contains(&id));
            // Tasks that were due before the call and are passed over.
            for other in self.waiting().into_iter().filter(|&other| self.conflict(id, other)) {
                let due = self.tasks[&other].due;
                assert!(
                    start.contains(&other) || due == usize::MAX || self.tasks[&id].due <= due,
                    "{id} was started before {other}, which is due"
                );
            }
        }
        start.iter().for_each(|id| self.tasks.get_mut(id).unwrap().state = TaskState::Running);
        self.log.extend(&start);
        self.check();
        start
    }

    fn check(&mut self) {
        let running = self.running();
        for (i, &a) in running.iter().enumerate() {
            assert!(
                running[..i].iter().all(|&b| !self.conflict(a, b)),
                "{a} runs at the same time as another"
            );
        }
        for id in self.waiting() {
            let state = self.state(id).expect("a task that waits");
            let task = self.tasks.get_mut(&id).unwrap();
            if state == (TaskState::Waiting { due: true }) && task.due == usize::MAX {
                task.due = self.calls;
            }
            task.state = state;
        }
        for (&id, task) in &self.tasks {
            assert_eq!(self.state(id), Some(task.state), "{id}");
        }
        let slots: BTreeSet<usize> = self.tasks.keys().map(|id| self.contenders[id].slot()).collect();
        assert_eq!(slots.len(), self.tasks.len(), "each unfinished task has a slot of its own");
        let waiting = self.waiting();
        for &id in &waiting {
            let before = |&other: &TaskId| {
                let due = self.tasks[&other].due;
                due != usize::MAX && due <= self.tasks[&id].due
            };
            let mut others = running.iter().chain(waiting.iter().filter(|&o| before(o)));
            assert!(others.any(|&other| self.conflict(id, other)), "{id} waits without a conflict");
        }
        assert_eq!(self.scheduler.len(), self.tasks.len());
        assert_eq!(self.scheduler.running(), running.len());
        assert_eq!(self.scheduler.waiting(), waiting.len());
    }

    /// Makes every task eligible and runs it to its end.
    fn drain(&mut self) {
        let submitted = self.all(|state| state == TaskState::Submitted);
        self.update(&[], &submitted);
        while let Some(&id) = self.running().first() {
            self.update(&[id], &[]);
        }
        assert!(self.scheduler.is_empty(), "{} tasks were never started", self.scheduler.len());
    }
}

/// Runs a random program. Returns the order in which its tasks were started.
fn program(seed: u64, steps: usize, objects: usize, explicit: usize) -> Vec<TaskId> {
    let (mut random, mut model) = (Random(seed), Model::default());
    let most = [40, 40, 150][random.below(3)];
    let alive = 4 + random.below(most);
    for _ in 0..steps {
        let pick = |random: &mut Random, from: &[TaskId], most: usize| {
            let mut from = from.to_vec();
            let n = random.below(most + 1).min(from.len());
            (0..n).map(|_| from.swap_remove(random.below(from.len()))).collect::<Vec<_>>()
        };
        if model.tasks.len() < alive && random.chance(60) {
            let orders =
                [Order::Exclusive, Order::Exclusive, Order::Relaxed, Order::Relaxed, Order::Sequential];
            let effects = (0..random.below(4))
                .map(|_| Effect {
                    object: ObjectId(random.below(objects) as u64),
                    order: orders[random.below(5)],
                })
                .collect();
            // Some have finished, and their slots belong to other tasks.
            let known: Vec<_> = model.contenders.keys().copied().rev().take(2 * alive).collect();
            let partners =
                if random.chance(explicit) { pick(&mut random, &known, known.len()) } else { vec![] };
            model.insert([0, 0, 0, 1, -1][random.below(5)], effects, partners);
        }
        let submitted = model.all(|state| state == TaskState::Submitted);
        let batch = if random.chance(10) { submitted.len() } else { 1 };
        let eligible = pick(&mut random, &submitted, batch);
        let mut finished = pick(&mut random, &model.running(), 1);
        if random.chance(2) {
            finished.extend(pick(&mut random, &model.waiting(), 1));
        }
        model.update(&finished, &eligible);
    }
    model.drain();
    model.log
}

proptest! {
    // 96, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig {
        cases: (ProptestConfig::default().cases * 3).div_ceil(8),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_programs_keep_every_promise(
        seed: u64,
        steps in 50..600usize,
        objects in 1..8usize,
        explicit in prop::sample::select(vec![0, 20, 100]),
    ) {
        let log = program(seed, steps, objects, explicit);
        prop_assert_eq!(log, program(seed, steps, objects, explicit), "the same calls have the same answers");
    }
}

#[test]
fn a_task_without_conflicts_starts_at_once() {
    let mut model = Model::default();
    let [a, b, c] =
        [vec![exclusive(1)], vec![relaxed(2)], vec![relaxed(2)]].map(|e| model.insert(0, e, vec![]));
    for id in [c, a, b] {
        assert_eq!(model.update(&[], &[id]), [id]);
    }
}

#[test]
fn priority_counts_before_size_and_size_before_age() {
    let mut model = Model::default();
    let gate = model.insert(0, vec![exclusive(1), exclusive(2)], vec![]);
    model.update(&[], &[gate]);
    let both = model.insert(0, vec![exclusive(1), exclusive(2)], vec![]);
    let [left, right] = [1, 2].map(|object| model.insert(0, vec![exclusive(object)], vec![]));
    let urgent = model.insert(1, vec![exclusive(1), exclusive(2)], vec![]);
    let old = model.insert(0, vec![exclusive(1)], vec![]);
    for id in [old, urgent, right, both, left] {
        assert_eq!(model.update(&[], &[id]), []);
    }
    assert_eq!(model.update(&[gate], &[]), [urgent]);
    assert_eq!(model.update(&[urgent], &[]), [left, right], "two rather than the one that is older");
    assert_eq!(model.update(&[left], &[]), [old]);
    assert_eq!(model.update(&[old, right], &[]), [both]);
}

#[test]
fn the_stricter_effect_on_an_object_counts() {
    let mut model = Model::default();
    let a = model.insert(0, vec![relaxed(1), exclusive(1), relaxed(1)], vec![]);
    let b = model.insert(0, vec![relaxed(1)], vec![]);
    assert_eq!(model.update(&[], &[a, b]), [a]);
    assert_eq!(model.update(&[a], &[]), [b]);
}

#[test]
fn a_withdrawn_task_blocks_no_other_task() {
    let mut model = Model::default();
    let [a, b, c] = [1, 1, 1].map(|object| model.insert(0, vec![exclusive(object)], vec![]));
    model.update(&[], &[a, b, c]);
    assert_eq!(model.update(&[b], &[]), []);
    assert_eq!(model.update(&[a], &[]), [c]);
}

#[test]
#[should_panic(expected = "T7 has finished twice")]
fn a_task_that_finishes_twice_is_named() {
    let (mut scheduler, mut start) = (ConflictScheduler::new(), Vec::new());
    let task = scheduler.insert(TaskId(7), 0, &[exclusive(1)]);
    scheduler.eligible(task, &mut start);
    scheduler.finished(task, &mut start);
    // Another task has its slot now.
    scheduler.insert(TaskId(8), 0, &[exclusive(1)]);
    scheduler.finished(task, &mut start);
}

#[test]
#[should_panic(expected = "T7 became eligible twice")]
fn a_task_that_becomes_eligible_twice_is_named() {
    let (mut scheduler, mut start) = (ConflictScheduler::new(), Vec::new());
    let task = scheduler.insert(TaskId(7), 0, &[exclusive(1)]);
    scheduler.eligible(task, &mut start);
    scheduler.eligible(task, &mut start);
}

/// Runs an endless stream of tasks against one victim. `stream` gives the effects and the priority of the
/// n-th task. There are always `overlap` tasks of the stream running or waiting, so that the victim's objects
/// are never all free.
fn conflicting_starts(
    victim: (i32, Vec<Effect>),
    overlap: usize,
    stream: impl Fn(u64) -> (i32, Vec<Effect>),
) -> u64 {
    let mut model = Model::default();
    for n in 0..overlap {
        let (priority, effects) = stream(n as u64);
        let id = model.insert(priority, effects, vec![]);
        model.update(&[], &[id]);
    }
    let (priority, effects) = victim;
    let victim = model.insert(priority, effects, vec![]);
    assert_eq!(model.update(&[], &[victim]), [], "the stream must block the victim");
    let mut starts = 0;
    for n in overlap as u64..5_000 {
        let (priority, effects) = stream(n);
        let id = model.insert(priority, effects, vec![]);
        let mut started = model.update(&[], &[id]);
        let oldest = *model.log.iter().find(|id| model.running().contains(id)).unwrap();
        started.extend(model.update(&[oldest], &[]));
        if started.contains(&victim) {
            return starts;
        }
        starts += started.iter().filter(|&&id| model.conflict(victim, id)).count() as u64;
    }
    panic!("never started, but {starts} tasks in conflict with it did");
}

#[test]
fn no_task_starves() {
    let both = || vec![exclusive(1), exclusive(2)];
    let one_of_both = |n: u64| vec![exclusive(1 + n % 2)];
    let bound = PATIENCE + 16;
    let alternating = conflicting_starts((0, both()), 2, |n| (0, one_of_both(n)));
    let urgent = conflicting_starts((-5, vec![exclusive(1)]), 2, |_| (5, vec![exclusive(1)]));
    let overlapping = conflicting_starts((0, vec![exclusive(1)]), 2, |_| (0, vec![relaxed(1)]));
    let reader = conflicting_starts((-1, vec![relaxed(1)]), 3, |_| (0, vec![exclusive(1)]));
    let larger = conflicting_starts((0, both()), 7, |n| (0, one_of_both(n / 2)));
    println!("tasks that were started first: {alternating} {urgent} {overlapping} {reader} {larger}");
    for starts in [alternating, urgent, overlapping, reader, larger] {
        assert!(
            (PATIENCE / 2..=bound).contains(&starts),
            "{starts} tasks in conflict were started before it"
        );
    }
}

#[test]
fn few_tasks_start_before_a_due_task() {
    // Many victims at once, all in conflict with each other and with a more urgent stream.
    let mut model = Model::default();
    let mut running = model.insert(1, vec![exclusive(1)], vec![]);
    model.update(&[], &[running]);
    let victims: Vec<_> = (0..100).map(|_| model.insert(0, vec![exclusive(1)], vec![])).collect();
    model.update(&[], &victims);
    let mut left = victims.len();
    for step in 0..400 {
        let urgent = model.insert(1, vec![exclusive(1)], vec![]);
        model.update(&[], &[urgent]);
        let start = model.update(&[running], &[]);
        assert_eq!(start.len(), 1);
        running = start[0];
        left -= usize::from(victims.contains(&running));
        if left == 0 {
            assert!(step < PATIENCE + 3 * 100, "{step}");
            return;
        }
    }
    panic!("{left} victims wait still");
}

#[test]
fn the_memory_of_a_stream_is_bounded_by_its_unfinished_tasks() {
    let (mut scheduler, mut start, mut known) = (ConflictScheduler::new(), Vec::new(), Vec::new());
    for n in 1..=100_000 {
        // New objects all the time, and one old one.
        let effects = [exclusive(n), exclusive(0)];
        let partner = known.len().checked_sub(3).map(|before| known[before]);
        let task = scheduler.insert_with(TaskId(n), 0, &effects, partner.as_slice());
        known.push(task);
        assert!(task.slot() < 11);
        scheduler.eligible(task, &mut start);
        if n > 10 {
            let next = start.remove(0);
            scheduler.finished(next, &mut start);
        }
    }
    assert_eq!(scheduler.len(), 10);
}

// ---- The sizes of the sets ----

/// Effects and partners (by index) of the tasks of a program.
type Program = Vec<(Vec<Effect>, Vec<usize>)>;

fn uniform(random: &mut Random, n: usize, percent: usize) -> Program {
    (0..n).map(|v| (vec![], (0..v).filter(|_| random.chance(percent)).collect())).collect()
}

/// Each task touches a run of neighbouring objects.
fn intervals(random: &mut Random, n: usize, length: usize) -> Program {
    let run = |from: usize, length: usize| (from..=from + length).map(|o| exclusive(o as u64)).collect();
    (0..n).map(|_| (run(random.below(2 * n), random.below(length)), vec![])).collect()
}

/// Each task touches a few of a few objects, some of them relaxed.
fn cliques(random: &mut Random, n: usize, objects: usize) -> Program {
    let mut effect = |_| {
        let object = random.below(objects) as u64;
        if random.chance(70) { exclusive(object) } else { relaxed(object) }
    };
    (0..n).map(|v| ((0..1 + v % 4).map(&mut effect).collect(), vec![])).collect()
}

/// The size of the set that starts when all tasks become eligible at once, and the size of a largest set.
fn sizes(program: &Program) -> (usize, usize) {
    let mut model = Model::default();
    let ids: Vec<_> = (1..=program.len() as u64).map(TaskId).collect();
    for (effects, partners) in program {
        model.insert(0, effects.clone(), partners.iter().map(|&p| ids[p]).collect());
    }
    let conflicts = |a| ids.iter().enumerate().filter(move |&(_, &b)| a != b).map(move |(i, &b)| (i, b));
    let row =
        |&a: &TaskId| conflicts(a).filter(|&(_, b)| model.conflict(a, b)).fold(0, |row, (i, _)| row | 1 << i);
    let rows: Vec<u128> = ids.iter().map(row).collect();
    (model.update(&[], &ids).len(), optimum(&rows))
}

/// The mean ratio to the optimum over several programs, and the worst one.
fn ratio(rounds: u64, mut program: impl FnMut(&mut Random) -> Program) -> (f64, f64) {
    let (mut sum, mut worst) = (0.0, 1.0_f64);
    for seed in 0..rounds {
        let (found, best) = sizes(&program(&mut Random(seed)));
        assert!(found <= best);
        let ratio = found as f64 / best as f64;
        (sum, worst) = (sum + ratio, worst.min(ratio));
    }
    (sum / rounds as f64, worst)
}

#[test]
fn sets_of_up_to_forty_tasks_are_almost_always_as_large_as_possible() {
    assert_eq!(CANDIDATES, 100);
    for n in [10, 20, 30, 40] {
        for percent in [5, 10, 20, 30, 50, 80] {
            let (mean, worst) = ratio(10, |random| uniform(random, n, percent));
            println!("{n} tasks, {percent} % of all conflicts: mean {mean:.4}, worst {worst:.3}");
            assert!(mean >= 0.97, "{n} tasks, {percent} %: {mean}");
        }
        for (name, size) in [("intervals up to", 3), ("intervals up to", 10), ("objects", 6), ("objects", 20)]
        {
            let (mean, worst) = ratio(10, |random| match name {
                "objects" => cliques(random, n, size),
                _ => intervals(random, n, size),
            });
            println!("{n} tasks, {name} {size}: mean {mean:.4}, worst {worst:.3}");
            assert!(mean >= 0.97, "{n} tasks, {name} {size}: {mean}");
        }
    }
}

#[test]
fn sets_of_more_tasks_than_one_search_takes_are_still_large() {
    for percent in [3, 6, 12] {
        let (mean, worst) = ratio(6, |random| uniform(random, 110, percent));
        println!("110 tasks, {percent} % of all conflicts: mean {mean:.4}, worst {worst:.3}");
        assert!(mean >= 0.85, "{percent} %: {mean}");
    }
    let (mean, worst) = ratio(6, |random| intervals(random, 120, 4));
    println!("120 tasks, intervals: mean {mean:.4}, worst {worst:.3}");
    assert!(mean >= 0.9, "{mean}");
}
