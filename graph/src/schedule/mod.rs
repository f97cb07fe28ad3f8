//! The conflict scheduler: which of the tasks in conflict start first. Mutual exclusion without locks.
//!
//! Exclusive effects on a host object are *conflicts*: the tasks may run in any order, but never at the same
//! time. The caller notifies the [`ConflictScheduler`] when such a task is submitted
//! ([`insert`](ConflictScheduler::insert)), when all its dependencies are done
//! ([`eligible`](ConflictScheduler::eligible)) and when it has run
//! ([`finished`](ConflictScheduler::finished)). The scheduler returns the tasks to start now. No worker waits
//! for a conflict. The scheduler promises:
//!
//! - *Mutual exclusion.* Two tasks in conflict never run at the same time.
//! - *No missed start.* After every call, each eligible task that waits is in conflict with a task that runs,
//!   or with a task that is due before it (see below). A task without such a conflict starts at once.
//! - *Largest sets.* If several tasks could start but not all, the scheduler looks for the largest set by
//!   backtracking. The search ends after [`CANDIDATES`] rejected candidates in each connected component of
//!   the conflict graph. Only tasks that the last change made startable take part. A higher priority counts
//!   more than a larger set; among equals the oldest task goes first. More than 64 tasks of one priority are
//!   searched 64 at a time, those with the fewest conflicts first. Of the tasks that wait for one object
//!   exclusively, the first [`WINDOW`] take part.
//! - *No starvation.* A task is *due* once another task in conflict with it has started that became eligible
//!   more than [`PATIENCE`] rounds after it (a round is a call that makes tasks eligible). Due tasks start in
//!   the order in which they became due, and no other task in conflict with one of them starts before it.
//! - *Determinism.* The same calls have the same answers.
//!
//! ```
//! use anabranch_graph::{ConflictScheduler, Effect, ObjectId, Order, TaskId};
//!
//! let [log, stats] = [ObjectId(1), ObjectId(2)];
//! let exclusive = |object| Effect { object, order: Order::Exclusive };
//!
//! let mut scheduler = ConflictScheduler::new();
//! let both = scheduler.insert(TaskId(1), 0, &[exclusive(log), exclusive(stats)]);
//! let first = scheduler.insert(TaskId(2), 0, &[exclusive(log)]);
//! let second = scheduler.insert(TaskId(3), 0, &[exclusive(stats)]);
//!
//! let mut start = Vec::new();
//! scheduler.update(&[], &[both, first, second], &mut start);
//! assert_eq!(start, [first, second]); // rather than the older one alone
//!
//! start.clear();
//! scheduler.finished(first, &mut start);
//! assert_eq!(start, []);
//! scheduler.finished(second, &mut start);
//! assert_eq!(start, [both]);
//! ```
//!
//! # How it works
//! Conflicts are not stored as edges: a thousand exclusive tasks on one object would have half a million. A
//! task occupies its objects while it runs. A task that must wait does so in the queue of one object that
//! blocks it, until that object is free (`objects`, `queue`, `tasks`). Explicit conflicts
//! ([`insert_with`](ConflictScheduler::insert_with)) become effects on anonymous objects (`cover`).
//!
//! A call to [`update`](ConflictScheduler::update) takes these steps (`scheduler`):
//!
//! 1. Finished tasks free their objects.
//! 2. Level by level (due tasks in their order, then priorities from the highest), the tasks that wait for a
//!    freed object and the newly eligible ones are collected, if no object blocks them.
//! 3. The largest set of them without a conflict that the search finds starts (`search`, `largest`); the rest
//!    waits.
//! 4. Two of the waiting tasks, in turn, are checked: if a task was passed over for too long, it becomes due.
//!
//! The calls for a single change leave out what they do not need: a task that becomes eligible while no
//! object is freed starts or waits by itself, and a task that frees no object for which another one waits
//! starts none.

mod cover;
mod largest;
mod objects;
mod queue;
mod scheduler;
mod search;
mod tasks;

pub use scheduler::{CANDIDATES, ConflictScheduler, PATIENCE, WINDOW};
pub use tasks::{Contender, TaskState};
