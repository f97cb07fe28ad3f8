//! The model: runs a program one task after the other, and derives the effects of failures. It states the runtime's promises
//! as plain code.
//!
//! Timing decides which tasks a cancellation reaches before they begin, so the model takes that from the observations. All
//! other results follow from the program.

use crate::program::*;
use anabranch::{
    Operator, Status,
    grid::{Chunk, Extent, GridBox, RangeMapper, Region},
};
use std::collections::BTreeSet;

/// The observable result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    Nothing,
    /// The step was refused because of its declaration.
    Refused(Refusal),
    /// The status of a task that has ended, and the chain of causes: the task itself first, then the tasks that it needed.
    Task(Status, Vec<String>),
    /// The result of a fence, or of a barrier that was waited for later.
    Captured(Captured),
    /// The failures that a wait reported, for the current group or for tasks in none, and the values that a barrier captured.
    Report(Option<Report>, Option<Captured>),
    /// The failures that were left in each group.
    GroupReports(Vec<Option<Report>>),
    /// The result of cancelling a task.
    CancelAnswer(bool),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    Outside,
    NeverWritten,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    Values(Vec<u64>),
    Failed(Vec<String>),
}

/// The failed tasks, oldest first, and the number of skipped ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Report(pub Vec<String>, pub u64);

/// The maximum number of links of a chain of causes. Of a longer chain the runtime keeps the first links and the root.
const CHAIN: u32 = 16;

/// How a task ended that did not succeed.
#[derive(Clone, Copy, Debug)]
enum NotDone {
    Failed,
    Cancelled,
    Skipped { needs: usize, links: u32 },
}

#[derive(Clone, Copy)]
struct Cell {
    value: u64,
    written: bool,
    /// The step that poisoned this cell.
    poison: Option<usize>,
}

struct Buffer {
    shape: Shape,
    cells: Vec<Cell>,
}

impl Buffer {
    fn new(slot: usize, shape: Shape) -> Self {
        let cell = |at| Cell { value: initial(slot, at), written: shape.initialised, poison: None };
        Self { shape, cells: (0..shape.whole().len()).map(cell).collect() }
    }

    fn at(&self, point: [usize; 3]) -> usize {
        let [_, rows, cols] = self.shape.extent;
        (point[0] * rows + point[1]) * cols + point[2]
    }

    fn cells<'a>(&'a self, region: &'a Region<3>) -> impl Iterator<Item = &'a Cell> {
        region.boxes().iter().flat_map(|range| range.points()).map(|p| &self.cells[self.at(p.0)])
    }
}

#[derive(Clone, Default)]
struct Object {
    hash: u64,
    sum: u64,
    relaxed: u64,
    /// The poison of the last sequential task.
    last: Option<usize>,
    /// The poison of each task that used the object since.
    since: Vec<Option<usize>>,
}

/// The declarations of a task.
struct Task<'p> {
    reads: Vec<(usize, Region<3>)>,
    writes: (usize, Region<3>),
    update: bool,
    effects: &'p [(usize, Order)],
    fails: bool,
}

pub struct Model<'p> {
    program: &'p Program,
    seen: &'p [Observation],
    buffers: Vec<Buffer>,
    objects: Vec<Object>,
    not_done: Vec<Option<NotDone>>,
    nest: Vec<u64>,
    /// The failures of tasks in no group, and behind them those of each group, in the order in which the groups were made.
    failures: Vec<Unreported>,
    /// The current entry of `failures`.
    current: usize,
    /// The entry of each group.
    groups: [usize; GROUPS],
    cancellations: Cancellations,
}

/// The failures since the last report.
#[derive(Clone, Default)]
struct Unreported {
    failures: BTreeSet<usize>,
    skipped: u64,
}

impl Unreported {
    fn report(&mut self) -> Option<Report> {
        let Self { failures, skipped } = std::mem::take(self);
        (!failures.is_empty()).then(|| Report(failures.into_iter().map(name).collect(), skipped))
    }
}

/// For each step, whether it may have been cancelled, and whether it must have been.
struct Cancellations {
    may: Vec<bool>,
    must: Vec<bool>,
}

