//! Submits the tasks of a program.

use super::{
    scope::Scope,
    state::{ObjectRef, State},
    witness::Witness,
};
use crate::{
    model::name,
    program::{
        Compute, Fail, Host, Order, Parts, ReadPattern, Reduction, Split, WritePattern, computed, mix,
        padded, reduced_into, wrong_element,
    },
};
use anabranch::{
    Error,
    grid::{Chunk, RangeMapper},
    interface::{Once, Over, TaskBuilder},
    prelude::*,
};
use std::sync::Arc;

/// Kernels of each rank, with tiles if the rank allows them.
pub trait Tiled: Sized {
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

pub fn kernel<const K: usize>(
    scope: Scope<'_>,
    i: usize,
    space: GridBox<3>,
    split: Split,
    node: Option<u16>,
) -> Result<TaskBuilder<'_, K, Over, ()>, Error>
where
    for<'a> TaskBuilder<'a, K, Over, ()>: Tiled,
{
    let task =
        scope.task(name(i)).over(space.cast::<K>()).granularity(split.granularity).pieces(split.pieces);
    let task = split.chunks.into_iter().fold(task, TaskBuilder::chunks);
    let task = split.tiles.into_iter().fold(task, |task, [rows, cols]| task.tiled(rows, cols));
    match node {
        None => Ok(task),
        Some(node) => task.on_node(node % scope.rt.nodes()),
    }
}

/// Panics without printing a message.
pub fn panic() -> ! {
    std::panic::resume_unwind(Box::new("as the program says"))
}

pub fn compute<'a, const A: usize, const B: usize>(
    scope: Scope<'a>,
    i: usize,
    from: &'a Buffer<u64, A>,
    to: &'a Buffer<u64, B>,
    step: Compute,
    witness: &'a Arc<Witness>,
) -> Result<TaskHandle, Error>
where
    for<'b> TaskBuilder<'b, B, Over, ()>: Tiled,
{
    use {ReadPattern::All, WritePattern::*};
    let Compute { read_pattern, write_pattern, built_in, .. } = step;
    let task = (scope, i, from, to, step, witness);
    // For all ranks, the compiler would take minutes longer.
    if const { A == 0 || A == 3 || B == 0 || B == 3 } {
        return compute_with(task, read_pattern, write_pattern);
    }
    match (read_pattern, write_pattern) {
        (All, Same) if built_in => compute_with(task, all(), one_to_one()),
        (_, Same) if built_in => compute_with(task, read_pattern, one_to_one()),
        (_, Reversed) if built_in => {
            compute_with(task, read_pattern, permuted(std::array::from_fn::<_, B, _>(|d| B - 1 - d)))
        }
        _ => compute_with(task, read_pattern, write_pattern),
    }
}

/// The arguments of `compute`.
type ToCompute<'a, const A: usize, const B: usize> =
    (Scope<'a>, usize, &'a Buffer<u64, A>, &'a Buffer<u64, B>, Compute, &'a Arc<Witness>);

/// Submits a kernel with these mappers, which are those of its patterns.
fn compute_with<R, W, const A: usize, const B: usize>(
    (scope, i, from, to, step, witness): ToCompute<'_, A, B>,
    read: R,
    written: W,
) -> Result<TaskHandle, Error>
where
    R: RangeMapper<B, A> + 'static,
    W: RangeMapper<B, B> + 'static,
    for<'a> TaskBuilder<'a, B, Over, ()>: Tiled,
{
    let Compute { read_pattern, target, write_pattern, update, split, node, fail, .. } = step;
    let space = write_pattern.index_space(B, &target);
    let task = kernel::<B>(scope, i, space, split, node)?.read(from, read);
    // The new value at a point of the index space, whose element is `before`.
    let value = move |tile: &Tile<B>, from: &ReadView<u64, A, R::Shape>, p: [usize; B], before: u64| {
        let chunk = Chunk { range: GridBox::new(p, p.map(|i| i + 1)), global: tile.global() };
        let region = RangeMapper::<B, A>::map(&read_pattern, &chunk, from.extent());
        computed(i, padded(write_pattern.point(p)), before, &region, |q| from[q])
    };
    let end = move |tile: &Tile<B>, witness: &Witness| {
        witness.check_thread("a kernel", false);
        if fail == Some(Fail::Panic) && tile.range().contains_point(tile.global().min()) {
            panic();
        }
    };
    let witness = Arc::clone(witness);
    if update {
        task.update(to, written).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                let target = write_pattern.point(p);
                to[target] = value(tile, from, p, to[target]);
            }
            end(tile, &witness);
        })
    } else {
        let wrong = wrong_element(&target);
        task.write(to, written).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                let target = write_pattern.point(p);
                let value = value(tile, from, p, 0);
                write(to, target, value, fail.filter(|_| Some(padded(target)) == wrong));
            }
            end(tile, &witness);
        })
    }
}

