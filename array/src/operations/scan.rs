//! Scans.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    host::scan,
    numeric::Numeric,
    shaders::{self, operator::Known},
    shape::Lines,
    slices::{read, write},
};
use anabranch::{Operator, prelude::all};

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The running results of an operator: each element of the result combines all elements up to the same
    /// place, in row-major order.
    ///
    /// The tree in which they are combined depends on the shape, and on whether a device runs it. An operator
    /// of your own runs on the host, the others where the array is: see the [guide](crate::guide).
    ///
    /// ```
    /// use anabranch::sum;
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    ///
    /// let a = arrays.from_slice([4], &[1, 2, 3, 4])?;
    /// assert_eq!(a.scan(sum())?.to_vec()?, [1, 3, 6, 10]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`]. A panic of the operator fails the task.
    #[track_caller]
    pub fn scan<O: Operator<T>>(&self, operator: O) -> Result<Self, ArrayError> {
        self.scan_lines(operator, Lines::whole(self.len()), Call::here("scan"))
    }

    /// The running results along an axis: see [`scan`](Self::scan).
    ///
    /// ```
    /// use anabranch::sum;
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    ///
    /// let a = arrays.from_slice([2, 3], &[1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(a.scan_axis(0, sum())?.to_vec()?, [1, 2, 3, 5, 7, 9]);
    /// assert_eq!(a.scan_axis(1, sum())?.to_vec()?, [1, 3, 6, 4, 9, 15]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Axis`] if there is no such axis. See [`scan`](Self::scan).
    #[track_caller]
    pub fn scan_axis<O: Operator<T>>(&self, axis: usize, operator: O) -> Result<Self, ArrayError> {
        let call = Call::here("scan_axis");
        self.scan_lines(operator, Lines::along(self.shape(), axis, call)?, call)
    }

    #[track_caller]
    fn scan_lines<O: Operator<T>>(&self, operator: O, lines: Lines, call: Call) -> Result<Self, ArrayError> {
        let result = self.arrays().empty(self.shape(), call)?;
        match Known::of::<O>() {
            Some(known) if known.runs_in::<T>(self.place()) && !self.is_empty() => {
                shaders::scan::lines(known, self, &result, lines, call)?;
                return Ok(result);
            }
            _ => {}
        }
        let task = self.group().task("scan").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).kernel(move |_, (from, to)| {
            scan::lines(&operator, read(from), write(to), lines);
        })?;
        Ok(result)
    }
}