impl Cancellations {
    fn of(program: &Program, seen: &[Observation]) -> Self {
        let count = program.steps.len();
        let (mut may, mut must) = (vec![false; count], vec![false; count]);
        let mut group = None;
        // The steps submitted to each group.
        let mut under = [const { Vec::new() }; GROUPS];
        let mut cancelled = false;
        let mut tasks = Vec::new();
        for (i, step) in program.steps.iter().enumerate() {
            match *step {
                Step::Group(new) => (group, cancelled) = (new, false),
                Step::Cancel(which) => {
                    under[which].drain(..).for_each(|i: usize| may[i] = true);
                    // The program keeps the cancelled group until it takes another one.
                    cancelled |= group == Some(which);
                }
                Step::CancelTask { back } => {
                    if let Some(&task) = tasks.iter().rev().nth(back) {
                        let task: usize = task;
                        let came_in_time = seen[i] == Observation::CancelAnswer(true);
                        may[task] |= came_in_time;
                        must[task] |= came_in_time;
                    }
                }
                _ => {
                    if let Some(group) = group {
                        (may[i], must[i]) = (cancelled, cancelled);
                        under[group].push(i);
                    }
                    if matches!(seen[i], Observation::Task(..)) {
                        tasks.push(i);
                    }
                }
            }
        }
        Self { may, must }
    }
}

pub fn name(step: usize) -> String {
    format!("step {step}")
}

impl<'p> Model<'p> {
    /// The observations that the model expects; `seen` decides only which cancellations came in time.
    pub fn expected(program: &'p Program, seen: &'p [Observation]) -> Vec<Observation> {
        let buffers = program.buffers.iter().enumerate().map(|(slot, shape)| Buffer::new(slot, *shape));
        let mut model = Self {
            program,
            seen,
            buffers: buffers.collect(),
            objects: vec![Object::default(); OBJECTS + 1],
            not_done: vec![None; program.steps.len()],
            nest: vec![0; 4],
            failures: vec![Unreported::default(); 1 + GROUPS],
            current: 0,
            groups: std::array::from_fn(|group| 1 + group),
            cancellations: Cancellations::of(program, seen),
        };
        (0..program.steps.len()).map(|i| model.step(i)).collect()
    }

    fn step(&mut self, i: usize) -> Observation {
        match &self.program.steps[i] {
            Step::Compute(compute) => self.compute(i, compute),
            Step::Reduce(reduction) => self.reduce(i, reduction),
            Step::Host { from, to, part, update, effects, fail, .. } => {
                self.host(i, [*from, *to], *part, *update, effects, fail.is_some())
            }
            Step::Nest { children } => self.nest(i, *children),
            Step::InnerWait { .. } => self.inner_wait(i),
            Step::Fence { set, .. } => {
                self.capture(set).map_or_else(Observation::Refused, Observation::Captured)
            }
            Step::Barrier { set, wait } => match self.capture(set) {
                Err(refusal) => Observation::Refused(refusal),
                Ok(captured) if *wait => {
                    let report = self.failures[self.current].report();
                    match (report, captured) {
                        (Some(report), _) => Observation::Report(Some(report), None),
                        // A report of one failure and a failed capture with a chain of one link look the same.
                        (None, Captured::Failed(chain)) if chain.len() == 1 => {
                            Observation::Report(Some(Report(chain, 0)), None)
                        }
                        (None, captured) => Observation::Report(None, Some(captured)),
                    }
                }
                Ok(captured) => Observation::Captured(captured),
            },
            Step::Wait => Observation::Report(self.failures[self.current].report(), None),
            Step::Replace(slot, shape) => {
                self.buffers[*slot] = Buffer::new(*slot, *shape);
                Observation::Nothing
            }
            Step::ReplaceObject(object) => {
                self.objects[*object] = Object::default();
                Observation::Nothing
            }
            Step::NestResult => Observation::Captured(Captured::Values(self.nest.clone())),
            Step::Group(group) => {
                self.current = group.map_or(0, |group| self.groups[group]);
                Observation::Nothing
            }
            Step::Cancel(group) => {
                self.groups[*group] = self.failures.len();
                self.failures.push(Unreported::default());
                Observation::Nothing
            }
            Step::GroupReports => {
                Observation::GroupReports(self.failures[1..].iter_mut().map(Unreported::report).collect())
            }
            // The status of the task is checked against this answer.
            Step::CancelTask { .. } => self.seen[i].clone(),
        }
    }

