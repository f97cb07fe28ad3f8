//! The model: runs a program one task after the other, and derives the effects of failures. It states the
//! runtime's promises as plain code.
//!
//! Timing decides which tasks a cancellation reaches before they begin, when a group is idle for the first
//! time, and whether a task is done when a callback is added. The model takes these three from the
//! observations. All other results follow from the program.

mod cancellations;
mod causes;
mod data;
mod faults;
mod groups;
mod in_parts;
mod nodes;
mod observation;
mod replays;
mod tasks;

#[allow(unused_imports, reason = "the fuzz target runs programs on the host")]
pub use self::faults::is_possible;
#[allow(unused_imports, reason = "the fuzz target runs programs on one node")]
pub use self::nodes::OnNodes;
pub use self::observation::{Captured, Fault, Observation, Observed, Refusal, Report, name};

use self::{
    cancellations::Cancellations,
    causes::{Causes, NotDone},
    data::{Buffer, Object},
    groups::Groups,
    nodes::Bound,
};
use crate::program::{
    CLUSTER_OBJECTS, CaptureSet, Compute, Fail, Host, OBJECTS, Order, Program, RANKS, Replays, Step, Weights,
    When, wrong_element,
};
use anabranch::{
    Status,
    grid::{GridBox, Region},
};

/// What one node does for a task.
struct Part {
    node: usize,
    /// With what it updates.
    reads: Vec<(usize, Region<3>)>,
    /// Of the buffer that the task writes.
    writes: Region<3>,
    /// Of a kernel.
    pieces: Vec<Piece>,
}

/// A piece of what a node does for a kernel. It fails or is skipped by itself, but only the status of all
/// pieces of the node is observed.
struct Piece {
    reads: Vec<(usize, Region<3>)>,
    writes: Region<3>,
    /// Whether it fails if it runs.
    fails: bool,
}

/// The declarations of a task.
struct Task<'p> {
    /// For each node that does something for it.
    parts: Vec<Part>,
    /// The nodes whose objects it touches.
    nodes: Vec<usize>,
    reads: Vec<(usize, Region<3>)>,
    writes: Vec<(usize, Region<3>)>,
    /// Whether it reads what it writes.
    update: bool,
    effects: &'p [(usize, Order)],
    /// Its effects on objects of the whole cluster.
    on_cluster: Vec<(usize, Order)>,
    fails: bool,
    /// The number of the device that it runs on.
    device: Option<usize>,
}

pub struct Model<'p> {
    program: &'p Program,
    seen: &'p [Observed],
    /// What each node has seen, if that is known: see [`OnNodes`].
    all: &'p [Vec<Observed>],
    buffers: Vec<Buffer>,
    /// This node.
    node: usize,
    /// The objects of each node.
    objects: Vec<[Object; OBJECTS + 1]>,
    /// The objects of the whole cluster, each with its home.
    cluster: [(Object, usize); CLUSTER_OBJECTS],
    weights: Weights,
    causes: Causes,
    nest: Vec<u64>,
    groups: Groups,
    /// Those of each node whose observations are known.
    cancellations: Vec<Cancellations>,
    /// For each step, what this node may see.
    bounds: Vec<Bound>,
}

impl<'p> Model<'p> {
    /// The observations that the model expects on a node; `seen` decides only what timing decides.
    pub fn expected(program: &'p Program, seen: &'p [Observed], node: u16) -> Vec<Observed> {
        let cancellations = vec![Cancellations::of(program, seen, node.into())];
        Self { cancellations, ..Self::new(program, seen, node) }.run()
    }

    fn new(program: &'p Program, seen: &'p [Observed], node: u16) -> Self {
        let buffers = program.buffers.iter().enumerate().map(|(slot, shape)| Buffer::new(slot, *shape));
        let nodes = program.setup.nodes.map_or(1, |nodes| nodes.count.into());
        Self {
            program,
            seen,
            all: &[],
            buffers: buffers.collect(),
            node: node.into(),
            objects: (0..nodes).map(|_| Default::default()).collect(),
            cluster: std::array::from_fn(|at| (Object::default(), if at == 0 { 0 } else { nodes - 1 })),
            weights: Weights::equal(nodes),
            causes: Causes::new(program.steps.len()),
            nest: vec![0; 4],
            groups: Groups::new(),
            cancellations: Vec::new(),
            bounds: vec![Bound::default(); program.steps.len()],
        }
    }

