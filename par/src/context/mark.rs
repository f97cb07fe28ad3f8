//! A mark of the program's own: only its identity. How work is marked is in [`enter`](crate::enter).

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// Marks the work of a program, so that code finds out whether it belongs to that work.
///
/// A mark goes with the work, through loops, joins, scopes, jobs, teams, streams and lanes of any pool,
/// however deep they are nested. A runtime of tasks marks its tasks like this: to wait for all tasks inside
/// one of them is then an error on whatever thread, and not a wait without end. A thread that the program
/// starts by itself has no mark.
///
/// ```
/// use anabranch_par::{Mark, prelude::*};
///
/// let task = Mark::new();
/// task.enter(|| (0..100).par().for_each(|_| assert!(task.is_set())));
/// let job = task.enter(|| spawn(move || task.is_set()));
/// assert!(!task.is_set());
/// assert!(job.join()?);
/// # Ok::<(), anabranch_par::Panic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(NonZeroU32);

impl Mark {
    /// A mark that is different from all others. (After four thousand million marks the first ones come
    /// again.)
    #[expect(clippy::new_without_default, reason = "a mark is an identity, not a value")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        loop {
            if let Some(number) = NonZeroU32::new(NEXT.fetch_add(1, Relaxed)) {
                return Self(number);
            }
        }
    }
}
