//! Submitting a task on several nodes: from its declaration to the nodes of its commands.

use super::{
    plan::{SET_WEIGHTS, Turn},
    steps::{
        Nothing, Step,
        context::StepContext,
        exchange::{Exchange, TakePart},
        gate::Gate,
        partials::{Await, Gather, Reduce, Reduction, Reductions, Resolution, Send},
        transfer::{Arrival, AwaitPush, Departure, Push},
        turn::{AwaitTurn, PassTurn, Turn as ObjectTurn},
    },
};
use crate::{
    data::{
        cluster_object::Kept,
        stored::{Shared, Stored, Touch, Version},
    },
    error::Error,
    execute::{
        core::{Core, State},
        devices::{Predecessor, Predecessors, Slot},
        groups::group::Group,
        live_tasks::LiveTasks,
        submission::Submission,
        task::{
            node::{Body, Head, Node},
            part::{Lost, Part, Writes},
            place::Place,
            properties::{Needs, Properties},
        },
    },
    label::TaskLabel,
};
use anabranch_graph::{
    BufferId, GraphError, Mode, ObjectId, TaskId,
    command::{Command, CommandError, CommandKind, Launch, NodeId, Pass, Work},
};
use anabranch_grid::Region;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The largest number of calls of an operator that may delay the thread which finds the partial results
/// complete.
const INLINE_CALLS: usize = 1 << 12;

/// Why a task is refused.
pub(crate) enum Refused {
    /// The task graph refuses it, as on one node.
    Graph(Box<GraphError>),
    /// The command graph refuses it.
    Command(CommandError),
    /// Another check refuses it: the thread may not submit, or the run has ended.
    Other(Error),
}

/// A task whose commands are known and that has no nodes yet.
pub(crate) struct Planned<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) context: &'a Arc<StepContext>,
    pub(super) task: &'a Submission<'a>,
    /// The task's number on all nodes.
    pub(super) id: TaskId,
    commands: Vec<Command>,
    /// The version of each accessed buffer whose memory all of the commands use.
    versions: SmallVec<[u32; 4]>,
}

impl Core {
    /// Begins the submission of a task on several nodes: derives this node's commands. The caller attaches
    /// memory, and [inserts](Planned::insert) the task.
    ///
    /// # Errors
    /// If a graph refuses the task, or the calling thread may not submit, or the run has ended. Nothing is
    /// submitted then.
    pub(crate) fn plan<'a>(self: &'a Arc<Self>, task: &'a Submission<'a>) -> Result<Planned<'a>, Refused> {
        let nodes = self.several_nodes().expect("a runtime with several nodes");
        let call = || task.label.to_string();
        self.check_submitter(call).map_err(Refused::Other)?;
        let record = task.record.expect("with several nodes, every task has a record");
        if record.times_weighted != nodes.times_weighted() {
            // The body would have another part of the index space than the command.
            let (call, place) = (SET_WEIGHTS.into(), "inside a range mapper");
            return Err(Refused::Other(Error::SubmitterOnly { call, place }));
        }
        self.wait_for_room();
        let mut turn = nodes.begin_turn(call).map_err(Refused::Other)?;
        let (id, horizon, recorder) = {
            let State { graphs, .. } = &mut *self.state.lock();
            let accepted = graphs.submit_on_nodes(task.label, task.accesses, task.effects, record);
            accepted.map_err(|error| Refused::Graph(error.into()))?;
            let submitted = graphs.submitted();
            let horizon = submitted.horizon.as_ref().map(|horizon| horizon.id);
            (submitted.id, horizon, graphs.recorder().cloned())
        };
        let commands = self.derive(&mut turn, task, id, horizon).map_err(Refused::Command)?;
        recorder.into_iter().for_each(|recorder| recorder.execute(task.label, &commands));
        let versions = task.accesses.iter().map(|access| turn.graph().version(access.buffer)).collect();
        let hash = turn.graph().program_hash();
        drop(turn);
        let context = &nodes.context;
        context.locations.add(task.label);
        context.cluster.submitted(task.label, hash).map_err(|why| Refused::Other(why.into()))?;
        Ok(Planned { core: self, context, task, id, commands, versions })
    }

    /// The commands of a task, and of the horizon behind it. The range mappers of the program run here, and
    /// no lock is held.
    fn derive(
        &self,
        turn: &mut Turn<'_>,
        task: &Submission<'_>,
        id: TaskId,
        horizon: Option<TaskId>,
    ) -> Result<Vec<Command>, CommandError> {
        let record = task.record.expect("with several nodes, every task has a record");
        let launch = Launch {
            task: id,
            work: record.work,
            hints: record.hints,
            accesses: &record.accesses,
            reductions: &record.reductions,
            effects: task.effects,
        };
        let done = |command| self.is_command_done(command);
        let mut commands = turn.graph().launch_after(&launch, &done)?.to_vec();
        if let Some(horizon) = horizon {
            commands.extend_from_slice(turn.graph().launch(&Launch::new(horizon, Work::Horizon))?);
        }
        Ok(commands)
    }
}

