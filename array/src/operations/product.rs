//! Products of matrices.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shaders,
    slices::{read, write},
};
use anabranch::{par::prelude::*, prelude::all};

/// A thread computes this many rows of the product at a time.
const ROWS: usize = 64;

impl<T: Numeric> Array<T, 2> {
    /// The product of two matrices: `[m, k]` by `[k, n]` gives `[m, n]`. Integers wrap around. Both arrays
    /// are in one place, and so is the product: see the [guide](crate::guide).
    ///
    /// The bits of floating-point numbers are the same on any number of threads. They may differ between
    /// processors, of which some round `a * b + c` once.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 2], &[1.0, 2.0, 3.0, 4.0])?;
    /// let b = arrays.from_slice([2, 1], &[1.0, 10.0])?;
    /// assert_eq!(a.matmul(&b)?.to_vec()?, [21.0, 43.0]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Shapes`] if the first matrix has another number of columns than the other one has rows,
    /// [`ArrayError::Places`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn matmul(&self, other: &Self) -> Result<Self, ArrayError> {
        let call = Call::here("matmul");
        self.place().check(other.place(), call)?;
        let ([m, inner], [rows, n]) = (self.shape(), other.shape());
        if inner != rows {
            let (left, right) = (vec![m, inner], vec![rows, n]);
            let rule = "the first matrix must have as many columns as the other one has rows";
            return Err(ArrayError::Shapes { call, left, right, rule });
        }
        let result = self.arrays().empty([m, n], call)?;
        if shaders::run_in::<T>(self.place()) && !result.is_empty() {
            shaders::product::multiply(self, other, &result)?;
            return Ok(result);
        }
        let task = self.group().task("matmul").over([1]).read(self.buffer(), self.whole());
        let task = task.read(other.buffer(), other.whole()).write(result.buffer(), all());
        task.kernel(move |_, (a, b, c)| {
            let (a, b, c) = (read(a), read(b), write(c));
            if c.is_empty() {
                return;
            }
            c.par_chunks_mut(ROWS * n).enumerate().chunking(false).for_each(|(band, c)| {
                let first = band * ROWS * inner;
                T::multiply(&a[first..first + c.len() / n * inner], b, c, inner, n);
            });
        })?;
        Ok(result)
    }
}
