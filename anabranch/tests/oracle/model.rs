//! What a program does, one task after the other, and what follows from failures: the promises as plain code.
//!
//! What is a matter of chance (which tasks a cancellation came in time for) is taken from what was seen; everything else
//! follows from the program.

use crate::program::*;
use anabranch::{
    Operator, Status,
    grid::{Chunk, Extent, GridBox, RangeMapper, Region},
};
use std::collections::BTreeSet;

/// What is seen of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Nothing,
    /// The step was refused, for its declaration.
    Refused(Refusal),
    /// How a task ended, and whose failure it was: itself first, then those that it needed.
    Task(Status, Vec<String>),
    /// What a fence gave.
    Taken(Taken),
    /// What a wait told, and what was captured.
    Report(Option<Report>, Option<Taken>),
    /// What cancelling a task told.
    Asked(bool),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    Outside,
    NeverWritten,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    Values(Vec<u64>),
    Failed(Vec<String>),
}

/// Failed tasks, oldest first, and how many were skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Report(pub Vec<String>, pub u64);

/// A chain of causes has no more links; beyond it, only the first ones and the root are kept.
const CHAIN: u32 = 16;

/// How a task ended that has given nothing good.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Failed,
    Cancelled,
    Skipped { needs: usize, links: u32 },
}

#[derive(Clone, Copy)]
struct Cell {
    value: u64,
    written: bool,
    /// The step whose failure this is.
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
    /// Of the last sequential task.
    last: Option<usize>,
    /// Of those that touched it since.
    since: Vec<Option<usize>>,
}

/// What a task needs and what it is to give.
struct Task<'p> {
    reads: Vec<(usize, Region<3>)>,
    writes: (usize, Region<3>),
    update: bool,
    effects: &'p [(usize, Order)],
    fails: bool,
}

pub struct Model<'p> {
    program: &'p Program,
    seen: &'p [Seen],
    buffers: Vec<Buffer>,
    objects: Vec<Object>,
    bad: Vec<Option<Bad>>,
    nest: Vec<u64>,
    /// Since the last report.
    failures: BTreeSet<usize>,
    skipped: u64,
    cancellations: Cancellations,
}

/// Which steps may have been cancelled, and which must.
struct Cancellations {
    may: Vec<bool>,
    must: Vec<bool>,
}

