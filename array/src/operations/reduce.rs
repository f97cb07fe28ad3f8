//! Reductions: all elements, or along one axis.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    host::fold,
    numeric::Numeric,
    shaders::{self, operator::Known},
    shape::Lines,
    slices::{read, write},
};
use anabranch::{Operator, prelude::all, recorded::Value};

impl<T: Numeric, const D: usize> Array<T, D> {
    /// Combines all elements by an operator: [`sum`](anabranch::sum), [`product`](anabranch::product),
    /// [`min`](anabranch::min()), [`max`](anabranch::max()) or one [of your own](anabranch::operator). The
    /// reduction of no elements is the identity.
    ///
    /// The tree in which they are combined depends on the shape, and on whether a device runs it. An operator
    /// of your own gets the elements in their order, on the host. The others run where the array is: see the
    /// [guide](crate::guide).
    ///
    /// ```
    /// use anabranch::{max, operator, sum};
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    ///
    /// let a = arrays.from_slice([2, 2], &[1, 2, 3, 4])?;
    /// assert_eq!((a.reduce(sum())?.get([])?, a.reduce(max())?.get([])?), (10, 4));
    /// assert_eq!(a.reduce(operator(0, |a, b| a ^ b))?.get([])?, 4);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`]. A panic of the operator fails the task.
    #[track_caller]
    pub fn reduce<O: Operator<T>>(&self, operator: O) -> Result<Array<T, 0>, ArrayError> {
        let result = self.arrays().empty([], Call::here("reduce"))?;
        self.fold_lines(operator, &result, Lines::whole(self.len()))?;
        Ok(result)
    }

    /// Combines the results of a recorded closure: see [`map`](Self::map) and [`reduce`](Self::reduce).
    ///
    /// ```
    /// use anabranch::sum;
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    ///
    /// let a = arrays.from_slice([3], &[1.0_f64, 2.0, 3.0])?;
    /// assert_eq!(a.map_reduce(|x| x * x, sum())?.get([])?, 14.0);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// See [`map`](Self::map) and [`reduce`](Self::reduce).
    #[track_caller]
    pub fn map_reduce<U: Numeric, O: Operator<U>>(
        &self,
        f: impl for<'t> FnOnce(Value<'t, T>) -> Value<'t, U>,
        operator: O,
    ) -> Result<Array<U, 0>, ArrayError> {
        self.map(f)?.reduce(operator)
    }

    /// Combines the elements along an axis, which has the length 1 in the result: so [`zip`](Self::zip) can
    /// broadcast it over the array.
    ///
    /// ```
    /// use anabranch::sum;
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    ///
    /// let a = arrays.from_slice([2, 3], &[1, 2, 3, 4, 5, 6])?;
    /// let (columns, rows) = (a.reduce_axis(0, sum())?, a.reduce_axis(1, sum())?);
    /// assert_eq!((columns.shape(), columns.to_vec()?), ([1, 3], vec![5, 7, 9]));
    /// assert_eq!((rows.shape(), rows.to_vec()?), ([2, 1], vec![6, 15]));
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Axis`] if there is no such axis. See [`reduce`](Self::reduce).
    #[track_caller]
    pub fn reduce_axis<O: Operator<T>>(&self, axis: usize, operator: O) -> Result<Self, ArrayError> {
        let call = Call::here("reduce_axis");
        let lines = Lines::along(self.shape(), axis, call)?;
        let mut shape = self.shape();
        shape[axis] = 1;
        let result = self.arrays().empty(shape, call)?;
        self.fold_lines(operator, &result, lines)?;
        Ok(result)
    }

    /// Combines the results of a recorded closure along an axis: see [`map`](Self::map) and
    /// [`reduce_axis`](Self::reduce_axis).
    ///
    /// # Errors
    /// See [`map`](Self::map) and [`reduce_axis`](Self::reduce_axis).
    #[track_caller]
    pub fn map_reduce_axis<U: Numeric, O: Operator<U>>(
        &self,
        axis: usize,
        f: impl for<'t> FnOnce(Value<'t, T>) -> Value<'t, U>,
        operator: O,
    ) -> Result<Array<U, D>, ArrayError> {
        self.map(f)?.reduce_axis(axis, operator)
    }

    #[track_caller]
    fn fold_lines<O: Operator<T>, const E: usize>(
        &self,
        operator: O,
        result: &Array<T, E>,
        lines: Lines,
    ) -> Result<(), ArrayError> {
        match Known::of::<O>() {
            Some(known) if known.runs_in::<T>(self.place()) && !self.is_empty() => {
                return shaders::fold::lines(known, self, result, lines);
            }
            _ => {}
        }
        let task = self.group().task("reduce").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).kernel(move |_, (from, to)| {
            fold::lines(&operator, read(from), write(to), lines);
        })?;
        Ok(())
    }
}
