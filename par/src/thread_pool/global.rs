//! The global pool: for loops, joins, jobs and scopes on threads that work for no other pool.

use super::{ThreadPool, state::PoolState};
use crate::current;
use std::sync::OnceLock;

static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();

impl ThreadPool {
    /// The pool for loops that name none. It is started at its first use, with the settings of
    /// [`ThreadPool::builder`].
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn global() -> &'static Self {
        GLOBAL.get_or_init(|| match ThreadPool::builder().build() {
            Ok(pool) => pool,
            Err(error) => panic!("the global thread pool could not be started: {error}"),
        })
    }
}

/// Calls `f` with the calling thread's pool: the one it works for, or else the [global](ThreadPool::global)
/// one.
#[inline]
pub(crate) fn with_pool<R>(f: impl FnOnce(&PoolState) -> R) -> R {
    current::with_installed(|pool| match pool {
        Some(pool) => f(pool),
        None => f(ThreadPool::global().state()),
    })
}
