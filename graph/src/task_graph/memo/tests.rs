//! A graph with a memo gives the answers of a graph that derives each task.

use super::{Stage, pass::NOTES};
use crate::{
    Access, BufferId, Dependency, Effect, Kind, Mode, ObjectId, Order, Settings, Submitted, TaskGraph, TaskId,
};
use anabranch_grid::{Extent, GridBox};
use proptest::prelude::*;
use std::{cell::RefCell, collections::HashSet, rc::Rc};

const ROWS: usize = 5;
const COLS: usize = 4;
const BUFFERS: usize = 3;
const OBJECTS: usize = 2;

/// A task: accesses by buffer, and the effect on each object.
#[derive(Clone, Debug)]
struct Task {
    accesses: Vec<(usize, [usize; 4], Mode)>,
    effects: [Option<Order>; OBJECTS],
}

/// What a program does.
#[derive(Clone, Debug)]
enum Part {
    /// It submits tasks again and again, and stops before the end of the last pass.
    Repeat {
        pass: Vec<Task>,
        passes: usize,
        without: usize,
    },
    /// It submits tasks this often, then another task, and all that again.
    Interrupted {
        pass: Vec<Task>,
        passes: usize,
        with: Task,
        times: usize,
    },
    /// It submits the pieces of a stencil from one buffer to another again and again.
    Pieces {
        from: usize,
        rows: usize,
        passes: usize,
    },
    Once(Task),
    /// A task without accesses and effects.
    Nothing,
    Epoch,
    Discard(usize),
    /// The buffer has this number of versions from now on.
    Versions(usize, usize),
    /// The writers of all parts are wanted.
    Writers(usize),
    /// Whether a task had an effect that no sequential effect has followed.
    Unordered(usize),
    /// Another buffer takes the place of this one.
    Replace(usize),
}

fn task() -> impl Strategy<Value = Task> {
    let mode = prop_oneof![4 => Just(Mode::Read), 2 => Just(Mode::Write), 1 => Just(Mode::Update)];
    let range = prop_oneof![
        2 => (0..ROWS, 0..COLS, 1..=ROWS, 1..=COLS)
            .prop_map(|(r, c, h, w)| [r, c, (r + h).min(ROWS), (c + w).min(COLS)]),
        1 => Just([0, 0, ROWS, COLS]),
        1 => (0..ROWS).prop_map(|r| [r, 0, r + 1, COLS]),
    ];
    let orders = [Order::Sequential, Order::Exclusive, Order::Relaxed, Order::Observe];
    let effect = prop_oneof![3 => Just(None), 1 => proptest::sample::select(orders.to_vec()).prop_map(Some)];
    (proptest::collection::vec((0..BUFFERS, range, mode), 0..3), [effect.clone(), effect])
        .prop_map(|(accesses, effects)| Task { accesses, effects })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => (proptest::collection::vec(task(), 1..6), 1..40usize, 0..5usize)
            .prop_map(|(pass, passes, without)| Part::Repeat { pass, passes, without }),
        3 => (proptest::collection::vec(task(), 1..6), 3..40usize, task(), 2..6usize)
            .prop_map(|(pass, passes, with, times)| Part::Interrupted { pass, passes, with, times }),
        2 => (0..BUFFERS, 1..ROWS, 1..40usize).prop_map(|(from, rows, passes)| Part::Pieces { from, rows, passes }),
        3 => task().prop_map(Part::Once),
        1 => Just(Part::Nothing),
        1 => Just(Part::Epoch),
        1 => (0..BUFFERS).prop_map(Part::Discard),
        1 => (0..BUFFERS, 1..3usize).prop_map(|(buffer, versions)| Part::Versions(buffer, versions)),
        1 => (0..BUFFERS).prop_map(Part::Writers),
        1 => (0..OBJECTS).prop_map(Part::Unordered),
        1 => (0..BUFFERS).prop_map(Part::Replace),
    ]
}

