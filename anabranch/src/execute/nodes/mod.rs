//! Several nodes: the command graph of this node, and a step of the executor for each of its commands.
//!
//! # How a step runs
//! 1. The submitting thread takes its *turn*: it takes the [plan](plan), so that no lock is held while range
//!    mappers run. The task graph checks the task and gives it an id; the command graph derives this node's
//!    commands.
//! 2. Each command becomes a node of the executor, whose id is that of the command ([`submission`]). The node
//!    of a command that executes the task has the body that the task has on one node, for this node's part of
//!    the index space. The nodes of pushes and awaits have bodies of their own
//!    ([`transfer`](steps::transfer), [`exchange`](steps::exchange), [`partials`](steps::partials),
//!    [`turn`](steps::turn)), which end [later](super::task::later) than they return, when the transport says
//!    so.
//! 3. The nodes are linked by the dependencies of their commands. From there on the executor does not
//!    distinguish them from the tasks of a program on one node.
//! 4. While transfers are under way, a worker without other work polls the transport ([`progress`]), and goes
//!    on with the steps whose transfers are over.
//!
//! # Failures
//! A part of a task that fails on this node poisons what it was to write ([`poison`](failures::poison)). A
//! push sends the failure in place of poisoned contents ([`notes`](failures::notes)), and the await enters it
//! on the other node. The same holds for partial results of reductions. So a failure goes where the data
//! would have gone, and steps that need none of it run. The turn of a broken host object of the whole cluster
//! ([`turn`](steps::turn)) takes its failure along. A task whose parts call functions of MPI begins on all
//! nodes or on none ([`gate`](steps::gate)). When all nodes meet, they exchange what is to be reported
//! ([`report`](failures::report)).

mod checks;
mod communicators;
mod copies;
mod failures;
mod make_communicator;
pub(super) mod plan;
pub(super) mod progress;
mod steps;
mod submission;
mod weights;

pub(super) use self::communicators::Communicators;
pub(crate) use self::{failures::report::Meeting, plan::Nodes, submission::Refused};
