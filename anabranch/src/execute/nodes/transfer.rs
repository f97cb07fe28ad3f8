//! Bodies of steps that send parts of a buffer to other nodes, or wait for them.
//!
//! In place of poisoned contents they send the failure. The receiver enters it for the same region, and the await ends like any other.
//!
//! Like all bodies, they let go of what they hold when they begin or are skipped: the last handle of a buffer must not be dropped
//! with the node, under the lock of the runtime's state.

use super::{common::Common, notes, together::Together};
use crate::{
    cluster::{Said, Then, kind, let_go},
    data::stored::{Stored, Version},
    error::{Cause, Failure, NodeError},
    execute::{
        Body, Compute,
        task::later::{Completion, Later},
    },
};
use anabranch_graph::{BufferId, TaskId, command::Target};
use anabranch_grid::{GridBox, Region};
use anabranch_wire::{Layout, Memory, MemoryMut, Tag};
use smallvec::SmallVec;
use std::sync::Arc;

/// Sends parts of a buffer, from its memory.
pub(super) struct Push(pub(super) Option<Departure>);

/// The parts of a buffer that other nodes lack.
pub(super) struct Departure {
    pub(super) common: Arc<Common>,
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
    common: Arc<Common>,
    tag: Tag,
    buffer: Version,
    /// The regions of the steps.
    regions: SmallVec<[Region<3>; 1]>,
    steps: Together,
}

impl Arrival {
    /// The parts that steps await, each of them one of the regions.
    pub(super) fn new<'r>(
        common: &Arc<Common>,
        task: TaskId,
        buffer: Version,
        regions: impl Iterator<Item = &'r Region<3>>,
    ) -> Arc<Self> {
        let regions: SmallVec<_> = regions.cloned().collect();
        Arc::new(Self {
            common: Arc::clone(common),
            tag: tag(task, &*buffer),
            buffer,
            steps: Together::new(regions.len()),
            regions,
        })
    }

    fn bytes(&self) -> usize {
        self.regions.iter().map(Region::len).sum::<usize>() * self.buffer.element()
    }

    /// All parts have arrived, or the failures in their place.
    fn has_arrived(&self, said: &[Said]) -> Result<(), Arc<NodeError>> {
        let Common { cluster, poison, locations } = &*self.common;
        let mut poisoned = Vec::with_capacity(said.len());
        for said in said {
            let read = notes::read(said, locations);
            poisoned.push(read.ok_or_else(|| cluster.stop(unreadable(said)))?);
        }
        poison.replace(self.buffer.key(), &self.regions, &poisoned);
        Ok(())
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

/// Ends a step with its transfers, for which there is no note.
pub(super) fn ends(completion: Completion) -> Then {
    Box::new(|result| completion.finish(result.map(drop).map_err(Cause::Nodes)))
}

/// Ends steps with their transfer.
pub(super) fn end_all(completions: Vec<Completion>, result: &Result<(), Arc<NodeError>>) {
    let end = |completion: Completion| completion.finish(result.clone().map_err(Cause::Nodes));
    completions.into_iter().for_each(end);
}

/// The end of a run in which a node cannot read what another one says.
pub(super) fn unreadable(said: &Said) -> NodeError {
    let why = format!(
        "it cannot read why data of node {} does not come: do all nodes run the same program?",
        said.node
    );
    NodeError::Here { why }
}

/// What a node is sent of a buffer: these boxes, and notes, each in place of a number of bytes.
struct Sent {
    to: u16,
    layouts: Vec<Layout>,
    notes: Vec<(usize, Vec<u8>)>,
}

impl Departure {
    /// What a node is sent. This calls functions of the program, for the messages of its errors.
    fn sent(&self, Target { node, region }: &Target) -> Sent {
        let Self { common, buffer, .. } = self;
        let mut sent = Sent { to: node.0, layouts: Vec::new(), notes: Vec::new() };
        let poisoned = common.poison.within(buffer.key(), region);
        if poisoned.is_empty() {
            sent.layouts = layouts(&*buffer.buffer, region);
            return sent;
        }
        let mut good = region.clone();
        for (part, failure) in poisoned {
            good = good.difference(&part);
            let notes = notes::write(&part, &failure);
            sent.notes.extend(notes.into_iter().map(|(points, note)| (points * buffer.element(), note)));
        }
        sent.layouts = layouts(&*buffer.buffer, &good);
        sent
    }
}

impl Body for Push {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let departure = self.0.take().expect(ONCE);
        let sends: Vec<_> = departure.targets.iter().map(|target| departure.sent(target)).collect();
        let Departure { common, task, buffer, .. } = departure;
        let tag = tag(task, &*buffer);
        // SAFETY: the memory was attached when the task was submitted, and stays as long as the buffer, which the cluster keeps until
        // the transfers are over or the endpoint is gone. Until this step ends, the graph lets no step of this node write the
        // region; after the end of a run no step begins.
        let memory = unsafe { Memory::new(buffer.start(), buffer.bytes()) };
        common.cluster.transfer(Arc::new(buffer.buffer), ends(later.completion()), |endpoint, begun| {
            for Sent { to, layouts, notes } in &sends {
                begun.push(endpoint.send(*to, tag, memory, layouts)?);
                for (bytes, note) in notes {
                    endpoint.send_note(*to, tag, *bytes, note)?;
                }
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
        let Some(completions) = arrival.steps.begin(later)? else { return Ok(()) };
        let (common, buffer) = (Arc::clone(&arrival.common), arrival.buffer.clone());
        let (tag, bytes) = (arrival.tag, arrival.bytes());
        // SAFETY: as in `Push`. Until these steps end, the graph lets no other step of this node use their regions, and the nodes send
        // exactly these regions, because their graphs derive them from the same launch.
        let memory = unsafe { MemoryMut::new(buffer.start(), buffer.bytes()) };
        let then: Then = Box::new(move |result| {
            let result = result.and_then(|said| arrival.has_arrived(&said));
            let_go(arrival);
            end_all(completions, &result);
        });
        common.cluster.transfer(Arc::new(buffer.buffer), then, |endpoint, begun| {
            begun.push(endpoint.expect(tag, memory, bytes)?);
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
