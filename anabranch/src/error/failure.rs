//! Failures of tasks: why a task failed, and the chain of causes back to the first failure.
//!
//! A task that needs the results of a failed task is skipped. The failure of the skipped task points to the
//! failure that it follows from. That makes a *chain*, which ends at its *root*: the task that failed by
//! itself. Of a long chain both ends are kept, and the number of links between them.

use super::nodes::NodeError;
use crate::label::TaskLabel;
use anabranch_graph::TaskId;
use anabranch_par::discard_payload;
use std::{
    any::Any,
    error::Error as StdError,
    fmt, mem,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The tasks that have failed since the last synchronisation, in the order of their submission.
#[derive(Clone)]
pub struct Failures {
    pub(crate) first: Arc<Failure>,
    pub(crate) others: Vec<Arc<Failure>>,
    pub(crate) omitted: u64,
    pub(crate) skipped: u64,
}

impl Failures {
    /// The failures, oldest task first; never empty.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        std::iter::once(&self.first).chain(&self.others).map(|f| &**f)
    }

    /// The number of newer failures that are not listed: a report has a bounded length.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The number of tasks that were skipped because they need results of the failed tasks. With
    /// [several nodes](crate::guide::nodes), each node's part of a task counts.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for other in &self.others {
            write!(f, "; {other}")?;
        }
        if self.omitted > 0 {
            write!(f, "; and {} more", self.omitted)?;
        }
        let are_parts = self.first.node.is_some();
        match (self.skipped, are_parts) {
            (0, _) => Ok(()),
            (1, false) => write!(f, " (1 task that depends on a failed task was skipped)"),
            (1, true) => write!(f, " (1 part of a task that depends on a failed task was skipped)"),
            (n, false) => write!(f, " ({n} tasks that depend on failed tasks were skipped)"),
            (n, true) => write!(f, " ({n} parts of tasks that depend on failed tasks were skipped)"),
        }
    }
}

// By hand: `thiserror` would give the `Arc` as the source, which programs could not downcast to a `Failure`.
impl StdError for Failures {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.first)
    }
}

/// A failed task, and why it failed.
#[derive(thiserror::Error)]
#[error("{task} failed{}: {cause}", on_node(*.node))]
pub struct Failure {
    /// Orders failures by the submission of their tasks.
    pub(crate) id: TaskId,
    /// With several nodes: the one whose part of the task failed.
    pub(crate) node: Option<u16>,
    /// Whether a call has returned it to the program.
    given: AtomicBool,
    /// The task.
    pub task: TaskLabel,
    /// Why it failed.
    #[source]
    pub cause: Cause,
}

impl Failure {
    pub(crate) fn new(id: TaskId, task: TaskLabel, cause: Cause) -> Self {
        Self { id, node: None, given: AtomicBool::new(false), task, cause }
    }

    /// The same failure, of this node's part of the task.
    pub(crate) fn on(self, node: Option<u16>) -> Self {
        Self { node, ..self }
    }

    /// With [several nodes](crate::guide::nodes): the node whose part of the task failed. A failure that has
    /// come from another node has the words of that node, and an error of the program only its messages.
    pub fn node(&self) -> Option<u16> {
        self.node
    }

    /// Whether both are the same failure. One of another node may have come several times.
    pub(crate) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let is_same_cause = || match (&self.cause, &other.cause) {
            (Cause::Callback { message }, Cause::Callback { message: another }) => message == another,
            (one, another) => mem::discriminant(one) == mem::discriminant(another),
        };
        // The copies for a task on a device have its id.
        let of = |failure: &Self| (failure.id, failure.node, failure.task.name.clone());
        let is_same_part = || self.node.is_some() && of(self) == of(other);
        Arc::ptr_eq(self, other) || is_same_part() && is_same_cause()
    }

    /// Notes that a call returns this failure to the program, and the failures that it follows from.
    pub(crate) fn mark_given(&self) {
        self.chain().for_each(|failure| failure.given.store(true, Relaxed));
        if let Cause::Skipped { root, .. } = &self.cause {
            root.given.store(true, Relaxed);
        }
    }

    /// Whether a call has returned this failure to the program.
    pub(crate) fn is_given(&self) -> bool {
        self.given.load(Relaxed)
    }

    /// The failure at the end of the chain; the failure itself, unless the task was skipped.
    pub fn root(self: &Arc<Self>) -> &Arc<Self> {
        match &self.cause {
            Cause::Skipped { root, .. } => root,
            _ => self,
        }
    }

    /// The order in which failures count if a task needs the results of several failed tasks: the one with
    /// the oldest root, and of those with one root the oldest. A cancellation gives way to a failure, which
    /// concerns more of the later tasks, and one before the task began to one after that.
    ///
    /// With several nodes, all of them have the same answer.
    pub(crate) fn age(self: &Arc<Self>) -> impl Ord + use<> {
        let root = self.root();
        let class = match root.cause {
            Cause::Cancelled => 2,
            Cause::ReplaysCancelled => 1,
            _ => 0,
        };
        (class, root.id, root.node, self.id, self.node)
    }

    /// The chain of failures, from this one to the root.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |failure| match &failure.cause {
            Cause::Skipped { needs, .. } => Some(&**needs),
            _ => None,
        })
    }
}

