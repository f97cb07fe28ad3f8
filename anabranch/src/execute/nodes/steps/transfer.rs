//! Bodies of steps that send parts of a buffer to other nodes, or wait for them.
//!
//! In place of poisoned contents the bodies send the failure. The receiver enters it for the same region, and
//! the await ends like any other.
//!
//! Like all bodies, they drop their handles when they begin or are skipped: the last handle of a buffer must
//! not be dropped with the node, under the lock of the runtime's state.

use super::{
    context::StepContext,
    joint_transfer::{JointTransfer, Unfinished},
};
use crate::{
    cluster::{Each, Said, Then, kind},
    data::stored::{Stored, Version},
    error::{Cause, Failure, NodeError},
    execute::{
        Body, Compute,
        nodes::failures::{notes, poison::Poisoned},
        task::node::{Completion, Later},
    },
};
use anabranch_graph::{BufferId, TaskId, command::Target};
use anabranch_grid::Region;
use anabranch_wire::{Begun, Endpoint, Layout, Memory, MemoryMut, Tag, WireError};
use smallvec::SmallVec;
use std::{slice, sync::Arc};

/// Sends parts of a buffer, from its memory.
pub(in crate::execute::nodes) struct Push(pub(in crate::execute::nodes) Option<Departure>);

/// The parts of a buffer that other nodes lack.
pub(in crate::execute::nodes) struct Departure {
    pub(in crate::execute::nodes) context: Arc<StepContext>,
    /// The task that needs the data.
    pub(in crate::execute::nodes) task: TaskId,
    pub(in crate::execute::nodes) buffer: Version,
    pub(in crate::execute::nodes) targets: Arc<[Target]>,
}

/// Waits for a region of a buffer, which arrives in its memory.
pub(in crate::execute::nodes) struct AwaitPush(
    pub(in crate::execute::nodes) Option<(Arc<Arrival>, Region<3>)>,
);

/// All that a task lacks of a buffer on this node. Several steps may await it, each a region of its own, and
/// one message may have parts for several: so these steps share a [`JointTransfer`], which begins when all of
/// the memory is free. Each of them ends as soon as its own region is in place. A step with failures in its
/// region ends with the last of them.
pub(in crate::execute::nodes) struct Arrival {
    tag: Tag,
    buffer: Version,
    steps: JointTransfer,
    awaited: Arc<Awaited>,
}

/// The regions that steps await. Does not hold the buffer, which nothing may hold any more when the last step
/// ends.
struct Awaited {
    context: Arc<StepContext>,
    /// The buffer and its version.
    key: (BufferId, u32),
    regions: SmallVec<[Region<3>; 1]>,
    /// The steps that have begun, in the order of `regions`.
    steps: Unfinished,
}

impl Arrival {
    /// The parts that steps await, each of them one of the regions.
    pub(in crate::execute::nodes) fn new<'r>(
        context: &Arc<StepContext>,
        task: TaskId,
        buffer: Version,
        regions: impl Iterator<Item = &'r Region<3>>,
    ) -> Arc<Self> {
        let regions: SmallVec<_> = regions.cloned().collect();
        let (tag, key, steps) = (tag(task, &*buffer), buffer.key(), JointTransfer::new(regions.len()));
        let awaited = Awaited { context: Arc::clone(context), key, regions, steps: Unfinished::default() };
        Arc::new(Self { tag, buffer, steps, awaited: Arc::new(awaited) })
    }

    /// Whether this is what arrives for the task in this buffer.
    pub(in crate::execute::nodes) fn is_of(&self, task: TaskId, buffer: BufferId) -> bool {
        (self.tag.task, self.tag.buffer) == (task.0, buffer.0)
    }
}

impl Awaited {
    /// The place of a region among all.
    fn place(&self, region: &Region<3>) -> usize {
        self.regions.iter().position(|other| other == region).expect("a region that is awaited")
    }

    /// All of a region is in place.
    fn has_arrived(&self, at: usize) {
        if let Some(completion) = self.steps.end(at) {
            self.context.poison.replace(self.key, slice::from_ref(&self.regions[at]), &[]);
            completion.finish_before_others(Ok(()));
        }
    }

    /// All regions have arrived, or failures in their place, or they never will. Ends the steps that have not
    /// ended.
    fn end(&self, result: Result<Vec<Said>, Arc<NodeError>>) {
        let (places, completions): (Vec<_>, Vec<_>) = self.steps.end_all().into_iter().unzip();
        let regions: Vec<_> = places.into_iter().map(|at| self.regions[at].clone()).collect();
        let failures = result.and_then(|said| read_failures(&self.context, &said));
        let result = failures.map(|failures| self.context.poison.replace(self.key, &regions, &failures));
        end_all(completions, &result);
    }
}

/// Says that the executor begins or skips a step once.
pub(in crate::execute::nodes) const ONCE: &str = "a step is begun once";

/// Reads the notes that other nodes have sent in place of contents: the regions, and why they were not
/// written.
pub(in crate::execute::nodes) fn read_failures(
    context: &StepContext,
    said: &[Said],
) -> Result<Vec<Poisoned>, Arc<NodeError>> {
    let read = |said: &Said| {
        notes::read(said, &context.locations).ok_or_else(|| context.cluster.stop(unreadable(said)))
    };
    said.iter().map(read).collect()
}