    fn run(&mut self) -> Vec<Observed> {
        let mut expected: Vec<_> = (0..self.program.steps.len()).map(|i| self.step(i)).collect();
        for (step, called) in self.groups.called(self.seen) {
            expected[step].called = called;
        }
        expected
    }

    /// The steps of a program that the runtime refuses, whatever the schedule.
    #[allow(dead_code, reason = "the fuzz target runs programs on one node")]
    pub fn refused(program: &Program) -> Vec<usize> {
        let nothing = Observed { what: Observation::Nothing, called: Vec::new(), passed_on: false };
        let expected = Model::expected(program, &vec![nothing; program.steps.len()], 0);
        let is_refused = |observed: &Observed| match &observed.what {
            Observation::Drained(result, _) => matches!(**result, Observation::Refused(_)),
            what => matches!(what, Observation::Refused(_)),
        };
        (0..expected.len()).filter(|&step| is_refused(&expected[step])).collect()
    }

    fn step(&mut self, i: usize) -> Observed {
        let program = self.program;
        let step = &program.steps[i];
        let (what, called) = match step {
            Step::Fence { set, when } | Step::Barrier { set, when } => {
                self.captures(i, set, *when, matches!(step, Step::Barrier { .. }))
            }
            Step::GroupDone { group, wait: true } => {
                (Observation::Report(self.report(0), None), vec![self.groups.status(*group)])
            }
            _ => {
                let what = self.plain(i, step);
                let calls = 1 + usize::from(matches!(step, Step::Host(host) if host.callback_panics));
                let called = match what {
                    Observation::Task(status, _) => vec![status; calls],
                    _ => Vec::new(),
                };
                (what, called)
            }
        };
        let may_pass_on = matches!(step, Step::Host(host) if host.callback_panics) && !called.is_empty();
        Observed { what, called, passed_on: may_pass_on && self.seen[i].passed_on }
    }

    /// The observation of a step that captures nothing.
    fn plain(&mut self, i: usize, step: &'p Step) -> Observation {
        match step {
            Step::Compute(compute) => self.compute(i, compute),
            Step::Reduce(reduction) => self.reduce(i, reduction),
            Step::Host(host) => self.host(i, host),
            Step::Parts(parts) => self.parts(i, parts),
            Step::Replays(replays) => self.replays(i, replays),
            Step::OnCluster(task) => self.on_cluster(i, task),
            Step::Nest { children, .. } => self.nest(i, *children),
            Step::InnerWait { .. } => self.inner_wait(i),
            Step::Wait(_) => Observation::Report(self.report(self.groups.current), None),
            Step::NestResult => Observation::Captured(Captured::Values(self.nest.clone())),
            Step::GroupReports => {
                Observation::GroupReports((1..=self.groups.count()).map(|group| self.report(group)).collect())
            }
            // The status of the task is checked against this answer.
            Step::CancelTask { .. } => self.seen[i].what.clone(),
            Step::Drain { set, .. } => self.drain(i, set),
            other => {
                self.change(i, other);
                Observation::Nothing
            }
        }
    }

    /// Executes a step that shows nothing.
    fn change(&mut self, i: usize, step: &Step) {
        match step {
            Step::Replace(slot, shape) => self.buffers[*slot] = Buffer::new(*slot, *shape),
            Step::ReplaceObject(object) => {
                self.objects.iter_mut().for_each(|objects| objects[*object] = Object::default());
            }
            Step::ReplaceCluster(object, home) => {
                self.cluster[*object] = (Object::default(), usize::from(*home) % self.objects.len());
            }
            Step::Discard(slot) => self.buffers[*slot].discard(),
            Step::Weights(number) => self.weights = Weights::drawn(*number, self.objects.len()),
            Step::Group(slot) => self.groups.choose(*slot),
            // On nodes the status of a group is not compared.
            Step::Cancel(slot, _) => _ = self.groups.cancel(*slot, true),
            Step::GroupDone { group, .. } => self.groups.add_callback(i, *group),
            Step::WaitForTask { .. } => {}
            other => unreachable!("{other:?} shows something"),
        }
    }

    /// Whether a task that fails in this way does fail.
    fn notices(&self, fail: Option<Fail>) -> bool {
        fail.is_some_and(|fail| !fail.is_wrong_write() || self.program.setup.checked)
    }