impl Clone for Failure {
    fn clone(&self) -> Self {
        let Self { id, node, given, task, cause } = self;
        let given = AtomicBool::new(given.load(Relaxed));
        Self { id: *id, node: *node, given, task: task.clone(), cause: cause.clone() }
    }
}

/// The number of links that a chain of causes keeps. Of further links only the number is kept.
pub(super) const CHAIN: u32 = 16;

/// Why a task failed.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel or host function panicked.
    #[error("it panicked{place}: {message}", place = in_chunk(chunk))]
    Panic {
        /// The message of the panic.
        message: String,
        /// The chunk, for a kernel.
        chunk: Option<String>,
    },
    /// The task accessed an element outside the region that it declared.
    #[error("it accessed {asked} of {buffer}{place}, but declared {declared}: declare a larger region, or access only declared elements", place = in_chunk(chunk))]
    OutsideDeclared {
        /// The buffer.
        buffer: String,
        /// The elements that the task accessed.
        asked: String,
        /// The region that it declared for this chunk.
        declared: String,
        /// The chunk, for a kernel.
        chunk: Option<String>,
    },
    /// The task left elements as they were that it declared to write. Only the [checked
    /// mode](crate::Builder::checked) finds this.
    #[error(
        "it left {elements} of {buffer} unwritten{place}, but declared to write {declared}: write every element, or declare \
         `update`",
        place = in_chunk(chunk)
    )]
    Unwritten {
        /// The buffer.
        buffer: String,
        /// The elements that the task did not write.
        elements: String,
        /// The region that it declared for this chunk.
        declared: String,
        /// The chunk, for a kernel.
        chunk: Option<String>,
    },
    /// The task computed elements from elements that it declared to write and had not written. Only the
    /// [checked mode](crate::Builder::checked) finds this.
    #[error(
        "it computed {elements} of {buffer}{place} from elements that it had not written yet, but declared to write {declared}: declare `update`",
        place = in_chunk(chunk)
    )]
    ReadBeforeWrite {
        /// The buffer.
        buffer: String,
        /// The elements that the task computed so.
        elements: String,
        /// The region that it declared for this chunk.
        declared: String,
        /// The chunk, for a kernel.
        chunk: Option<String>,
    },
    /// A callback that was to be called at the end of the task panicked. The task itself may have succeeded.
    #[error("its callback panicked: {message}")]
    Callback {
        /// The message of the panic.
        message: String,
    },
    /// The host function returned an error, a device reported one, or memory for the task was refused.
    #[error("{0}")]
    Error(#[source] Arc<dyn StdError + Send + Sync>),
    /// A task of a [sequence](crate::Sequence) failed in one of the replays.
    #[error("in replay {replay}, {task} failed: {cause}")]
    InReplay {
        /// The task.
        task: TaskLabel,
        /// The number of the replay, from 0.
        replay: u64,
        /// Why it failed.
        #[source]
        cause: Box<Cause>,
    },
    /// The task was skipped, because it needs results of a failed task.
    #[error("it was skipped{}, because {needs}", left_out(*.links))]
    Skipped {
        /// The failure of a task that it needs.
        #[source]
        needs: Arc<Failure>,
        /// The root of the chain.
        root: Arc<Failure>,
        /// The number of tasks from here to the root. Of a long chain not all of them are kept.
        links: u32,
    },
    /// The task was cancelled before it began.
    #[error("it was cancelled")]
    Cancelled,
    /// The [group](crate::TaskGroup) of a [sequence](crate::Sequence) was cancelled after its replays had
    /// begun, on the host of one node. Nothing is known about what they have left in the buffers that they
    /// write and in their host objects.
    #[error("it was cancelled in its replays")]
    ReplaysCancelled,
    /// The run on several nodes has ended.
    #[error("{0}")]
    Nodes(#[source] Arc<NodeError>),
}

fn on_node(node: Option<u16>) -> String {
    node.map_or_else(String::new, |node| format!(" on node {node}"))
}

fn left_out(links: u32) -> String {
    match links.checked_sub(CHAIN) {
        Some(more @ 1..) => format!(" ({more} tasks between are left out)"),
        _ => String::new(),
    }
}

fn in_chunk(chunk: &Option<String>) -> String {
    chunk.as_ref().map_or_else(String::new, |c| format!(" in chunk {c}"))
}

/// The panic payload of a view that is asked for an element outside the declared region.
#[derive(Debug)]
pub(crate) struct OutsideRegion {
    pub(crate) buffer: String,
    pub(crate) asked: String,
    pub(crate) declared: String,
}

impl OutsideRegion {
    /// Unwinds to the executor, which turns this into a [`Cause`]. Prints no panic message on the way.
    pub(crate) fn throw(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// The panic payload of a checked task that did not write, or read, elements that it declared to write.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) buffer: String,
    pub(crate) elements: String,
    pub(crate) declared: String,
    /// Whether the elements were computed from elements that the task had not written.
    pub(crate) is_read: bool,
}

impl Unwritten {
    /// Unwinds to the executor, which turns this into a [`Cause`]. Prints no panic message on the way.
    pub(crate) fn throw(self) -> ! {
        resume_unwind(Box::new(self))
    }

    fn cause(self, chunk: Option<String>) -> Cause {
        let Self { buffer, elements, declared, is_read } = self;
        match is_read {
            false => Cause::Unwritten { buffer, elements, declared, chunk },
            true => Cause::ReadBeforeWrite { buffer, elements, declared, chunk },
        }
    }
}

impl Cause {
    /// The cause of a task that needs the results of the failed one.
    pub(crate) fn skipped(failure: &Arc<Failure>) -> Self {
        let root = Arc::clone(failure.root());
        match &failure.cause {
            Self::Skipped { needs, links, .. } if *links >= CHAIN => {
                Self::Skipped { needs: Arc::clone(needs), root, links: links + 1 }
            }
            Self::Skipped { links, .. } => {
                Self::Skipped { needs: Arc::clone(failure), root, links: links + 1 }
            }
            _ => Self::Skipped { needs: Arc::clone(failure), root, links: 1 },
        }
    }

    /// Whether the next synchronisation reports a failure with this cause. It does not report cancelled
    /// tasks, which the program asked for, nor skipped ones, which follow from another failure, nor those
    /// that the end of a run on several nodes has ended, which every call returns.
    pub(crate) fn is_reported(&self) -> bool {
        !self.is_cancellation() && !matches!(self, Self::Skipped { .. } | Self::Nodes(_))
    }

    /// Whether the task itself was cancelled, before it began or later.
    pub(crate) fn is_cancellation(&self) -> bool {
        matches!(self, Self::Cancelled | Self::ReplaysCancelled)
    }

    /// The cause of a task that panicked with this payload, in this chunk for a kernel.
    pub(crate) fn from_panic(payload: Box<dyn Any + Send>, chunk: Option<String>) -> Self {
        let payload = match payload.downcast::<OutsideRegion>() {
            Ok(outside) => {
                let OutsideRegion { buffer, asked, declared } = *outside;
                return Self::OutsideDeclared { buffer, asked, declared, chunk };
            }
            Err(payload) => payload,
        };
        let payload = match payload.downcast::<Unwritten>() {
            Ok(unwritten) => return unwritten.cause(chunk),
            Err(payload) => payload,
        };
        let message = match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => match payload.downcast::<&str>() {
                Ok(message) => (*message).into(),
                Err(unknown) => {
                    discard_payload(unknown);
                    "(no message)".into()
                }
            },
        };
        Self::Panic { message, chunk }
    }

    /// The cause of a failure at the end of a task, whose callback panicked with this payload.
    pub(crate) fn from_callback(payload: Box<dyn Any + Send>) -> Self {
        match Self::from_panic(payload, None) {
            Self::Panic { message, .. } => Self::Callback { message },
            other => other,
        }
    }
}
