//! Runs a program with the runtime, and records the observations.

use crate::{
    inner::{is_refused, on_threads_of},
    model::{Observation, name},
    program::*,
    results::{Numbers, Pending, captured, chain, refusal, report, waited},
};
use anabranch::{
    Barrier, Error, Fence, Initial,
    grid::{Chunk, RangeMapper},
    interface::{Captures, Copies, Fenceable, NewTask, Once, Over, Part, TaskBuilder},
    prelude::*,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering::*},
};

/// The value of a host object. It detects tasks that use it at the same time although they must not.
struct State {
    hash: u64,
    sum: u64,
    relaxed: AtomicU64,
    /// Two numbers that always change together.
    pair: [u64; 2],
    /// The sum of the weights of the tasks inside: 1 for a relaxed task, `ALONE` for a task that must be alone.
    inside: AtomicUsize,
    wrong: Arc<AtomicUsize>,
}

const ALONE: usize = 1 << 16;

impl State {
    fn new(wrong: &Arc<AtomicUsize>) -> Self {
        let (relaxed, inside) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { hash: 0, sum: 0, relaxed, pair: [0; 2], inside, wrong: Arc::clone(wrong) }
    }

    /// Enters a task. It is wrong if the weight of the tasks inside is `limit` or more.
    fn enter(&self, weight: usize, limit: usize) {
        let before = self.inside.fetch_add(weight, AcqRel);
        if before >= limit || self.pair[0] != self.pair[1] {
            self.wrong.fetch_add(1, Relaxed);
        }
    }

    fn leave(&self, weight: usize) {
        self.inside.fetch_sub(weight, AcqRel);
    }

    fn alone<R>(&mut self, slow: bool, change: impl FnOnce(&mut Self) -> R) -> R {
        self.enter(ALONE, 1);
        self.pair[0] += 1;
        pause(slow);
        let result = change(self);
        self.pair[1] += 1;
        self.leave(ALONE);
        result
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        self.enter(ALONE, 1);
        let Self { hash, sum, pair, .. } = *self;
        let relaxed = AtomicU64::new(self.relaxed.load(Relaxed));
        self.leave(ALONE);
        Self { hash, sum, relaxed, pair, inside: AtomicUsize::new(0), wrong: Arc::clone(&self.wrong) }
    }
}

