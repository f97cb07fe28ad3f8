//! Submits tasks with effects on the objects of the whole cluster.

use super::{
    scope::Scope,
    state::{ObjectRef, State},
    witness::Witness,
};
use crate::{
    model::name,
    program::{OnCluster, Order, Runs, Turns, mix},
};
use anabranch::{
    Error,
    grid::{Chunk, RangeMapper},
    prelude::*,
};
use std::sync::Arc;

/// What a task needs to know about what it does.
struct Does {
    i: usize,
    step: OnCluster,
    /// The steps that have made the objects of the task.
    made: Vec<(usize, usize)>,
    /// Whether the part of this node fails.
    fails: bool,
    witness: Arc<Witness>,
    turns: Arc<Turns>,
}

impl Does {
    /// Begins a part of the task, which touches the objects that it reaches. Returns what it writes.
    fn begin(&self, from: &ReadView<u64, 1>, objects: &mut [Option<ObjectRef<'_>>]) -> u64 {
        let Self { i, step, witness, .. } = self;
        self.note_turn();
        witness.check_thread("a task on an object of the whole cluster", false);
        let mut hash = from.as_slice().expect("all of it").iter().fold(*i as u64, |hash, x| mix(hash, *x));
        objects.iter_mut().flatten().for_each(|object| object.touch(&mut hash, step.slow));
        witness.pause(step.slow);
        hash
    }

    /// Notes that a part begins or ends.
    fn note_turn(&self) {
        let order = self.step.order();
        if !self.made.iter().all(|object| self.turns.use_in(self.i, *object, order)) {
            self.witness.note(format!("step {} is out of turn", self.i));
        }
    }

    fn end(&self) -> Result<(), &'static str> {
        self.note_turn();
        if self.fails { Err("as the program says") } else { Ok(()) }
    }
}

/// The objects, each with the step that has made it.
pub type Objects = Vec<(ClusterObject<State>, usize)>;

/// Submits a task. `buffers` are the one that it reads and the one that it writes.
pub fn submit(
    scope: Scope<'_>,
    i: usize,
    [from, to]: [&Buffer<u64, 1>; 2],
    objects: &Objects,
    step: OnCluster,
    witness: &Arc<Witness>,
    turns: &Arc<Turns>,
) -> Result<TaskHandle, Error> {
    let (rt, numbers) = (scope.rt, step.objects());
    let does = Does {
        i,
        made: numbers.iter().map(|&object| (object, objects[object].1)).collect(),
        fails: step.fail.is_some_and(|node| step.is_once() || node % rt.nodes() == rt.node()),
        step,
        witness: Arc::clone(witness),
        turns: Arc::clone(turns),
    };
    let objects: Vec<_> = numbers.iter().map(|&object| &objects[object].0).collect();
    let update = step.update;
    let extent = to.extent();
    // The elements of a part.
    let part = move |tile: &Tile<1>| {
        let chunk = Chunk { range: tile.range(), global: tile.global() };
        let part = RangeMapper::<1, 1>::map(&even_split(), &chunk, extent);
        part.boxes().iter().flat_map(|part| part.points()).map(|p| p.0[0]).collect::<Vec<_>>()
    };
    macro_rules! parts {
        ($task:expr, $($object:ident),*) => {
            if update {
                $task.update(to, even_split())$(.effect($object, sequential()))*
                    .host(move |tile, (from, to $(, $object)*)| {
                        let hash = does.begin(from, &mut [$($object.map(ObjectRef::Sequential)),*]);
                        part(tile).into_iter().for_each(|at| to[[at]] = mix(hash, to[[at]]));
                        does.end()
                    })
            } else {
                $task.write(to, even_split())$(.effect($object, sequential()))*
                    .host(move |tile, (from, to $(, $object)*)| {
                        let hash = does.begin(from, &mut [$($object.map(ObjectRef::Sequential)),*]);
                        part(tile).into_iter().for_each(|at| to.set([at], mix(hash, at as u64)));
                        does.end()
                    })
            }
        };
    }
    macro_rules! once {
        ($task:expr, $object:ident $order:ident $variant:ident) => {
            if update {
                $task.update(to, all()).effect($object, $order()).host(move |(from, to, $object)| {
                    let hash = does.begin(from, &mut [Some(ObjectRef::$variant($object))]);
                    (0..extent[0]).for_each(|at| to[[at]] = mix(hash, to[[at]]));
                    does.end()
                })
            } else {
                $task.write(to, all()).effect($object, $order()).host(move |(from, to, $object)| {
                    let hash = does.begin(from, &mut [Some(ObjectRef::$variant($object))]);
                    to.fill_with(|[at]| mix(hash, at as u64));
                    does.end()
                })
            }
        };
    }
    let task = scope.task(name(i));
    let (a, second) = (objects[0], objects.get(1).copied());
    match (step.runs, second) {
        (Runs::Once(order), _) => {
            let task = task.once().read(from, all());
            match order {
                Order::Sequential => once!(task, a sequential Sequential),
                Order::Exclusive => once!(task, a exclusive Exclusive),
                Order::Relaxed => once!(task, a relaxed Relaxed),
            }
        }
        (Runs::Collective, None) => parts!(task.collective().read(from, all()), a),
        (Runs::Collective, Some(b)) => parts!(task.collective().read(from, all()), a, b),
        (Runs::Over { rows, node }, second) => {
            let task = task.over([rows]);
            let task = match node {
                None => task,
                Some(node) => task.on_node(node % rt.nodes())?,
            };
            let task = task.read(from, all());
            match second {
                None => parts!(task, a),
                Some(b) => parts!(task, a, b),
            }
        }
    }
}