    fn compute(&mut self, i: usize, step: &Compute) -> Observation {
        let Compute { from, read_pattern, to, target, write_pattern, update, split: _, fail } = *step;
        let (source, goal) = (self.buffers[from].shape, self.buffers[to].shape);
        let space = write_pattern.index_space(goal.rank, &target);
        let read = |range: GridBox<3>| mapped(&read_pattern, goal.rank, range, space, source);
        let task = Task {
            reads: vec![(from, read(space))],
            writes: (to, Region::from(target)),
            update,
            effects: &[],
            fails: fail && !space.is_empty(),
        };
        if let Some(seen) = self.begin(i, &task) {
            return seen;
        }
        for p in target.points() {
            let at = self.buffers[to].at(p.0);
            let before = if update { self.buffers[to].cells[at].value } else { 0 };
            let q = write_pattern.index_space(goal.rank, &GridBox::new(p, p.0.map(|i| i + 1)));
            let region = read(q);
            let source = &self.buffers[from];
            let value = computed(i, p.0, before, &region, |p| source.cells[source.at(p)].value);
            self.buffers[to].cells[at].value = value;
        }
        done()
    }

    fn reduce(&mut self, i: usize, step: &Reduction) -> Observation {
        let Reduction { from, space, to, op, include, split, fail } = *step;
        let task = Task {
            reads: vec![(from, Region::from(space))],
            writes: (to, Region::from(self.buffers[to].shape.whole())),
            update: include,
            effects: &[],
            fails: fail && !space.is_empty(),
        };
        if let Some(seen) = self.begin(i, &task) {
            return seen;
        }
        let (source, len) = (&self.buffers[from], self.buffers[to].cells.len());
        let current = || self.buffers[to].cells.iter().map(|cell| cell.value).collect();
        let partial = |(chunk_index, chunk): (usize, GridBox<3>)| {
            // The first chunk includes the previous contents.
            let mut partial: Vec<u64> =
                if include && chunk_index == 0 { current() } else { vec![op.identity(); len] };
            for p in chunk.points().filter(|_| len > 0) {
                let slot = &mut partial[reduced_into(p.0, len)];
                *slot = op.combine(*slot, op.value(i, source.cells[source.at(p.0)].value));
            }
            partial
        };
        let chunks = split.chunks(source.shape.rank, &space);
        let mut partials: Vec<_> = chunks.into_iter().enumerate().map(partial).collect();
        // Combines neighbours, then neighbouring results, and so on.
        while partials.len() > 1 {
            let pair = |pair: &[Vec<u64>]| match pair {
                [a, b] => a.iter().zip(b).map(|(a, b)| op.combine(*a, *b)).collect(),
                _ => pair[0].clone(),
            };
            partials = partials.chunks(2).map(pair).collect();
        }
        let nothing = || if include { current() } else { vec![op.identity(); len] };
        let total = partials.pop().unwrap_or_else(nothing);
        for (cell, value) in self.buffers[to].cells.iter_mut().zip(total) {
            cell.value = value;
        }
        done()
    }

    fn host(
        &mut self,
        i: usize,
        [from, to]: [usize; 2],
        [min, max]: [usize; 2],
        update: bool,
        effects: &[(usize, Order)],
        fails: bool,
    ) -> Observation {
        let part = GridBox::new([min, 0, 0], [max, 1, 1]);
        let whole = Region::from(self.buffers[from].shape.whole());
        let task =
            Task { reads: vec![(from, whole)], writes: (to, Region::from(part)), update, effects, fails };
        if let Some(seen) = self.begin(i, &task) {
            return seen;
        }
        let mut hash = self.buffers[from].cells.iter().fold(i as u64, |hash, cell| mix(hash, cell.value));
        for &(object, order) in effects {
            let object = &mut self.objects[object];
            match order {
                Order::Sequential => {
                    object.hash = mix(mix(object.hash, hash), mix(object.sum, object.relaxed));
                    hash = object.hash;
                }
                Order::Exclusive => object.sum = object.sum.wrapping_add(mix(hash, 1)),
                Order::Relaxed => object.relaxed = object.relaxed.wrapping_add(mix(hash, 2)),
            }
        }
        for at in min..max {
            let cell = &mut self.buffers[to].cells[at];
            cell.value = mix(hash, if update { cell.value } else { at as u64 });
        }
        done()
    }