impl Planned<'_> {
    /// The versions of the accessed buffers, whose memory the task is to use.
    pub(crate) fn versions(&self) -> &[u32] {
        &self.versions
    }

    /// The places of the accessed buffers on the device that the task runs on.
    pub(crate) fn slots(&self) -> SmallVec<[Arc<Slot>; 4]> {
        let mut state = self.core.state.lock();
        match (&mut state.residents, self.task.device) {
            (Some(residents), Some(on)) => residents.slots_on_nodes(on, self.task.accesses, &self.versions),
            _ => SmallVec::new(),
        }
    }

    /// Makes nodes of the commands, links them to their dependencies and lets them go. `bodies` are those of
    /// the pieces of this node's part of the task: one if it has no pieces. Returns their nodes, or one that
    /// is done already if this node has no part in the task.
    pub(crate) fn insert<B: Body>(
        self,
        shared: Shared,
        mut bodies: impl Iterator<Item = B>,
    ) -> SmallVec<[Node; 1]> {
        let Self { core, context, task, id, commands, .. } = &self;
        let Shared { buffers, objects, partials, mut touches, has_gate } = shared;
        touches.iter_mut().flatten().for_each(|touch| touch.version = self.version(touch.buffer));
        let mut touches = touches.into_iter();
        let lost: SmallVec<[Lost; 1]> = partials.iter().map(|_| Lost::default()).collect();
        let node = context.cluster.node();
        let mut nodes = Vec::with_capacity(commands.len());
        let mut own = SmallVec::<[Node; 1]>::new();
        let mut steps = Steps::new(&self, &buffers, &objects);
        for command in commands {
            let make = self.make(command);
            let mut gate = None;
            let node = match &command.kind {
                CommandKind::Execute { .. } | CommandKind::Fence | CommandKind::Epoch => {
                    let body = bodies.next().expect("a command for each piece of this node");
                    let (touches, effects) = (touches.next().unwrap_or_default(), task.effects.into());
                    let partials = lost.clone();
                    let part = Part { task: *id, node, touches, effects, partials, writes: Writes::All };
                    let part = make.part(task, part, has_gate, body);
                    gate = has_gate.then(|| make.transfer(Gate::new(context, *id, &part)));
                    own.push(part.clone());
                    part
                }
                _ => steps.make(command),
            };
            nodes.push(Made { node, gate, command: Some(command) });
        }
        if own.is_empty() {
            // This node has no part in the task.
            let id = commands.last().map_or(TaskId(0), |command| TaskId(command.id.0));
            let node = Make { core, context, label: task.label, id }.empty(task.group);
            nodes.push(Made { node: node.clone(), gate: None, command: None });
            own.push(node);
        }
        // A body that no command needs is dropped outside the lock: it is the program's own.
        drop(bodies);
        for ((buffer, partials), lost) in partials.into_iter().zip(lost) {
            let reduction = Reduction { task: *id, label: task.label.clone(), partials, lost };
            self.reductions().add(buffer, reduction);
        }
        self.link(&nodes);
        own
    }

    /// Links nodes to their dependencies, counts them as submitted, and lets them go.
    fn link(&self, nodes: &[Made<'_>]) {
        let core = self.core;
        let mut counts = Vec::with_capacity(nodes.len());
        let mut copies = Vec::new();
        // Dropped outside the lock: errors are the program's own.
        let _forgotten = {
            let State { graphs, tasks, residents, .. } = &mut *core.state.lock();
            let forgotten = tasks.forget_some(graphs.live_mut(), || core.in_flight.count());
            for made in nodes {
                let Made { node, gate, .. } = made;
                let needs = match residents {
                    None => Predecessors::new(),
                    Some(residents) => self.prepare(residents, tasks, made, &mut copies),
                };
                let add = |copy: &Predecessor| u32::from(copy.node.add_successor(made.first(), copy.needs));
                let count = made.link_to(made.first(), tasks) + needs.iter().map(add).sum::<u32>();
                counts.push(count);
                if made.command.is_some() {
                    tasks.insert(node.clone());
                }
                core.count_submitted(node);
                gate.iter().for_each(|gate| core.count_submitted(gate));
            }
            forgotten
        };
        copies.iter().for_each(|(copy, count)| copy.finish_submission(*count, core));
        for (made, count) in nodes.iter().zip(counts) {
            let Made { node, gate, .. } = made;
            if let Some(gate) = gate {
                let count = u32::from(gate.add_successor(node, Needs::End));
                node.finish_submission(count, core);
            }
            made.first().finish_submission(count, core);
        }
        core.apply_recorded();
    }

    fn make(&self, command: &Command) -> Make<'_> {
        Make { core: self.core, context: self.context, label: self.task.label, id: TaskId(command.id.0) }
    }

    /// The version of an accessed buffer that the task uses.
    pub(super) fn version(&self, buffer: BufferId) -> u32 {
        let access = self.task.accesses.iter().position(|access| access.buffer == buffer);
        self.versions[access.expect("a task uses buffers that it accesses")]
    }

    fn reductions(&self) -> &Reductions {
        &self.core.several_nodes().expect("a runtime with several nodes").reductions
    }
}

