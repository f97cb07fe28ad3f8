//! The orders of side effects: which pairs of tasks are ordered, which are in conflict, and which are
//! independent.

use Order::{Exclusive, Observe, Relaxed, Sequential};
use anabranch_graph::{Access, Effect, Kind, ObjectId, Order, Origin, Settings, Submitted, TaskGraph};
use anabranch_grid::{Extent, GridBox};

const ORDERS: [Order; 3] = [Sequential, Exclusive, Relaxed];

struct Program {
    graph: TaskGraph,
    object: ObjectId,
}

impl Program {
    fn new() -> Self {
        let mut graph = TaskGraph::with(Settings { conflicts: true, ..Settings::default() });
        let object = graph.create_object();
        Self { graph, object }
    }

    fn effect(&mut self, order: Order) -> Submitted {
        self.graph.submit(&[], &[Effect { object: self.object, order }], &|_| false).unwrap()
    }
}

fn dependencies(submitted: &Submitted) -> Vec<u64> {
    submitted.dependencies.iter().map(|d| d.on.0).collect()
}

fn conflicts(submitted: &Submitted) -> Vec<u64> {
    submitted.conflicts.iter().map(|id| id.0).collect()
}

/// Figure 2 of the paper: one object, tasks with all three orders. Only the relaxed pair is independent.
#[test]
fn a_mixed_graph_on_one_object() {
    let mut program = Program::new();
    let tasks = [Sequential, Exclusive, Relaxed, Relaxed, Sequential].map(|order| program.effect(order));
    let edges: Vec<_> = tasks.iter().map(|t| (dependencies(t), conflicts(t))).collect();
    assert_eq!(
        edges,
        [
            (vec![0], vec![]),
            (vec![1], vec![]),
            (vec![1], vec![2]),
            (vec![1], vec![2]),
            (vec![2, 3, 4], vec![])
        ]
    );
    let origin = Origin::Object(program.object);
    assert!(tasks.iter().flat_map(|t| &t.dependencies).all(|d| d.kind == Kind::Serial && d.origin == origin));
}

/// "The task cannot be re-ordered against or executed concurrently with any other task affecting the same
/// host object."
#[test]
fn sequential_effects_are_ordered_against_all() {
    for other in ORDERS {
        for pair in [[Sequential, other], [other, Sequential]] {
            let mut program = Program::new();
            let [first, second] = pair.map(|order| program.effect(order));
            assert_eq!((dependencies(&second), conflicts(&second)), (vec![first.id.0], vec![]), "{pair:?}");
        }
    }
}

/// "The task may be re-ordered, but not executed concurrently with any other task affecting the same host
/// object."
#[test]
fn exclusive_effects_conflict_with_effects_that_they_are_not_ordered_against() {
    for pair in [[Exclusive, Exclusive], [Exclusive, Relaxed], [Relaxed, Exclusive]] {
        let mut program = Program::new();
        let [first, second] = pair.map(|order| program.effect(order));
        assert_eq!((dependencies(&second), conflicts(&second)), (vec![0], vec![first.id.0]), "{pair:?}");
    }
}

/// "The task may be executed concurrently with and freely re-ordered against other tasks affecting the same
/// host object."
#[test]
fn relaxed_effects_are_independent_of_each_other() {
    let mut program = Program::new();
    for _ in 0..10 {
        let task = program.effect(Relaxed);
        assert_eq!((dependencies(&task), conflicts(&task)), (vec![0], vec![]));
    }
}

/// "Between a pair of tasks affecting the same host object, the more restrictive side effect order decides."
#[test]
fn the_stricter_order_of_a_pair_decides() {
    for (a, first) in ORDERS.into_iter().enumerate() {
        for (b, second) in ORDERS.into_iter().enumerate() {
            let mut program = Program::new();
            program.effect(first);
            let task = program.effect(second);
            let expected = match ORDERS[a.min(b)] {
                Sequential | Observe => (vec![1], vec![]),
                Exclusive => (vec![0], vec![1]),
                Relaxed => (vec![0], vec![]),
            };
            assert_eq!((dependencies(&task), conflicts(&task)), expected, "{first:?} and {second:?}");
        }
    }
}

