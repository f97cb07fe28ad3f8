//! Cancellation: tasks that have not begun are skipped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::*},
};

/// Cancels all tasks that were submitted while it was [set](crate::Runtime::set_cancellation), as far as they have not
/// begun.
///
/// A cancelled task is skipped, and so is everything that needs what it would have written to buffers; independent work
/// goes on. Host objects are as if the task had never been submitted.
/// A kernel that takes long can look at the token itself. Fences, barriers and `drain` are not cancelled: by them a program
/// looks at what there is.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let token = CancellationToken::new();
/// rt.set_cancellation(Some(&token));
/// token.cancel();
/// let task = rt.task("too late").once().host(|()| ())?;
/// assert_eq!(task.status(), Status::Cancelled);
/// rt.set_cancellation(None);
/// rt.wait()?; // what the program asked for is no failure
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<AtomicBool>);

impl CancellationToken {
    /// A token that nothing is submitted under yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels, for good.
    pub fn cancel(&self) {
        self.0.store(true, Release);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Acquire)
    }
}
