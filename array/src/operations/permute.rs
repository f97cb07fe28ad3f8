//! Permutations of axes.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    host::permute,
    numeric::Numeric,
    shaders, shape,
    slices::{read, write},
};
use anabranch::prelude::all;

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The array with its axes in another order: axis `k` of the result is axis `axes[k]` of this array. It
    /// runs where the array is: see the [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_fn([2, 3, 4], |[i, j, k]| (100 * i + 10 * j + k) as i32)?;
    /// let b = a.permute([2, 0, 1])?;
    /// assert_eq!((b.shape(), b.get([3, 1, 2])?), ([4, 2, 3], 123));
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Permutation`] if `axes` does not have each axis once. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn permute(&self, axes: [usize; D]) -> Result<Self, ArrayError> {
        let call = Call::here("permute");
        if (0..D).any(|axis| !axes.contains(&axis)) {
            return Err(ArrayError::Permutation { call, axes: axes.to_vec() });
        }
        let strides = shape::strides(self.shape());
        let (shape, distances) = (axes.map(|axis| self.shape()[axis]), axes.map(|axis| strides[axis]));
        let result = self.arrays().empty(shape, call)?;
        if shaders::run_in::<T>(self.place()) {
            shaders::gather::gather("permute", self, &result, distances)?;
            return Ok(result);
        }
        let task = self.group().task("permute").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).kernel(move |_, (from, to)| {
            permute::permute(read(from), write(to), shape, distances);
        })?;
        Ok(result)
    }
}

impl<T: Numeric> Array<T, 2> {
    /// The transposed matrix: see [`permute`](Self::permute).
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn transpose(&self) -> Result<Self, ArrayError> {
        self.permute([1, 0])
    }
}
