//! Sums, products and extremes of numbers.

use crate::loops::{
    Loop, Number, Producer,
    number::NumberRef,
    source::{IntoParallel, Slice, UnequalLengths},
    step::Step,
};

impl<S, Q, N> Loop<'_, S, Q>
where
    S: Producer,
    Q: Step<S::Item, Out: NumberRef<Number = N>>,
    N: Number,
{
    /// The sum of the items; 0 if there are none. For floats it is the same on any number of threads, bit for
    /// bit (and more accurate than adding them one after the other).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!((1..101_u64).par().sum(), 5050);
    /// let numbers = "1.5 2.5 -1".split(' ').par_stream().map(|word| word.parse::<f64>().unwrap());
    /// assert_eq!(numbers.clone().sum(), 3.0);
    /// assert_eq!((numbers.clone().min(), numbers.max()), (Some(-1.0), Some(2.5)));
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each); in debug builds also if integers overflow.
    pub fn sum(self) -> N {
        S::fold_numbers(self, N::ZERO, N::plus).unwrap_or(N::ZERO)
    }

    /// The product of the items; 1 if there are none. For floats and overflow see [`sum`](Self::sum).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!((1..11_u64).par().product(), 3_628_800);
    /// ```
    ///
    /// # Panics
    /// As [`sum`](Self::sum).
    pub fn product(self) -> N {
        S::fold_numbers(self, N::ONE, N::times).unwrap_or(N::ONE)
    }

    /// The smallest item; `None` if there are none. The loop ignores items that are NaN; if all items are,
    /// the result is infinite.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn min(self) -> Option<N> {
        S::fold_numbers(self, N::GREATEST, N::smaller)
    }

    /// The largest item; `None` if there are none. For items that are NaN see [`min`](Self::min).
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn max(self) -> Option<N> {
        S::fold_numbers(self, N::LEAST, N::larger)
    }
}

impl<'s, N> Loop<'_, Slice<'s, N>>
where
    N: Number,
    for<'n> &'n N: NumberRef<Number = N>,
{
    /// The scalar product: the sum of the products of the numbers with those of `other`. For floats see
    /// [`sum`](Self::sum).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!([1.0, 2.0].par().dot(&[3.0, 4.0])?, 11.0);
    /// # Ok::<(), anabranch_par::UnequalLengths>(())
    /// ```
    ///
    /// # Errors
    /// If the two have different lengths.
    pub fn dot<I>(self, other: I) -> Result<N, UnequalLengths>
    where
        I: IntoParallel<Source = Slice<'s, N>>,
        N: NumberRef<Number = N>,
    {
        Ok(self.zip(other)?.map(|(a, b)| a.times(*b)).sum())
    }
}
