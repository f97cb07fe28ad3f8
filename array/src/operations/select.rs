//! Selection by a mask.

use crate::{
    array::Array,
    error::{ArrayError, Call},
    host::compact,
    numeric::Numeric,
    pending::Pending,
    shaders,
    slices::{read, write},
};
use anabranch::{
    interface::Part,
    prelude::{GridBox, all},
};

impl<T: Numeric, const D: usize> Array<T, D> {
    /// The elements where a mask is not 0, in row-major order. Their number is known when the selection is
    /// done, so the result is one to wait for. It runs where the array is: see the [guide](crate::guide).
    /// Until it is dropped, the result has the memory of all elements.
    ///
    /// ```
    /// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
    /// let a = arrays.from_slice([5], &[1.0, -2.0, 3.0, -4.0, 5.0])?;
    /// let positive = a.select(&a.mask(|x| x.gt(0.0))?)?.wait()?;
    /// assert_eq!((positive.shape(), positive.to_vec()?), ([3], vec![1.0, 3.0, 5.0]));
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Shapes`] if the mask has another shape, [`ArrayError::Places`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn select(&self, mask: &Array<u32, D>) -> Result<Pending<Array<T, 1>>, ArrayError> {
        let call = Call::here("select");
        self.place().check(mask.place(), call)?;
        if self.shape() != mask.shape() {
            let (left, right) = (self.shape().to_vec(), mask.shape().to_vec());
            return Err(ArrayError::Shapes { call, left, right, rule: "a mask has the shape of the array" });
        }
        let result = self.arrays().empty([self.len()], call)?;
        if shaders::run_in::<T>(self.place()) && !self.is_empty() {
            let places = shaders::compact::places(mask, call)?;
            shaders::compact::scatter(self, mask, &places, &result)?;
            return result.selected(&places.last());
        }
        let count = self.group().buffer::<u32, 1>([1]);
        let task = self.group().task("select").over([1]).read(self.buffer(), self.whole());
        let task = task.read(mask.buffer(), mask.whole()).write(result.buffer(), all()).write(&count, all());
        task.kernel(|_, (elements, mask, to, count)| {
            let elements = read(elements);
            let selected = compact::compact(read(mask), write(to), |at| elements[at]);
            count.set([0], selected as u32);
        })?;
        result.selected(&count.capture())
    }

    /// The first elements, as many as a kernel has counted.
    #[track_caller]
    pub(super) fn selected(&self, count: &Part<u32, 1>) -> Result<Pending<Array<T, 1>>, ArrayError> {
        let all = self.clone();
        Ok(Pending::new(self.group().fence(count)?, move |count| all.first([count[0] as usize])))
    }
}

impl<const D: usize> Array<u32, D> {
    /// The numbers of the elements that are not 0.
    #[track_caller]
    pub(super) fn numbers(&self, call: Call) -> Result<Pending<Array<u32, 1>>, ArrayError> {
        let result = self.arrays().empty([self.len()], call)?;
        if shaders::run_in::<u32>(self.place()) && !self.is_empty() {
            let places = shaders::compact::places(self, call)?;
            shaders::compact::scatter_numbers(self, &places, &result)?;
            return result.selected(&places.last());
        }
        let count = self.group().buffer::<u32, 1>([1]);
        let task = self.group().task("find_all").over([1]).read(self.buffer(), self.whole());
        task.write(result.buffer(), all()).write(&count, all()).kernel(|_, (mask, to, count)| {
            let selected = compact::compact(read(mask), write(to), |at| at as u32);
            count.set([0], selected as u32);
        })?;
        result.selected(&count.capture())
    }

    /// The last element.
    fn last(&self) -> Part<u32, 1> {
        self.buffer().part(GridBox::new([self.len() - 1], [self.len()]))
    }
}
