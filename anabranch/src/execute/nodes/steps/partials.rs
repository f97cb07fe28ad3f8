//! Reductions: partial results are kept until a task reads the buffer. Then nodes exchange them, and combine
//! them.
//!
//! The command graph decides when: the launch of the first task that reads any of the buffer has commands
//! that send partial results, await the partial results of other nodes, and combine all of them. If all nodes
//! need them, as for a fence, all *gather* them, in a number of messages that grows with the logarithm of the
//! nodes. Otherwise each node sends its partial results to the nodes that need them.
//!
//! A node whose part of the task has failed gives its failure in place of its partial results. Then the
//! result is poisoned.

use super::{
    context::StepContext,
    joint_transfer::JointTransfer,
    transfer::{ONCE, end_all, ends, unreadable},
};
use crate::{
    cluster::{Said, Then, kind, let_go},
    data::{partials::Partials, stored::Version},
    error::{Cause, Failure, NodeError},
    execute::{
        Body, Compute,
        nodes::failures::notes,
        task::{
            node::{Completion, Later},
            part::Lost,
        },
    },
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
use std::{ops::Range, slice, sync::Arc};

/// The latest reduction to each buffer, until a task reads it.
#[derive(Default)]
pub(in crate::execute::nodes) struct Reductions(Mutex<FxHashMap<BufferId, Reduction>>);

/// A reduction to a buffer.
pub(in crate::execute::nodes) struct Reduction {
    pub(in crate::execute::nodes) task: TaskId,
    pub(in crate::execute::nodes) label: TaskLabel,
    pub(in crate::execute::nodes) partials: Arc<dyn Partials>,
    /// Why this node does not have its partial results, if its part of the task has failed.
    pub(in crate::execute::nodes) lost: Lost,
}

impl Reductions {
    /// Adds a reduction to a buffer.
    pub(in crate::execute::nodes) fn add(&self, buffer: BufferId, reduction: Reduction) {
        // The one before was overwritten. Its operator is dropped outside the lock: it is the program's own.
        let _overwritten = self.0.lock().insert(buffer, reduction);
    }

    /// Removes the reduction to a buffer.
    pub(in crate::execute::nodes) fn remove(&self, buffer: BufferId) -> Option<Reduction> {
        self.0.lock().remove(&buffer)
    }
}

/// The exchange of partial results for a task, and what this node does with them.
pub(in crate::execute::nodes) struct Resolution {
    context: Arc<StepContext>,
    tag: Tag,
    pub(in crate::execute::nodes) reduction: Reduction,
    /// Why other nodes do not have their partial results: of several failures the one that
    /// [counts](Failure::age).
    lost: Mutex<Option<Arc<Failure>>>,
    /// If all nodes gather the partial results: the steps of this node that do.
    gathers: JointTransfer,
}

impl Resolution {
    /// The resolution of a reduction to `buffer`, by some of these commands.
    pub(in crate::execute::nodes) fn new(
        context: &Arc<StepContext>,
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
            context: Arc::clone(context),
            tag: Tag::new(task.0, buffer.0, kind::PARTIALS),
            reduction,
            lost: Mutex::default(),
            gathers: JointTransfer::new(commands.iter().filter(transfers).count()),
        })
    }

    /// Whether this is the resolution of the reduction to a buffer.
    pub(in crate::execute::nodes) fn is_of(&self, buffer: BufferId) -> bool {
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

    /// What this node says in place of its partial results, if it does not have them.
    fn note(&self) -> Option<Vec<u8>> {
        self.reduction.lost.get().map(|failure| notes::of_failure(failure))
    }

    /// The partial results of other nodes have arrived, or failures in their place.
    fn has_arrived(&self, said: &[Said]) -> Result<(), Arc<NodeError>> {
        let StepContext { cluster, locations, .. } = &*self.context;
        for said in said {
            let read = notes::read(said, locations);
            let (_, failure) = read.ok_or_else(|| cluster.stop(unreadable(said)))?;
            let mut lost = self.lost.lock();
            if lost.as_ref().is_none_or(|known| failure.age() < known.age()) {
                // A failure of another node has no destructor of the program.
                *lost = Some(failure);
            }
        }
        Ok(())
    }

    /// Ends steps when the partial results of other nodes have arrived.
    fn ends(self: &Arc<Self>, completions: Vec<Completion>) -> Then {
        let this = Arc::clone(self);
        Box::new(move |result| {
            let result = result.and_then(|said| this.has_arrived(&said));
            let_go(this);
            end_all(completions, &result);
        })
    }

    /// Why not all partial results are there, if they are not.
    fn failure(&self) -> Option<Arc<Failure>> {
        let others = self.lost.lock().clone();
        self.reduction.lost.get().cloned().into_iter().chain(others).min_by_key(Failure::age)
    }

    /// The number of bytes of all partial results.
    fn bytes(&self) -> usize {
        self.partials().shares().parts().len() * self.partials().bytes()
    }
}

