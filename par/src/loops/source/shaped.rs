//! Sources that have a shape. The results of a loop over them can be collected in an array of that shape.

use super::{Chunks, ChunksMut, Enumerate, Integer, Range1, Range2, Range3, Slice, SliceMut, Source, Zip};
use crate::loops::{Loop, LoopError, step::Step};
use ndarray::{Array, Dimension, Ix1, Ix2, Ix3};

/// A source whose items are the points of a box, in row-major order.
///
/// An array has its own shape, a pair of ranges has two axes, a triple of ranges has three, and a sequence
/// has one. Zipped sources have the shape of the first one.
pub trait Shaped: Source {
    /// The type of the shape.
    type Dim: Dimension;

    /// The lengths of the axes.
    fn shape(&self) -> Self::Dim;
}

macro_rules! sequences {
    ($([$($generics:tt)*] $type:ty);+ $(;)?) => {$(
        impl<$($generics)*> Shaped for $type {
            type Dim = Ix1;

            fn shape(&self) -> Ix1 {
                Ix1(self.len())
            }
        }
    )+};
}
sequences! {
    [I: Integer] Range1<I>;
    [T: Sync] Slice<'_, T>;
    [T: Send] SliceMut<'_, T>;
    [T: Sync] Chunks<'_, T>;
    [T: Send] ChunksMut<'_, T>;
}

impl<I: Integer> Shaped for Range2<I> {
    type Dim = Ix2;

    fn shape(&self) -> Ix2 {
        let [rows, columns] = self.len;
        Ix2(rows, columns)
    }
}

impl<I: Integer> Shaped for Range3<I> {
    type Dim = Ix3;

    fn shape(&self) -> Ix3 {
        let [planes, rows, columns] = self.len;
        Ix3(planes, rows, columns)
    }
}

impl<A: Shaped, B: Source> Shaped for Zip<A, B> {
    type Dim = A::Dim;

    fn shape(&self) -> A::Dim {
        self.0.shape()
    }
}

impl<A: Shaped> Shaped for Enumerate<A> {
    type Dim = A::Dim;

    fn shape(&self) -> A::Dim {
        self.0.shape()
    }
}

/// An array of `values`, which are in row-major order.
fn array<T, D: Dimension>(shape: D, values: Vec<T>) -> Array<T, D> {
    Array::from_shape_vec(shape, values).expect("a result for each point")
}

impl<S: Shaped, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// Collects the results in an array of the source's shape, in standard layout.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    /// use ndarray::{Axis, array};
    ///
    /// let table = (1..3, 1..4).par().map(|(i, j)| i * j).collect_array();
    /// assert_eq!(table, array![[1, 2, 3], [2, 4, 6]]);
    /// let halves = table.t().par().map(|&x| f64::from(x) / 2.0).collect_array();
    /// assert_eq!(halves, array![[0.5, 1.0], [1.0, 2.0], [1.5, 3.0]]);
    /// let sums = table.par_axis(Axis(0)).map(|row| row.sum()).collect_array();
    /// assert_eq!(sums, array![6, 12]);
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn collect_array(self) -> Array<Q::Out, S::Dim> {
        let shape = self.source.shape();
        array(shape, self.collect())
    }
}

impl<S, Q, T, E> Loop<'_, S, Q>
where
    S: Shaped,
    Q: Step<S::Item, Out = Result<T, E>>,
    T: Send,
    E: Send,
{
    /// Collects the results in an array as [`collect_array`](Self::collect_array) does, if none is an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_collect_array(self) -> Result<Array<T, S::Dim>, LoopError<E>> {
        let shape = self.source.shape();
        Ok(array(shape, self.try_collect()?))
    }
}