/// A task's reference to an object.
enum ObjectRef<'a> {
    Sequential(&'a mut State),
    Exclusive(&'a mut State),
    Relaxed(&'a State),
}

fn pause(slow: bool) {
    if slow {
        (0..20).for_each(|_| std::thread::yield_now());
    }
}

/// A buffer of any rank.
enum AnyBuffer {
    R0(Buffer<u64, 0>),
    R1(Buffer<u64, 1>),
    R2(Buffer<u64, 2>),
    R3(Buffer<u64, 3>),
}

macro_rules! with_rank {
    ($any:expr, $buffer:ident => $result:expr) => {
        match $any {
            AnyBuffer::R0($buffer) => $result,
            AnyBuffer::R1($buffer) => $result,
            AnyBuffer::R2($buffer) => $result,
            AnyBuffer::R3($buffer) => $result,
        }
    };
}

fn create(rt: &Runtime, slot: usize, shape: Shape) -> Result<AnyBuffer, Error> {
    fn one<const D: usize>(
        rt: &Runtime,
        slot: usize,
        shape: Shape,
        contents: &(impl Initial<D, Element = u64> + ?Sized),
    ) -> Result<Buffer<u64, D>, Error> {
        let buffer = match shape.initialised {
            true => rt.buffer_from(contents)?,
            false => rt.buffer(Extent(shape.extent).cast::<D>()),
        };
        Ok(buffer.with_versions(shape.versions).named(format!("slot {slot}")))
    }
    let array = ndarray::Array3::from_shape_vec(
        shape.extent,
        (0..shape.whole().len()).map(|at| initial(slot, at)).collect(),
    );
    let array = array.expect("as many as there are points");
    let first = |axes: usize| {
        array.view().into_dyn().into_shape_with_order(&shape.extent[..axes]).expect("the other extents are 1")
    };
    Ok(match shape.rank {
        0 => AnyBuffer::R0(one(
            rt,
            slot,
            shape,
            &first(0).into_dimensionality::<ndarray::Ix0>().expect("0 axes"),
        )?),
        1 => AnyBuffer::R1(one(rt, slot, shape, array.as_slice().expect("in order"))?),
        2 => AnyBuffer::R2(one(
            rt,
            slot,
            shape,
            &first(2).into_dimensionality::<ndarray::Ix2>().expect("2 axes"),
        )?),
        _ => AnyBuffer::R3(one(rt, slot, shape, &array)?),
    })
}

/// Kernels of each rank, with tiles if the rank allows them.
trait Tiled: Sized {
    fn tiled(self, rows: usize, cols: usize) -> Self;
}

macro_rules! impl_tiled {
    ($rank:literal, $self:ident $rows:ident $cols:ident => $tiled:expr) => {
        impl Tiled for TaskBuilder<'_, $rank, Over, ()> {
            fn tiled($self, $rows: usize, $cols: usize) -> Self {
                $tiled
            }
        }
    };
}

impl_tiled!(0, self _rows _cols => self);
impl_tiled!(1, self _rows _cols => self);
impl_tiled!(2, self rows cols => self.tiles(rows, cols));
impl_tiled!(3, self rows cols => self.tiles(rows, cols));

fn kernel<const K: usize>(
    scope: Scope<'_>,
    i: usize,
    space: GridBox<3>,
    split: Split,
) -> TaskBuilder<'_, K, Over, ()>
where
    for<'a> TaskBuilder<'a, K, Over, ()>: Tiled,
{
    let task = scope.task(name(i)).over(space.cast::<K>()).granularity(split.granularity);
    let task = split.chunks.into_iter().fold(task, TaskBuilder::chunks);
    split.tiles.into_iter().fold(task, |task, [rows, cols]| task.tiled(rows, cols))
}

/// Panics without printing a message.
fn panic() -> ! {
    std::panic::resume_unwind(Box::new("as the program says"))
}

fn compute<const A: usize, const B: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, B>,
    step: Compute,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, B, Over, ()>: Tiled,
{
    let Compute { read_pattern, target, write_pattern, update, split, fail, .. } = step;
    let task = kernel::<B>(scope, i, write_pattern.index_space(B, &target), split).read(from, read_pattern);
    // The new value at a point of the index space, whose element is `before`.
    let value = move |tile: &Tile<B>, from: &ReadView<u64, A>, p: [usize; B], before: u64| {
        let chunk = Chunk { range: GridBox::new(p, p.map(|i| i + 1)), global: tile.global() };
        let region = RangeMapper::<B, A>::map(&read_pattern, &chunk, from.extent());
        computed(i, padded(write_pattern.point(p)), before, &region, |q| from[q])
    };
    let end = move |tile: &Tile<B>| {
        if fail && tile.range().contains_point(tile.global().min()) {
            panic();
        }
    };
    if update {
        task.update(to, write_pattern).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                let target = write_pattern.point(p);
                to[target] = value(tile, from, p, to[target]);
            }
            end(tile);
        })
    } else {
        task.write(to, write_pattern).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                to.set(write_pattern.point(p), value(tile, from, p, 0));
            }
            end(tile);
        })
    }
}

fn reduce<const A: usize, const B: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, B>,
    step: Reduction,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, A, Over, ()>: Tiled,
{
    let Reduction { space, op, include, split, fail, .. } = step;
    let targets: Vec<[usize; B]> = GridBox::full(to.extent()).points().map(|p| p.0).collect();
    let task = kernel::<A>(scope, i, space, split).read(from, one_to_one());
    let task = if include { task.reduce_into(to, op) } else { task.reduce(to, op) };
    task.kernel(move |tile, (from, to)| {
        for p in tile.points().filter(|_| !targets.is_empty()) {
            to.combine(targets[reduced_into(padded(p), targets.len())], op.value(i, from[p]));
        }
        if fail && tile.range().contains_point(tile.global().min()) {
            panic();
        }
    })
}

