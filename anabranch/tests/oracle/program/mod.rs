//! Random programs. Any sequence of bytes is a program, so that random numbers and fuzzers make programs.
//! Each record of [`RECORD`] bytes is one step, or a few that belong together; removing a record removes
//! these steps.

mod choices;
mod patterns;
mod places;
mod profile;
mod setup;
mod turns;
mod values;
mod weights;

#[allow(unused_imports, reason = "the fuzz target runs programs on one node")]
pub use self::setup::Nodes;
pub use self::{
    patterns::{ReadPattern, Split, WritePattern},
    places::Place,
    setup::Setup,
    turns::Turns,
    values::{Op, computed, initial, mix, padded, reduced_into},
    weights::Weights,
};

use self::choices::Choices;
use anabranch::prelude::*;
use std::sync::Arc;

/// The number of bytes of a record. The first record describes the initial buffers.
pub const RECORD: usize = 20;
/// The rank of each buffer slot. Host tasks write buffers of one dimension.
pub const RANKS: [usize; 6] = [0, 1, 1, 2, 2, 3];
/// The other slot of the same rank, of one with one or two dimensions.
fn pair(slot: usize) -> usize {
    if slot % 2 == 1 { slot + 1 } else { slot - 1 }
}

/// The number of host objects that programs use. One more, at index `NEST`, orders tasks that submit tasks.
pub const OBJECTS: usize = 2;
pub const NEST: usize = OBJECTS;
/// How often tasks are repeated. The task graph recalls what it has seen often enough.
const PASSES: usize = 24;
/// The number of objects of the whole cluster.
pub const CLUSTER_OBJECTS: usize = 2;
/// For each slot of groups, the slot of the group that it is nested in.
pub const GROUPS: [Option<usize>; 4] = [None, Some(0), Some(1), None];

/// Whether the group in this slot is nested in the group in the other one, directly or not, or is that group.
pub fn is_within(group: usize, other: usize) -> bool {
    std::iter::successors(Some(group), |group| GROUPS[*group]).any(|group| group == other)
}

/// The arguments with which a buffer is created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub rank: usize,
    pub extent: [usize; 3],
    pub versions: usize,
    pub initialised: bool,
}

impl Shape {
    pub fn whole(&self) -> GridBox<3> {
        GridBox::full(self.extent)
    }
}

/// How a task fails on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fail {
    Panic,
    Error,
    /// It leaves an element unwritten that it declared to write. Only a checked runtime notices.
    Unwritten,
    /// It computes an element that it declared to write from what was there before. Only a checked runtime
    /// notices.
    ReadFirst,
}

impl Fail {
    /// Whether the task is wrong about what it writes.
    pub fn is_wrong_write(self) -> bool {
        matches!(self, Self::Unwritten | Self::ReadFirst)
    }
}

/// The element about which a task is wrong, of those that it declared to write, if there are any.
pub fn wrong_element(target: &GridBox<3>) -> Option<[usize; 3]> {
    let (min, max) = (target.min(), target.max());
    (!target.is_empty()).then(|| std::array::from_fn(|d| min[d] + (max[d] - min[d]) / 2))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Sequential,
    Exclusive,
    Relaxed,
}

/// The captures of a fence, a barrier or a drain: boxes of buffers, and objects.
#[derive(Clone, Debug)]
pub enum CaptureSet {
    Nothing,
    Part(usize, GridBox<3>),
    Parts([(usize, GridBox<3>); 2]),
    Object(usize),
    Objects,
    /// An object, whose `Clone` may be slow, and then a part of a buffer.
    Both(usize, usize, GridBox<3>),
    /// An object of the whole cluster.
    Cluster(usize),
    /// An object of the whole cluster, and then a part of a buffer.
    ClusterAndPart(usize, usize, GridBox<3>),
    /// Parts of a buffer for nodes, which take them in turn.
    OfNodes(usize, [GridBox<3>; 3]),
    /// A whole buffer, for this node, modulo the number of nodes.
    On(usize, u16),
}

impl CaptureSet {
    /// The parts that all nodes capture.
    pub fn parts(&self) -> Vec<(usize, GridBox<3>)> {
        match self {
            Self::Part(slot, part) | Self::Both(_, slot, part) | Self::ClusterAndPart(_, slot, part) => {
                vec![(*slot, *part)]
            }
            Self::Parts(parts) => parts.to_vec(),
            _ => Vec::new(),
        }
    }

