//! What can go wrong, and how it is told: which task, which buffer, which region, which line of the program.

use crate::buffer::Label;
use anabranch_graph::TaskId;
use std::{borrow::Cow, fmt, panic::Location, sync::Arc};

/// Where a task comes from: its name and the line that submitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLabel {
    pub(crate) name: Cow<'static, str>,
    pub(crate) location: &'static Location<'static>,
}

impl TaskLabel {
    /// The name that the program gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line that submitted the task.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task \"{}\" ({}:{})", self.name, self.location.file(), self.location.line())
    }
}

/// The error type of the runtime.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A task declares something that makes no sense.
    #[error(transparent)]
    Declaration(#[from] Box<DeclarationError>),

    /// A task declares two effects on one host object.
    #[error("{task} declares two effects on {object}: one `&mut` is all there can be, declare it once")]
    TwoEffects {
        /// The task that was refused.
        task: TaskLabel,
        /// The object.
        object: String,
    },

    /// A buffer or host object was used with a runtime that it does not belong to.
    #[error("{what} belongs to another runtime: use it with the runtime that created it")]
    OtherRuntime {
        /// The buffer or object.
        what: String,
    },

    /// A host object was moved out by `drain` and used again.
    #[error("{what} was moved out by an earlier capture: nothing is left to use")]
    MovedOut {
        /// The object.
        what: String,
    },

    /// The part of a buffer that was asked for is not in it.
    #[error("{part} is not a part of {buffer}, whose extent is {extent}")]
    NoSuchPart {
        /// The buffer.
        buffer: Label,
        /// Its extent.
        extent: String,
        /// The part that was asked for.
        part: String,
    },

    /// There is no memory for a buffer.
    #[error("no memory for {buffer}: {bytes} bytes were refused; use smaller buffers or fewer versions")]
    OutOfMemory {
        /// The buffer.
        buffer: Label,
        /// What was asked for.
        bytes: u128,
    },

    /// A task waits for its own runtime: it would wait for itself.
    #[error(
        "{call} was called inside a task of the same runtime, which would wait for itself: call it outside tasks"
    )]
    WaitInsideTask {
        /// The function that was called.
        call: &'static str,
    },

    /// A fence ended without a result: a `Clone` of the program's panicked.
    #[error("the fence has no result: copying the value panicked")]
    FenceLost,

    /// Tasks have failed since the last synchronisation.
    #[error(transparent)]
    Failed(#[from] Failures),

    /// The worker threads could not be started.
    #[error("the runtime could not start: {0}")]
    Pool(#[source] Arc<anabranch_par::PoolError>),

    /// A setting of the builder is out of range.
    #[error("{setting} is {value}; choose {range}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        range: &'static str,
    },
}