/// Two graphs that get the same submissions: one has a memo, the other one derives each task. The first one
/// has no front unless the program has epochs.
struct Pair {
    graphs: [TaskGraph; 2],
    buffers: Vec<BufferId>,
    objects: Vec<ObjectId>,
    epoch: TaskId,
    /// A task ends this number of submissions after it was submitted, and every seventh one after three times
    /// as many, but no task before those that it depends on.
    lag: u64,
    /// When each task ends, by its id.
    ends: Rc<RefCell<Vec<u64>>>,
    /// What each task comes after in the graph with a memo, by its id.
    before: Vec<Vec<TaskId>>,
    recalled: usize,
    /// The number of dependencies that others implied.
    implied: usize,
}

impl Pair {
    fn new(lag: u64) -> Self {
        Self::with(lag, false)
    }

    fn with(lag: u64, epochs: bool) -> Self {
        let with_memo = TaskGraph::with(Settings { epochs, ..Settings::default() });
        // A graph that derives conflicts has no memo, and has the same dependencies.
        let derives = TaskGraph::with(Settings { conflicts: true, ..Settings::default() });
        let mut pair = Self {
            graphs: [with_memo, derives],
            buffers: Vec::new(),
            objects: Vec::new(),
            epoch: TaskId::EPOCH,
            lag,
            ends: Rc::new(RefCell::new(vec![0])),
            before: vec![Vec::new()],
            recalled: 0,
            implied: 0,
        };
        pair.buffers = (0..BUFFERS).map(|_| pair.create_buffer()).collect();
        pair.objects = (0..OBJECTS).map(|_| pair.both(|graph| graph.create_object())).collect();
        pair
    }

    fn both<R: PartialEq + std::fmt::Debug>(&mut self, change: impl Fn(&mut TaskGraph) -> R) -> R {
        let [one, other] = self.graphs.each_mut().map(change);
        assert_eq!(one, other);
        one
    }

    fn create_buffer(&mut self) -> BufferId {
        self.both(|graph| graph.create_buffer(Extent([ROWS, COLS, 1]), true))
    }

    fn is_recalling(&self) -> bool {
        self.graphs[0].memo.as_ref().is_some_and(|memo| matches!(memo.stage, Stage::Recalling(_)))
    }

    fn done(&self) -> impl Fn(TaskId) -> bool + use<> {
        let (next, ends) = (self.graphs[0].len() + 1, self.ends.clone());
        // A runtime takes tasks that it does not know for tasks of long ago.
        move |task: TaskId| ends.borrow().get(task.0 as usize).is_none_or(|&end| end < next)
    }

    /// Notes when a task ends.
    fn note_end(&mut self, answer: &Submitted) {
        let lag = if answer.id.0.is_multiple_of(7) { 3 * self.lag } else { self.lag };
        let mut ends = self.ends.borrow_mut();
        assert_eq!(ends.len() as u64, answer.id.0);
        let before = answer.dependencies.iter().map(|edge| ends[edge.on.0 as usize]).max();
        ends.push(before.unwrap_or(0).max(answer.id.0 + lag));
        self.before.push(answer.dependencies.iter().map(|edge| edge.on).collect());
    }

    /// Whether a task with these dependencies comes after another one because of them.
    fn comes_after(&self, dependencies: &[Dependency], other: TaskId) -> bool {
        let (mut stack, mut seen): (Vec<_>, HashSet<_>) =
            (dependencies.iter().map(|edge| edge.on).collect(), HashSet::new());
        while let Some(task) = stack.pop() {
            if task == other {
                return true;
            }
            stack.extend(self.before[task.0 as usize].iter().filter(|on| **on >= other && seen.insert(**on)));
        }
        false
    }

    fn declared(&self, task: &Task) -> (Vec<Access>, Vec<Effect>) {
        let access = |&(buffer, [r, c, r1, c1], mode): &(usize, [usize; 4], Mode)| Access {
            buffer: self.buffers[buffer],
            region: GridBox::new([r, c, 0], [r1, c1, 1]).into(),
            mode,
        };
        let effects = self.objects.iter().zip(task.effects);
        let effect = |(&object, order): (_, Option<Order>)| order.map(|order| Effect { object, order });
        (task.accesses.iter().map(access).collect(), effects.filter_map(effect).collect())
    }