struct Host<'s> {
    part: [usize; 2],
    update: bool,
    effects: &'s [(usize, Order)],
    fail: Option<Fail>,
    slow: bool,
    priority: i32,
}

fn host<const A: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, 1>,
    objects: &[HostObject<State>],
    step: Host<'_>,
) -> Result<TaskHandle, Error> {
    let Host { part: [min, max], update, effects, fail, slow, priority } = step;
    let part = fixed(GridBox::new(min, max));
    let task: TaskBuilder<'_, 0, Once, ()> = scope.task(name(i)).once().priority(priority);
    let task = task.read(from, all());
    let hash = move |from: &ReadView<u64, A>, object_refs: &mut [ObjectRef<'_>]| {
        let elements = from.as_slice().expect("all of it");
        let mut hash = elements.iter().fold(i as u64, |hash, x| mix(hash, *x));
        for object_ref in object_refs {
            touch(object_ref, &mut hash, slow);
        }
        hash
    };
    let end = move || match fail {
        None => Ok(()),
        Some(Fail::Error) => Err("as the program says"),
        Some(Fail::Panic) => panic(),
    };
    let mut objects = effects.iter().map(|(object, _)| &objects[*object]);
    macro_rules! touching {
        ($($object:ident $order:ident $variant:ident),*) => {
            if update {
                task.update(to, part)$(.effect(objects.next().expect("one for each effect"), $order()))*
                    .host(move |(from, to $(, $object)*)| {
                        let hash = hash(from, &mut [$(ObjectRef::$variant($object)),*]);
                        (min..max).for_each(|at| to[[at]] = mix(hash, to[[at]]));
                        end()
                    })
            } else {
                task.write(to, part)$(.effect(objects.next().expect("one for each effect"), $order()))*
                    .host(move |(from, to $(, $object)*)| {
                        let hash = hash(from, &mut [$(ObjectRef::$variant($object)),*]);
                        (min..max).for_each(|at| to.set([at], mix(hash, at as u64)));
                        end()
                    })
            }
        };
    }
    use Order::*;
    let orders: Vec<Order> = effects.iter().map(|(_, order)| *order).collect();
    match orders[..] {
        [] => touching!(),
        [Sequential] => touching!(a sequential Sequential),
        [Exclusive] => touching!(a exclusive Exclusive),
        [Relaxed] => touching!(a relaxed Relaxed),
        [Sequential, Sequential] => touching!(a sequential Sequential, b sequential Sequential),
        [Sequential, Exclusive] => touching!(a sequential Sequential, b exclusive Exclusive),
        [Sequential, Relaxed] => touching!(a sequential Sequential, b relaxed Relaxed),
        [Exclusive, Sequential] => touching!(a exclusive Exclusive, b sequential Sequential),
        [Exclusive, Exclusive] => touching!(a exclusive Exclusive, b exclusive Exclusive),
        [Exclusive, Relaxed] => touching!(a exclusive Exclusive, b relaxed Relaxed),
        [Relaxed, Sequential] => touching!(a relaxed Relaxed, b sequential Sequential),
        [Relaxed, Exclusive] => touching!(a relaxed Relaxed, b exclusive Exclusive),
        [Relaxed, Relaxed] => touching!(a relaxed Relaxed, b relaxed Relaxed),
        _ => unreachable!("two effects at most"),
    }
}