/// Sends the partial results of this node to some others.
pub(in crate::execute::nodes) struct Send {
    pub(in crate::execute::nodes) resolution: Option<Arc<Resolution>>,
    pub(in crate::execute::nodes) targets: Arc<[NodeId]>,
}

impl Body for Send {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.resolution.take().expect(ONCE);
        let (partials, tag) = (resolution.partials(), resolution.tag);
        let layout = resolution.layout(&partials.shares().own());
        if let Some(note) = resolution.note() {
            let then = ends(later.completion());
            resolution.context.cluster.transfer(Arc::new(()), then, |endpoint, _| {
                let mut targets = self.targets.iter();
                targets.try_for_each(|target| endpoint.send_note(target.0, tag, layout.bytes(), &note))
            });
            return Ok(());
        }
        // SAFETY: the kernel has ended without a failure, so the partial results of this node are there, and
        // change no more. The cluster keeps their memory until the transfers are over or the endpoint is
        // gone.
        let memory = unsafe { Memory::new(partials.own(), layout.bytes()) }.at(layout.offset());
        resolution.context.cluster.transfer(
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
pub(in crate::execute::nodes) struct Await(pub(in crate::execute::nodes) Option<Arc<Resolution>>);

impl Body for Await {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.0.take().expect(ONCE);
        let (partials, tag, bytes) = (resolution.partials(), resolution.tag, resolution.bytes());
        // SAFETY: as in `Send`. Until this step ends, no step uses this memory, and the nodes send exactly
        // the partial results of others, because their graphs derive them from the same launch.
        let memory = unsafe { MemoryMut::new(partials.make_room(), bytes) };
        let missing = bytes - resolution.layout(&partials.shares().own()).bytes();
        let memory_of_all = Arc::new(partials.memory());
        let then = resolution.ends(vec![later.completion()]);
        resolution.context.cluster.transfer(memory_of_all, then, |endpoint, begun| {
            begun.push(endpoint.expect(tag, memory, missing)?);
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

/// Takes part in the exchange of partial results that all nodes need, in place of [`Send`] and of [`Await`].
pub(in crate::execute::nodes) struct Gather(pub(in crate::execute::nodes) Option<Arc<Resolution>>);

impl Body for Gather {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let resolution = self.0.take().expect(ONCE);
        let Some(completions) = resolution.gathers.begin(0, later)? else { return Ok(()) };
        let (partials, tag) = (resolution.partials(), resolution.tag);
        let mut parts = vec![Vec::new(); resolution.context.cluster.nodes().into()];
        for (node, positions) in partials.shares().nodes() {
            parts[usize::from(node.0)].push(resolution.layout(&positions));
        }
        let note = resolution.note();
        let start = match partials.shares().are_all_own() && note.is_none() {
            // Nothing arrives: this node only sends.
            true => partials.own().cast_mut(),
            false => partials.make_room(),
        };
        // SAFETY: as in `Send` and `Await`.
        let memory = unsafe { MemoryMut::new(start, resolution.bytes()) };
        let then = resolution.ends(completions);
        resolution.context.cluster.transfer(Arc::new(partials.memory()), then, |endpoint, begun| {
            begun.push(match &note {
                Some(note) => endpoint.gather_note(tag, memory, &parts, note)?,
                None => endpoint.gather(tag, memory, &parts)?,
            });
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

/// Combines all partial results, and writes a region of the buffer. If some of them are not there, poisons
/// the region instead.
pub(in crate::execute::nodes) struct Reduce(
    pub(in crate::execute::nodes) Option<(Arc<Resolution>, Version, Region<3>)>,
);

impl Body for Reduce {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        let (resolution, buffer, region) = self.0.take().expect(ONCE);
        let (poison, version) = (&resolution.context.poison, buffer.key());
        if let Some(failure) = resolution.failure() {
            // In the name of the part that has failed: the combination is no task of its own.
            poison.replace(version, &[], &[(region, failure)]);
            return Ok(());
        }
        let start = buffer.start();
        resolution.partials().combine(&mut |result| {
            for (offset, bytes) in buffer.layouts(&region).iter().flat_map(Layout::rows) {
                let row = &result[offset..offset + bytes];
                // SAFETY: the memory was attached when the task was submitted, and has the bytes of the whole
                // buffer. The graph lets no other step of this node use the region until this one ends. The
                // result is another memory.
                unsafe { start.add(offset).copy_from_nonoverlapping(row.as_ptr(), bytes) };
            }
        });
        poison.replace(version, slice::from_ref(&region), &[]);
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