/// The steps of a task that are no part of the program, while they are made. Several of them may share a
/// transfer.
struct Steps<'a> {
    planned: &'a Planned<'a>,
    buffers: &'a [Arc<dyn Stored>],
    objects: &'a [Kept],
    arrivals: SmallVec<[Arc<Arrival>; 2]>,
    exchanges: SmallVec<[Arc<Exchange>; 2]>,
    resolutions: SmallVec<[Arc<Resolution>; 2]>,
}

impl<'a> Steps<'a> {
    fn new(planned: &'a Planned<'a>, buffers: &'a [Arc<dyn Stored>], objects: &'a [Kept]) -> Self {
        let (arrivals, exchanges, resolutions) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        Self { planned, buffers, objects, arrivals, exchanges, resolutions }
    }

    fn make(&mut self, command: &Command) -> Node {
        let make = self.planned.make(command);
        match &command.kind {
            CommandKind::Push { buffer, exchange: Some(parts), .. }
            | CommandKind::AwaitPush { buffer, exchange: Some(parts), .. } => {
                make.transfer(TakePart(Some(self.exchange(command.task, *buffer, parts))))
            }
            CommandKind::Push { buffer, targets, .. } => make.transfer(Push(Some(Departure {
                context: Arc::clone(self.planned.context),
                task: command.task,
                buffer: self.buffer(*buffer),
                targets: Arc::clone(targets),
            }))),
            CommandKind::AwaitPush { buffer, region, .. } => {
                make.transfer(AwaitPush(Some((self.arrival(command.task, *buffer), region.clone()))))
            }
            CommandKind::PushPartials { buffer, everywhere: true, .. }
            | CommandKind::AwaitPartials { buffer, everywhere: true, .. } => {
                make.transfer(Gather(Some(self.resolution(command.task, *buffer))))
            }
            CommandKind::PushPartials { buffer, targets, .. } => {
                let resolution = Some(self.resolution(command.task, *buffer));
                make.transfer(Send { resolution, targets: Arc::clone(targets) })
            }
            CommandKind::AwaitPartials { buffer, .. } => {
                make.transfer(Await(Some(self.resolution(command.task, *buffer))))
            }
            CommandKind::Reduce { buffer, region, .. } => {
                let resolution = self.resolution(command.task, *buffer);
                make.reduce(resolution, self.buffer(*buffer), region.clone())
            }
            CommandKind::PassTurn { object, pass, targets } => {
                let turn = self.turn(command.task, *object, *pass);
                make.transfer(PassTurn(Some(turn), Arc::clone(targets)))
            }
            CommandKind::AwaitTurn { object, pass, messages } => {
                let turn = self.turn(command.task, *object, *pass);
                make.transfer(AwaitTurn(Some(turn), *messages))
            }
            CommandKind::Horizon => make.transfer(Nothing),
            CommandKind::Execute { .. } | CommandKind::Fence | CommandKind::Epoch => {
                unreachable!("a part of the task")
            }
        }
    }