impl Cancellations {
    fn of(program: &Program, seen: &[Seen]) -> Self {
        let count = program.steps.len();
        let (mut may, mut must) = (vec![false; count], vec![false; count]);
        let mut token = None;
        // The steps under each token as it is now.
        let mut under = [const { Vec::new() }; TOKENS];
        let mut cancelled = false;
        let mut tasks = Vec::new();
        for (i, step) in program.steps.iter().enumerate() {
            match *step {
                Step::Token(new) => (token, cancelled) = (new, false),
                Step::Cancel(which) => {
                    under[which].drain(..).for_each(|i: usize| may[i] = true);
                    // The runtime has the old one until another is set.
                    cancelled |= token == Some(which);
                }
                Step::CancelTask { back } => {
                    if let Some(&task) = tasks.iter().rev().nth(back) {
                        let told: usize = task;
                        let came_in_time = seen[i] == Seen::Asked(true);
                        may[told] |= came_in_time;
                        must[told] |= came_in_time;
                    }
                }
                _ => {
                    if let Some(token) = token {
                        (may[i], must[i]) = (cancelled, cancelled);
                        under[token].push(i);
                    }
                    if matches!(seen[i], Seen::Task(..)) {
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
    /// What should have been seen where this was.
    pub fn expected(program: &'p Program, seen: &'p [Seen]) -> Vec<Seen> {
        let buffers = program.buffers.iter().enumerate().map(|(slot, shape)| Buffer::new(slot, *shape));
        let mut model = Self {
            program,
            seen,
            buffers: buffers.collect(),
            objects: vec![Object::default(); OBJECTS + 1],
            bad: vec![None; program.steps.len()],
            nest: vec![0; 4],
            failures: BTreeSet::new(),
            skipped: 0,
            cancellations: Cancellations::of(program, seen),
        };
        (0..program.steps.len()).map(|i| model.step(i)).collect()
    }

    fn step(&mut self, i: usize) -> Seen {
        match &self.program.steps[i] {
            Step::Compute(compute) => self.compute(i, compute),
            Step::Reduce(reduction) => self.reduce(i, reduction),
            Step::Host { from, to, part, update, effects, fail, .. } => {
                self.host(i, [*from, *to], *part, *update, effects, fail.is_some())
            }
            Step::Nest { children } => self.nest(i, *children),
            Step::Fence { what, .. } => self.take(what).map_or_else(Seen::Refused, Seen::Taken),
            Step::Barrier { what, wait } => match self.take(what) {
                Err(refusal) => Seen::Refused(refusal),
                Ok(taken) if *wait => {
                    let report = self.report();
                    match (report, taken) {
                        (Some(report), _) => Seen::Report(Some(report), None),
                        // One failure looks the same, whoever tells of it.
                        (None, Taken::Failed(chain)) if chain.len() == 1 => {
                            Seen::Report(Some(Report(chain, 0)), None)
                        }
                        (None, taken) => Seen::Report(None, Some(taken)),
                    }
                }
                Ok(taken) => Seen::Taken(taken),
            },
            Step::Wait => Seen::Report(self.report(), None),
            Step::Renew(slot, shape) => {
                self.buffers[*slot] = Buffer::new(*slot, *shape);
                Seen::Nothing
            }
            Step::RenewObject(object) => {
                self.objects[*object] = Object::default();
                Seen::Nothing
            }
            Step::NestResult => Seen::Taken(Taken::Values(self.nest.clone())),
            Step::Token(_) | Step::Cancel(_) => Seen::Nothing,
            // Which answer is right is checked at the task.
            Step::CancelTask { .. } => self.seen[i].clone(),
        }
    }

    fn compute(&mut self, i: usize, step: &Compute) -> Seen {
        let Compute { from, reach, to, target, landing, update, split: _, fail } = *step;
        let (source, goal) = (self.buffers[from].shape, self.buffers[to].shape);
        let space = landing.index_space(goal.rank, &target);
        let read = |range: GridBox<3>| mapped(&reach, goal.rank, range, space, source);
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
            let q = landing.index_space(goal.rank, &GridBox::new(p, p.0.map(|i| i + 1)));
            let region = read(q);
            let source = &self.buffers[from];
            let value = computed(i, p.0, before, &region, |p| source.cells[source.at(p)].value);
            self.buffers[to].cells[at].value = value;
        }
        done()
    }

    fn reduce(&mut self, i: usize, step: &Reduction) -> Seen {
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
            // The first goes on from what is there.
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
        // Neighbours first, then neighbours of those.
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
    ) -> Seen {
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

    fn nest(&mut self, i: usize, children: usize) -> Seen {
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

    /// Refused, skipped, cancelled or failed: then this is how it ends. Otherwise it is to be done now.
    fn begin(&mut self, i: usize, task: &Task) -> Option<Seen> {
        if let Err(refusal) = self.check(task) {
            return Some(Seen::Refused(refusal));
        }
        let mut needs = self.needs(&task.reads);
        if task.update {
            needs.extend(self.needs(std::slice::from_ref(&task.writes)));
        }
        for &(object, order) in task.effects {
            needs.extend(self.needs_object(object, order == Order::Sequential));
        }
        let bad = self.bad(i, &needs, task.fails);
        self.bad[i] = bad;
        self.note(i);
        let (to, region) = &task.writes;
        let points: Vec<usize> =
            region.boxes().iter().flat_map(|r| r.points()).map(|p| self.buffers[*to].at(p.0)).collect();
        let poison = bad.map(|_| i);
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
        let status = match bad? {
            Bad::Failed => Status::Failed,
            Bad::Cancelled => Status::Cancelled,
            Bad::Skipped { .. } => Status::Skipped,
        };
        Some(Seen::Task(status, self.chain(i)))
    }

    /// Whether the declaration makes sense.
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

    /// Whether an object is good depends on those before which this one comes not: for a sequential effect all.
    fn needs_object(&self, object: usize, all: bool) -> Vec<usize> {
        let Object { last, since, .. } = &self.objects[object];
        if all && !since.is_empty() {
            since.iter().flatten().copied().collect()
        } else {
            last.iter().copied().collect()
        }
    }

    /// How the step ends: see [`age`](Self::age).
    fn bad(&self, i: usize, needs: &[usize], fails: bool) -> Option<Bad> {
        if let Some(&needs) = needs.iter().min_by_key(|&&step| self.age(step)) {
            return Some(match self.bad[needs] {
                Some(Bad::Skipped { needs, links }) if links >= CHAIN => {
                    Bad::Skipped { needs, links: links + 1 }
                }
                Some(Bad::Skipped { links, .. }) => Bad::Skipped { needs, links: links + 1 },
                _ => Bad::Skipped { needs, links: 1 },
            });
        }
        let Cancellations { may, must } = &self.cancellations;
        let was_cancelled = matches!(self.seen[i], Seen::Task(Status::Cancelled, _));
        if must[i] || was_cancelled && may[i] {
            return Some(Bad::Cancelled);
        }
        fails.then_some(Bad::Failed)
    }

    fn root(&self, mut step: usize) -> usize {
        while let Some(Bad::Skipped { needs, .. }) = self.bad[step] {
            step = needs;
        }
        step
    }

    /// The oldest root decides, failures before cancellations; and of those that follow from it the oldest.
    fn age(&self, step: usize) -> (bool, usize, usize) {
        (self.is_cancelled(step), self.root(step), step)
    }

    /// Whether it all began with a cancellation.
    fn is_cancelled(&self, step: usize) -> bool {
        matches!(self.bad[self.root(step)], Some(Bad::Cancelled))
    }

    fn chain(&self, step: usize) -> Vec<String> {
        let next = |step: &usize| match self.bad[*step] {
            Some(Bad::Skipped { needs, .. }) => Some(needs),
            _ => None,
        };
        std::iter::successors(Some(step), next).map(name).collect()
    }

    /// For the next report.
    fn note(&mut self, i: usize) {
        let Some(bad) = self.bad[i] else { return };
        let root = self.root(i);
        if !matches!(self.bad[root], Some(Bad::Failed)) {
            return;
        }
        self.failures.insert(root);
        self.skipped += u64::from(matches!(bad, Bad::Skipped { .. }));
    }

    fn report(&mut self) -> Option<Report> {
        let (failures, skipped) = (std::mem::take(&mut self.failures), std::mem::take(&mut self.skipped));
        (!failures.is_empty()).then(|| Report(failures.into_iter().map(name).collect(), skipped))
    }

    fn take(&self, what: &What) -> Result<Taken, Refusal> {
        let parts: Vec<_> = what.parts().into_iter().map(|(slot, part)| (slot, Region::from(part))).collect();
        self.written(&parts)?;
        let mut needs = self.needs(&parts);
        needs.extend(what.objects().into_iter().flat_map(|object| self.needs_object(object, true)));
        if let Some(&needs) = needs.iter().min_by_key(|&&step| self.age(step)) {
            return Ok(Taken::Failed(self.chain(needs)));
        }
        let mut values = Vec::new();
        for (slot, region) in &parts {
            values.extend(self.buffers[*slot].cells(region).map(|cell| cell.value));
        }
        for object in what.objects() {
            let Object { hash, sum, relaxed, .. } = self.objects[object];
            values.extend([hash, sum, relaxed]);
        }
        Ok(Taken::Values(values))
    }
}

fn done() -> Seen {
    Seen::Task(Status::Done, Vec::new())
}

/// What a kernel with an index space of `rank` dimensions reads of a buffer for a part of it.
fn mapped(reach: &Reach, rank: usize, range: GridBox<3>, global: GridBox<3>, shape: Shape) -> Region<3> {
    fn map<const K: usize, const B: usize>(
        reach: &Reach,
        range: GridBox<3>,
        global: GridBox<3>,
        extent: [usize; 3],
    ) -> Region<3> {
        let chunk = Chunk::<K> { range: range.cast(), global: global.cast() };
        RangeMapper::<K, B>::map(reach, &chunk, Extent(extent).cast::<B>()).cast()
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
    map(reach, range, global, shape.extent)
}
