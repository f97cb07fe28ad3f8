//! Errors: what went wrong, in which task, at which buffer and region, and what to do about it.

mod declaration;
mod failure;
pub(crate) mod message;
mod nodes;

pub(crate) use self::failure::{OutsideRegion, Unwritten};
pub use self::{
    declaration::{DeclarationError, Mistake},
    failure::{Cause, Failure, Failures},
    nodes::NodeError,
};

use crate::{
    device::DeviceError,
    label::{Label, TaskLabel},
};
use anabranch_kernel::{RecordError, shader::ShaderError};
use anabranch_wire::WireError;
use std::{error::Error as StdError, fmt, mem, sync::Arc};

/// The error type of the runtime.
///
/// `Debug` prints the message like `Display`, so that a `main` that returns this error shows it. It adds the
/// sources of errors of the program whose messages do not contain them.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A task declares an impossible access.
    #[error(transparent)]
    Declaration(#[from] Box<DeclarationError>),

    /// The closure of a recorded kernel is wrong.
    #[error("{task}: {error}")]
    Record {
        /// The refused task.
        task: TaskLabel,
        /// What is wrong.
        #[source]
        error: Box<RecordError>,
    },

    /// The text of a shader is wrong, or its names are.
    #[error("{task}: {error}")]
    Shader {
        /// The refused task.
        task: TaskLabel,
        /// What is wrong.
        #[source]
        error: Box<ShaderError>,
    },

    /// A task that is only a shader has no device.
    #[error(
        "{task} is a shader, and has no device to run on: name one with `on`, or give the task a kernel for the host with `kernel` or \
         `each`"
    )]
    NoDevice {
        /// The refused task.
        task: TaskLabel,
    },

    /// A task declares two effects on one host object.
    #[error(
        "{task} declares two effects on {object}: a task can have only one effect on an object, so declare the strictest one"
    )]
    TwoEffects {
        /// The refused task.
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

    /// A host object was used after `drain` had moved it out.
    #[error("{what} has no value any more, because `drain` has moved it out: use what `drain` returned")]
    MovedOut {
        /// The object.
        what: String,
    },

    /// The requested part does not lie in the buffer.
    #[error("{part} is not a part of {buffer}, whose extent is {extent}: choose a box inside of it")]
    NoSuchPart {
        /// The buffer.
        buffer: Label,
        /// The extent of the buffer.
        extent: String,
        /// The requested part.
        part: String,
    },

    /// The system has no memory left for a buffer.
    #[error("no memory for {buffer}: {bytes} bytes were refused; use smaller buffers or fewer versions")]
    OutOfMemory {
        /// The buffer.
        buffer: Label,
        /// The number of bytes that were requested.
        bytes: u128,
    },

    /// A device has no memory for a buffer.
    #[error("no memory for {buffer}: {error}{}", instead_of_memory(error))]
    DeviceMemory {
        /// The buffer.
        buffer: Label,
        /// What the device says.
        #[source]
        error: DeviceError,
    },

    /// A device cannot run a recorded kernel or a shader.
    #[error("{task}: {error}")]
    Device {
        /// The refused task.
        task: TaskLabel,
        /// What the device says.
        #[source]
        error: DeviceError,
    },

    /// A task waits for its own runtime, and so for itself.
    ///
    /// All work that a task begins counts as inside it, on whatever thread, also when the task does not wait
    /// for that work or has ended: items of its loops, closures of its joins, its spawned jobs, tasks that it
    /// submits to other runtimes. Wakers and callbacks that a runtime calls count as inside tasks of every
    /// runtime. A thread that the program starts by itself is outside; a task must not wait for such a thread
    /// that waits for the runtime.
    #[error(
        "{call} was called inside a task of the same runtime, in work that such a task has begun, or in a callback or waker, and \
         might wait for itself: call it outside tasks"
    )]
    WaitInsideTask {
        /// The function that was called.
        call: &'static str,
    },

    /// The runtime was used in a process that was forked after the runtime had started.
    #[error(
        "{call} was called in a process that was forked after the runtime had started, but the threads of the runtime are in \
         the parent process: start another runtime in this process"
    )]
    Forked {
        /// The function that was called.
        call: &'static str,
    },

    /// A fence ended without a result, because a `Clone` of the program panicked.
    #[error(
        "the fence has no result: the `Clone` of the value panicked, and the panic was printed; capture the value with `drain`, \
         which moves it"
    )]
    FenceLost,

    /// Tasks have failed since the last synchronisation.
    #[error(transparent)]
    Failed(#[from] Failures),

    /// The run on several nodes has ended, on all of them.
    #[error(transparent)]
    Nodes(Arc<NodeError>),

    /// A result that all nodes have [agreed on](crate::Runtime::agree_result) is the error of one of them.
    #[error("{error}{}", on_node(*.node))]
    Agreed {
        /// The node, if there are several: the first one that had an error.
        node: Option<u16>,
        /// Its error. Other nodes have its messages.
        #[source]
        error: Arc<dyn StdError + Send + Sync>,
    },

    /// With several nodes, a call comes from a thread that may not make it.
    #[error(
        "{call} was called {place}: with several nodes one thread of the program submits, outside tasks, so that all nodes submit \
         the same in the same order"
    )]
    SubmitterOnly {
        /// What was called.
        call: String,
        /// Where.
        place: &'static str,
    },

    /// A call that is not possible with several nodes yet.
    #[error("{what}: this is not possible with several nodes yet; run the program on one node")]
    OneNodeOnly {
        /// What was asked for.
        what: String,
    },

    /// The runtime could not join the other nodes.
    ///
    /// A launcher such as `mpirun` has started this process as one of several, but there is no usable MPI
    /// library, or its MPI has failed. The processes do not run each alone: they would do the same work and
    /// write the same files.
    #[error("the runtime cannot join the other nodes: {0}")]
    Connect(#[source] Arc<WireError>),

    /// The process has a runtime on several nodes already.
    #[error(
        "this process has a runtime on several nodes already: end it first (drop it and all of its groups, or call `drain`)"
    )]
    SecondRuntime,

    /// The worker threads could not be started.
    #[error("the runtime could not start: {0}")]
    Pool(#[source] Arc<anabranch_par::PoolError>),

    /// A setting of a task is not possible.
    #[error("{task}: {setting} is {value}; choose {range}")]
    TaskSetting {
        /// The refused task.
        task: TaskLabel,
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What is possible.
        range: &'static str,
    },

    /// A setting is out of range.
    #[error("{setting} is {value}; choose {range}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The values that it may have.
        range: &'static str,
    },
}

