//! A bounded pool of values.

use crate::context::{Holding, is_holding};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt, mem,
    ops::{Deref, DerefMut},
};

/// A bounded number of values. The pool makes them when they are needed, and lends them by a
/// [guard](PoolGuard) that gives them back, also on panic.
///
/// A thread that finds no free value waits until one is given back. This cannot deadlock, in loops of any
/// depth and with several pools. The threads that have the other values might wait for this thread if it
/// already holds a value of any pool, if it is inside a [`Critical`](crate::Critical), or if it works in a
/// loop that such a thread has opened. In these cases it does not wait: it gets an *extra* value, which is
/// dropped when it is given back.
///
/// The pool does not see other ways to wait. Do not hold a value at a team's barrier if other members may
/// need one before they arrive there, nor while you join the handle of a job that may need one.
///
/// For scratch in a loop [`scratch`](crate::Loop::scratch) is simpler and costs nothing. A pool is for values
/// that are expensive (large, or a connection) and needed in only a part of the work: it may have fewer
/// values than there are threads.
///
/// ```
/// use anabranch_par::{prelude::*, scratch::Pool};
///
/// let buffers = Pool::new(2, || vec![0_u8; 1 << 20]);
/// (0..100).par().for_each(|i| {
///     let mut buffer = buffers.take();
///     buffer[i] = 1;
/// });
/// assert!(buffers.into_values().len() <= 2);
/// ```
pub struct Pool<T, F = fn() -> T> {
    bound: usize,
    make: F,
    state: Mutex<State<T>>,
    given_back: Condvar,
}

struct State<T> {
    free: Vec<T>,
    /// The number of values, free or lent, without the extra ones.
    made: usize,
    waiting: usize,
}

impl<T, F: Fn() -> T> Pool<T, F> {
    /// A pool of at most `bound` values, which `make` makes.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn new(bound: usize, make: F) -> Self {
        assert!(bound > 0, "a pool of no values: choose a bound of at least 1");
        let state = State { free: Vec::new(), made: 0, waiting: 0 };
        Self { bound, make, state: Mutex::new(state), given_back: Condvar::new() }
    }

    /// Lends the value that was given back last, or a new one. Waits if all values are lent.
    ///
    /// # Panics
    /// If the closure that makes values panics.
    pub fn take(&self) -> PoolGuard<'_, T, F> {
        let mut state = self.state.lock();
        loop {
            if let Some(value) = state.free.pop() {
                return self.lend(value, false);
            }
            if state.made < self.bound {
                state.made += 1;
                drop(state);
                return self.lend_new();
            }
            if is_holding() {
                drop(state);
                return self.lend((self.make)(), true);
            }
            state.waiting += 1;
            self.given_back.wait(&mut state);
            state.waiting -= 1;
        }
    }

    /// Lends a value, or returns `None` if it would have to wait.
    ///
    /// # Panics
    /// If the closure that makes values panics.
    pub fn try_take(&self) -> Option<PoolGuard<'_, T, F>> {
        let mut state = self.state.lock();
        if let Some(value) = state.free.pop() {
            return Some(self.lend(value, false));
        }
        if state.made == self.bound {
            return None;
        }
        state.made += 1;
        drop(state);
        Some(self.lend_new())
    }

    /// Makes a value that `made` counts already.
    fn lend_new(&self) -> PoolGuard<'_, T, F> {
        /// Uncounts the value if `make` panics.
        struct Uncount<'p, T, F>(&'p Pool<T, F>);
        impl<T, F> Drop for Uncount<'_, T, F> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.made -= 1;
                if state.waiting > 0 {
                    self.0.given_back.notify_one();
                }
            }
        }
        let uncount = Uncount(self);
        let value = (self.make)();
        mem::forget(uncount);
        self.lend(value, false)
    }

    fn lend(&self, value: T, extra: bool) -> PoolGuard<'_, T, F> {
        PoolGuard { value: Some(value), extra, pool: self, _holding: Holding::begin() }
    }
}

impl<T, F> Pool<T, F> {
    /// The largest number of values, without the extra ones.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Takes all values out.
    pub fn into_values(self) -> Vec<T> {
        self.state.into_inner().free
    }
}

impl<T, F> fmt::Debug for Pool<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("bound", &self.bound).finish_non_exhaustive()
    }
}

/// A value of a [`Pool`]. Dropping it gives the value back. It stays on its thread.
pub struct PoolGuard<'p, T, F> {
    value: Option<T>,
    extra: bool,
    pool: &'p Pool<T, F>,
    _holding: Holding,
}

impl<T, F> Drop for PoolGuard<'_, T, F> {
    fn drop(&mut self) {
        let Some(value) = self.value.take().filter(|_| !self.extra) else { return };
        let mut state = self.pool.state.lock();
        state.free.push(value);
        if state.waiting > 0 {
            self.pool.given_back.notify_one();
        }
    }
}

impl<T, F> Deref for PoolGuard<'_, T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("only `drop` takes the value")
    }
}

impl<T, F> DerefMut for PoolGuard<'_, T, F> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("only `drop` takes the value")
    }
}

impl<T: fmt::Debug, F> fmt::Debug for PoolGuard<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