/// A task that was refused, because what it declares about a buffer makes no sense.
#[derive(Clone, Debug)]
pub struct DeclarationError {
    /// The task.
    pub task: TaskLabel,
    /// The buffer.
    pub buffer: Label,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What can be wrong with a declared access. Regions and chunks are given as they are printed: `[0..4, 3..7]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// The task reads what no task has written.
    NeverWritten {
        /// The part that was never written.
        missing: String,
    },
    /// The range mapper leaves the buffer.
    OutsideBuffer {
        /// The buffer's extent.
        extent: String,
        /// The region that the mapper gave.
        region: String,
        /// The mapper.
        mapper: String,
        /// The chunk for which it gave that.
        chunk: String,
    },
    /// The range mapper gives a part of the index space more than it gives the whole.
    NotMonotonic {
        /// The mapper.
        mapper: String,
        /// A chunk.
        chunk: String,
        /// What the mapper gives for that chunk.
        region: String,
        /// What it gives for the whole index space.
        whole: String,
    },
    /// Two chunks write the same elements.
    OverlappingWrites {
        /// The mapper.
        mapper: String,
        /// The two chunks.
        chunks: [String; 2],
        /// What both write.
        common: String,
    },
    /// Two accesses of the task have elements in common, and at least one of them writes.
    OverlappingAccesses {
        /// What both accesses touch.
        common: String,
    },
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, buffer, mistake } = self;
        match mistake {
            Mistake::NeverWritten { missing } => write!(
                f,
                "{task} reads {missing} of {buffer}, which was never written: write it in an earlier task, or create \
                 the buffer from its initial contents"
            ),
            Mistake::OutsideBuffer { extent, region, mapper, chunk } => write!(
                f,
                "{task} accesses {region} of {buffer}, whose extent is {extent} ({mapper} of {chunk}): make the index \
                 space or the mapper fit the buffer"
            ),
            Mistake::NotMonotonic { mapper, chunk, region, whole } => write!(
                f,
                "{task}: the mapper of {buffer} is not monotonic: {mapper} gives {region} for chunk {chunk}, but \
                 {whole} for the whole index space, which does not contain it"
            ),
            Mistake::OverlappingWrites { mapper, chunks: [first, second], common } => write!(
                f,
                "{task}: chunks {first} and {second} both write {common} of {buffer} ({mapper}): every element may be \
                 written by one chunk only"
            ),
            Mistake::OverlappingAccesses { common } => write!(
                f,
                "{task} declares two accesses to {common} of {buffer}, and writes it by at least one of them: declare \
                 one `update`, or read from another buffer"
            ),
        }
    }
}

impl std::error::Error for DeclarationError {}

impl From<anabranch_par::PoolError> for Error {
    fn from(error: anabranch_par::PoolError) -> Self {
        Self::Pool(Arc::new(error))
    }
}

/// The tasks that have failed since the last synchronisation, in the order of their submission.
#[derive(Clone, Debug)]
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

    /// How many newer failures are not among them: a report has a bounded length.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// How many tasks were not run because they need what these would have written.
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
        match self.skipped {
            0 => Ok(()),
            1 => write!(f, " (1 task that depends on it was skipped)"),
            n => write!(f, " ({n} tasks that depend on it were skipped)"),
        }
    }
}

impl From<&Arc<Failure>> for Error {
    fn from(failure: &Arc<Failure>) -> Self {
        Failures { first: Arc::clone(failure), others: Vec::new(), omitted: 0, skipped: 0 }.into()
    }
}

impl std::error::Error for Failures {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.first)
    }
}

/// A task that has failed, and why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{task} failed: {cause}")]
pub struct Failure {
    /// For the order of failures: the oldest task's is told first.
    pub(crate) id: TaskId,
    /// The task.
    pub task: TaskLabel,
    /// Why.
    #[source]
    pub cause: Cause,
}

impl Failure {
    pub(crate) fn new(id: TaskId, task: TaskLabel, cause: Cause) -> Self {
        Self { id, task, cause }
    }

    /// The failure that this one follows from; itself, unless the task was skipped.
    pub fn root(self: &Arc<Self>) -> &Arc<Self> {
        match &self.cause {
            Cause::Skipped { root, .. } => root,
            _ => self,
        }
    }

    /// From this failure on, what each follows from, to the root.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |failure| match &failure.cause {
            Cause::Skipped { needs, .. } => Some(&**needs),
            _ => None,
        })
    }
}

/// A chain of causes has no more links than this: beyond it, only their number is kept.
const CHAIN: u32 = 16;

/// Why a task has failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel or host function panicked.
    #[error("it panicked{place}: {message}", place = at(chunk))]
    Panic {
        /// The panic's message.
        message: String,
        /// The chunk, where it was a kernel.
        chunk: Option<String>,
    },
    /// It touched an element outside the region that it declared.
    #[error("it accessed {asked} of {buffer}{place}, but declared {declared}", place = at(chunk))]
    OutsideDeclared {
        /// The buffer.
        buffer: String,
        /// What it accessed.
        asked: String,
        /// What it declared for this chunk.
        declared: String,
        /// The chunk, where it was a kernel.
        chunk: Option<String>,
    },
    /// The host function returned an error.
    #[error("{0}")]
    Error(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// It was not run, because it needs what another task would have written.
    #[error("it was skipped{}, because {needs}", between(*.links))]
    Skipped {
        /// What happened to a task that it needs.
        #[source]
        needs: Arc<Failure>,
        /// Where it began.
        root: Arc<Failure>,
        /// The number of tasks from here to the root; where there are very many, not all of them are kept.
        links: u32,
    },
    /// It was cancelled before it began.
    #[error("it was cancelled")]
    Cancelled,
}

fn between(links: u32) -> String {
    match links.checked_sub(CHAIN) {
        Some(more @ 1..) => format!(" ({more} tasks between are left out)"),
        _ => String::new(),
    }
}

fn at(chunk: &Option<String>) -> String {
    chunk.as_ref().map_or_else(String::new, |c| format!(" in chunk {c}"))
}

/// The payload with which a view ends a task that leaves its declared region.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) buffer: String,
    pub(crate) asked: String,
    pub(crate) declared: String,
}

impl Outside {
    /// Unwinds to the executor, which makes a [`Cause`] of this. No message is printed on the way.
    pub(crate) fn throw(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

impl Cause {
    /// Of a task that needs what the failed one would have written.
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

    /// Of a task whose accesses could not be bound.
    pub(crate) fn refused(error: Box<Error>) -> Self {
        Self::Error(Arc::from(error as Box<dyn std::error::Error + Send + Sync>))
    }

    /// Whether the next synchronisation is to tell: not what the program asked for, nor what follows from another failure.
    pub(crate) fn is_news(&self) -> bool {
        !matches!(self, Self::Skipped { .. } | Self::Cancelled)
    }

    /// Makes a cause of what a panic carried.
    pub(crate) fn from_panic(payload: Box<dyn std::any::Any + Send>, chunk: Option<String>) -> Self {
        let payload = match payload.downcast::<Outside>() {
            Ok(outside) => {
                let Outside { buffer, asked, declared } = *outside;
                return Self::OutsideDeclared { buffer, asked, declared, chunk };
            }
            Err(payload) => payload,
        };
        let message = match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => match payload.downcast::<&str>() {
                Ok(message) => (*message).into(),
                Err(unknown) => {
                    // Left alone: its destructor could panic, and here nobody would catch that.
                    std::mem::forget(unknown);
                    "(no message)".into()
                }
            },
        };
        Self::Panic { message, chunk }
    }
}

/// What the error of a host function becomes.
pub(crate) type HostError = Arc<dyn std::error::Error + Send + Sync>;

/// What a host function may return: nothing, or a `Result` whose error is boxed, by `?`, from any error type.
pub trait HostResult {
    /// Nothing, or why the task has failed.
    fn into_result(self) -> Result<(), Arc<dyn std::error::Error + Send + Sync>>;
}

impl HostResult for () {
    fn into_result(self) -> Result<(), Arc<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> HostResult for Result<(), E> {
    fn into_result(self) -> Result<(), Arc<dyn std::error::Error + Send + Sync>> {
        self.map_err(|e| Arc::from(e.into()))
    }
}