fn touch(object_ref: &mut ObjectRef<'_>, hash: &mut u64, slow: bool) {
    match object_ref {
        ObjectRef::Sequential(object) => object.alone(slow, |object| {
            object.hash = mix(mix(object.hash, *hash), mix(object.sum, object.relaxed.load(Relaxed)));
            *hash = object.hash;
        }),
        ObjectRef::Exclusive(object) => {
            object.alone(slow, |object| object.sum = object.sum.wrapping_add(mix(*hash, 1)));
        }
        ObjectRef::Relaxed(object) => {
            object.enter(1, ALONE);
            pause(slow);
            object.relaxed.fetch_add(mix(*hash, 2), Relaxed);
            object.leave(1);
        }
    }
}

impl Numbers for State {
    fn numbers(self) -> Vec<u64> {
        vec![self.hash, self.sum, self.relaxed.into_inner()]
    }
}

/// Where steps are submitted to: a group of the runtime, or the runtime itself.
#[derive(Clone, Copy)]
struct Scope<'r> {
    rt: &'r Runtime,
    group: Option<&'r TaskGroup>,
}

impl<'r> Scope<'r> {
    fn task(self, name: String) -> NewTask<'r> {
        match self.group {
            None => self.rt.task(name),
            Some(group) => group.task(name),
        }
    }

    fn wait(self) -> Result<(), Error> {
        self.group.map_or_else(|| self.rt.wait(), TaskGroup::wait)
    }

    fn fence<C: Captures<Copies>>(self, what: FenceOf<C>) -> Result<Fence<C::Output>, Error> {
        match self.group {
            None => self.rt.fence(what),
            Some(group) => group.fence(what),
        }
    }

    fn barrier_with<C: Captures<Copies>>(self, captures: C) -> Result<Barrier<C::Output>, Error> {
        match self.group {
            None => self.rt.barrier_with(captures),
            Some(group) => group.barrier_with(captures),
        }
    }
}

struct Run<'p> {
    rt: &'p Arc<Runtime>,
    buffers: Vec<AnyBuffer>,
    objects: Vec<HostObject<State>>,
    nest: Buffer<u64, 1>,
    nest_order: HostObject<()>,
    /// The group for all steps, in which the others are nested; none if the runtime has no other program.
    root: Option<&'p TaskGroup>,
    groups: [TaskGroup; GROUPS],
    /// The group that steps are submitted to, if it is not the root.
    current: Option<TaskGroup>,
    /// All groups, in the order in which they were made.
    made: Vec<TaskGroup>,
    tasks: Vec<(usize, TaskHandle)>,
    pending: Vec<(usize, Pending)>,
    /// The calls of `on_done` for tasks.
    called: Arc<Mutex<Vec<(usize, Status)>>>,
    wrong: Arc<AtomicUsize>,
}

/// Makes a group in the root, or else in the runtime.
fn group_in(rt: &Runtime, root: Option<&TaskGroup>, group: usize) -> TaskGroup {
    let name = format!("group {group}");
    match root {
        None => rt.group(name),
        Some(root) => root.group(name),
    }
}

/// Runs the program, in the group `root` if there is one. Returns the observation of each step.
pub fn run(
    program: &Program,
    rt: &Arc<Runtime>,
    root: Option<&TaskGroup>,
) -> Result<Vec<Observation>, Error> {
    let wrong = Arc::new(AtomicUsize::new(0));
    let buffers = program.buffers.iter().enumerate();
    let groups = std::array::from_fn(|group| group_in(rt, root, group));
    let mut run = Run {
        rt,
        buffers: buffers.map(|(slot, shape)| create(rt, slot, *shape)).collect::<Result<_, _>>()?,
        objects: (0..OBJECTS).map(|_| rt.host_object(State::new(&wrong))).collect(),
        nest: rt.buffer_from(&[0; 4])?,
        nest_order: rt.host_object(()),
        made: groups.to_vec(),
        root,
        groups,
        current: None,
        tasks: Vec::new(),
        pending: Vec::new(),
        called: Arc::default(),
        wrong,
    };
    let mut seen = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        seen.push(run.step(i, step)?);
    }
    for (i, pending) in std::mem::take(&mut run.pending) {
        seen[i] = Observation::Captured(captured(pending()));
    }
    let mut ended = Vec::new();
    for (i, task) in std::mem::take(&mut run.tasks) {
        seen[i] = match task.wait() {
            Ok(()) => Observation::Task(task.status(), Vec::new()),
            Err(Error::Failed(failures)) => Observation::Task(task.status(), chain(&failures)),
            Err(error) => return Err(error),
        };
        ended.push((i, task.status()));
    }
    // Each callback is called once, but perhaps a moment after the threads that wait are woken.
    while run.called.lock().unwrap().len() < ended.len() {
        std::thread::yield_now();
    }
    let mut called = run.called.lock().unwrap().clone();
    called.sort_unstable_by_key(|(i, _)| *i);
    assert_eq!(called, ended, "`on_done` is called once for each task, with its status");
    let wrong = run.wrong.load(Relaxed);
    assert_eq!(
        wrong, 0,
        "tasks used an object at the same time although they must not, or could wait inside"
    );
    Ok(seen)
}

