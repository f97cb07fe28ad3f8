//! The context of a thread: the values of bounded pools that it holds, the critical sections that it has
//! entered, and the [marks](Mark) that the program has set.
//!
//! A waiting thread cannot leave its context, so the threads that it waits for inherit it. Every function
//! that hands work to other threads captures the context of the calling thread. The thread that does the work
//! has that context meanwhile.
//!
//! | work | captured | held values | critical sections | marks |
//! |---|---|---|---|---|
//! | region (loop, stream, team) | when it is opened | yes | yes | yes |
//! | half of a join | where the join is made | yes | yes | yes |
//! | job of a scope | when the scope is opened, and when the job is spawned | those of the opener | yes | yes |
//! | spawned job | when it is spawned | no | yes | yes |
//! | submitted job, job of a lane | when it is submitted | no | no | yes |
//!
//! A job that no thread waits for has the same context as one that is joined, because whether a thread will
//! join it is not known when it begins. A job that is submitted cannot be joined, so critical sections do not
//! matter there.
//!
//! A *callback* is code that a runtime calls at the end of a task, such as a waker. Any thread may call it,
//! in any context. Whether a call in it is permitted must not depend on that context. So a callback counts as
//! inside work with every mark, and work that it begins gets the marks that were set where the program has
//! left the callback.
//!
//! ```text
//! held.rs      the number of held values: a count, which is copied
//! chain.rs     sections and marks: links in the stack frames of the threads that are inside
//! mark.rs      a mark of the program
//! marks.rs     the copy of them that a job keeps
//! ../enter.rs  how a thread gets into a chain
//! ```

mod chain;
mod held;
mod mark;
mod marks;

pub(crate) use chain::{Chain, Entry, Key, Link, is_inside, is_marked, new_keys};
pub(crate) use held::{HeldValues, Holding, HoldingFor, held_values, hold_for, is_holding};
pub use mark::Mark;
pub use marks::Marks;

/// The context of a thread that waits for the work it hands over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) held: HeldValues,
    pub(crate) chain: Chain,
}

impl Context {
    /// The context of the calling thread.
    #[inline]
    pub(crate) fn capture() -> Self {
        Self { held: held_values(), chain: Chain::current() }
    }
}