    /// The edges that a caller must see: those to tasks that are not done, and those to the writers of what
    /// is read. All tasks come after the epoch; any other edge may replace the one to it. If an edge has
    /// several reasons of one kind, it names one of them.
    fn edges(&self, answer: &Submitted, done: impl Fn(TaskId) -> bool) -> Vec<(TaskId, Kind)> {
        let counts =
            |edge: &&Dependency| edge.on != self.epoch && (edge.kind == Kind::True || !done(edge.on));
        let edges = answer.dependencies.iter().filter(counts);
        edges.map(|edge| (edge.on, edge.kind)).collect()
    }

    fn compare(
        &mut self,
        answers: [&Submitted; 2],
        done: impl Fn(TaskId) -> bool,
    ) -> Result<(), TestCaseError> {
        let [one, other] = answers;
        prop_assert_eq!(one.id, other.id);
        prop_assert_eq!(&one.versions, &other.versions);
        let [recalled, derived] = answers.map(|answer| self.edges(answer, &done));
        let more = recalled.iter().filter(|edge| !derived.contains(edge)).collect::<Vec<_>>();
        let missing = derived.iter().filter(|edge| !recalled.contains(edge));
        // An edge that only says what comes first may be missing, if others imply it.
        let (implied, missing): (Vec<&(TaskId, Kind)>, Vec<_>) = missing.partition(|(on, kind)| {
            matches!(kind, Kind::Anti | Kind::Output) && self.comes_after(&one.dependencies, *on)
        });
        self.implied += implied.len();
        prop_assert!(more.is_empty() && missing.is_empty(), "{}: more {more:?}, missing {missing:?}", one.id);
        prop_assert!(one.dependencies.is_sorted_by(|a, b| a.on < b.on), "{one:?}");
        prop_assert!(!one.dependencies.is_empty());
        self.note_end(one);
        Ok(())
    }

    fn submit(&mut self, task: &Task) -> Result<(), TestCaseError> {
        let (accesses, effects) = self.declared(task);
        let done = self.done();
        let answers = self.graphs.each_mut().map(|graph| graph.submit(&accesses, &effects, &done));
        match &answers {
            [Ok(one), Ok(other)] => self.compare([one, other], &done)?,
            [one, other] => prop_assert_eq!(one.as_ref().err(), other.as_ref().err()),
        }
        self.recalled += usize::from(self.is_recalling());
        Ok(())
    }

    fn submit_pieces(&mut self, whole: &[Access], pieces: &[Vec<Access>]) -> Result<(), TestCaseError> {
        let done = self.done();
        let before = self.graphs[0].len();
        let answers = self.graphs.each_mut().map(|graph| {
            let (mut all, mut last) = (Vec::new(), Submitted::default());
            let each = |piece: &Submitted| all.push(piece.clone());
            graph.submit_pieces(whole, &[], pieces, &done, &mut last, each).map(|()| all)
        });
        match answers {
            [Ok(one), Ok(other)] => {
                prop_assert_eq!(one.len(), other.len());
                for (one, other) in one.iter().zip(&other) {
                    self.compare([one, other], |task| task.0 <= before && done(task))?;
                }
            }
            [one, other] => prop_assert_eq!(one.err(), other.err()),
        }
        self.recalled += usize::from(self.is_recalling());
        Ok(())
    }