impl Run<'_> {
    fn scope(&self) -> Scope<'_> {
        Scope { rt: self.rt, group: self.current.as_ref().or(self.root) }
    }

    fn step(&mut self, i: usize, step: &Step) -> Result<Observation, Error> {
        match *step {
            Step::Compute(step) => {
                let Compute { from, to, .. } = step;
                let task = with_rank!(&self.buffers[from], from => with_rank!(&self.buffers[to], to => {
                    compute(self.scope(), i, from, to, step)
                }));
                Ok(self.submitted(i, task))
            }
            Step::Reduce(step) => {
                let Reduction { from, to, .. } = step;
                let task = with_rank!(&self.buffers[from], from => with_rank!(&self.buffers[to], to => {
                    reduce(self.scope(), i, from, to, step)
                }));
                Ok(self.submitted(i, task))
            }
            Step::Host { from, to, part, update, ref effects, fail, slow, priority } => {
                let step = Host { part, update, effects, fail, slow, priority };
                let AnyBuffer::R1(to) = &self.buffers[to] else {
                    unreachable!("host tasks write one dimension")
                };
                let task = with_rank!(&self.buffers[from], from => {
                    host(self.scope(), i, from, to, &self.objects, step)
                });
                Ok(self.submitted(i, task))
            }
            Step::Nest { children } => {
                let task = self.nest(i, children);
                Ok(self.submitted(i, task))
            }
            Step::InnerWait { construct, call } => {
                let task = self.inner_wait(i, construct, call);
                Ok(self.submitted(i, task))
            }
            Step::Fence { ref set, wait } => Ok(match self.capture(set, false) {
                Err(error) => refusal(error),
                Ok(fence) if wait => Observation::Captured(captured(fence())),
                Ok(fence) => self.defer(i, fence),
            }),
            Step::Barrier { ref set, wait } => Ok(match self.capture(set, true) {
                Err(error) => refusal(error),
                Ok(barrier) if wait => waited(barrier()),
                Ok(barrier) => self.defer(i, barrier),
            }),
            Step::Wait => Ok(Observation::Report(report(self.scope().wait()), None)),
            Step::GroupReports => {
                Ok(Observation::GroupReports(self.made.iter().map(|group| report(group.check())).collect()))
            }
            Step::NestResult => {
                Ok(Observation::Captured(captured(self.rt.fence(&self.nest)?.wait().map(Numbers::numbers))))
            }
            Step::CancelTask { back } => {
                let task = self.tasks.iter().rev().nth(back);
                Ok(task.map_or(Observation::Nothing, |(_, task)| Observation::CancelAnswer(task.cancel())))
            }
            ref other => {
                self.change(other)?;
                Ok(Observation::Nothing)
            }
        }
    }

    /// Executes a step that has no observation.
    fn change(&mut self, step: &Step) -> Result<(), Error> {
        match *step {
            Step::Group(group) => self.current = group.map(|group| self.groups[group].clone()),
            Step::Cancel(group) => {
                self.groups[group].cancel();
                self.groups[group] = group_in(self.rt, self.root, group);
                self.made.push(self.groups[group].clone());
            }
            Step::Replace(slot, shape) => self.buffers[slot] = create(self.rt, slot, shape)?,
            Step::ReplaceObject(object) => {
                self.objects[object] = self.rt.host_object(State::new(&self.wrong))
            }
            _ => unreachable!("{step:?} has an observation"),
        }
        Ok(())
    }

    fn submitted(&mut self, i: usize, task: Result<TaskHandle, Error>) -> Observation {
        match task {
            Ok(task) => {
                let called = Arc::clone(&self.called);
                task.on_done(move |status| called.lock().unwrap().push((i, status)));
                self.tasks.push((i, task));
                Observation::Nothing
            }
            Err(error) => refusal(error),
        }
    }

    fn defer(&mut self, i: usize, pending: Pending) -> Observation {
        self.pending.push((i, pending));
        Observation::Nothing
    }

    fn nest(&self, i: usize, children: usize) -> Result<TaskHandle, Error> {
        let (rt, nest) = (Arc::clone(self.rt), self.nest.clone());
        self.scope().task(name(i)).once().effect(&self.nest_order, sequential()).host(move |((),)| {
            for child in 0..children {
                let slot = child % 4;
                rt.task("child")
                    .once()
                    .update(&nest, fixed(GridBox::new(slot, slot + 1)))
                    .host(move |(nest,)| nest[[slot]] = mix(nest[[slot]], (8 * i + child) as u64))?;
            }
            Ok::<_, Error>(())
        })
    }

    fn inner_wait(&self, i: usize, construct: Construct, call: Call) -> Result<TaskHandle, Error> {
        let (rt, nest, wrong) = (Arc::clone(self.rt), self.nest.clone(), Arc::clone(&self.wrong));
        self.scope().task(name(i)).once().host(move |()| {
            on_threads_of(construct, || {
                if !is_refused(&rt, &nest, call) {
                    wrong.fetch_add(1, Relaxed);
                }
            });
        })
    }

    fn capture(&self, set: &CaptureSet, barrier: bool) -> Result<Pending, Error> {
        let objects = |object: usize| self.objects[object].capture();
        let by = CaptureBy { scope: self.scope(), barrier };
        match *set {
            CaptureSet::Nothing => by.all(()),
            CaptureSet::Object(object) => by.all(objects(object)),
            CaptureSet::Objects => by.all((objects(0), objects(1))),
            CaptureSet::Part(slot, range) => with_rank!(&self.buffers[slot], b => by.all(part(b, &range))),
            CaptureSet::Both(slot, range, object) => {
                with_rank!(&self.buffers[slot], b => by.all((part(b, &range), objects(object))))
            }
            CaptureSet::Parts([(slot, range), (other, second)]) => with_rank!(&self.buffers[slot], b => {
                with_rank!(&self.buffers[other], c => by.all((part(b, &range), part(c, &second))))
            }),
        }
    }
}

fn part<const D: usize>(buffer: &Buffer<u64, D>, range: &GridBox<3>) -> Part<u64, D> {
    buffer.part(range.cast())
}

/// Captures values by a fence or a barrier.
struct CaptureBy<'r> {
    scope: Scope<'r>,
    barrier: bool,
}

impl CaptureBy<'_> {
    fn all<C: Captures<Copies, Output: Numbers>>(&self, captures: C) -> Result<Pending, Error> {
        Ok(if self.barrier {
            let barrier = self.scope.barrier_with(captures)?;
            Box::new(|| barrier.wait().map(Numbers::numbers))
        } else {
            let fence = self.scope.fence(FenceOf(captures))?;
            Box::new(|| fence.wait().map(Numbers::numbers))
        })
    }
}

/// Adapts any captures to a fence.
struct FenceOf<C>(C);

impl<C: Captures<Copies>> Fenceable for FenceOf<C> {
    type Captures = C;

    fn captures(self) -> C {
        self.0
    }
}
