//! Bodies of steps that send parts of a buffer to other nodes, or wait for them.
//!
//! Like all bodies, they let go of what they hold when they begin or are skipped: the last handle of a buffer must not be dropped
//! with the node, under the lock of the runtime's state.

use super::together::Together;
use crate::{
    cluster::{Cluster, Then, kind},
    data::stored::{Stored, Version},
    error::{Cause, Failure},
    execute::{
        Body, Compute,
        task::later::{Completion, Later},
    },
};
use anabranch_graph::{BufferId, TaskId, command::Target};
use anabranch_grid::{GridBox, Region};
use anabranch_wire::{Layout, Memory, MemoryMut, Tag};
use std::sync::Arc;

/// Sends parts of a buffer, from its memory.
pub(super) struct Push(pub(super) Option<Departure>);

/// The parts of a buffer that other nodes lack.
pub(super) struct Departure {
    pub(super) cluster: Arc<Cluster>,
    /// The task that needs the data.
    pub(super) task: TaskId,
    pub(super) buffer: Version,
    pub(super) targets: Arc<[Target]>,
}

/// Waits for parts of a buffer, which arrive in its memory.
pub(super) struct AwaitPush(pub(super) Option<Arc<Arrival>>);

/// All parts of a buffer that a task lacks on this node. They may be awaited by several steps, and one message may have parts
/// for several: so these steps transfer [`Together`], when all of the memory is free.
pub(super) struct Arrival {
    cluster: Arc<Cluster>,
    tag: Tag,
    buffer: Version,
    bytes: usize,
    steps: Together,
}

impl Arrival {
    /// The parts that `steps` steps await.
    pub(super) fn new<'r>(
        cluster: &Arc<Cluster>,
        task: TaskId,
        buffer: Version,
        regions: impl Iterator<Item = &'r Region<3>>,
    ) -> Arc<Self> {
        let (mut points, mut steps) = (0, 0);
        for region in regions {
            points += region.len();
            steps += 1;
        }
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            tag: tag(task, &*buffer),
            bytes: points * buffer.element(),
            buffer,
            steps: Together::new(steps),
        })
    }

    /// Whether this is what arrives for the task in this buffer.
    pub(super) fn is_of(&self, task: TaskId, buffer: BufferId) -> bool {
        (self.tag.task, self.tag.buffer) == (task.0, buffer.0)
    }
}

/// Says that the executor begins or skips a step once.
pub(super) const ONCE: &str = "a step is begun once";

fn tag(task: TaskId, buffer: &dyn Stored) -> Tag {
    Tag::new(task.0, buffer.id().0, kind::DATA)
}

pub(super) fn layouts(buffer: &dyn Stored, region: &Region<3>) -> Vec<Layout> {
    let (extent, element) = (buffer.extent().0, buffer.element());
    let of_box = |range: &GridBox<3>| Layout::of_box(extent, element, range.min().0, range.max().0);
    region.boxes().iter().map(of_box).collect()
}

/// Ends a step with its transfers.
pub(super) fn ends(completion: Completion) -> Then {
    Box::new(|result| completion.finish(result.map_err(Cause::Nodes)))
}

impl Body for Push {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let Departure { cluster, task, buffer, targets } = self.0.take().expect(ONCE);
        let tag = tag(task, &*buffer);
        // SAFETY: the memory was attached when the task was submitted, and stays as long as the buffer, which the cluster keeps until
        // the transfers are over or the endpoint is gone. Until this step ends, the graph lets no step of this node write the
        // region; after the end of a run no step begins.
        let memory = unsafe { Memory::new(buffer.start(), buffer.bytes()) };
        let sends: Vec<_> =
            targets.iter().map(|target| (target.node.0, layouts(&*buffer, &target.region))).collect();
        cluster.transfer(Arc::new(buffer.buffer), ends(later.completion()), |endpoint, begun| {
            for (node, layouts) in &sends {
                begun.push(endpoint.send(*node, tag, memory, layouts)?);
            }
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

impl Body for AwaitPush {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let arrival = self.0.take().expect(ONCE);
        let Arrival { cluster, tag, buffer, bytes, steps } = &*arrival;
        let Some(ends) = steps.begin(later)? else { return Ok(()) };
        // SAFETY: as in `Push`. Until these steps end, the graph lets no other step of this node use their regions, and the nodes send
        // exactly these regions, because their graphs derive them from the same launch.
        let memory = unsafe { MemoryMut::new(buffer.start(), buffer.bytes()) };
        cluster.transfer(Arc::new(Arc::clone(&buffer.buffer)), ends, |endpoint, begun| {
            begun.push(endpoint.expect(*tag, memory, *bytes)?);
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        if let Some(arrival) = self.0.take() {
            arrival.steps.skip(why);
        }
    }
}