    pub fn objects(&self) -> Vec<usize> {
        match self {
            Self::Object(object) | Self::Both(object, ..) => vec![*object],
            Self::Objects => vec![0, 1],
            _ => Vec::new(),
        }
    }

    /// What this node captures of a buffer, if each of `nodes` captures another part. `whole` is all of the
    /// buffer.
    pub fn part_of(
        &self,
        node: usize,
        nodes: usize,
        whole: impl Fn(usize) -> GridBox<3>,
    ) -> Option<(usize, GridBox<3>)> {
        match self {
            Self::OfNodes(slot, parts) => Some((*slot, parts[node % parts.len()])),
            Self::On(slot, on) => (usize::from(*on) % nodes == node).then(|| (*slot, whole(*slot))),
            _ => None,
        }
    }

    /// Whether all nodes capture the same, but for objects of the whole cluster.
    #[allow(dead_code, reason = "the fuzz target runs programs on one node")]
    pub fn is_the_same_on_all(&self) -> bool {
        !matches!(self, Self::OfNodes(..) | Self::On(..)) && self.objects().is_empty()
    }

    /// The object of the whole cluster.
    pub fn of_cluster(&self) -> Option<usize> {
        match self {
            Self::Cluster(object) | Self::ClusterAndPart(object, ..) => Some(*object),
            _ => None,
        }
    }
}

/// A kernel from one buffer to another.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    pub from: usize,
    pub read_pattern: ReadPattern,
    pub to: usize,
    pub target: GridBox<3>,
    pub write_pattern: WritePattern,
    /// Whether the mappers are those of the library, if it has them. The runtime knows these, and does more
    /// with them.
    pub built_in: bool,
    pub update: bool,
    pub split: Split,
    /// The node that executes all of it, modulo the number of nodes. Without it, all nodes share the index
    /// space.
    pub node: Option<u16>,
    pub fail: Option<Fail>,
    /// A number that says on which device it runs, if the setup has devices and the kernel can run there.
    pub place: usize,
}

/// A reduction of one buffer into another.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    pub from: usize,
    pub space: GridBox<3>,
    pub to: usize,
    pub op: Op,
    pub include: bool,
    pub split: Split,
    /// As in [`Compute`].
    pub node: Option<u16>,
    pub fail: bool,
    /// As in [`Compute`].
    pub place: usize,
}

/// A host task that reads a buffer, writes a part of a one-dimensional one and touches objects.
#[derive(Clone, Debug)]
pub struct Host {
    pub from: usize,
    pub to: usize,
    pub part: [usize; 2],
    pub update: bool,
    pub effects: Vec<(usize, Order)>,
    pub fail: Option<Fail>,
    pub slow: bool,
    pub blocking: bool,
    pub priority: i32,
    /// Whether it has one more callback, which panics.
    pub callback_panics: bool,
    /// The node that runs it, modulo the number of nodes.
    pub node: u16,
}

impl Host {
    pub fn target(&self) -> GridBox<3> {
        let [min, max] = self.part;
        GridBox::new([min, 0, 0], [max, 1, 1])
    }
}

/// A sequence of kernels between buffers of one and two dimensions, which is recorded and then replayed.
#[derive(Clone, Debug)]
pub struct Replays {
    pub body: Vec<Compute>,
    pub replays: u64,
    /// The place of a kernel in the body, and the replay in which it fails.
    pub fails: Option<(usize, u64)>,
    /// A reduction after the kernels, if there is one.
    pub sum: Option<Reduction>,
    /// The effect of a host task at the end of the body, if there is one. It is sequential.
    pub effects: Vec<(usize, Order)>,
}

impl Replays {
    /// The failure that ends the replays.
    pub fn failure(&self) -> Option<(usize, u64)> {
        self.fails.filter(|(_, replay)| *replay < self.replays)
    }

    /// The seed of the values of the task of the body at this place, in a replay.
    pub fn seed(step: usize, place: usize, replay: u64) -> usize {
        step ^ (place + 1) << 16 ^ (replay as usize) << 24
    }

    /// The name of a task of the body.
    pub fn name(place: usize) -> String {
        format!("task {place}")
    }
}

/// A host task with a part for each node. It reads a one-dimensional buffer and writes another one, whose
/// elements are divided over the index space, and touches this node's part of an object.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub from: usize,
    pub to: usize,
    /// The size of the index space; `None` for a collective task, which has a point for each node.
    pub rows: Option<usize>,
    pub update: bool,
    pub effect: Option<(usize, Order)>,
    pub slow: bool,
}

