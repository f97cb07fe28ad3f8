//! Copies between the memory of this node and that of its devices, which come before the steps that need
//! them.
//!
//! The graph of commands has one memory for each node. [`Residents`](crate::execute::devices::Residents)
//! records which memories of this node are current. A push, an exchange, a fence or a part of a task on the
//! host gets what it reads copied to the host before it begins; a part on a device gets its own reads copied
//! to the device. What a step receives from other nodes is current on the host.
//!
//! # Failures
//! - What is [poisoned](super::failures::poison) is not copied. The step that reads it finds that out as on a
//!   node without devices.
//! - If a copy to the host fails, its region is poisoned: only the device has had the values. A push sends
//!   the failure in their place.
//! - If a copy to a device fails, the part of the task that needs it is skipped, and poisons what it was to
//!   write. The host still has the values, and the next part that needs them copies them again.

use super::{
    steps::{Step, context::StepContext},
    submission::{Made, Planned},
};
use crate::{
    data::stored::Touch,
    error::{Cause, Failure},
    execute::{
        Body, Compute,
        devices::{CopyBody, NewCopy, Predecessor, Predecessors, Residents},
        live_tasks::LiveTasks,
        task::{
            node::{Later, Node},
            part::{Part, Writes},
            place::Place,
            properties::Properties,
        },
    },
    label::TaskLabel,
    observe::{NodeAccess, Touched},
};
use anabranch_graph::{
    BufferId, MemoryId, Mode, TaskId,
    command::{Command, CommandKind, Target},
};
use anabranch_grid::Region;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

impl Planned<'_> {
    /// Makes the copies that a step needs, and adds them to `copies`, each with the number of other copies
    /// that it waits for. Returns the copies that the step comes after.
    #[cold]
    pub(super) fn prepare(
        &self,
        residents: &mut Residents,
        tasks: &LiveTasks,
        made: &Made<'_>,
        copies: &mut Vec<(Node, u32)>,
    ) -> Predecessors {
        let Some(command) = made.command else { return Predecessors::new() };
        let device = self.task.device.filter(|_| matches!(command.kind, CommandKind::Execute { .. }));
        let touches = match &made.node.part {
            Some(part) => part.touches.clone(),
            None => self.touches(command),
        };
        // The number that a reduction begins with is combined on the host, whatever computes the leaves.
        let (on_host, in_place): (SmallVec<[Touch; 2]>, SmallVec<[Touch; 2]>) =
            touches.into_iter().partition(|touch| device.is_some() && self.is_reduced(touch.buffer));
        let mut after = Predecessors::new();
        for (device, touches) in [(device, in_place), (None, on_host)] {
            let mut drawn = Vec::new();
            let make = |copy: NewCopy| {
                if self.core.recorder.is_some() {
                    drawn.push((copy.label.clone(), copy.from, accessed(&copy.part)));
                }
                self.make_copy(tasks, made, command, copy, copies)
            };
            after.extend(residents.prepare_step(self.task.label, (&made.node, device), &touches, make));
            if let Some(recorder) = &self.core.recorder {
                recorder.touch(touched(command, residents.place(device), &touches, drawn));
            }
        }
        after
    }

    /// Makes the node of a copy, lets it wait for what it comes after, and adds it to `copies`.
    fn make_copy(
        &self,
        tasks: &LiveTasks,
        made: &Made<'_>,
        command: &Command,
        copy: NewCopy,
        copies: &mut Vec<(Node, u32)>,
    ) -> Node {
        let (after, waits_as_reader) = (copy.after.clone(), copy.waits_as_reader);
        let node = self.copy(command, copy);
        let add = |before: &Predecessor| u32::from(before.node.add_successor(&node, before.needs));
        let count = after.iter().map(add).sum::<u32>();
        let as_reader = if waits_as_reader { made.link_to(&node, tasks) } else { 0 };
        self.core.count_submitted(&node);
        copies.push((node.clone(), count + as_reader));
        node
    }

    /// Whether the task reduces to a buffer.
    fn is_reduced(&self, buffer: BufferId) -> bool {
        let record = self.task.record.iter();
        record.flat_map(|record| &record.reductions).any(|reduction| reduction.buffer == buffer)
    }

    /// What a step reads and writes that is no part of the task.
    fn touches(&self, command: &Command) -> SmallVec<[Touch; 2]> {
        let touch = |buffer: BufferId, region: Region<3>, mode: Mode| {
            smallvec![Touch { buffer, version: self.version(buffer), region, mode }]
        };
        match &command.kind {
            CommandKind::Push { buffer, targets, .. } => touch(*buffer, sent(targets), Mode::Read),
            CommandKind::AwaitPush { buffer, region, .. } => touch(*buffer, region.clone(), Mode::Write),
            _ => SmallVec::new(),
        }
    }

    /// The node of a copy that comes before a step of the task, and that no cancellation concerns.
    fn copy(&self, command: &Command, NewCopy { label, body, part, is_to_host, .. }: NewCopy) -> Node {
        let (id, context) = (TaskId(command.id.0), Arc::clone(self.context));
        let (key, region) = ((part.buffer, part.version), part.region.clone());
        let group = self.task.group.cloned();
        let properties = Properties {
            label: label.clone(),
            place: Place::Inline,
            observes: true,
            group,
            contention: None,
            queue: None,
        };
        let mut head = self.core.head(id, properties);
        let written = is_to_host.then(|| Touch { mode: Mode::Write, ..part });
        head.part = Some(Box::new(Part {
            task: self.id,
            node: context.cluster.node(),
            touches: written.into_iter().collect(),
            effects: SmallVec::new(),
            partials: SmallVec::new(),
            writes: Writes::Copies,
        }));
        let copy = Copy { context: Arc::clone(&context), key, region, body };
        Node::new(|| head, || Step { id, label, context, has_gate: false, body: copy })
    }
}

/// What the recorder needs to draw the copies before a command.
fn touched(
    command: &Command,
    memory: MemoryId,
    touches: &[Touch],
    copies: Vec<(TaskLabel, MemoryId, NodeAccess)>,
) -> Touched {
    let of = |is: fn(Mode) -> bool| touches.iter().filter(|touch| is(touch.mode)).map(accessed).collect();
    Touched {
        command: command.id,
        after: command.dependencies.iter().map(|dependency| dependency.on).collect(),
        memory,
        reads: of(Mode::reads),
        writes: of(Mode::writes),
        copies,
    }
}

fn accessed(touch: &Touch) -> NodeAccess {
    NodeAccess { buffer: touch.buffer, version: touch.version, region: touch.region.clone() }
}

/// All that a push sends.
fn sent(targets: &[Target]) -> Region<3> {
    match targets {
        [only] => only.region.clone(),
        several => Region::from_boxes(several.iter().flat_map(|target| target.region.boxes()).copied()),
    }
}

/// The body of a copy.
struct Copy {
    context: Arc<StepContext>,
    /// The buffer and its version.
    key: (BufferId, u32),
    region: Region<3>,
    body: CopyBody,
}

impl Body for Copy {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a copy is begun")
    }

    fn begin(&mut self, compute: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let poisoned = self.context.poison.within(self.key, &self.region);
        poisoned.iter().for_each(|(part, _)| self.body.leave_out(part));
        self.body.begin(compute, later)
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        self.body.skip(why);
    }
}