    fn run(&mut self, part: &Part) -> Result<(), TestCaseError> {
        let done = self.done();
        match part {
            Part::Repeat { pass, passes, without } => {
                let number = (pass.len() * passes).saturating_sub(*without);
                for (at, task) in pass.iter().cycle().take(number).enumerate() {
                    self.submit(task)?;
                    if at % 11 == 10 {
                        self.run(&Part::Nothing)?;
                    }
                }
            }
            Part::Interrupted { pass, passes, with, times } => {
                for _ in 0..*times {
                    self.run(&Part::Repeat { pass: pass.clone(), passes: *passes, without: 0 })?;
                    self.submit(with)?;
                }
            }
            Part::Pieces { from, rows, passes } => {
                let (from, to) = (self.buffers[*from], self.buffers[(from + 1) % BUFFERS]);
                let range = |first: usize, last: usize| GridBox::new([first, 0, 0], [last, COLS, 1]);
                let of = |first: usize, last: usize| {
                    let around = range(first.saturating_sub(1), (last + 1).min(ROWS));
                    vec![Access::read(from, around), Access::write(to, range(first, last))]
                };
                let pieces: Vec<_> =
                    (0..ROWS).step_by(*rows).map(|first| of(first, (first + rows).min(ROWS))).collect();
                for _ in 0..*passes {
                    self.submit_pieces(&of(0, ROWS), &pieces)?;
                }
            }
            Part::Once(task) => self.submit(task)?,
            Part::Nothing => self.submit(&Task { accesses: Vec::new(), effects: [None; OBJECTS] })?,
            Part::Epoch => {
                let answers = self.graphs.each_mut().map(|graph| graph.epoch(&[], &[], &done).unwrap());
                prop_assert_eq!(answers[0].id, answers[1].id);
                self.epoch = answers[0].id;
                self.note_end(&answers[0]);
            }
            Part::Discard(buffer) => {
                let buffer = self.buffers[*buffer];
                self.both(|graph| graph.discard(buffer, &done));
            }
            Part::Versions(buffer, versions) => {
                let buffer = self.buffers[*buffer];
                self.both(|graph| graph.set_versions(buffer, *versions));
            }
            Part::Writers(buffer) => {
                let buffer = self.buffers[*buffer];
                let writers = |graph: &mut TaskGraph| {
                    let region = GridBox::full([ROWS, COLS, 1]).into();
                    let mut points: Vec<_> = graph
                        .writers(buffer, &region)
                        .into_iter()
                        .flat_map(|(writer, part)| part.points().map(move |point| (point.0, writer)))
                        .collect();
                    points.sort_unstable();
                    points
                };
                self.both(writers);
            }
            Part::Unordered(object) => {
                let object = self.objects[*object];
                let last = self.graphs[0].len();
                let recent = (last.saturating_sub(10)..=last).map(TaskId).filter(|task| !done(*task));
                recent.for_each(|task| _ = self.both(|graph| graph.is_unordered(object, task)));
            }
            Part::Replace(buffer) => {
                let old = self.buffers[*buffer];
                self.both(|graph| graph.remove_buffer(old));
                self.buffers[*buffer] = self.create_buffer();
            }
        }
        Ok(())
    }
}

proptest! {
    // 1,024, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 4,
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_graph_with_a_memo_gives_the_answers_of_one_that_derives(
        parts in proptest::collection::vec(part(), 1..12),
        lag in prop_oneof![Just(0), Just(3), 0..200u64, Just(u64::MAX / 8)],
    ) {
        let mut pair = Pair::with(lag, parts.iter().any(|part| matches!(part, Part::Epoch)));
        for part in &parts {
            pair.run(part)?;
        }
        // What the trackers know in the end.
        for buffer in 0..BUFFERS {
            pair.run(&Part::Once(Task {
                accesses: vec![(buffer, [0, 0, ROWS, COLS], Mode::Write)],
                effects: [Some(Order::Sequential); OBJECTS],
            }))?;
        }
    }
}

fn row(at: usize) -> [usize; 4] {
    [at, 0, at + 1, COLS]
}

fn reads_and_writes(from: usize, to: usize, at: usize) -> Task {
    Task { accesses: vec![(from, row(at), Mode::Read), (to, row(at), Mode::Write)], effects: [None; OBJECTS] }
}

/// Steps forth and back: they are recalled, also beyond the number of notes after which the trackers are
/// brought up to date.
#[test]
fn steps_that_repeat_are_recalled() {
    let mut pair = Pair::new(20);
    let pass: Vec<Task> = (0..ROWS)
        .map(|at| reads_and_writes(0, 1, at))
        .chain((0..ROWS).map(|at| reads_and_writes(1, 0, at)))
        .collect();
    let passes = 20 * NOTES / pass.len() + 10;
    pair.run(&Part::Repeat { pass, passes, without: 3 }).unwrap();
    assert!(pair.recalled > 19 * NOTES, "{}", pair.recalled);
    pair.run(&Part::Once(reads_and_writes(1, 2, 0))).unwrap();
    pair.run(&Part::Writers(0)).unwrap();
    assert!(!pair.is_recalling());
}

