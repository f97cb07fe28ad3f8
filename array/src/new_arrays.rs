//! New arrays: from slices, buffers and functions.

use crate::{
    array::Array,
    arrays::Arrays,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape,
};
use anabranch::{Buffer, prelude::*, recorded::Value};
use std::array;

impl Arrays {
    /// An array without contents, which the caller writes.
    pub(crate) fn empty<T: Numeric, const D: usize>(
        &self,
        shape: [usize; D],
        call: Call,
    ) -> Result<Array<T, D>, ArrayError> {
        let buffer = self.group().buffer([shape::len_of(shape, call)?]);
        Ok(Array::new(self.clone(), buffer, shape))
    }

    /// An array with a copy of the elements, which are in row-major order: the last axis is contiguous.
    ///
    /// # Errors
    /// [`ArrayError::Length`] if the number of elements is not that of the shape. [`ArrayError::Runtime`] if
    /// there is no memory.
    #[track_caller]
    pub fn from_slice<T: Numeric, const D: usize>(
        &self,
        shape: [usize; D],
        elements: &[T],
    ) -> Result<Array<T, D>, ArrayError> {
        let call = Call::here("from_slice");
        let (expected, found) = (shape::len_of(shape, call)?, elements.len());
        if expected != found {
            return Err(ArrayError::Length { call, shape: shape.to_vec(), expected, found });
        }
        let buffer = self.group().buffer_from(elements)?;
        Ok(Array::new(self.clone(), buffer, shape))
    }

    /// An array whose elements are all equal.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn filled<T: Numeric, const D: usize>(
        &self,
        shape: [usize; D],
        value: T,
    ) -> Result<Array<T, D>, ArrayError> {
        let array = self.empty(shape, Call::here("filled"))?;
        array.fill(value)?;
        Ok(array)
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// See [`filled`](Self::filled).
    #[track_caller]
    pub fn zeros<T: Numeric, const D: usize>(&self, shape: [usize; D]) -> Result<Array<T, D>, ArrayError> {
        self.filled(shape, T::default())
    }

    /// An array whose elements a function gives from their coordinates. The function is Rust and runs on the
    /// host, on all of its threads. [`generate`](Self::generate) takes a recorded closure, which also runs on
    /// devices.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let table = arrays.from_fn([2, 3], |[i, j]| (10 * i + j) as i32)?;
    /// assert_eq!(table.to_vec()?, [0, 1, 2, 10, 11, 12]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], [`ArrayError::Runtime`]. A panic of the function fails the task: then the
    /// array has no contents, and what needs it fails.
    #[track_caller]
    pub fn from_fn<T: Numeric, const D: usize>(
        &self,
        shape: [usize; D],
        f: impl Fn([usize; D]) -> T + Send + Sync + 'static,
    ) -> Result<Array<T, D>, ArrayError> {
        let array = self.empty(shape, Call::here("from_fn"))?;
        let task = self.group().task("from_fn").over([array.len()]).write(array.buffer(), one_to_one());
        task.kernel(move |tile, (elements,)| {
            let range = tile.along(0);
            let mut index = shape::coordinates(shape, range.start);
            for element in elements.run_mut([range.start]) {
                *element = f(index);
                shape::advance(shape, &mut index);
            }
        })?;
        Ok(array)
    }

    /// An array whose elements a recorded closure gives from their coordinates. It runs where the array is.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn generate<T: Numeric, const D: usize>(
        &self,
        shape: [usize; D],
        f: impl for<'t> FnOnce([Value<'t, u32>; D]) -> Value<'t, T>,
    ) -> Result<Array<T, D>, ArrayError> {
        let array = self.empty(shape, Call::here("generate"))?;
        let strides = shape::strides(shape);
        let task = self.group().task("generate").over([array.len()]).write(array.buffer(), one_to_one());
        self.place().of(task).each(|(elements,)| {
            let flat = elements.index(0);
            // The first coordinate needs no remainder.
            let along = |axis: usize| match axis {
                0 => flat / strides[0] as u32,
                _ => flat / strides[axis] as u32 % shape[axis] as u32,
            };
            elements.set(f(array::from_fn(along)));
        })?;
        Ok(array)
    }

    /// An array of the contents of a buffer. A buffer with one dimension becomes the array itself, which
    /// shares it: see [`Array::buffer`]. Any other is copied, on the host.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`]. [`ArrayError::Runtime`] if the buffer belongs to another runtime, or if a
    /// part of it was never written.
    #[track_caller]
    pub fn from_buffer<T: Numeric, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
    ) -> Result<Array<T, D>, ArrayError> {
        let call = Call::here("from_buffer");
        let shape = buffer.extent().0;
        if let Some(buffer) = (buffer as &dyn std::any::Any).downcast_ref::<Buffer<T, 1>>() {
            shape::len_of(shape, call)?;
            return Ok(Array::new(self.clone(), buffer.clone(), shape));
        }
        let array = self.empty(shape, call)?;
        let task = self.group().task("from_buffer").over([1]);
        task.read(buffer, all()).write(array.buffer(), all()).kernel(|_, (from, to)| {
            let from = from.as_slice().expect("a whole buffer is contiguous");
            to.as_mut_slice().expect("a whole buffer is contiguous").copy_from_slice(from);
        })?;
        Ok(array)
    }
}