pub(in crate::execute::nodes) fn tag(task: TaskId, buffer: &dyn Stored) -> Tag {
    Tag::new(task.0, buffer.id().0, kind::DATA)
}

/// Ends a step with its transfers, for which there is no note.
pub(in crate::execute::nodes) fn ends(completion: Completion) -> Then {
    Box::new(|result| completion.finish(result.map(drop).map_err(Cause::Nodes)))
}

/// Ends steps with their transfer.
pub(in crate::execute::nodes) fn end_all(completions: Vec<Completion>, result: &Result<(), Arc<NodeError>>) {
    let result = || result.clone().map_err(Cause::Nodes);
    let mut completions = completions.into_iter().peekable();
    while let Some(completion) = completions.next() {
        match completions.peek() {
            Some(_) => completion.finish_before_others(result()),
            None => completion.finish(result()),
        }
    }
}

/// The end of a run in which a node cannot read what another one says.
pub(in crate::execute::nodes) fn unreadable(said: &Said) -> NodeError {
    let why = format!(
        "it cannot read why data of node {} does not come: do all nodes run the same program?",
        said.node
    );
    NodeError::Here { why }
}

/// What another node is sent of a buffer: these boxes, and notes, each in place of a number of bytes.
pub(in crate::execute::nodes) struct Contents {
    layouts: Vec<Layout>,
    notes: Vec<(usize, Vec<u8>)>,
}

impl Contents {
    /// The contents of a region. This calls functions of the program, for the messages of its errors.
    pub(in crate::execute::nodes) fn new(
        context: &StepContext,
        buffer: &Version,
        region: &Region<3>,
    ) -> Self {
        let poisoned = context.poison.within(buffer.key(), region);
        if poisoned.is_empty() {
            return Self { layouts: buffer.layouts(region), notes: Vec::new() };
        }
        let (mut good, mut all) = (region.clone(), Vec::new());
        for (part, failure) in poisoned {
            good = good.difference(&part);
            let notes = notes::write(&part, &failure);
            all.extend(notes.into_iter().map(|(points, note)| (points * buffer.element(), note)));
        }
        Self { layouts: buffer.layouts(&good), notes: all }
    }

    /// Sends them to a node, from this memory of the buffer.
    pub(in crate::execute::nodes) fn send(
        &self,
        to: u16,
        tag: Tag,
        memory: Memory,
        endpoint: &mut Endpoint,
        begun: &mut Vec<Begun>,
    ) -> Result<(), WireError> {
        begun.push(endpoint.send(to, tag, memory, &self.layouts)?);
        self.notes.iter().try_for_each(|(bytes, note)| endpoint.send_note(to, tag, *bytes, note))
    }
}

impl Body for Push {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let departure = self.0.take().expect(ONCE);
        let Departure { context, task, buffer, targets } = departure;
        let contents = |target: &Target| (target.node.0, Contents::new(&context, &buffer, &target.region));
        let sends: Vec<_> = targets.iter().map(contents).collect();
        let tag = tag(task, &*buffer);
        // SAFETY: the memory was attached when the task was submitted, and stays as long as the buffer, which
        // the cluster keeps until the transfers are over or the endpoint is gone. Until this step ends, the
        // graph lets no step of this node write the region; after the end of a run no step begins, but for
        // parts that all nodes were ready for, whose dependencies have all ended.
        let memory = unsafe { Memory::new(buffer.start(), buffer.bytes()) };
        context.cluster.transfer(Arc::new(buffer.buffer), ends(later.completion()), |endpoint, begun| {
            for (to, contents) in &sends {
                contents.send(*to, tag, memory, endpoint, begun)?;
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
        let (arrival, region) = self.0.take().expect(ONCE);
        let (tag, buffer, awaited) = (arrival.tag, arrival.buffer.clone(), Arc::clone(&arrival.awaited));
        let Some(completions) = arrival.steps.begin(awaited.place(&region), later)? else { return Ok(()) };
        drop(arrival);
        awaited.steps.begin(completions);
        let bytes = awaited.regions.iter().map(Region::len).sum::<usize>() * buffer.element();
        let parts: Vec<_> = match &*awaited.regions {
            [_] => Vec::new(),
            several => several.iter().map(|region| buffer.layouts(region)).collect(),
        };
        // SAFETY: as in `Push`. Until these steps end, the graph lets no other step of this node use their
        // regions, and the nodes send exactly these regions, because their graphs derive them from the same
        // launch. What a step awaits is written before it ends, because the endpoint reports a part when all
        // of its bytes are there, and each byte comes once.
        let memory = unsafe { MemoryMut::new(buffer.start(), buffer.bytes()) };
        let (cluster, ends) = (Arc::clone(&awaited.context.cluster), Arc::clone(&awaited));
        let each: Each = Arc::new(move |part| awaited.has_arrived(part));
        let then: Then = Box::new(move |result| ends.end(result));
        cluster.transfer_in_parts(Arc::new(buffer.buffer), each, then, |endpoint, begun| {
            begun.push(match parts.is_empty() {
                true => endpoint.expect(tag, memory, bytes)?,
                false => endpoint.expect_parts(tag, memory, &parts)?,
            });
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        if let Some((arrival, _)) = self.0.take() {
            arrival.steps.skip(why);
        }
    }
}