/// A buffer that is only read, and an object with relaxed effects: what comes after all passes waits for the
/// tasks of all passes that are not done.
#[test]
fn readers_and_effects_of_all_passes_are_remembered() {
    for lag in [u64::MAX / 8, 50, 3, 0] {
        let mut pair = Pair::new(lag);
        let mut step = reads_and_writes(0, 1, 0);
        step.effects[0] = Some(Order::Relaxed);
        pair.run(&Part::Repeat { pass: vec![step, reads_and_writes(0, 2, 1)], passes: 300, without: 0 })
            .unwrap();
        assert!(pair.is_recalling());
        let mut last = reads_and_writes(1, 0, 0);
        last.effects[0] = Some(Order::Sequential);
        pair.run(&Part::Once(last)).unwrap();
    }
}

/// All tasks of a while are done, and later ones are not: the later ones are remembered.
#[test]
fn readers_after_others_that_are_done_are_remembered() {
    let mut pair = Pair::new(0);
    let mut step = Task { accesses: vec![(0, row(0), Mode::Read)], effects: [Some(Order::Exclusive), None] };
    let repeat = |step: &Task, passes| Part::Repeat { pass: vec![step.clone()], passes, without: 0 };
    pair.run(&repeat(&step, 10 * NOTES)).unwrap();
    pair.lag = u64::MAX / 8;
    pair.run(&repeat(&step, 3 * NOTES)).unwrap();
    assert!(pair.is_recalling());
    step.accesses[0].2 = Mode::Write;
    step.effects[0] = Some(Order::Sequential);
    pair.run(&Part::Once(step)).unwrap();
}

/// Tasks that wait for many others from before are derived until these are done.
#[test]
fn edges_to_many_older_tasks_are_not_recalled() {
    let of = |order| Task { accesses: Vec::new(), effects: [Some(order), None] };
    for (others, recalled) in [(10, true), (100, false)] {
        let mut pair = Pair::new(u64::MAX / 8);
        (0..others).for_each(|_| pair.run(&Part::Once(of(Order::Relaxed))).unwrap());
        // Relaxed tasks repeat, too.
        pair.recalled = 0;
        pair.run(&Part::Repeat { pass: vec![of(Order::Observe)], passes: 100, without: 0 }).unwrap();
        assert_eq!(pair.is_recalling(), recalled);
    }
}

/// The dependencies of a task that observes what tasks with exclusive effects do grow from pass to pass.
#[test]
fn dependencies_that_grow_are_not_recalled() {
    let of = |order| Task { accesses: Vec::new(), effects: [Some(order), None] };
    let pass = [of(Order::Exclusive), of(Order::Observe)];
    for pass in [pass.to_vec(), pass.into_iter().rev().collect()] {
        let mut pair = Pair::new(50);
        pair.run(&Part::Repeat { pass, passes: 200, without: 0 }).unwrap();
        assert_eq!(pair.recalled, 0);
    }
}

/// Forth and back, twice. It is so long that its period is known when it has come twice, so that the graph
/// begins to memorise it with its first task.
fn long_pass() -> Vec<Task> {
    let legs = [(0, 1), (1, 0), (0, 2), (2, 0)];
    legs.iter().flat_map(|&(from, to)| (0..ROWS).map(move |at| reads_and_writes(from, to, at))).collect()
}

/// A program does something else after every ten passes. Two passes make the period known, and three are
/// memorised. Later it is enough to memorise three.
#[test]
fn a_pass_that_was_recalled_is_memorised_again_at_once() {
    let pass = long_pass();
    // Other tasks, of which none is the first step, or one.
    let looks = Task { accesses: vec![(1, [0, 0, ROWS, COLS], Mode::Read)], effects: [None; OBJECTS] };
    for others in [vec![looks.clone()], vec![looks.clone(), pass[0].clone(), looks]] {
        let mut pair = Pair::new(20);
        let mut before = 0;
        for time in 0..8 {
            pair.run(&Part::Repeat { pass: pass.clone(), passes: 10, without: 0 }).unwrap();
            let recalled = pair.recalled - before;
            assert!(recalled >= pass.len() * if time == 0 { 5 } else { 7 }, "{recalled}");
            others.iter().for_each(|task| pair.submit(task).unwrap());
            assert!(!pair.is_recalling());
            before = pair.recalled;
        }
    }
}

