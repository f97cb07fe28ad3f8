//! Residence on random programs: tasks read and write a small buffer in several memories, the copies that the
//! residence asks for move values between them, and everything runs in any order that the dependencies allow.
//! Tasks and copies fail at random, and the ends of copies are reported late and in any order.
//!
//! The model has all elements of every memory, and knows for each whether it is current, and because of which
//! copy.

use anabranch_graph::{MemoryCopy, MemoryId, Mode, Residence};
use anabranch_grid::{Extent, GridBox, Point, Region};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What an element has after a copy or a task that failed, and in a device's memory at first.
const GARBAGE: u64 = u64::MAX;

/// One access, and what happens after it.
#[derive(Clone, Debug)]
struct Step {
    memory: u16,
    mode: Mode,
    /// The corners of two boxes; the second one is empty in most steps.
    boxes: [[[usize; 3]; 2]; 2],
    /// The number of ready tasks that are executed, and the number of ended copies that are reported.
    execute: usize,
    report: usize,
}

#[derive(Clone, Debug)]
struct Program {
    extent: [usize; 3],
    memories: u16,
    /// One in how many tasks and copies fails; none if this is 0.
    failures: u64,
    seed: u64,
    steps: Vec<Step>,
}

fn step() -> impl Strategy<Value = Step> {
    let corner = || prop_oneof![1 => Just([0; 3]), 3 => [0..6usize, 0..6usize, 0..3usize]];
    let size = || prop_oneof![1 => Just([6; 3]), 3 => [1..=6usize, 1..=6usize, 1..=3usize]];
    let one =
        || (corner(), size()).prop_map(|(low, size)| [low, [0, 1, 2].map(|axis| low[axis] + size[axis])]);
    let second = prop_oneof![3 => Just([[0; 3]; 2]), 1 => one()];
    let mode = prop_oneof![3 => Just(Mode::Read), 1 => Just(Mode::Write), 1 => Just(Mode::Update)];
    let count = || prop_oneof![2 => 0..4usize, 1 => Just(usize::MAX)];
    (0..4u16, mode, one(), second, count(), count()).prop_map(
        |(memory, mode, first, second, execute, report)| Step {
            memory,
            mode,
            boxes: [first, second],
            execute,
            report,
        },
    )
}

fn program() -> impl Strategy<Value = Program> {
    let extent = prop_oneof![
        (1..=6usize).prop_map(|x| [x, 1, 1]),
        (1..=6usize, 1..=6usize).prop_map(|(x, y)| [x, y, 1]),
        [1..=6usize, 1..=6usize, 1..=3usize],
    ];
    let failures = prop_oneof![Just(0u64), Just(3), Just(8)];
    (extent, 1..=4u16, failures, any::<u64>(), proptest::collection::vec(step(), 1..40)).prop_map(
        |(extent, memories, failures, seed, steps)| Program { extent, memories, failures, seed, steps },
    )
}

/// Why a memory has the current value of an element, or that it has not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    No,
    Yes,
    /// If this task, a copy, ends well.
    By(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waiting,
    Done,
    Failed,
}

#[derive(Debug)]
enum What {
    Copy(MemoryCopy),
    /// The values that the task must find if it reads, and the value that it writes in all elements.
    Task {
        memory: usize,
        elements: Vec<Point<3>>,
        expected: Option<Vec<u64>>,
        written: Option<u64>,
    },
}

#[derive(Debug)]
struct Task {
    what: What,
    /// It is skipped if one of these failed.
    needs: BTreeSet<usize>,
    /// It runs after these, however they end.
    after: BTreeSet<usize>,
    state: State,
}

/// An element of the buffer, as a task graph and a serial program see it, and in each memory.
#[derive(Clone, Debug)]
struct Element {
    serial: u64,
    writer: Option<usize>,
    readers: Vec<usize>,
    held: Vec<Held>,
    values: Vec<u64>,
}

struct Run {
    residence: Residence<usize>,
    elements: BTreeMap<[usize; 3], Element>,
    tasks: Vec<Task>,
    /// Copies that have ended and are not reported.
    unreported: Vec<usize>,
    failures: u64,
    seed: u64,
    whole: Region<3>,
    memories: u16,
}

fn points(region: &Region<3>) -> impl Iterator<Item = Point<3>> {
    region.boxes().iter().flat_map(GridBox::points)
}

impl Run {
    fn new(program: &Program) -> Self {
        let whole = Region::from(GridBox::full(program.extent));
        let memories = usize::from(program.memories);
        let mut values = vec![GARBAGE; memories];
        values[0] = 0;
        let mut held = vec![Held::No; memories];
        held[0] = Held::Yes;
        let element = Element { serial: 0, writer: None, readers: Vec::new(), held, values };
        Self {
            residence: Residence::new(Extent(program.extent)),
            elements: points(&whole).map(|at| (at.0, element.clone())).collect(),
            tasks: Vec::new(),
            unreported: Vec::new(),
            failures: program.failures,
            seed: program.seed,
            whole,
            memories: program.memories,
        }
    }

