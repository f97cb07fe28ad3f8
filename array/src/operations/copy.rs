//! Copies between arrays, slices and places.

use crate::{
    array::Array,
    arrays::Arrays,
    error::{ArrayError, Call},
    numeric::Numeric,
    shaders, shape,
    slices::{read, write},
};
use anabranch::{
    par::prelude::*,
    prelude::{all, one_to_one},
};

/// A thread copies this many elements at a time.
const PART: usize = 1 << 15;

impl<T: Numeric, const D: usize> Array<T, D> {
    /// Another array with the same elements, in the same place.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn copy(&self) -> Result<Self, ArrayError> {
        self.copy_to(self.arrays())
    }

    /// Another array with the same elements, in the place of `arrays`: from the host to a device, back, or
    /// from one device to another.
    ///
    /// ```
    /// use anabranch::{
    ///     Runtime,
    ///     device::{Device, Simulated},
    /// };
    /// use anabranch_array::Arrays;
    /// use std::sync::Arc;
    ///
    /// let device: Arc<dyn Device> = Arc::new(Simulated::new());
    /// let host = Arrays::new(&Runtime::new()?);
    /// let a = host.from_slice([2], &[1.0_f32, 2.0])?;
    /// let on_device = a.copy_to(&host.on(&device))?;
    /// on_device.update(|x| x + 1.0)?;
    /// assert_eq!((a.to_vec()?, on_device.copy_to(&host)?.to_vec()?), (vec![1.0, 2.0], vec![2.0, 3.0]));
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn copy_to(&self, arrays: &Arrays) -> Result<Self, ArrayError> {
        let result = arrays.empty(self.shape(), Call::here("copy_to"))?;
        result.copy_from(self)?;
        Ok(result)
    }

    /// Replaces all elements by those of another array, which may be in another place. The copy runs in the
    /// place of this array.
    ///
    /// # Errors
    /// [`ArrayError::Shapes`] if the shapes differ. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn copy_from(&self, other: &Self) -> Result<(), ArrayError> {
        let call = Call::here("copy_from");
        if self.shape() != other.shape() {
            let (left, right) = (self.shape().to_vec(), other.shape().to_vec());
            return Err(ArrayError::Shapes { call, left, right, rule: "a copy needs equal shapes" });
        }
        let task = self.group().task("copy").over([self.len()]);
        let task = task.read(other.buffer(), one_to_one()).write(self.buffer(), one_to_one());
        self.place().of(task).each(|(from, to)| to.set(from.here()))?;
        Ok(())
    }

    /// Replaces all elements by those of a slice, in row-major order. The slice is copied before the call
    /// returns.
    ///
    /// # Errors
    /// [`ArrayError::Length`] if there are more or fewer. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn copy_from_slice(&self, elements: &[T]) -> Result<(), ArrayError> {
        let call = Call::here("copy_from_slice");
        let (expected, found) = (self.len(), elements.len());
        if expected != found {
            return Err(ArrayError::Length { call, shape: self.shape().to_vec(), expected, found });
        }
        let from = self.group().buffer_from(elements)?;
        let task = self.group().task("copy").over([found]).read(&from, one_to_one());
        let task = task.write(self.buffer(), one_to_one());
        self.place().of(task).each(|(from, to)| to.set(from.here()))?;
        Ok(())
    }

    /// Copies the elements to the device of the array now, instead of before the first operation that needs
    /// them.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn prefetch(&self) -> Result<(), ArrayError> {
        if self.device().is_none() || self.is_empty() {
            return Ok(());
        }
        // A task that reads all elements on the device, and computes hardly anything.
        let first = self.group().buffer([1]);
        let task = self.group().task("prefetch").over([1]).read(self.buffer(), self.whole());
        self.place().of(task.write(&first, one_to_one())).each(|(from, to)| to.set(from.here()))?;
        Ok(())
    }

    /// The array, with the axes of length 1 repeated up to a shape. Nothing is copied if it has that shape.
    pub(crate) fn expanded(&self, shape: [usize; D], call: Call) -> Result<Self, ArrayError> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let result = self.arrays().empty(shape, call)?;
        if shaders::run_in::<T>(self.place()) {
            shaders::gather::gather("broadcast", self, &result, repeated(self.shape()))?;
            return Ok(result);
        }
        let task = self.group().task("broadcast").over([1]);
        let task = task.read(self.buffer(), self.whole()).write(result.buffer(), all());
        let (from_shape, to_shape) = (self.shape(), shape);
        task.kernel(move |_, (from, to)| {
            let from = read(from);
            write(to).par_chunks_mut(PART).enumerate().for_each(|(part, to)| {
                expand(from, from_shape, to, to_shape, part * PART);
            });
        })?;
        Ok(result)
    }
}

/// How far apart neighbours along each axis are, where an axis of length 1 is repeated.
fn repeated<const D: usize>(shape: [usize; D]) -> [usize; D] {
    let mut strides = shape::strides(shape);
    (0..D).filter(|&axis| shape[axis] == 1).for_each(|axis| strides[axis] = 0);
    strides
}

/// Sets the elements from number `first` on to those of a smaller array, whose axes of length 1 are repeated.
fn expand<T: Copy, const D: usize>(
    from: &[T],
    from_shape: [usize; D],
    to: &mut [T],
    to_shape: [usize; D],
    first: usize,
) {
    let Some(last) = D.checked_sub(1) else { return };
    let strides = repeated(from_shape);
    let mut index = shape::coordinates(to_shape, first);
    let mut rest = to;
    while !rest.is_empty() {
        let run = (to_shape[last] - index[last]).min(rest.len());
        let (row, behind) = std::mem::take(&mut rest).split_at_mut(run);
        let at: usize = index.iter().zip(strides).map(|(at, stride)| at * stride).sum();
        match strides[last] {
            0 => row.fill(from[at]),
            _ => row.copy_from_slice(&from[at..at + run]),
        }
        rest = behind;
        index[last] += run - 1;
        shape::advance(to_shape, &mut index);
    }
}