/// What comes later begins like a pass that was recalled: as a part of it, or with another last step.
#[test]
fn what_begins_like_an_earlier_pass_is_recalled_too() {
    let pass = long_pass();
    let mut other = pass.clone();
    other[4 * ROWS - 1] = reads_and_writes(1, 2, 0);
    for next in [pass[..1].to_vec(), other] {
        let mut pair = Pair::new(0);
        pair.run(&Part::Repeat { pass: pass.clone(), passes: 50, without: 0 }).unwrap();
        assert!(pair.is_recalling());
        pair.run(&Part::Once(reads_and_writes(1, 0, 3))).unwrap();
        pair.run(&Part::Repeat { pass: next, passes: 50, without: 0 }).unwrap();
        assert!(pair.is_recalling());
    }
}

/// A task that changes each time follows the first step of a pass that was recalled, which only reads.
#[test]
fn a_first_step_without_its_pass_leaves_nothing_behind() {
    let reads = |at: usize| Task { accesses: vec![(0, row(at), Mode::Read)], effects: [None; OBJECTS] };
    let mut pair = Pair::new(0);
    pair.run(&Part::Repeat { pass: vec![reads(0), reads(1)], passes: 50, without: 0 }).unwrap();
    assert!(pair.is_recalling());
    let tracked = |pair: &Pair| pair.graphs[0].tracked();
    pair.submit(&reads(3)).unwrap();
    let before = tracked(&pair);
    for _ in 0..300 {
        pair.submit(&reads(0)).unwrap();
        pair.run(&Part::Replace(2)).unwrap();
        pair.submit(&Task { accesses: vec![(2, row(0), Mode::Read)], effects: [None; OBJECTS] }).unwrap();
    }
    assert!(tracked(&pair) < before + 100, "{before} -> {}", tracked(&pair));
}

/// Batches are recalled with the check of the whole.
#[test]
fn pieces_that_repeat_are_recalled() {
    let mut pair = Pair::new(20);
    pair.run(&Part::Pieces { from: 0, rows: 1, passes: 100 }).unwrap();
    assert!(pair.recalled > 80, "{}", pair.recalled);
}

/// Rows of a stencil, one after the other: each row is overwritten after all that read it, which the reads of
/// later rows imply.
#[test]
fn what_the_dependencies_of_a_stencil_imply_is_not_recalled() {
    let cell = |row: usize, col: usize| [row, col, row + 1, col + 1];
    let step = |row: usize, col: usize| Task {
        accesses: vec![
            (
                0,
                [(row + ROWS - 1) % ROWS, col.max(1) - 1, (row + ROWS - 1) % ROWS + 1, (col + 2).min(COLS)],
                Mode::Read,
            ),
            (0, cell(row, col), Mode::Write),
        ],
        effects: [None; OBJECTS],
    };
    let pass: Vec<Task> = (0..ROWS).flat_map(|row| (0..COLS).map(move |col| step(row, col))).collect();
    let mut pair = Pair::new(u64::MAX / 8);
    pair.run(&Part::Repeat { pass: pass.clone(), passes: 50, without: 0 }).unwrap();
    assert!(pair.is_recalling());
    // Each inner cell is read by three others, and each cell at the edge by two.
    assert!(pair.implied >= 40 * 2 * ROWS * COLS, "{}", pair.implied);
    pair.submit(&pass[0]).unwrap();
    let (accesses, effects) = pair.declared(&pass[1]);
    let answer = pair.graphs[0].submit(&accesses, &effects, &pair.done()).unwrap();
    let kinds: Vec<Kind> = answer.dependencies.iter().map(|edge| edge.kind).collect();
    assert_eq!(kinds, [Kind::True; 3]);
}