    /// The version of a buffer that the task uses.
    fn buffer(&self, wanted: BufferId) -> Version {
        let buffer = self.buffers.iter().find(|buffer| buffer.id() == wanted);
        let buffer = Arc::clone(buffer.expect("a task moves buffers that it accesses"));
        Version { buffer, number: self.planned.version(wanted) }
    }

    /// The turn of a host object of the whole cluster.
    fn turn(&self, task: TaskId, wanted: ObjectId, pass: Pass) -> ObjectTurn {
        let object = self.objects.iter().find(|object| object.id == wanted);
        let object = object.expect("a task passes the turns of its own objects").clone();
        ObjectTurn::new(self.planned.context, object, task, pass)
    }

    /// What arrives for the task in a buffer.
    fn arrival(&mut self, task: TaskId, buffer: BufferId) -> Arc<Arrival> {
        if let Some(known) = self.arrivals.iter().find(|arrival| arrival.is_of(task, buffer)) {
            return Arc::clone(known);
        }
        let Planned { context, commands, .. } = self.planned;
        let arrival = Arrival::new(context, task, self.buffer(buffer), awaited(commands, task, buffer));
        self.arrivals.push(Arc::clone(&arrival));
        arrival
    }

    /// The exchange of these parts of a buffer for the task.
    fn exchange(
        &mut self,
        task: TaskId,
        buffer: BufferId,
        parts: &Arc<[(NodeId, Region<3>)]>,
    ) -> Arc<Exchange> {
        if let Some(known) = self.exchanges.iter().find(|exchange| exchange.is_of(task, buffer)) {
            return Arc::clone(known);
        }
        let Planned { context, commands, .. } = self.planned;
        let of = |command: &&Command| match &command.kind {
            CommandKind::Push { buffer: of, exchange: Some(_), .. }
            | CommandKind::AwaitPush { buffer: of, exchange: Some(_), .. } => {
                (command.task, *of) == (task, buffer)
            }
            _ => false,
        };
        let steps = commands.iter().filter(of).count();
        let exchange = Exchange::new(context, task, self.buffer(buffer), parts, steps);
        self.exchanges.push(Arc::clone(&exchange));
        exchange
    }

    /// The resolution of the reduction to a buffer, which the task reads.
    fn resolution(&mut self, task: TaskId, buffer: BufferId) -> Arc<Resolution> {
        if let Some(known) = self.resolutions.iter().find(|resolution| resolution.is_of(buffer)) {
            return Arc::clone(known);
        }
        let Planned { context, commands, .. } = self.planned;
        let reduction = self.planned.reductions().remove(buffer);
        let reduction = reduction.expect("a reduction is kept until a task reads it");
        let resolution = Resolution::new(context, reduction, task, buffer, commands);
        self.resolutions.push(Arc::clone(&resolution));
        resolution
    }
}

