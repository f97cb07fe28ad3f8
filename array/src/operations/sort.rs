//! Sorting.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shaders,
    shape::Lines,
    slices::{read, write},
};
use anabranch::{par::prelude::*, prelude::all};

/// All threads sort a longer line together. Of shorter ones each thread sorts some by itself.
const LONG: usize = 1 << 15;

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The array with its elements along the last axis in order: of floating-point numbers `-0.0` comes
    /// before `0.0`, and NaN comes last. To sort along another axis, [`permute`](Self::permute) the axes
    /// before and after; to sort all elements, [`reshape`](Self::reshape). The sort runs where the
    /// array is: see the [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 3], &[3.0, 1.0, 2.0, f32::NAN, 0.0, -0.5])?;
    /// let sorted = a.sort()?.to_vec()?;
    /// assert_eq!(sorted[..5], [1.0, 2.0, 3.0, -0.5, 0.0]);
    /// assert!(sorted[5].is_nan());
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn sort(&self) -> Result<Self, ArrayError> {
        let call = Call::here("sort");
        let lines = match D {
            0 => Lines::whole(1),
            _ => Lines::along(self.shape(), D - 1, call)?,
        };
        if shaders::rank::is_known_in::<T>(self.place()) && !self.is_empty() {
            let result = self.copy()?;
            shaders::sort::lines(&result, lines)?;
            return Ok(result);
        }
        let result = self.arrays().empty(self.shape(), call)?;
        let task = self.group().task("sort").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).kernel(move |_, (from, to)| {
            let to = write(to);
            if to.is_empty() {
                return;
            }
            to.copy_from_slice(read(from));
            if lines.len >= LONG {
                to.chunks_mut(lines.len).for_each(|line| line.par_sort_unstable_by(T::order));
                return;
            }
            let size = LONG / lines.len * lines.len;
            to.par_chunks_mut(size).chunking(false).for_each(|part| {
                part.chunks_mut(lines.len).for_each(|line| line.sort_unstable_by(T::order));
            });
        })?;
        Ok(result)
    }
}