    /// Takes the failures of a group.
    fn report(&mut self, group: usize) -> Option<Report> {
        let Self { groups, program, causes, seen, .. } = self;
        groups.report(group, |failed| match failed.is_callback {
            true => format!("{}: callback", name(failed.step)),
            false if causes.is_on_device(failed.step) => seen[failed.step].chain()[0].clone(),
            false => described(program, causes, failed.step),
        })
    }

    /// Begins a task, and returns its result. The caller executes the parts that are done.
    fn begin(&mut self, i: usize, task: &Task) -> Observation {
        if let Some(refusal) = self.refused_by_device(i, task).or_else(|| self.check(task).err()) {
            return Observation::Refused(refusal);
        }
        let mut needs = self.needs(&task.reads);
        if task.update {
            needs.extend(self.needs(&task.writes));
        }
        for &(object, order) in task.effects {
            let objects = task.nodes.iter().map(|node| &self.objects[*node][object]);
            needs.extend(objects.flat_map(|object| object.needs(order == Order::Sequential)));
        }
        for &(object, order) in &task.on_cluster {
            needs.extend(self.cluster[object].0.needs(order == Order::Sequential));
        }
        let not_done = self.not_done(i, &needs, task);
        self.bound_statuses(i, task, !needs.is_empty());
        self.causes.set(i, not_done);
        if let Some((failed, is_skipped)) = self.causes.reported(i) {
            self.groups.add_failure(i, failed, is_skipped);
        } else if not_done.is_some() && self.causes.is_by_copy(i) {
            self.groups.add_skipped(i);
        }
        self.finish(i, task, not_done.map(|_| i));
        let status = match not_done {
            None => return done(),
            Some(NotDone::Failed | NotDone::OnDevice) => Status::Failed,
            Some(NotDone::Cancelled | NotDone::ReplaysCancelled) => Status::Cancelled,
            Some(NotDone::Skipped { .. } | NotDone::Copy { .. }) => Status::Skipped,
        };
        Observation::Task(status, self.chain(i))
    }

    /// Marks what the task writes and touches as good, or as poisoned by this step.
    fn finish(&mut self, i: usize, task: &Task, poison: Option<usize>) {
        for (to, region) in &task.writes {
            for point in region.boxes().iter().flat_map(|range| range.points()) {
                let at = self.buffers[*to].at(point.0);
                let cell = &mut self.buffers[*to].cells[at];
                (cell.written, cell.poison) = (true, poison);
            }
        }
        self.lose(i, task);
        // A task that was cancelled before it began leaves its objects as they are.
        let poison = poison.filter(|&step| !self.causes.leaves_objects(step));
        for &node in &task.nodes {
            let poison = poison.filter(|_| !self.has_done(i, node));
            let has_failed = self.has_status(i, node, Status::Failed);
            for &(object, order) in task.effects {
                let object = &mut self.objects[node][object];
                object.lost |= has_failed;
                object.poison(order, poison);
            }
        }
        self.poison_cluster(i, task, poison);
    }

    /// A task breaks the objects of the whole cluster, for all nodes, if one of its parts has failed or was
    /// skipped. A part that was skipped because of a cancellation may leave them as they are.
    fn poison_cluster(&mut self, i: usize, task: &Task, poison: Option<usize>) {
        let nodes = || task.parts.iter().map(|part| part.node);
        let cancels = self.program.setup.nodes.is_none_or(|nodes| nodes.cancels);
        let breaks = |status| nodes().any(|node| self.has_status(i, node, status));
        let has_failed = breaks(Status::Failed) || !cancels && breaks(Status::Skipped);
        let poison = poison.filter(|_| !nodes().all(|node| self.has_done(i, node)));
        for &(object, order) in &task.on_cluster {
            let object = &mut self.cluster[object].0;
            object.lost |= has_failed;
            object.poison(order, poison);
        }
    }

    /// Checks the declaration of a task.
    fn check(&self, task: &Task) -> Result<(), Refusal> {
        if task.reads.iter().chain(&task.writes).any(|(slot, region)| self.is_outside(*slot, region)) {
            return Err(Refusal::Outside);
        }
        let read = task.reads.iter().chain(task.writes.iter().filter(|_| task.update));
        self.written(read)
    }

    fn is_outside(&self, slot: usize, region: &Region<3>) -> bool {
        let whole = self.buffers[slot].shape.whole();
        !region.boxes().iter().all(|range| whole.contains(range))
    }

