//! Submissions to the task graph from bytes: the dependencies order every pair of tasks that must be ordered.
#![no_main]

use anabranch_graph::{Access, BufferId, Effect, GraphError, Mode, ObjectId, Order, TaskGraph};
use anabranch_grid::{Extent, GridBox};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

const SIDE: usize = 6;

#[derive(Arbitrary, Debug)]
struct Submission {
    accesses: Vec<(u8, [u8; 4], u8)>,
    effects: Vec<(u8, u8)>,
}

/// The declarations of a submitted task, to compare with later tasks.
struct Task {
    id: usize,
    accesses: Vec<Access>,
    effects: Vec<Effect>,
    versions: Vec<u32>,
    /// For each earlier task, whether this one comes after it.
    after: Vec<bool>,
}

fn access(buffers: &[BufferId], (buffer, [a, b, c, d], mode): &(u8, [u8; 4], u8)) -> Access {
    let interval = |a: u8, b: u8| {
        let low = usize::from(a) % SIDE;
        (low, low + 1 + usize::from(b) % (SIDE - low))
    };
    let ((y, y1), (x, x1)) = (interval(*a, *b), interval(*c, *d));
    let mode = [Mode::Read, Mode::Write, Mode::Update][usize::from(*mode) % 3];
    let range = GridBox::new([y, x, 0], [y1, x1, 1]);
    Access { buffer: buffers[usize::from(*buffer) % buffers.len()], region: range.into(), mode }
}

fn effect(objects: &[ObjectId], index: usize, order: u8) -> Effect {
    let order = [Order::Sequential, Order::Exclusive, Order::Relaxed, Order::Observe][usize::from(order) % 4];
    Effect { object: objects[index], order }
}

/// Whether `after` must come after `before`: both access the same memory and one of them writes, or the
/// orders of their effects say so.
fn must_be_ordered(before: &Task, after: &Task) -> bool {
    let memory = before.accesses.iter().zip(&before.versions).any(|(a, version)| {
        after.accesses.iter().zip(&after.versions).any(|(b, other)| {
            a.buffer == b.buffer
                && version == other
                && (a.mode.writes() || b.mode.writes())
                && a.region.intersects(&b.region)
        })
    });
    memory
        || before.effects.iter().any(|a| {
            let ordered = |b: &Effect| a.order.is_in_order() || b.order.is_in_order();
            after.effects.iter().any(|b| a.object == b.object && ordered(b))
        })
}

fuzz_target!(|submissions: Vec<Submission>| {
    let mut graph = TaskGraph::new();
    let buffers = [1, 2, 3].map(|versions| {
        let buffer = graph.create_buffer(Extent([SIDE, SIDE, 1]), versions > 1);
        graph.set_versions(buffer, versions);
        buffer
    });
    let objects = [(); 3].map(|()| graph.create_object());
    let mut tasks: Vec<Task> = Vec::new();
    for submission in submissions.iter().take(200) {
        let accesses: Vec<Access> = submission.accesses.iter().take(4).map(|a| access(&buffers, a)).collect();
        // At most one effect on each object.
        let effects = submission.effects.iter().take(3).enumerate();
        let effects: Vec<Effect> = effects.map(|(i, (_, order))| effect(&objects, i, *order)).collect();
        let submitted = match graph.submit(&accesses, &effects, &|_| false) {
            Ok(submitted) => submitted,
            Err(GraphError::NeverWritten { .. } | GraphError::Overlap { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut after = vec![false; tasks.len()];
        for dependency in submitted.dependencies.iter().filter(|d| d.on.0 > 0) {
            let on = tasks.binary_search_by_key(&(dependency.on.0 as usize), |task| task.id).expect("a task");
            after[on] = true;
            for (i, earlier) in tasks[on].after.iter().enumerate() {
                after[i] |= earlier;
            }
        }
        let id = submitted.id.0 as usize;
        let task = Task { id, accesses, effects, versions: submitted.versions.to_vec(), after };
        for (i, before) in tasks.iter().enumerate() {
            let ordered = task.after[i] || !must_be_ordered(before, &task);
            assert!(ordered, "T{} must come after T{}: {submissions:#?}", task.id, before.id);
        }
        tasks.push(task);
    }
});
