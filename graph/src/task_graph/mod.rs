//! The task graph: dependencies and conflicts between the tasks of a program, in the order of submission.
//!
//! # The steps of a submission
//! [`TaskGraph::submit`] does the following, in [`graph`]:
//!
//! 1. It checks every access: the region lies inside the buffer, what is read has been written, and two
//!    accesses of the task overlap only if both read ([`checks`]). On an error the graph is unchanged and no
//!    id is taken.
//! 2. It notes reads and writes in the trackers of the buffers ([`buffer`]), and effects in those of the host
//!    objects ([`object`]). The trackers answer with the tasks that must come before.
//! 3. It keeps one edge for each of these tasks, the strongest. A task that depends on nothing else depends
//!    on the last epoch, so every task is reachable from the root.
//! 4. It adds the task to the execution front ([`front`]): the tasks that no other task depends on.
//! 5. If conflict edges are wanted, it removes those that a dependency path makes superfluous ([`ancestry`]).
//! 6. If horizons are wanted and one is due, it makes one ([`settings`]).
//!
//! A graph recognises submissions that repeat (memoization), and derives them no more: it recalls what it has
//! memorised of them ([`repeats`], [`memo`]). Steps 1 to 3 are left out then.
//!
//! # Buffers
//! For every version of a buffer a region map holds, point by point, the last writer and the readers since. A
//! read depends on the writers (*true*). A write depends on the readers (*anti*), or on the writer where
//! there are none (*output*).
//!
//! A complete overwrite of a buffer whose contents another task still reads takes another version, up to the
//! buffer's bound, instead of waiting: register renaming for buffers. A reader that comes before the
//! overwriting task anyway (because it produced that task's input) does not cause a new version. Several
//! tasks that overwrite a buffer together, a band of rows each, announce this by a discard before the first
//! of them: the first task then takes the version and the others follow.
//!
//! # Host objects
//! For every host object the graph holds the last sequential effect and the exclusive and relaxed effects
//! since. A sequential effect comes after all of them, an exclusive or relaxed one after the last sequential
//! one (*serial*). Between exclusive and relaxed effects there is no dependency: at most a *conflict*, an
//! edge without a direction. A runtime needs no conflict edges (a thousand exclusive tasks on one object
//! would have half a million): it uses the [`ConflictScheduler`](crate::ConflictScheduler), which knows the
//! objects of each task.
//!
//! # Epochs and horizons
//! A graph must not grow with the program. Two mechanisms bound it, and a graph uses one of them:
//!
//! - *Done tasks.* The caller says which tasks have finished, and the graph forgets them. This suits a
//!   runtime.
//! - *Horizons.* The graph makes nodes that come after everything before them. Once the next horizon is made,
//!   the one before *is applied*: it stands for everything older. This suits graphs that must be the same
//!   wherever the same program is submitted (on every node, in dry runs), because it does not depend on
//!   timing. Its price: later work waits for slow tasks before the horizon, even unrelated ones.
//!
//! An epoch is applied at once. Nothing is rewritten when an epoch or horizon is applied: every id is
//! compared with it when it is looked at, and an older id counts as the epoch's.
//!
//! Horizons come from Celerity: P. Thoman, P. Salzmann, "Command Horizons: Coalescing Data Dependencies while
//! Maintaining Asynchronicity", WAMTA 2023, <https://doi.org/10.1007/978-3-031-32316-4_2>. Side-effect
//! orders, epochs and captures follow F. Knorr, P. Thoman, T. Fahringer, "Declarative Data Flow in a
//! Graph-Based Distributed Memory Runtime System", 2022, <https://doi.org/10.1007/s10766-022-00743-4>.

mod ancestry;
mod buffer;
mod checks;
mod edges;
mod front;
mod graph;
mod memo;
mod object;
mod repeats;
mod settings;

pub use graph::TaskGraph;
pub use settings::{Horizons, Settings};
