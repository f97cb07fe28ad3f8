//! Elementwise operations.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape,
};
use anabranch::{
    prelude::*,
    recorded::{Mask, Value},
};

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The results of a recorded closure for each element. What closures can do is in the guide on [recorded
    /// kernels](anabranch::guide::recorded_kernels). It runs where the array is.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([3], &[1.0_f32, 4.0, 9.0])?;
    /// assert_eq!(a.map(|x| x.sqrt() + 1.0)?.to_vec()?, [2.0, 3.0, 4.0]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`], also if the device cannot compute with these numbers.
    #[track_caller]
    pub fn map<U: Numeric>(
        &self,
        f: impl for<'t> FnOnce(Value<'t, T>) -> Value<'t, U>,
    ) -> Result<Array<U, D>, ArrayError> {
        let result = self.arrays().empty(self.shape(), Call::here("map"))?;
        let task = self.group().task("map").over([self.len()]);
        let task = task.read(self.buffer(), one_to_one()).write(result.buffer(), one_to_one());
        self.place().of(task).each(|(from, to)| to.set(f(from.here())))?;
        Ok(result)
    }

    /// Where a recorded condition holds: 1 there, and 0 elsewhere. This is the mask of a
    /// [selection](Self::select).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([3], &[1, -2, 3])?;
    /// assert_eq!(a.mask(|x| x.gt(0))?.to_vec()?, [1, 0, 1]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// See [`map`](Self::map).
    #[track_caller]
    pub fn mask(
        &self,
        condition: impl for<'t> FnOnce(Value<'t, T>) -> Mask<'t>,
    ) -> Result<Array<u32, D>, ArrayError> {
        self.map(|x| condition(x).select(1, 0))
    }

    /// The results of a recorded closure for each pair of elements.
    ///
    /// An axis on which one array has the length 1 is *broadcast*: its only element stands for all that the
    /// other array has. A row of the shape `[1, n]` goes with a matrix of the shape `[m, n]`, a column of the
    /// shape `[m, 1]`, too, and so does a single number in the shape `[1, 1]`. [`reshape`](Self::reshape)
    /// gives an array another shape without a copy. Both arrays are in one place.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 3], &[1, 2, 3, 4, 5, 6])?;
    /// let row = arrays.from_slice([1, 3], &[10, 20, 30])?;
    /// assert_eq!(a.zip(&row, |x, y| x + y)?.to_vec()?, [11, 22, 33, 14, 25, 36]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Shapes`] if the shapes do not fit, [`ArrayError::Places`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn zip<U: Numeric, V: Numeric>(
        &self,
        other: &Array<U, D>,
        f: impl for<'t> FnOnce(Value<'t, T>, Value<'t, U>) -> Value<'t, V>,
    ) -> Result<Array<V, D>, ArrayError> {
        let call = Call::here("zip");
        self.place().check(other.place(), call)?;
        let shape = shape::broadcast(self.shape(), other.shape(), call)?;
        let result = self.arrays().empty(shape, call)?;
        let (left, right) = (self.expanded(shape, call)?, other.expanded(shape, call)?);
        let task = self.group().task("zip").over([result.len()]).read(left.buffer(), one_to_one());
        let task = task.read(right.buffer(), one_to_one()).write(result.buffer(), one_to_one());
        self.place().of(task).each(|(left, right, to)| to.set(f(left.here(), right.here())))?;
        Ok(result)
    }

    /// Replaces each element by the result of a recorded closure.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([3], &[1, 2, 3])?;
    /// a.update(|x| x * x)?;
    /// assert_eq!(a.to_vec()?, [1, 4, 9]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// See [`map`](Self::map).
    #[track_caller]
    pub fn update(&self, f: impl for<'t> FnOnce(Value<'t, T>) -> Value<'t, T>) -> Result<(), ArrayError> {
        let task = self.group().task("update").over([self.len()]).update(self.buffer(), one_to_one());
        self.place().of(task).each(|(elements,)| elements.set(f(elements.here())))?;
        Ok(())
    }

    /// Sets all elements.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<(), ArrayError> {
        let task = self.group().task("fill").over([self.len()]).write(self.buffer(), one_to_one());
        self.place().of(task).each(|(elements,)| elements.set(value))?;
        Ok(())
    }
}
