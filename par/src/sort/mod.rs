//! Sorting slices on all threads of a pool.
//!
//! Programs use [`ParallelSort`]. The stable sorts are a [`merge_sort`], whose [`elements`] move between the
//! slice and a buffer; the unstable sorts are a [`quicksort`], in place. Both first test whether the slice is
//! [`presorted`]. Where they cut a slice follows from its length and its elements, never from the number of
//! threads.

mod elements;
mod merge_sort;
mod presorted;
mod quicksort;

use crate::{IntoParallel, LoopError};
use parking_lot::Mutex;
use std::{cmp::Ordering, convert::Infallible, panic::resume_unwind};

/// The calling thread sorts shorter slices alone.
const MIN_PARALLEL: usize = 8 * 1024;

/// Parallel sorting of slices, on the calling thread's pool.
///
/// The result does not depend on the number of threads. The stable sorts give the same result as those of the
/// standard library, and use a buffer as large as the slice. The unstable sorts work in place. They may order
/// equal elements differently from the standard library, but always in the same way. They are faster than the
/// stable sorts, except on many threads, which the stable sorts keep busy from the beginning.
///
/// A slice of fewer than some thousand elements is sorted by the calling thread alone.
///
/// # Panics
/// If a closure panics, the sort panics in the same way when every thread has left. A sort may also panic if
/// the closure is not a total order. In both cases the slice holds all its elements, in an unspecified order.
///
/// ```
/// use anabranch_par::ParallelSort;
///
/// let mut words = ["river", "anabranch", "delta", "ox"];
/// words.par_sort();
/// assert_eq!(words, ["anabranch", "delta", "ox", "river"]);
/// words.par_sort_by_key(|word| word.len());
/// assert_eq!(words, ["ox", "delta", "river", "anabranch"]);
/// ```
pub trait ParallelSort<T: Send>: sealed::Sealed {
    /// Sorts the slice; equal elements keep their order.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut v: Vec<u32> = (0..50_000).rev().collect();
    /// v.par_sort();
    /// assert!(v.is_sorted());
    /// ```
    fn par_sort(&mut self)
    where
        T: Ord,
    {
        self.par_sort_by(T::cmp);
    }

    /// Sorts the slice by a comparison; equal elements keep their order.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut v = [2.5_f64, -1.0, 9.0];
    /// v.par_sort_by(|a, b| b.total_cmp(a));
    /// assert_eq!(v, [9.0, 2.5, -1.0]);
    /// ```
    fn par_sort_by(&mut self, cmp: impl Fn(&T, &T) -> Ordering + Sync);

    /// Sorts the slice by a key, which is computed at every comparison; elements with equal keys keep their
    /// order.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut v = [-3_i32, 2, 3, -1];
    /// v.par_sort_by_key(|x| x.abs());
    /// assert_eq!(v, [-1, 2, -3, 3]);
    /// ```
    fn par_sort_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K + Sync) {
        self.par_sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts the slice; equal elements may change places.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut v: Vec<u32> = (0..50_000).map(|i| i * 7919 % 50_000).collect();
    /// v.par_sort_unstable();
    /// assert!(v.is_sorted());
    /// ```
    fn par_sort_unstable(&mut self)
    where
        T: Ord,
    {
        self.par_sort_unstable_by(T::cmp);
    }

    /// Sorts the slice by a comparison; equal elements may change places.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut v = [2.5_f64, -1.0, 9.0];
    /// v.par_sort_unstable_by(f64::total_cmp);
    /// assert_eq!(v, [-1.0, 2.5, 9.0]);
    /// ```
    fn par_sort_unstable_by(&mut self, cmp: impl Fn(&T, &T) -> Ordering + Sync);

    /// Sorts the slice by a key, which is computed at every comparison; elements with equal keys may change
    /// places.
    ///
    /// ```
    /// # use anabranch_par::ParallelSort;
    /// let mut cells = [(7, 'a'), (3, 'b'), (5, 'c')];
    /// cells.par_sort_unstable_by_key(|cell| cell.0);
    /// assert_eq!(cells, [(3, 'b'), (5, 'c'), (7, 'a')]);
    /// ```
    fn par_sort_unstable_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K + Sync) {
        self.par_sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T: Send> ParallelSort<T> for [T] {
    fn par_sort_by(&mut self, cmp: impl Fn(&T, &T) -> Ordering + Sync) {
        merge_sort::sort(self, &cmp);
    }

    fn par_sort_unstable_by(&mut self, cmp: impl Fn(&T, &T) -> Ordering + Sync) {
        quicksort::sort(self, &cmp);
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for [T] {}
}

/// Calls `f` with every item, on the calling thread's pool. After a panic the calling thread drops the items
/// that are left.
fn for_each_owned<S: Send>(items: impl Iterator<Item = S>, f: impl Fn(S) + Sync) {
    let items: Vec<Mutex<Option<S>>> = items.map(|item| Mutex::new(Some(item))).collect();
    for_each(items.len(), |i| {
        // Not in the `if let`: there the lock would be held while `f` runs.
        let item = items[i].lock().take();
        if let Some(item) = item {
            f(item);
        }
    });
}

/// Calls `f` for each of `0..n`, on the calling thread's pool. A panic is resumed with its own payload: the
/// index in a loop's message would mean nothing to the program.
fn for_each(n: usize, f: impl Fn(usize) + Sync) {
    let call = |i| {
        f(i);
        Ok::<(), Infallible>(())
    };
    match (0..n).par().chunking(false).try_for_each(call) {
        Ok(()) => (),
        Err(LoopError::Panic(panic)) => resume_unwind(panic.into_payload()),
        Err(other) => other.resume(),
    }
}
