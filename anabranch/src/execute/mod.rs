//! Executing tasks: from the lock under which a task is submitted to the wake-up of the threads that wait for
//! it.
//!
//! A task passes through this folder in these steps:
//!
//! 1. [`accept`]: under one lock, the graphs derive its dependencies, its memory is attached, and it becomes
//!    a [node](task::node), which is linked to the nodes that it depends on and inserted into the
//!    [`live_tasks`].
//! 2. [node](task::node): the node counts its unfinished dependencies. The dependency that finishes last
//!    makes it ready.
//! 3. [`conflicts`]: a ready task with exclusive or relaxed effects starts when the scheduler of conflicts
//!    says so.
//! 4. [executor](threads::executor): the task is queued for a compute worker or a host lane.
//! 5. [`run`]: the thread that claims the task runs or skips it, releases its successors, and may go on with
//!    some of them ([`claimed_tasks`]). A task whose work goes on elsewhere ends [later](task::later) than
//!    its body.
//! 6. [`waiting`]: latches count tasks down to [`events`](crate::events), which wake threads and futures. A
//!    [group](groups) counts its tasks, cancels them together, and has their failures.
//!
//! What a task lacks on the device or host where it runs, [`devices`] copies there before.
//!
//! With several nodes, [`nodes`] makes a node of each command of the command graph instead.
//!
//! Files in this folder import [`data`](crate::data) (they implement its
//! [`Owner`](crate::data::owner::Owner)) and [`observe`](crate::observe), but not [`submit`](crate::submit):
//! a task arrives here without its types.

mod accept;
mod claimed_tasks;
mod conflicts;
mod core;
mod current_task;
mod deferred_shutdown;
pub(crate) mod devices;
mod graphs;
mod groups;
mod in_flight;
mod live_tasks;
mod nodes;
pub(crate) mod replay;
mod report;
mod run;
mod shutdown;
mod start;
mod submission;
mod task;
mod threads;
mod waiting;

#[cfg(all(test, loom))]
mod models;

pub use self::task::{handle::TaskHandle, status::Status};

pub(crate) use self::{
    core::Core,
    groups::handle::GroupHandle,
    nodes::{Meeting, Nodes, Refused},
    shutdown::Running,
    submission::Submission,
    task::{
        node::{Body, Node},
        place::Place,
    },
    threads::compute::Compute,
};