impl Error {
    /// The error that a setting of a task is not possible; `range` says what is.
    pub(crate) fn of_setting(
        task: &TaskLabel,
        setting: &'static str,
        value: String,
        range: &'static str,
    ) -> Self {
        Self::TaskSetting { task: task.clone(), setting, value, range }
    }
}

fn on_node(node: Option<u16>) -> String {
    node.map_or_else(String::new, |node| format!(" (on node {node})"))
}

/// Prints the message of an error, and behind it those of its sources that it does not contain.
fn print_with_sources(error: &dyn StdError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.contains(&message) {
            text = text + ": " + &message;
        }
        source = error.source();
    }
    f.write_str(&text)
}

/// Implements `Debug` for errors, for people: `unwrap` and `main` print errors this way.
macro_rules! debug_as_message {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print_with_sources(self, f)
            }
        }
    )*};
}

debug_as_message!(Error, DeclarationError, Failures, Failure, Cause);

impl Error {
    /// What is the same on all nodes that refuse a submission for the same reason: the mistake, but not the
    /// chunk for which it was found.
    pub(crate) fn kind_on_nodes(&self) -> String {
        match self {
            Self::Declaration(error) => {
                let DeclarationError { task, buffer, mistake } = &**error;
                format!("{task} {buffer} {:?}", mem::discriminant(mistake))
            }
            other => other.to_string(),
        }
    }
}

impl From<anabranch_par::PoolError> for Error {
    fn from(error: anabranch_par::PoolError) -> Self {
        Self::Pool(Arc::new(error))
    }
}

/// What to do about memory that a device refuses.
fn instead_of_memory(error: &DeviceError) -> &'static str {
    match error {
        DeviceError::OutOfMemory { .. } => "; use smaller buffers, fewer versions or a larger budget",
        DeviceError::TooLarge { .. } => "; use several smaller buffers",
        _ => "",
    }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Connected => Self::SecondRuntime,
            other => Self::Connect(Arc::new(other)),
        }
    }
}

impl From<Arc<NodeError>> for Error {
    fn from(error: Arc<NodeError>) -> Self {
        Self::Nodes(error)
    }
}

impl From<&Arc<Failure>> for Error {
    fn from(failure: &Arc<Failure>) -> Self {
        Failures { first: Arc::clone(failure), others: Vec::new(), omitted: 0, skipped: 0 }.into()
    }
}

/// The cause of a task whose memory was refused after the graph had accepted it.
impl From<Box<Error>> for Cause {
    fn from(error: Box<Error>) -> Self {
        Self::Error(Arc::from(error as Box<dyn StdError + Send + Sync>))
    }
}