/// A host task with effects on objects of the whole cluster. It reads a one-dimensional buffer and writes
/// another one.
#[derive(Clone, Copy, Debug)]
pub struct OnCluster {
    pub object: usize,
    /// Whether a task in parts has an effect on the other object, too.
    pub both: bool,
    pub runs: Runs,
    pub from: usize,
    pub to: usize,
    pub update: bool,
    pub slow: bool,
    /// The node whose part fails, modulo the number of nodes, if it has one. A task that runs once fails
    /// wherever it runs.
    pub fail: Option<u16>,
}

/// Where a task with effects on objects of the whole cluster runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Runs {
    /// On the home of its object.
    Once(Order),
    Collective,
    /// In parts of an index space of this size, all of them on one node if there is one, modulo the number of
    /// nodes.
    Over {
        rows: usize,
        node: Option<u16>,
    },
}

impl OnCluster {
    pub fn is_once(&self) -> bool {
        matches!(self.runs, Runs::Once(_))
    }

    pub fn order(&self) -> Order {
        if let Runs::Once(order) = self.runs { order } else { Order::Sequential }
    }

    pub fn objects(&self) -> Vec<usize> {
        let other = CLUSTER_OBJECTS - 1 - self.object;
        if self.both && !self.is_once() { vec![self.object, other] } else { vec![self.object] }
    }
}

/// A subset of the nodes.
#[derive(Clone, Copy, Debug)]
pub struct Subset(pub u8);

impl Subset {
    pub const ALL: Self = Self(0);

    pub fn contains(self, node: usize) -> bool {
        self.0.is_multiple_of(3) || self.0 >> (node % 8) & 1 == 1
    }
}

/// Where a task calls something that waits: on its own thread, on the threads that a construct of `par` uses,
/// in a callback at its end, or in the waker of a future that waits for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Construct {
    Task,
    Loop,
    LoopInLoop,
    Join,
    Scope,
    Job,
    Callback,
    Waker,
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Wait,
    Idle,
    Fence,
    Barrier,
    GroupWait,
    GroupIdle,
    Handle,
}

/// When a fence or a barrier is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// By the thread that has submitted it, at once.
    Now,
    /// As a future, at once.
    Awaited,
    /// At the end of the program.
    Later,
    /// Never: it is dropped.
    Never,
    /// Never: it is polled once as a future and then dropped. A barrier is not polled.
    Polled,
}

/// How a thread waits for all tasks of a group or runtime.
#[derive(Clone, Copy, Debug)]
pub enum WaitFor {
    Wait,
    Idle,
    /// As a future.
    Awaited,
}