    fn nest(&mut self, i: usize, children: usize) -> Observation {
        let task = Task {
            reads: vec![],
            writes: (0, Region::empty()),
            update: false,
            effects: &[(NEST, Order::Sequential)],
            fails: false,
        };
        if let Some(seen) = self.begin(i, &task) {
            return seen;
        }
        for child in 0..children {
            let slot = &mut self.nest[child % 4];
            *slot = mix(*slot, (8 * i + child) as u64);
        }
        done()
    }

    /// Every answer is an error, so the task ends well.
    fn inner_wait(&mut self, i: usize) -> Observation {
        let task =
            Task { reads: vec![], writes: (0, Region::empty()), update: false, effects: &[], fails: false };
        self.begin(i, &task).unwrap_or_else(done)
    }

    /// Begins a task. Returns its result if it is refused, skipped, cancelled or fails; otherwise the caller executes it.
    fn begin(&mut self, i: usize, task: &Task) -> Option<Observation> {
        if let Err(refusal) = self.check(task) {
            return Some(Observation::Refused(refusal));
        }
        let mut needs = self.needs(&task.reads);
        if task.update {
            needs.extend(self.needs(std::slice::from_ref(&task.writes)));
        }
        for &(object, order) in task.effects {
            needs.extend(self.needs_object(object, order == Order::Sequential));
        }
        let not_done = self.not_done(i, &needs, task.fails);
        self.not_done[i] = not_done;
        self.add_to_report(i);
        let (to, region) = &task.writes;
        let points: Vec<usize> =
            region.boxes().iter().flat_map(|r| r.points()).map(|p| self.buffers[*to].at(p.0)).collect();
        let poison = not_done.map(|_| i);
        for at in points {
            let cell = &mut self.buffers[*to].cells[at];
            (cell.written, cell.poison) = (true, poison);
        }
        // A cancelled task leaves its objects as they are.
        let poison = poison.filter(|&step| !self.is_cancelled(step));
        for &(object, order) in task.effects {
            let object = &mut self.objects[object];
            if order == Order::Sequential {
                (object.last, object.since) = (poison, Vec::new());
            } else {
                object.since.push(poison);
            }
        }
        let status = match not_done? {
            NotDone::Failed => Status::Failed,
            NotDone::Cancelled => Status::Cancelled,
            NotDone::Skipped { .. } => Status::Skipped,
        };
        Some(Observation::Task(status, self.chain(i)))
    }

    /// Checks the declaration of a task.
    fn check(&self, task: &Task) -> Result<(), Refusal> {
        let writes = std::slice::from_ref(&task.writes);
        for (slot, region) in task.reads.iter().chain(writes) {
            let whole = self.buffers[*slot].shape.whole();
            if !region.boxes().iter().all(|range| whole.contains(range)) {
                return Err(Refusal::Outside);
            }
        }
        let read = task.reads.iter().chain(writes.iter().filter(|_| task.update));
        self.written(read)
    }

