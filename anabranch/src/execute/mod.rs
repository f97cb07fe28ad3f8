//! Executing tasks: from the lock under which a task is submitted to the wake-up of the threads that wait for it.
//!
//! The way of a task through this folder:
//!
//! 1. [`submission`]: under one lock, the graphs derive its dependencies, its memory is attached, and it becomes a [`node`],
//!    which is linked to the nodes that it depends on and inserted into the [`live_tasks`].
//! 2. [`node`]: the node counts its unfinished dependencies. The dependency that finishes last makes it ready.
//! 3. [`conflicts`]: a ready task with exclusive or relaxed effects starts when the scheduler of conflicts says so.
//! 4. [`executor`]: the task is queued for a compute worker or a host lane.
//! 5. [`run`]: the thread that claims the task runs or skips it, releases its successors, and may go on with one of them.
//! 6. [`waiting`]: latches count tasks down to events, which wake threads and futures. A [`group`] counts its tasks, cancels
//!    them together, and has their failures.
//!
//! Files in this folder know [`data`](crate::data) (they implement its [`Owner`](crate::data::owner::Owner)) and
//! [`observe`](crate::observe), but not [`submit`](crate::submit): a task arrives here without its types.

mod caretaker;
mod compute;
mod conflicts;
mod core;
mod current_task;
mod draw;
mod event;
mod executor;
mod graphs;
mod group;
mod group_handle;
mod handle;
mod in_flight;
mod latch;
mod live_tasks;
mod node;
mod patience;
mod place;
mod run;
mod seeded;
mod shutdown;
mod status;
mod submission;
mod waiting;

#[cfg(all(test, loom))]
mod models;

pub use self::{handle::TaskHandle, status::Status};

pub(crate) use self::{
    compute::Compute,
    core::Core,
    event::Event,
    group_handle::GroupHandle,
    latch::Latch,
    node::{Body, Node},
    place::Place,
    shutdown::Running,
    submission::Submission,
};
