//! The array itself: its shape, its elements, and its place.

use crate::{
    arrays::Arrays,
    error::{ArrayError, Call},
    numeric::Numeric,
    pending::Pending,
    place::Place,
    shape,
};
use anabranch::{Buffer, device::Device, grid::Fixed, prelude::*};
use std::{fmt, sync::Arc};

/// A `D`-dimensional array of numbers on the host or on a device, with 0 to 4 dimensions. With 0 dimensions
/// it is a single number, such as a sum.
///
/// Operations return at once, and run where the array is, except those that the guide names. They are tasks:
/// each waits for those that compute what it needs. The elements are in row-major order: the last axis is contiguous.
///
/// Handles are cheap to clone: all clones are the same array. [`copy`](Self::copy) makes another one.
///
/// ```
/// use anabranch::{Runtime, sum};
/// use anabranch_array::Arrays;
///
/// let arrays = Arrays::new(&Runtime::new()?);
/// let a = arrays.from_slice([2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let means = a.reduce_axis(1, sum())?.map(|sum| sum / 3.0)?;
/// // `means` has the shape [2, 1], and is broadcast along the rows.
/// let centred = a.zip(&means, |x, mean| x - mean)?;
/// assert_eq!(centred.to_vec()?, [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
/// # Ok::<(), anabranch_array::ArrayError>(())
/// ```
pub struct Array<T, const D: usize> {
    arrays: Arrays,
    /// At least as many elements as the shape has: those of the array come first.
    buffer: Buffer<T, 1>,
    shape: [usize; D],
}

impl<T, const D: usize> Clone for Array<T, D> {
    fn clone(&self) -> Self {
        Self { arrays: self.arrays.clone(), buffer: self.buffer.clone(), shape: self.shape }
    }
}

impl<T, const D: usize> fmt::Debug for Array<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array of the shape {:?} on {}", self.shape, self.arrays.place())
    }
}

impl<T: Numeric, const D: usize> Array<T, D> {
    pub(crate) fn new(arrays: Arrays, buffer: Buffer<T, 1>, shape: [usize; D]) -> Self {
        Self { arrays, buffer, shape }
    }

    /// The number of elements along each axis.
    pub fn shape(&self) -> [usize; D] {
        self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What makes arrays where this one is.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// The device that the array is on; `None` for the host.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.arrays.device()
    }

    /// The buffer that holds the elements, for tasks of the program. The array has its first
    /// [`len`](Self::len) elements, in row-major order. The result of a selection may have a longer buffer.
    pub fn buffer(&self) -> &Buffer<T, 1> {
        &self.buffer
    }

    /// The same array as a handle whose operations run on a device. Nothing is copied now: the first
    /// operation there that needs the elements has them copied. [`copy_to`](Self::copy_to) makes a copy on
    /// the device.
    pub fn on(&self, device: &Arc<dyn Device>) -> Self {
        Self { arrays: self.arrays.on(device), ..self.clone() }
    }

    /// The same array as a handle whose operations run on the host: see [`on`](Self::on).
    pub fn on_host(&self) -> Self {
        Self { arrays: self.arrays.on_host(), ..self.clone() }
    }

    /// The same elements in another shape. Nothing is copied: both handles are the same array.
    ///
    /// # Errors
    /// [`ArrayError::Length`] if the shape has another number of elements.
    #[track_caller]
    pub fn reshape<const E: usize>(&self, shape: [usize; E]) -> Result<Array<T, E>, ArrayError> {
        let call = Call::here("reshape");
        let (expected, found) = (shape::len_of(shape, call)?, self.len());
        if expected != found {
            return Err(ArrayError::Length { call, shape: shape.to_vec(), expected, found });
        }
        Ok(Array::new(self.arrays.clone(), self.buffer.clone(), shape))
    }

    /// The elements in row-major order, when they are there.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn read(&self) -> Result<Pending<Vec<T>>, ArrayError> {
        let part = self.buffer.part(GridBox::new([0], [self.len()]));
        Ok(Pending::new(self.arrays.group().fence(&part)?, |elements| elements))
    }

    /// Waits for the elements, in row-major order.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`] if an operation that they depend on has failed.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>, ArrayError> {
        self.read()?.wait()
    }

    /// Waits for one element. Only this element is copied from a device.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 2], &[1, 2, 3, 4])?;
    /// assert_eq!(a.get([1, 0])?, 3);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Index`] if there is no such element. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn get(&self, index: [usize; D]) -> Result<T, ArrayError> {
        self.element(index)?.wait()
    }

    /// One element, when it is there: see [`get`](Self::get).
    ///
    /// # Errors
    /// [`ArrayError::Index`] if there is no such element. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn element(&self, index: [usize; D]) -> Result<Pending<T>, ArrayError> {
        let call = Call::here("element");
        if index.iter().zip(self.shape).any(|(&at, len)| at >= len) {
            return Err(ArrayError::Index { call, index: index.to_vec(), shape: self.shape.to_vec() });
        }
        let flat = index.iter().zip(shape::strides(self.shape)).map(|(at, stride)| at * stride).sum();
        let part = self.buffer.part(GridBox::new([flat], [flat + 1]));
        Ok(Pending::new(self.arrays.group().fence(&part)?, |elements| elements[0]))
    }

    pub(crate) fn place(&self) -> &Place {
        self.arrays.place()
    }

    /// The group of the operations.
    pub(crate) fn group(&self) -> &TaskGroup {
        self.arrays.group()
    }

    /// A mapper of all elements of the array.
    pub(crate) fn whole(&self) -> Fixed<GridBox<1>> {
        fixed(GridBox::new([0], [self.len()]))
    }

    /// Another handle that has the first elements, in another shape.
    pub(crate) fn first<const E: usize>(&self, shape: [usize; E]) -> Array<T, E> {
        debug_assert!(shape.iter().product::<usize>() <= self.buffer.extent().0[0]);
        Array::new(self.arrays.clone(), self.buffer.clone(), shape)
    }
}