/// A node that is to be linked to its dependencies.
pub(super) struct Made<'a> {
    pub(super) node: Node,
    /// What comes between the node and its dependencies.
    gate: Option<Node>,
    /// A node without a command has no dependency.
    pub(super) command: Option<&'a Command>,
}

impl Made<'_> {
    /// The node that waits for the dependencies.
    fn first(&self) -> &Node {
        self.gate.as_ref().unwrap_or(&self.node)
    }

    /// Makes a node wait for the dependencies of the command. Returns for how many it has to wait.
    pub(super) fn link_to(&self, node: &Node, tasks: &LiveTasks) -> u32 {
        // The failures of what a step reads are found when it begins: see `poison`.
        let add = |before: &Node| u32::from(before.add_successor(node, Needs::End));
        let dependencies = self.command.iter().flat_map(|command| &command.dependencies);
        dependencies.filter_map(|dependency| tasks.get(TaskId(dependency.on.0)).map(add)).sum()
    }
}

/// The regions of a buffer that the commands await for a task.
fn awaited(commands: &[Command], task: TaskId, wanted: BufferId) -> impl Iterator<Item = &Region<3>> {
    commands.iter().filter_map(move |command| match &command.kind {
        CommandKind::AwaitPush { buffer, region, .. } if (command.task, *buffer) == (task, wanted) => {
            Some(region)
        }
        _ => None,
    })
}

/// Makes the node of a command.
struct Make<'a> {
    core: &'a Arc<Core>,
    context: &'a Arc<StepContext>,
    label: &'a TaskLabel,
    id: TaskId,
}

impl Make<'_> {
    fn node<B: Body>(&self, head: Head, has_gate: bool, body: B) -> Node {
        let (label, context) = (self.label.clone(), Arc::clone(self.context));
        Node::new(|| head, || Step { id: self.id, label, context, has_gate, body })
    }

    /// This node's part of the task.
    fn part<B: Body>(&self, task: &Submission<'_>, part: Part, has_gate: bool, body: B) -> Node {
        let mut head = task.head(self.id, self.core, None);
        head.part = Some(Box::new(part));
        self.node(head, has_gate, body)
    }

    /// An internal step, such as a transfer.
    fn transfer<B: Body>(&self, body: B) -> Node {
        self.node(self.step(Place::Transfer, None), false, body)
    }

    /// The step that combines the partial results of a reduction, labelled as the task that reduces.
    fn reduce(&self, resolution: Arc<Resolution>, buffer: Version, region: Region<3>) -> Node {
        let Reduction { task, label, partials, .. } = &resolution.reduction;
        let place = if partials.calls() <= INLINE_CALLS { Place::Inline } else { Place::Compute };
        let make = Make { label: &label.clone(), ..*self };
        let mut head = make.step(place, None);
        let (id, version) = buffer.key();
        let touch = Touch { buffer: id, version, region: region.clone(), mode: Mode::Write };
        head.part = Some(Box::new(Part {
            task: *task,
            node: self.context.cluster.node(),
            touches: smallvec![touch],
            effects: SmallVec::new(),
            partials: SmallVec::new(),
            writes: Writes::ByBody,
        }));
        make.node(head, false, Reduce(Some((resolution, buffer, region))))
    }

    /// The step of a node that has no part of the task.
    fn empty(&self, group: Option<&Arc<Group>>) -> Node {
        self.node(self.step(Place::Inline, group.cloned()), false, Nothing)
    }

    /// The head of an internal step. The cancellation of a group does not skip it.
    fn step(&self, place: Place, group: Option<Arc<Group>>) -> Head {
        let properties = Properties {
            label: self.label.clone(),
            place,
            observes: true,
            group,
            contention: None,
            queue: None,
        };
        self.core.head(self.id, properties).without_span()
    }
}
