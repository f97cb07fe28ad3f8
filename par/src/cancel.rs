//! Cancellation: what has not begun is left out.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::*},
};

/// Cancels whatever looks at it: loops between their chunks, and in the crate `anabranch` tasks that have not begun.
///
/// Clones are the same token. What takes long can look at it itself.
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
    /// A token that is not cancelled.
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