#[derive(Clone, Debug)]
pub enum Step {
    Compute(Compute),
    Reduce(Reduction),
    Host(Host),
    Parts(Parts),
    Replays(Replays),
    OnCluster(OnCluster),
    /// A host task that submits tasks, itself or in a callback at its end.
    Nest {
        children: usize,
        in_callback: bool,
    },
    /// A host task that calls something that waits. The answer must be an error.
    InnerWait {
        construct: Construct,
        call: Call,
    },
    Fence {
        set: CaptureSet,
        when: When,
    },
    Barrier {
        set: CaptureSet,
        when: When,
    },
    /// Waits for all tasks of the current group.
    Wait(WaitFor),
    /// Waits for one of the last tasks. Its callback must have been called then.
    WaitForTask {
        back: usize,
    },
    /// Submits later steps to the group in this slot, or to none.
    Group(Option<usize>),
    /// Cancels a group and those in it, and makes new ones in their place. Later steps still go to the
    /// cancelled one until there is another `Group`.
    Cancel(usize, Subset),
    /// Cancels one of the last tasks.
    CancelTask {
        back: usize,
        on: Subset,
    },
    /// Adds a callback to a group. With `wait`, waits for all tasks until it has been called.
    GroupDone {
        group: usize,
        wait: bool,
    },
    /// Drops a buffer and makes another one in its place.
    Replace(usize, Shape),
    ReplaceObject(usize),
    /// Drops an object of the whole cluster, and makes another one with this home, modulo the number of
    /// nodes.
    ReplaceCluster(usize, u16),
    /// Discards the contents of a buffer.
    Discard(usize),
    /// Sets the weights of the nodes, which follow from this number: see [`Weights::drawn`].
    Weights(u8),
    /// Reads the results of tasks that were submitted by tasks.
    NestResult,
    /// The failures that are left in all groups.
    GroupReports,
    /// Ends the runtime.
    Drain {
        set: CaptureSet,
        awaited: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Program {
    pub setup: Setup,
    pub buffers: [Shape; RANKS.len()],
    pub steps: Vec<Step>,
    /// What the nodes of this process have done.
    pub turns: Arc<Turns>,
}

impl Program {
    /// Decodes a program.
    pub fn from_bytes(bytes: &[u8], setup: Setup) -> Self {
        let mut records = bytes.chunks(RECORD);
        let first = records.next().unwrap_or_default();
        let mut choices = Choices(first);
        let buffers = RANKS.map(|rank| choices.shape(rank));
        let mut shapes = buffers;
        let mut steps = Vec::new();
        for record in records {
            let drawn = Choices(record).steps(&mut shapes);
            for step in drawn.into_iter().filter_map(|step| profile::allowed(&setup, step)) {
                let again = if setup.checked { None } else { corrected(&step) };
                steps.push(step);
                steps.extend(again);
            }
            if setup.nodes.is_none() {
                steps.extend(repeated(record, &steps));
            }
        }
        // The last byte of the first record is not used for the buffers.
        let bits = first.get(RECORD - 1).copied().unwrap_or_default();
        let drains = setup.is_alone()
            && setup.faults.is_none()
            && !setup.nodes.is_some_and(|nodes| nodes.fails || nodes.cancels);
        let at_once = drains && bits & 1 == 1;
        steps.push(Step::Group(None));
        if !at_once {
            steps.extend(ending(&shapes));
        }
        if drains {
            let set = Choices(&[bits >> 4, bits >> 3, bits]).capture_set(&shapes);
            steps.extend([Step::Drain { set, awaited: bits & 2 == 2 }, Step::GroupReports]);
        }
        Self { setup, buffers, steps, turns: Arc::default() }
    }
}

/// After a few of the records, the last tasks again and again: often enough for the task graph to recognise
/// them and to replay them. With several nodes it does not.
fn repeated(record: &[u8], steps: &[Step]) -> Vec<Step> {
    // These bytes are not used for the steps of a record.
    let [.., length, 0..4] = record else { return Vec::new() };
    let first = steps.len().saturating_sub(1 + usize::from(*length) % 3);
    let is_task = |step: &&Step| {
        matches!(
            step,
            Step::Compute(_) | Step::Reduce(_) | Step::Host(_) | Step::Parts(_) | Step::OnCluster(_)
        )
    };
    // A task that leaves something wrong must not be the last one.
    let is_right = |step: &&Step| corrected(step).is_none();
    let pass: Vec<Step> = steps[first..].iter().filter(is_task).filter(is_right).cloned().collect();
    // Some stop in the middle of a pass.
    let submissions = PASSES * pass.len() - usize::from(*length) / 3 % pass.len().max(1);
    pass.into_iter().cycle().take(submissions).collect()
}

/// The same task without its mistake. A runtime that does not check tasks does not say what a task leaves
/// that is wrong about what it writes, so there such a task is followed by the right one.
fn corrected(step: &Step) -> Option<Step> {
    let mut step = step.clone();
    let fail = match &mut step {
        Step::Compute(compute) => &mut compute.fail,
        Step::Host(host) => &mut host.fail,
        _ => return None,
    };
    fail.take_if(|fail| fail.is_wrong_write()).map(|_| step)
}

/// At the end, a program reads all buffers and objects.
fn ending(shapes: &[Shape]) -> Vec<Step> {
    // The second wait is for tasks that were submitted by tasks.
    let mut steps = vec![Step::Wait(WaitFor::Wait), Step::Wait(WaitFor::Wait), Step::GroupReports];
    let part = |slot: usize| CaptureSet::Part(slot, shapes[slot].whole());
    let sets = (0..shapes.len()).map(part).chain((0..OBJECTS).map(CaptureSet::Object));
    let sets = sets.chain((0..CLUSTER_OBJECTS).map(CaptureSet::Cluster));
    steps.extend(sets.map(|set| Step::Fence { set, when: When::Now }));
    steps.extend([Step::NestResult, Step::Wait(WaitFor::Wait)]);
    steps
}
