//! Searches: the first or all elements that meet a condition, the least and the greatest.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    host::least::{self, Extreme},
    numeric::Numeric,
    pending::Pending,
    shaders::{self, operator::Known},
    shape::{self, Lines},
    slices::{read, write},
};
use anabranch::{
    min,
    par::prelude::*,
    prelude::{all, one_to_one},
    recorded::{Mask, Value},
};

/// The coordinates of an element, and the element; `None` if there is none.
pub type Found<T, const D: usize> = Option<([usize; D], T)>;

/// What stands for no element.
const NONE: u32 = u32::MAX;

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The coordinates of the first element, in row-major order, that meets a recorded condition. The
    /// condition is computed for all elements. The search runs where the array is: see the
    /// [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 2], &[1, 5, 9, 5])?;
    /// assert_eq!(a.find_first(|x| x.gt(4))?.wait()?, Some([0, 1]));
    /// assert_eq!(a.find_first(|x| x.gt(9))?.wait()?, None);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn find_first(
        &self,
        condition: impl for<'t> FnOnce(Value<'t, T>) -> Mask<'t>,
    ) -> Result<Pending<Option<[usize; D]>>, ArrayError> {
        let shape = self.shape();
        let coordinates = move |at: u32| (at != NONE).then(|| shape::coordinates(shape, at as usize));
        if shaders::run_in::<u32>(self.place()) && !self.is_empty() {
            let numbers = self.arrays().empty::<u32, D>(shape, Call::here("find_first"))?;
            let task = self.group().task("find_first").over([self.len()]).read(self.buffer(), one_to_one());
            self.place().of(task.write(numbers.buffer(), one_to_one())).each(|(from, to)| {
                to.set(condition(from.here()).select(from.index(0), NONE));
            })?;
            let found = numbers.reduce(min())?;
            return Ok(Pending::new(self.group().fence(found.buffer())?, move |found| coordinates(found[0])));
        }
        let mask = self.mask(condition)?;
        let found = self.group().buffer::<u32, 1>([1]);
        let task = self.group().task("find_first").over([1]).read(mask.buffer(), mask.whole());
        task.write(&found, all()).kernel(|_, (mask, found)| {
            let first = read(mask).par().position(|&holds| holds != 0);
            found.set([0], first.map_or(NONE, |at| at as u32));
        })?;
        Ok(Pending::new(self.group().fence(&found)?, move |found| coordinates(found[0])))
    }

    /// The numbers of all elements, in row-major order, that meet a recorded condition. They are known when
    /// the search is done, so the result is one to wait for. For the elements themselves see
    /// [`select`](Self::select). It runs where the array is: see the [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 2], &[1, 5, 9, 5])?;
    /// let found = a.find_all(|x| x.equals(5))?.wait()?;
    /// assert_eq!(found.to_vec()?, [1, 3]);
    /// assert_eq!(a.coordinates(3), [1, 1]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn find_all(
        &self,
        condition: impl for<'t> FnOnce(Value<'t, T>) -> Mask<'t>,
    ) -> Result<Pending<Array<u32, 1>>, ArrayError> {
        self.mask(condition)?.numbers(Call::here("find_all"))
    }

    /// The coordinates of the element with this number in row-major order.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn coordinates(&self, number: u32) -> [usize; D] {
        assert!(
            (number as usize) < self.len(),
            "there is no element {number} in the shape {:?}",
            self.shape()
        );
        shape::coordinates(self.shape(), number as usize)
    }

    /// The coordinates of the least element, and the element: of equal ones the first, in row-major order;
    /// `None` if there are none. The search ignores NaN, unless all elements are NaN: then it finds the first
    /// one. It runs where the array is: see the [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 2], &[4.0, f32::NAN, 2.0, 2.0])?;
    /// assert_eq!(a.find_min()?.wait()?, Some(([1, 0], 2.0)));
    /// assert_eq!(a.find_max()?.wait()?, Some(([0, 0], 4.0)));
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn find_min(&self) -> Result<Pending<Found<T, D>>, ArrayError> {
        self.find_extreme(Extreme::Least)
    }

    /// The coordinates of the greatest element, and the element: see [`find_min`](Self::find_min).
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn find_max(&self) -> Result<Pending<Found<T, D>>, ArrayError> {
        self.find_extreme(Extreme::Greatest)
    }

    /// The positions of the least elements along an axis, which has the length 1 in the result. See
    /// [`find_min`](Self::find_min) for which these are. Along an axis without elements it is 0. The
    /// search runs where the array is: see the [guide](crate::guide).
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([2, 3], &[3, 1, 2, 0, 5, 0])?;
    /// assert_eq!(a.arg_min(1)?.to_vec()?, [1, 0]);
    /// assert_eq!(a.arg_max(0)?.to_vec()?, [0, 1, 0]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Axis`] if there is no such axis. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn arg_min(&self, axis: usize) -> Result<Array<u32, D>, ArrayError> {
        self.arg_extreme(axis, Extreme::Least, Call::here("arg_min"))
    }

    /// The positions of the greatest elements along an axis: see [`arg_min`](Self::arg_min).
    ///
    /// # Errors
    /// [`ArrayError::Axis`] if there is no such axis. [`ArrayError::Runtime`].
    #[track_caller]
    pub fn arg_max(&self, axis: usize) -> Result<Array<u32, D>, ArrayError> {
        self.arg_extreme(axis, Extreme::Greatest, Call::here("arg_max"))
    }

    #[track_caller]
    fn find_extreme(&self, extreme: Extreme) -> Result<Pending<Found<T, D>>, ArrayError> {
        let shape = self.shape();
        let found = move |number: Vec<u32>, value: Vec<T>| {
            (number[0] != NONE).then(|| (shape::coordinates(shape, number[0] as usize), value[0]))
        };
        let operator = extreme.operator();
        if operator.runs_in::<T>(self.place()) && !self.is_empty() {
            let (number, value) = shaders::least::of_all(self, operator, Call::here("find"))?;
            return Ok(Pending::of_two(self.group().fence((number.buffer(), value.buffer()))?, found));
        }
        // The element and its number come together, as two buffers.
        let (number, value) = (self.group().buffer::<u32, 1>([1]), self.group().buffer::<T, 1>([1]));
        let task = self.group().task("find").over([1]).read(self.buffer(), self.whole());
        task.write(&number, all()).write(&value, all()).kernel(move |_, (elements, number, value)| {
            let elements = read(elements);
            let found = least::of_all(elements, extreme);
            number.set([0], found.map_or(NONE, |at| at as u32));
            value.set([0], found.map_or(T::default(), |at| elements[at]));
        })?;
        Ok(Pending::of_two(self.group().fence((&number, &value))?, found))
    }

    #[track_caller]
    fn arg_extreme(&self, axis: usize, extreme: Extreme, call: Call) -> Result<Array<u32, D>, ArrayError> {
        let lines = Lines::along(self.shape(), axis, call)?;
        let mut shape = self.shape();
        shape[axis] = 1;
        let result = self.arrays().empty(shape, call)?;
        if extreme.operator().runs_in::<T>(self.place()) && !self.is_empty() {
            shaders::least::of_lines(self, &result, extreme.operator(), lines, call)?;
            return Ok(result);
        }
        let task = self.group().task("find").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).kernel(move |_, (elements, positions)| {
            least::of_lines(read(elements), write(positions), lines, extreme);
        })?;
        Ok(result)
    }
}

impl Extreme {
    /// The operator that gives this element.
    fn operator(self) -> Known {
        match self {
            Self::Least => Known::Min,
            Self::Greatest => Known::Max,
        }
    }
}