    fn written<'a>(&self, read: impl IntoIterator<Item = &'a (usize, Region<3>)>) -> Result<(), Refusal> {
        for (slot, region) in read {
            if !self.buffers[*slot].cells(region).all(|cell| cell.written) {
                return Err(Refusal::NeverWritten);
            }
        }
        Ok(())
    }

    fn needs(&self, read: &[(usize, Region<3>)]) -> Vec<usize> {
        let cells = read.iter().flat_map(|(slot, region)| self.buffers[*slot].cells(region));
        cells.filter_map(|cell| cell.poison).collect()
    }

    /// The failed steps that poison an object for a task that comes after all earlier ones (`all`, for a sequential effect), or
    /// only after the last sequential one.
    fn needs_object(&self, object: usize, all: bool) -> Vec<usize> {
        let Object { last, since, .. } = &self.objects[object];
        if all && !since.is_empty() {
            since.iter().flatten().copied().collect()
        } else {
            last.iter().copied().collect()
        }
    }

    /// How the step ends if it does not succeed: see [`age`](Self::age).
    fn not_done(&self, i: usize, needs: &[usize], fails: bool) -> Option<NotDone> {
        if let Some(&needs) = needs.iter().min_by_key(|&&step| self.age(step)) {
            return Some(match self.not_done[needs] {
                Some(NotDone::Skipped { needs, links }) if links >= CHAIN => {
                    NotDone::Skipped { needs, links: links + 1 }
                }
                Some(NotDone::Skipped { links, .. }) => NotDone::Skipped { needs, links: links + 1 },
                _ => NotDone::Skipped { needs, links: 1 },
            });
        }
        let Cancellations { may, must } = &self.cancellations;
        let was_cancelled = matches!(self.seen[i], Observation::Task(Status::Cancelled, _));
        if must[i] || was_cancelled && may[i] {
            return Some(NotDone::Cancelled);
        }
        fails.then_some(NotDone::Failed)
    }

    fn root(&self, mut step: usize) -> usize {
        while let Some(NotDone::Skipped { needs, .. }) = self.not_done[step] {
            step = needs;
        }
        step
    }

    /// The order in which causes take precedence: failures before cancellations, then the oldest root, then the oldest step.
    fn age(&self, step: usize) -> (bool, usize, usize) {
        (self.is_cancelled(step), self.root(step), step)
    }

    /// Whether the root of the step's chain is a cancellation.
    fn is_cancelled(&self, step: usize) -> bool {
        matches!(self.not_done[self.root(step)], Some(NotDone::Cancelled))
    }

    fn chain(&self, step: usize) -> Vec<String> {
        let next = |step: &usize| match self.not_done[*step] {
            Some(NotDone::Skipped { needs, .. }) => Some(needs),
            _ => None,
        };
        std::iter::successors(Some(step), next).map(name).collect()
    }

    /// Adds the step to the next report, if the root of its chain is a failure.
    fn add_to_report(&mut self, i: usize) {
        let Some(not_done) = self.not_done[i] else { return };
        let root = self.root(i);
        if !matches!(self.not_done[root], Some(NotDone::Failed)) {
            return;
        }
        let unreported = &mut self.failures[self.current];
        unreported.failures.insert(root);
        unreported.skipped += u64::from(matches!(not_done, NotDone::Skipped { .. }));
    }

    fn capture(&self, set: &CaptureSet) -> Result<Captured, Refusal> {
        let parts: Vec<_> = set.parts().into_iter().map(|(slot, part)| (slot, Region::from(part))).collect();
        self.written(&parts)?;
        let mut needs = self.needs(&parts);
        needs.extend(set.objects().into_iter().flat_map(|object| self.needs_object(object, true)));
        if let Some(&needs) = needs.iter().min_by_key(|&&step| self.age(step)) {
            return Ok(Captured::Failed(self.chain(needs)));
        }
        let mut values = Vec::new();
        for (slot, region) in &parts {
            values.extend(self.buffers[*slot].cells(region).map(|cell| cell.value));
        }
        for object in set.objects() {
            let Object { hash, sum, relaxed, .. } = self.objects[object];
            values.extend([hash, sum, relaxed]);
        }
        Ok(Captured::Values(values))
    }
}

fn done() -> Observation {
    Observation::Task(Status::Done, Vec::new())
}

/// The region of a buffer that a kernel, with an index space of `rank` dimensions, reads for a part of its index space.
fn mapped(
    read_pattern: &ReadPattern,
    rank: usize,
    range: GridBox<3>,
    global: GridBox<3>,
    shape: Shape,
) -> Region<3> {
    fn map<const K: usize, const B: usize>(
        read_pattern: &ReadPattern,
        range: GridBox<3>,
        global: GridBox<3>,
        extent: [usize; 3],
    ) -> Region<3> {
        let chunk = Chunk::<K> { range: range.cast(), global: global.cast() };
        RangeMapper::<K, B>::map(read_pattern, &chunk, Extent(extent).cast::<B>()).cast()
    }
    let map = match (rank, shape.rank) {
        (0, 0) => map::<0, 0>,
        (0, 1) => map::<0, 1>,
        (0, 2) => map::<0, 2>,
        (0, _) => map::<0, 3>,
        (1, 0) => map::<1, 0>,
        (1, 1) => map::<1, 1>,
        (1, 2) => map::<1, 2>,
        (1, _) => map::<1, 3>,
        (2, 0) => map::<2, 0>,
        (2, 1) => map::<2, 1>,
        (2, 2) => map::<2, 2>,
        (2, _) => map::<2, 3>,
        (_, 0) => map::<3, 0>,
        (_, 1) => map::<3, 1>,
        (_, 2) => map::<3, 2>,
        (_, _) => map::<3, 3>,
    };
    map(read_pattern, range, global, shape.extent)
}
