//! Reductions: partial results are kept until a task reads the buffer. Then nodes exchange them, and combine them.
//!
//! The command graph says when: the launch of the first task that reads any of the buffer has commands that send partial results,
//! await those of other nodes, and combine all of them. If all nodes want them, as for a fence, all *gather* them, in a number of
//! messages that grows with the logarithm of the nodes. Otherwise each node sends what it has to those that want it.

use super::{
    together::Together,
    transfer::{ONCE, ends, layouts},
};
use crate::{
    cluster::{Cluster, kind},
    data::{partials::Partials, stored::Version},
    error::{Cause, Failure},
    execute::{Body, Compute, task::later::Later},
    label::TaskLabel,
};
use anabranch_graph::{
    BufferId, TaskId,
    command::{Command, CommandKind, NodeId},
};
use anabranch_grid::Region;
use anabranch_wire::{Layout, Memory, MemoryMut, Tag};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};

/// The latest reduction to each buffer, until a task reads it.
#[derive(Default)]
pub(super) struct Reductions(Mutex<FxHashMap<BufferId, Reduction>>);

/// A reduction to a buffer.
pub(super) struct Reduction {
    pub(super) label: TaskLabel,
    pub(super) partials: Arc<dyn Partials>,
}

impl Reductions {
    /// Adds the reductions of a task.
    pub(super) fn add(&self, label: &TaskLabel, all: &[(BufferId, Arc<dyn Partials>)]) {
        for (buffer, partials) in all {
            let reduction = Reduction { label: label.clone(), partials: Arc::clone(partials) };
            // The one before was overwritten. Its operator is dropped outside the lock: it is the program's own.
            let _overwritten = self.0.lock().insert(*buffer, reduction);
        }
    }

    /// Removes the reduction to a buffer.
    pub(super) fn remove(&self, buffer: BufferId) -> Option<Reduction> {
        self.0.lock().remove(&buffer)
    }
}

/// The exchange of partial results for a task, and what this node does with them.
pub(super) struct Resolution {
    cluster: Arc<Cluster>,
    tag: Tag,
    pub(super) reduction: Reduction,
    /// If all nodes gather the partial results: the steps of this node that do.
    gathers: Together,
}

impl Resolution {
    /// The resolution of a reduction to `buffer`, by some of these commands.
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        reduction: Reduction,
        task: TaskId,
        buffer: BufferId,
        commands: &[Command],
    ) -> Arc<Self> {
        let transfers = |command: &&Command| match command.kind {
            CommandKind::PushPartials { buffer: of, .. } | CommandKind::AwaitPartials { buffer: of, .. } => {
                of == buffer
            }
            _ => false,
        };
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            tag: Tag::new(task.0, buffer.0, kind::PARTIALS),
            reduction,
            gathers: Together::new(commands.iter().filter(transfers).count()),
        })
    }

    /// Whether this is the resolution of the reduction to a buffer.
    pub(super) fn is_of(&self, buffer: BufferId) -> bool {
        self.tag.buffer == buffer.0
    }

    /// Where partial results lie in the memory of all of them.
    fn layout(&self, positions: &Range<usize>) -> Layout {
        let bytes = self.partials().bytes();
        Layout::contiguous(positions.start * bytes, positions.len() * bytes)
    }

    fn partials(&self) -> &dyn Partials {
        &*self.reduction.partials
    }

    /// The number of bytes of all partial results.
    fn bytes(&self) -> usize {
        self.partials().shares().parts().len() * self.partials().bytes()
    }
}

/// Sends the partial results of this node to some others.
pub(super) struct Send {
    pub(super) resolution: Option<Arc<Resolution>>,
    pub(super) targets: Arc<[NodeId]>,
}

impl Body for Send {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.resolution.take().expect(ONCE);
        let (partials, tag) = (resolution.partials(), resolution.tag);
        let layout = resolution.layout(&partials.shares().own());
        // SAFETY: the kernel has ended, so the partial results of this node are there, and change no more. The cluster keeps their memory
        // until the transfers are over or the endpoint is gone.
        let memory = unsafe { Memory::new(partials.own(), layout.bytes()) }.at(layout.offset());
        resolution.cluster.transfer(
            Arc::new(partials.memory()),
            ends(later.completion()),
            |endpoint, begun| {
                for target in self.targets.iter() {
                    begun.push(endpoint.send(target.0, tag, memory, &[layout])?);
                }
                Ok(())
            },
        );
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.resolution = None;
    }
}

/// Waits for the partial results of the other nodes.
pub(super) struct Await(pub(super) Option<Arc<Resolution>>);

impl Body for Await {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.0.take().expect(ONCE);
        let (partials, tag, bytes) = (resolution.partials(), resolution.tag, resolution.bytes());
        // SAFETY: as in `Send`. Until this step ends, no step uses this memory, and the nodes send exactly the partial results of others,
        // because their graphs derive them from the same launch.
        let memory = unsafe { MemoryMut::new(partials.make_room(), bytes) };
        let missing = bytes - resolution.layout(&partials.shares().own()).bytes();
        resolution.cluster.transfer(
            Arc::new(partials.memory()),
            ends(later.completion()),
            |endpoint, begun| {
                begun.push(endpoint.expect(tag, memory, missing)?);
                Ok(())
            },
        );
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

/// Takes part in the exchange of partial results that all nodes want: in place of [`Send`] and of [`Await`].
pub(super) struct Gather(pub(super) Option<Arc<Resolution>>);

impl Body for Gather {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.0.take().expect(ONCE);
        let Some(ends) = resolution.gathers.begin(later)? else { return Ok(()) };
        let (partials, tag) = (resolution.partials(), resolution.tag);
        let mut parts = vec![Vec::new(); resolution.cluster.nodes().into()];
        for (node, positions) in partials.shares().nodes() {
            parts[usize::from(node.0)].push(resolution.layout(&positions));
        }
        let start = match partials.shares().are_all_own() {
            // Nothing arrives: this node only sends.
            true => partials.own().cast_mut(),
            false => partials.make_room(),
        };
        // SAFETY: as in `Send` and `Await`.
        let memory = unsafe { MemoryMut::new(start, resolution.bytes()) };
        resolution.cluster.transfer(Arc::new(partials.memory()), ends, |endpoint, begun| {
            begun.push(endpoint.gather(tag, memory, &parts)?);
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        if let Some(resolution) = self.0.take() {
            resolution.gathers.skip(why);
        }
    }
}

/// Combines all partial results, and writes a region of the buffer.
pub(super) struct Reduce(pub(super) Option<(Arc<Resolution>, Version, Region<3>)>);

impl Body for Reduce {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        let (resolution, buffer, region) = self.0.take().expect(ONCE);
        let start = buffer.start();
        resolution.partials().combine(&mut |result| {
            for (offset, bytes) in layouts(&*buffer, &region).iter().flat_map(Layout::rows) {
                let row = &result[offset..offset + bytes];
                // SAFETY: the memory was attached when the task was submitted, and has the bytes of the whole buffer. The graph lets no
                // other step of this node use the region until this one ends. The result is another memory.
                unsafe { start.add(offset).copy_from_nonoverlapping(row.as_ptr(), bytes) };
            }
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