    /// A random number below `end`.
    fn random(&mut self, end: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % end
    }

    fn at(&mut self, point: Point<3>) -> &mut Element {
        self.elements.get_mut(&point.0).expect("the point is in the buffer")
    }

    /// Submits an access as a runtime does. Returns the task.
    fn submit(&mut self, memory: MemoryId, region: &Region<3>, mode: Mode) -> usize {
        let mut needs = BTreeSet::new();
        if mode.reads() {
            self.bring(memory, region);
            needs = self.made_by(memory, region);
        }
        let task = self.tasks.len();
        let elements: Vec<_> = points(region).collect();
        let mut after = BTreeSet::new();
        let expected = mode.reads().then(|| elements.iter().map(|&at| self.at(at).serial).collect());
        for &at in &elements {
            let element = self.at(at);
            if mode.reads() {
                needs.extend(element.writer);
            }
            if mode.writes() {
                after.extend(element.writer.take());
                after.extend(element.readers.drain(..));
                element.writer = Some(task);
                element.serial = task as u64 + 1;
                element.held.fill(Held::No);
                element.held[usize::from(memory.0)] = Held::Yes;
            } else {
                element.readers.push(task);
            }
        }
        if mode.writes() {
            self.residence.written(memory, region);
        }
        let written = mode.writes().then_some(task as u64 + 1);
        let what = What::Task { memory: usize::from(memory.0), elements, expected, written };
        self.tasks.push(Task { what, needs, after, state: State::Waiting });
        task
    }

    /// Submits the copies that are missing, and checks that all of them and no others are needed.
    fn bring(&mut self, memory: MemoryId, region: &Region<3>) {
        for copy in self.residence.missing(memory, region) {
            assert!(region.contains(&copy.region) && !copy.region.is_empty());
            assert!(
                copy.from != copy.to && (copy.from == MemoryId::HOST || copy.to == MemoryId::HOST),
                "{copy}"
            );
            assert!(copy.to == memory || copy.to == MemoryId::HOST, "{copy}");
            let mut needs = self.made_by(copy.from, &copy.region);
            let task = self.tasks.len();
            for at in points(&copy.region) {
                let element = self.at(at);
                let [from, to] = [copy.from, copy.to].map(|memory| usize::from(memory.0));
                assert_eq!(element.held[to], Held::No, "{copy} is not needed in {at:?}");
                assert_ne!(element.held[from], Held::No, "{copy} has no source in {at:?}");
                // On a device, that would be a copy from the host that is bound to fail.
                assert!(from == 0 || element.held[from] == Held::Yes, "{copy} from a copy in {at:?}");
                element.held[to] = Held::By(task);
                element.readers.push(task);
                needs.extend(element.writer);
            }
            self.residence.copied(&copy, task);
            let state = State::Waiting;
            self.tasks.push(Task { what: What::Copy(copy), needs, after: BTreeSet::new(), state });
        }
        for at in points(region) {
            assert_ne!(self.at(at).held[usize::from(memory.0)], Held::No, "no copy of {at:?} to {memory}");
        }
    }

    /// The copies to wait for, which are those of the model.
    fn made_by(&self, memory: MemoryId, region: &Region<3>) -> BTreeSet<usize> {
        let copies: Vec<_> = self.residence.made_by(memory, region).copied().collect();
        let expected =
            points(region).filter_map(|at| match self.elements[&at.0].held[usize::from(memory.0)] {
                Held::By(copy) => Some(copy),
                _ => None,
            });
        let expected: BTreeSet<_> = expected.collect();
        assert_eq!(copies.len(), expected.len(), "each copy once: {copies:?}");
        assert_eq!(copies.into_iter().collect::<BTreeSet<_>>(), expected);
        expected
    }

    /// Executes up to `count` tasks in a random order that the dependencies allow.
    fn execute(&mut self, count: usize) {
        for _ in 0..count {
            let ended = |on: &usize| self.tasks[*on].state != State::Waiting;
            let is_ready = |t: &Task| t.state == State::Waiting && t.needs.iter().chain(&t.after).all(ended);
            let ready: Vec<_> = (0..self.tasks.len()).filter(|&task| is_ready(&self.tasks[task])).collect();
            if ready.is_empty() {
                return;
            }
            let task = ready[self.random(ready.len())];
            self.execute_one(task);
        }
    }