/// "They are guaranteed to not be re-ordered against sequential effects."
#[test]
fn relaxed_effects_stay_between_sequential_ones() {
    let mut program = Program::new();
    let tasks = [Sequential, Relaxed, Relaxed, Sequential, Relaxed, Sequential].map(|o| program.effect(o));
    let edges: Vec<_> = tasks.iter().map(dependencies).collect();
    assert_eq!(edges, [vec![0], vec![1], vec![1], vec![2, 3], vec![4], vec![5]]);
}

/// "Conflict edges indicate mutual exclusion between tasks, a strictly weaker requirement than the
/// serializing dependencies impose": where there is a dependency path, a conflict edge says nothing.
#[test]
fn a_dependency_path_makes_a_conflict_superfluous() {
    let mut program = Program::new();
    let whole = GridBox::full([4, 1, 1]);
    let u = program.graph.create_buffer(Extent([4, 1, 1]), false);
    let effect = [Effect { object: program.object, order: Exclusive }];
    let mut submit = |accesses: &[Access], effects: &[Effect]| {
        program.graph.submit(accesses, effects, &|_| false).unwrap()
    };
    submit(&[Access::write(u, whole)], &effect);
    submit(&[], &effect);
    submit(&[Access::update(u, whole)], &[]);
    let reader = submit(&[Access::read(u, whole)], &effect);
    assert_eq!((dependencies(&reader), conflicts(&reader)), (vec![3], vec![2]));
}

/// Two tasks that exclude each other for two reasons have one conflict edge.
#[test]
fn a_pair_has_one_conflict_edge() {
    let mut program = Program::new();
    let other = program.graph.create_object();
    let effects = [program.object, other].map(|object| Effect { object, order: Exclusive });
    program.graph.submit(&[], &effects, &|_| false).unwrap();
    let task = program.graph.submit(&[], &effects, &|_| false).unwrap();
    assert_eq!((dependencies(&task), conflicts(&task)), (vec![0], vec![1]));
}

/// The order of one task's own effects on an object makes no edge.
#[test]
fn a_task_has_no_edge_to_itself() {
    for first in ORDERS {
        for second in ORDERS {
            let mut program = Program::new();
            let effects = [first, second].map(|order| Effect { object: program.object, order });
            let task = program.graph.submit(&[], &effects, &|_| false).unwrap();
            assert_eq!((dependencies(&task), conflicts(&task)), (vec![0], vec![]));
            let next = program.effect(Sequential);
            assert_eq!(dependencies(&next), [task.id.0], "{first:?} and {second:?}");
        }
    }
}

#[test]
fn nothing_conflicts_across_an_epoch() {
    let mut program = Program::new();
    program.effect(Exclusive);
    program.effect(Relaxed);
    let epoch = program.graph.epoch(&[], &[], &|_| false).unwrap();
    assert_eq!(dependencies(&epoch), [1, 2]);
    let task = program.effect(Exclusive);
    assert_eq!((dependencies(&task), conflicts(&task)), (vec![epoch.id.0], vec![]));
}

#[test]
fn conflicts_are_derived_only_if_the_settings_ask_for_them() {
    let mut graph = TaskGraph::new();
    let object = graph.create_object();
    for _ in 0..3 {
        let task = graph.submit(&[], &[Effect { object, order: Exclusive }], &|_| false).unwrap();
        assert!(task.conflicts.is_empty());
    }
}

/// Of many tasks since the last sequential one, the unfinished ones are dependencies, however old they are.
#[test]
fn only_tasks_that_are_done_are_forgotten() {
    for order in [Exclusive, Relaxed] {
        let mut graph = TaskGraph::new();
        let object = graph.create_object();
        let done = |id: anabranch_graph::TaskId| id.0 % 100 != 7;
        for _ in 0..1000 {
            graph.submit(&[], &[Effect { object, order }], &done).unwrap();
        }
        let last = graph.submit(&[], &[Effect { object, order: Sequential }], &done).unwrap();
        let slow: Vec<_> = (0..10).map(|i| 100 * i + 7).collect();
        assert!(slow.iter().all(|id| dependencies(&last).contains(id)));
        assert!(last.dependencies.len() < 200);
    }
}
