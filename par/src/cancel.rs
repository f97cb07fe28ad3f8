//! Cancellation of work that has not begun.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::*},
};

/// Cancels the work that has the token: loops look at it between their chunks, and the crate `anabranch`
/// before a task begins.
///
/// All clones are the same token. A closure that takes long can look at the token itself.
///
/// ```
/// use anabranch_par::prelude::*;
/// use anabranch_par::{CancellationToken, LoopError};
///
/// let token = CancellationToken::new();
/// let result = (0..1_000_000).par().cancel_with(&token).try_for_each(|i| {
///     if i == 7 {
///         token.cancel();
///     }
///     Ok::<(), std::fmt::Error>(())
/// });
/// assert!(matches!(result, Err(LoopError::Cancelled { .. })));
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    cancelled: AtomicBool,
    /// The token whose cancellation cancels this one, too.
    parent: Option<CancellationToken>,
}

impl CancellationToken {
    /// Makes a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a token that is cancelled together with this one, and can be cancelled alone.
    ///
    /// ```
    /// use anabranch_par::CancellationToken;
    ///
    /// let all = CancellationToken::new();
    /// let (one, other) = (all.child(), all.child());
    /// one.cancel();
    /// assert!(one.is_cancelled() && !other.is_cancelled() && !all.is_cancelled());
    /// all.cancel();
    /// assert!(other.is_cancelled());
    /// ```
    pub fn child(&self) -> Self {
        Self(Arc::new(State { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Cancels the work. This cannot be undone.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Release);
    }

    /// Whether the token was cancelled, or the token that it is a [child](Self::child) of.
    pub fn is_cancelled(&self) -> bool {
        let mut token = self;
        loop {
            if token.0.cancelled.load(Acquire) {
                return true;
            }
            match &token.0.parent {
                Some(parent) => token = parent,
                None => return false,
            }
        }
    }
}

impl Drop for State {
    /// Frees a long line of parents one after the other: a destructor inside a destructor for each of them
    /// needs a large stack.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(token) = parent {
            parent = Arc::into_inner(token.0).and_then(|mut state| state.parent.take());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::CancellationToken;

    #[test]
    fn a_long_line_of_children_is_cancelled_and_freed() {
        let first = CancellationToken::new();
        let last = (0..200_000).fold(first.clone(), |token, _| token.child());
        assert!(!last.is_cancelled());
        first.cancel();
        assert!(last.is_cancelled());
    }
}