    fn written<'a>(&self, read: impl IntoIterator<Item = &'a (usize, Region<3>)>) -> Result<(), Refusal> {
        for (slot, region) in read {
            if !self.buffers[*slot].cells(region).all(|cell| cell.written) {
                return Err(Refusal::NeverWritten);
            }
        }
        Ok(())
    }

    fn needs(&self, read: &[(usize, Region<3>)]) -> Vec<usize> {
        let cells = read.iter().flat_map(|(slot, region)| self.buffers[*slot].cells(region));
        cells.filter_map(|cell| cell.poison).collect()
    }

    /// How the step ends if it does not succeed.
    fn not_done(&self, i: usize, needs: &[usize], task: &Task) -> Option<NotDone> {
        if !self.all.is_empty() {
            return self.not_done_on_nodes(i, needs, task);
        }
        let skipped = self.causes.skipped(needs);
        if let Some(not_done) = self.by_device(i, needs, task).or(skipped) {
            return Some(not_done);
        }
        let Cancellations { may, must } = &self.cancellations[0];
        let was_cancelled = matches!(self.seen[i].what, Observation::Task(Status::Cancelled, _));
        if must[i] || was_cancelled && may[i] {
            let has_begun = !must[i] && self.seen_chain(i) == [in_replays(i)];
            return Some(if has_begun { NotDone::ReplaysCancelled } else { NotDone::Cancelled });
        }
        task.fails.then_some(NotDone::Failed)
    }

    fn chain(&self, step: usize) -> Vec<String> {
        let causes = &self.causes;
        let steps: Vec<_> = causes.chain(step).collect();
        let root = *steps.last().expect("the step itself");
        let described = |step| match causes.is_on_device(step) {
            true => self.seen_chain(step)[0].clone(),
            false => described(self.program, causes, step),
        };
        let copies = if causes.is_by_copy(root) { &self.seen_chain(root)[1..] } else { &[] };
        steps.into_iter().map(described).chain(copies.iter().cloned()).collect()
    }

    fn capture(&mut self, i: usize, set: &CaptureSet) -> Result<Captured, Refusal> {
        let parts: Vec<_> = set.parts().into_iter().map(|(slot, part)| (slot, Region::from(part))).collect();
        let of_node = |node| {
            let whole = |slot: usize| self.buffers[slot].shape.whole();
            let part = set.part_of(node, self.objects.len(), whole);
            part.map(|(slot, part)| (slot, Region::from(part)))
        };
        // A part of another node that was never written is an error here, too.
        let all: Vec<_> = parts.iter().cloned().chain((0..self.objects.len()).filter_map(of_node)).collect();
        self.written(&all)?;
        let parts: Vec<_> = parts.into_iter().chain(of_node(self.node)).collect();
        let values = self.values(set, &parts);
        self.bounds[i].values.clone_from(&values);
        let mut needs = self.needs(&parts);
        let objects = &self.objects[self.node];
        needs.extend(set.objects().into_iter().flat_map(|object| objects[object].needs(true)));
        needs.extend(set.of_cluster().into_iter().flat_map(|object| self.cluster[object].0.needs(true)));
        let slots: Vec<_> = parts.iter().map(|(slot, _)| *slot).collect();
        if let Some(chain) = self.not_captured(i, &slots, &needs) {
            return Ok(Captured::Failed(chain));
        }
        // Of a long chain the failure of the capture has lost a link.
        if let Some(NotDone::Skipped { needs, .. }) = self.causes.skipped(&needs) {
            return Ok(Captured::Failed(self.chain(needs)));
        }
        Ok(Captured::Values(values.expect("what nothing poisons is there")))
    }

    /// The values of a capture on this node, if all of them are there.
    fn values(&self, set: &CaptureSet, parts: &[(usize, Region<3>)]) -> Option<Vec<u64>> {
        let (objects, cells) = (set.objects().into_iter(), |(slot, region): &(usize, _)| {
            self.buffers[*slot].cells(region).copied().collect::<Vec<_>>()
        });
        let objects = objects.map(|object| &self.objects[self.node][object]);
        let of_cluster = set.of_cluster().map(|object| &self.cluster[object]);
        if of_cluster.is_some_and(|(object, _)| object.lost) {
            return None;
        }
        let here = of_cluster.filter(|(_, home)| *home == self.node).map(|(object, _)| object);
        let objects: Vec<_> = objects.chain(here).collect();
        let cells: Vec<_> = parts.iter().flat_map(cells).collect();
        let is_there = objects.iter().all(|object| !object.lost) && cells.iter().all(|cell| !cell.lost);
        let numbers = objects.into_iter().flat_map(Object::numbers);
        is_there.then(|| numbers.chain(cells.into_iter().map(|cell| cell.value)).collect())
    }

    /// The observation of a fence or a barrier, and the calls of its callback.
    fn captures(
        &mut self,
        i: usize,
        set: &CaptureSet,
        when: When,
        is_barrier: bool,
    ) -> (Observation, Vec<Status>) {
        let captured = match self.capture(i, set) {
            Err(refusal) => return (Observation::Refused(refusal), Vec::new()),
            Ok(captured) => captured,
        };
        let called = match captured {
            Captured::Values(_) => Status::Done,
            Captured::Failed(_) => Status::Skipped,
        };
        let what = match when {
            When::Never | When::Polled => Observation::Nothing,
            When::Now | When::Awaited if is_barrier => self.reported(self.groups.current, captured),
            _ => Observation::Captured(captured),
        };
        (what, vec![called])
    }

    /// The observation of a wait that reports the failures of a group, and otherwise gives what it has
    /// captured.
    fn reported(&mut self, group: usize, captured: Captured) -> Observation {
        match (self.report(group), captured) {
            (Some(report), _) => Observation::Report(Some(report), None),
            // A report of one failure and a failed capture with a chain of one link look the same.
            (None, Captured::Failed(chain)) if chain.len() == 1 => {
                Observation::Report(Some(Report { listed: chain, ..Report::default() }), None)
            }
            (None, captured) => Observation::Report(None, Some(captured)),
        }
    }

    fn drain(&mut self, i: usize, set: &CaptureSet) -> Observation {
        let result = match (self.report(0), self.capture(i, set)) {
            (Some(report), _) => Observation::Report(Some(report), None),
            (None, Err(refusal)) => Observation::Refused(refusal),
            (None, Ok(captured)) => self.reported(0, captured),
        };
        let is_whole = matches!(result, Observation::Report(None, Some(Captured::Values(_))));
        let seen = match &self.seen[i].what {
            Observation::Drained(_, kept) if !is_whole => &kept[..],
            _ => &[],
        };
        let objects = set.objects().into_iter().map(|object| &self.objects[self.node][object]);
        let objects = objects.chain(set.of_cluster().map(|object| &self.cluster[object].0));
        let kept = objects.enumerate().filter(|_| !is_whole).map(|(at, object)| {
            match object.needs(true).is_empty() {
                true => Some(object.numbers().to_vec()),
                // A task that failed may have left anything there.
                false => seen.get(at).cloned().flatten(),
            }
        });
        Observation::Drained(Box::new(result), kept.collect())
    }
}