    fn execute_one(&mut self, task: usize) {
        let is_skipped = self.tasks[task].needs.iter().any(|on| self.tasks[*on].state == State::Failed);
        let fails = self.failures > 0 && self.random(self.failures as usize) == 0;
        if !is_skipped {
            match &self.tasks[task].what {
                What::Copy(copy) => {
                    let [from, to] = [copy.from, copy.to].map(|memory| usize::from(memory.0));
                    for at in points(&copy.region) {
                        let values = &mut self.elements.get_mut(&at.0).unwrap().values;
                        values[to] = if fails { GARBAGE } else { values[from] };
                    }
                }
                What::Task { memory, elements, expected, written } => {
                    let here = elements.iter().map(|at| self.elements[&at.0].values[*memory]);
                    if let Some(expected) = expected {
                        assert_eq!(&here.collect::<Vec<_>>(), expected, "task {task} reads stale elements");
                    }
                    if let Some(written) = *written {
                        for at in elements {
                            let values = &mut self.elements.get_mut(&at.0).unwrap().values;
                            values[*memory] = if fails { GARBAGE } else { written };
                        }
                    }
                }
            }
        }
        self.tasks[task].state = if fails || is_skipped { State::Failed } else { State::Done };
        if let What::Copy(_) = self.tasks[task].what {
            self.unreported.push(task);
        }
    }

    /// Reports the ends of up to `count` copies, in a random order.
    fn report(&mut self, count: usize) {
        for _ in 0..count.min(self.unreported.len()) {
            let at = self.random(self.unreported.len());
            let copy = self.unreported.swap_remove(at);
            let has_failed = self.tasks[copy].state == State::Failed;
            if has_failed {
                self.residence.failed(&copy)
            } else {
                self.residence.done(&copy)
            }
            let held = self.elements.values_mut().flat_map(|element| &mut element.held);
            for held in held.filter(|held| **held == Held::By(copy)) {
                *held = if has_failed { Held::No } else { Held::Yes };
            }
        }
    }

    /// The residence and the model agree about every element.
    fn check(&self) {
        for memory in (0..self.memories).map(MemoryId) {
            let copies = self.residence.missing(memory, &self.whole);
            let missing = copies.into_iter().filter(|copy| copy.to == memory).map(|copy| copy.region);
            let not_held = |element: &Element| element.held[usize::from(memory.0)] == Held::No;
            let expected = self.elements.iter().filter(|(_, element)| not_held(element));
            let expected = expected.map(|(at, _)| GridBox::new(*at, at.map(|coordinate| coordinate + 1)));
            assert_eq!(missing.collect::<Region<3>>(), expected.collect());
            self.made_by(memory, &self.whole);
        }
        let is_only_on_host = |element: &Element| element.held[1..].iter().all(|held| *held == Held::No);
        let only_host = self.elements.values().all(|e| e.held[0] == Held::Yes && is_only_on_host(e));
        assert_eq!(self.residence.is_only_on_host(), only_host);
        assert!(self.elements.values().all(|element| element.held.contains(&Held::Yes)));
    }

    /// After everything has ended and is reported, each memory gets all that is not lost: failed copies are
    /// made again.
    fn finish(&mut self) {
        self.execute(usize::MAX);
        self.report(usize::MAX);
        self.failures = 0;
        let is_lost =
            |element: &Element| element.writer.is_some_and(|w| self.tasks[w].state == State::Failed);
        let kept = self.elements.iter().filter(|(_, element)| !is_lost(element));
        let kept = kept.map(|(at, _)| GridBox::new(*at, at.map(|coordinate| coordinate + 1)));
        let kept = kept.collect::<Region<3>>();
        for memory in (0..self.memories).map(MemoryId) {
            let reader = self.submit(memory, &kept, Mode::Read);
            self.execute(usize::MAX);
            self.report(usize::MAX);
            assert_eq!(self.tasks[reader].state, State::Done);
            assert!(self.residence.missing(memory, &kept).is_empty());
        }
        assert!(self.tasks.iter().all(|task| task.state != State::Waiting));
        self.check();
        let whole = self.whole.clone();
        self.submit(MemoryId::HOST, &whole, Mode::Write);
        assert!(self.residence.is_only_on_host());
        assert_eq!(self.residence.tracked(), 1);
    }
}

proptest! {
    // 2,048, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_task_reads_stale_elements_and_no_copy_is_made_without_need(program in program()) {
        let mut run = Run::new(&program);
        for step in &program.steps {
            let region = Region::from_boxes(step.boxes.map(|[low, high]| GridBox::new(low, high)));
            let region = region.intersection(&run.whole);
            run.submit(MemoryId(step.memory % program.memories), &region, step.mode);
            run.check();
            run.execute(step.execute);
            run.report(step.report);
            run.check();
        }
        run.finish();
    }
}
