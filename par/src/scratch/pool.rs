//! A bounded number of values that are lent to whoever needs one.

use crate::current::{self, Holding};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt, mem,
    ops::{Deref, DerefMut},
};

/// At most so many values, made when they are needed, and lent by a [guard](Lent) that gives them back, also on panic.
///
/// Who finds none free waits until one is given back. That cannot deadlock, in loops of any depth and with several pools:
/// a thread that holds a value already, of this pool or another, that is inside a [`Critical`](crate::Critical), or that works
/// in a loop which such a thread has opened, might be waited for by those who hold the rest; so it does not wait. It gets one
/// *extra* value, which is dropped when it is given back. (Waiting of other kinds a pool cannot see: do not hold a value at a
/// team's barrier if other members may want one before they come there, nor while you join the handle of a job that may.)
///
/// For scratch in a loop [`scratch`](crate::Loop::scratch) is simpler and costs nothing. A pool is for values that are dear
/// (large, or a connection) and needed in a part of the work only: it may have fewer of them than there are threads.
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
    /// How many there are, free or lent, without the extra ones.
    made: usize,
    waiting: usize,
}

impl<T, F: Fn() -> T> Pool<T, F> {
    /// At most `bound` values, made by `make`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn new(bound: usize, make: F) -> Self {
        assert!(bound > 0, "a pool of no values: choose a bound of at least 1");
        let state = State { free: Vec::new(), made: 0, waiting: 0 };
        Self { bound, make, state: Mutex::new(state), given_back: Condvar::new() }
    }

    /// Lends a value: the one that was given back last, or a new one. Waits where there are none to be had.
    ///
    /// # Panics
    /// If the closure that makes values does.
    pub fn take(&self) -> Lent<'_, T, F> {
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
            if current::is_holding() {
                drop(state);
                return self.lend((self.make)(), true);
            }
            state.waiting += 1;
            self.given_back.wait(&mut state);
            state.waiting -= 1;
        }
    }

    /// The same, or `None` where it would have to wait.
    ///
    /// # Panics
    /// If the closure that makes values does.
    pub fn try_take(&self) -> Option<Lent<'_, T, F>> {
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

    /// Makes a value whose place is counted already.
    fn lend_new(&self) -> Lent<'_, T, F> {
        /// Gives the place back where no value comes.
        struct Place<'p, T, F>(&'p Pool<T, F>);
        impl<T, F> Drop for Place<'_, T, F> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.made -= 1;
                if state.waiting > 0 {
                    self.0.given_back.notify_one();
                }
            }
        }
        let place = Place(self);
        let value = (self.make)();
        mem::forget(place);
        self.lend(value, false)
    }

    fn lend(&self, value: T, extra: bool) -> Lent<'_, T, F> {
        Lent { value: Some(value), extra, pool: self, _holding: Holding::begin() }
    }
}

impl<T, F> Pool<T, F> {
    /// The number of values that are lent and made at most, extra ones not counted.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// All values.
    pub fn into_values(self) -> Vec<T> {
        self.state.into_inner().free
    }
}

impl<T, F> fmt::Debug for Pool<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("bound", &self.bound).finish_non_exhaustive()
    }
}

/// A value of a [`Pool`], given back when this is dropped. It stays on its thread.
pub struct Lent<'p, T, F> {
    value: Option<T>,
    extra: bool,
    pool: &'p Pool<T, F>,
    _holding: Holding,
}

impl<T, F> Drop for Lent<'_, T, F> {
    fn drop(&mut self) {
        let Some(value) = self.value.take().filter(|_| !self.extra) else { return };
        let mut state = self.pool.state.lock();
        state.free.push(value);
        if state.waiting > 0 {
            self.pool.given_back.notify_one();
        }
    }
}

impl<T, F> Deref for Lent<'_, T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("there until it is given back")
    }
}

impl<T, F> DerefMut for Lent<'_, T, F> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("there until it is given back")
    }
}

impl<T: fmt::Debug, F> fmt::Debug for Lent<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