fn done() -> Observation {
    Observation::Task(Status::Done, Vec::new())
}

/// The name of a step, and what it did wrong if it failed because of what it wrote.
fn described(program: &Program, causes: &Causes, step: usize) -> String {
    let (fail, slot, rank, target) = match &program.steps[step] {
        Step::Compute(Compute { fail, to, target, .. }) => (*fail, *to, RANKS[*to], *target),
        Step::Host(host @ Host { fail, to, .. }) => (*fail, *to, RANKS[*to], host.target()),
        Step::Replays(_) if causes.has_begun(step) => return in_replays(step),
        Step::Replays(replays) if causes.has_failed(step) => {
            let (place, replay) = replays.failure().expect("it fails by itself");
            return format!("{} in replay {replay}, {}", name(step), Replays::name(place));
        }
        _ => return name(step),
    };
    let element = wrong_element(&target).filter(|_| causes.has_failed(step));
    let element = element.map(|p| element_of(rank, p));
    match (fail, element) {
        (Some(Fail::Unwritten), Some(element)) => format!("{} left {element} of slot {slot}", name(step)),
        (Some(Fail::ReadFirst), Some(element)) => format!("{} read {element} of slot {slot}", name(step)),
        _ => name(step),
    }
}

fn in_replays(step: usize) -> String {
    format!("{} in its replays", name(step))
}

/// How a message writes an element of a buffer of this rank.
fn element_of(rank: usize, point: [usize; 3]) -> String {
    let element = GridBox::new(point, point.map(|i| i + 1));
    match rank {
        0 => element.cast::<0>().to_string(),
        1 => element.cast::<1>().to_string(),
        2 => element.cast::<2>().to_string(),
        _ => element.to_string(),
    }
}