/// Writes an element, unless the task is wrong about it.
fn write<S: RegionShape<D>, const D: usize>(
    to: &mut WriteView<'_, u64, D, S>,
    point: [usize; D],
    value: u64,
    fail: Option<Fail>,
) {
    match fail {
        Some(Fail::Unwritten) => {}
        Some(Fail::ReadFirst) => {
            let element = &mut to.run_mut(point)[0];
            *element = element.wrapping_add(3);
        }
        _ => to.set(point, value),
    }
}

pub fn reduce<const A: usize, const B: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, B>,
    step: Reduction,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, A, Over, ()>: Tiled,
{
    let Reduction { space, op, include, split, node, fail, .. } = step;
    let targets: Vec<[usize; B]> = GridBox::full(to.extent()).points().map(|p| p.0).collect();
    let task = kernel::<A>(scope, i, space, split, node)?.read(from, one_to_one());
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

pub fn host<const A: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, 1>,
    objects: &[HostObject<State>],
    step: &Host,
    witness: &Arc<Witness>,
) -> Result<TaskHandle, Error> {
    let Host { part: [min, max], update, ref effects, fail, slow, blocking, priority, .. } = *step;
    let part = fixed(GridBox::new(min, max));
    let task: TaskBuilder<'_, 0, Once, ()> = scope.task(name(i)).once().priority(priority);
    let task = match step.node % scope.rt.nodes() {
        0 => task,
        node => task.on_node(node)?,
    };
    let task = if blocking { task.blocking() } else { task };
    let task = task.read(from, all());
    let witness = Arc::clone(witness);
    let hash = move |from: &ReadView<u64, A>, object_refs: &mut [ObjectRef<'_>]| {
        witness.check_thread("a host task", blocking);
        let (first, second) = from.as_slice().expect("all of it").split_at(from.extent().len() / 2);
        let hash = first.iter().fold(i as u64, |hash, x| mix(hash, *x));
        witness.pause(slow);
        let mut hash = second.iter().fold(hash, |hash, x| mix(hash, *x));
        for object_ref in object_refs {
            object_ref.touch(&mut hash, slow);
        }
        hash
    };
    let end = move || match fail {
        Some(Fail::Error) => Err("as the program says"),
        Some(Fail::Panic) => panic(),
        _ => Ok(()),
    };
    let wrong = wrong_element(&step.target()).map(|[at, ..]| at);
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
                        for at in min..max {
                            write(to, [at], mix(hash, at as u64), fail.filter(|_| Some(at) == wrong));
                        }
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

/// Submits a host task with a part for each node. `buffers` are the one that it reads and the one that it
/// writes.
pub fn parts(
    scope: Scope<'_>,
    i: usize,
    [from, to]: [&Buffer<u64, 1>; 2],
    objects: &[HostObject<State>],
    step: &Parts,
    witness: &Arc<Witness>,
) -> Result<TaskHandle, Error> {
    let Parts { rows, update, effect, slow, .. } = *step;
    let witness = Arc::clone(witness);
    let hash = move |from: &ReadView<u64, 1>, object: Option<ObjectRef<'_>>| {
        witness.check_thread("a part of a host task", false);
        let all = from.as_slice().expect("all of it");
        let mut hash = all.iter().fold(i as u64, |hash, x| mix(hash, *x));
        object.into_iter().for_each(|mut object| object.touch(&mut hash, slow));
        hash
    };
    let extent = to.extent();
    // The elements of a part.
    let part = move |tile: &Tile<1>| {
        let chunk = Chunk { range: tile.range(), global: tile.global() };
        let part = RangeMapper::<1, 1>::map(&even_split(), &chunk, extent);
        part.boxes().iter().flat_map(|part| part.points()).map(|p| p.0[0]).collect::<Vec<_>>()
    };
    macro_rules! touching {
        ($task:expr $(, $object:ident $order:ident $variant:ident)?) => {
            if update {
                $task.update(to, even_split())$(.effect($object, $order()))?
                    .host(move |tile, (from, to $(, $object)?)| {
                        let object = None$(.or(Some(ObjectRef::$variant($object))))?;
                        let hash = hash(from, object);
                        part(tile).into_iter().for_each(|at| to[[at]] = mix(hash, to[[at]]));
                    })
            } else {
                $task.write(to, even_split())$(.effect($object, $order()))?
                    .host(move |tile, (from, to $(, $object)?)| {
                        let object = None$(.or(Some(ObjectRef::$variant($object))))?;
                        let hash = hash(from, object);
                        part(tile).into_iter().for_each(|at| to.set([at], mix(hash, at as u64)));
                    })
            }
        };
    }
    macro_rules! submit {
        ($task:expr) => {{
            let task = $task.read(from, all());
            match effect.map(|(object, order)| (&objects[object], order)) {
                None => touching!(task),
                Some((object, Order::Sequential)) => touching!(task, object sequential Sequential),
                Some((object, Order::Exclusive)) => touching!(task, object exclusive Exclusive),
                Some((object, Order::Relaxed)) => touching!(task, object relaxed Relaxed),
            }
        }};
    }
    let task = scope.task(name(i));
    match rows {
        None => submit!(task.collective()),
        Some(rows) => submit!(task.over([rows])),
    }
}
