//! Cancellation of work that has not begun.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::*},
};

/// Cancels the work that has the token: loops look at it between their chunks, and the crate `anabranch` before a task begins.
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
pub struct CancellationToken(Arc<AtomicBool>);

impl CancellationToken {
    /// Makes a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the work. This cannot be undone.
    pub fn cancel(&self) {
        self.0.store(true, Release);
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Acquire)
    }
}
