//! Sums, products and extremes of numbers.

use crate::loops::{
    Loop, Producer,
    source::{IntoParallel, Slice, UnequalLengths},
    step::Step,
};

/// A number type that loops can add up and multiply.
pub trait Number: Copy + Send + Sync + private::Arithmetic {}

/// A number, or a reference to one.
pub trait NumberRef {
    /// The number's type.
    type Number: Number;

    /// The number.
    fn number(self) -> Self::Number;
}

mod private {
    pub trait Arithmetic: Sized {
        const ZERO: Self;
        const ONE: Self;
        /// No number is smaller.
        const LEAST: Self;
        /// No number is larger.
        const GREATEST: Self;
        fn plus(self, other: Self) -> Self;
        fn times(self, other: Self) -> Self;
        fn smaller(self, other: Self) -> Self;
        fn larger(self, other: Self) -> Self;
    }
}

macro_rules! numbers {
    ($($type:ty: $zero:expr, $one:expr, $least:expr, $greatest:expr);+ $(;)?) => {$(
        impl Number for $type {}

        impl NumberRef for $type {
            type Number = $type;

            #[inline]
            fn number(self) -> $type {
                self
            }
        }

        impl NumberRef for &$type {
            type Number = $type;

            #[inline]
            fn number(self) -> $type {
                *self
            }
        }

        impl private::Arithmetic for $type {
            const ZERO: $type = $zero;
            const ONE: $type = $one;
            const LEAST: $type = $least;
            const GREATEST: $type = $greatest;

            #[inline]
            fn plus(self, other: $type) -> $type {
                self + other
            }

            #[inline]
            fn times(self, other: $type) -> $type {
                self * other
            }

            // One comparison, which is one vector instruction. NaN as `other` is passed over.
            #[inline]
            fn smaller(self, other: $type) -> $type {
                if other < self { other } else { self }
            }

            #[inline]
            fn larger(self, other: $type) -> $type {
                if other > self { other } else { self }
            }
        }
    )+};
}
numbers! {
    f64: 0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY;
    f32: 0.0, 1.0, f32::NEG_INFINITY, f32::INFINITY;
    usize: 0, 1, usize::MIN, usize::MAX;
    u64: 0, 1, u64::MIN, u64::MAX;
    u32: 0, 1, u32::MIN, u32::MAX;
    u16: 0, 1, u16::MIN, u16::MAX;
    u8: 0, 1, u8::MIN, u8::MAX;
    isize: 0, 1, isize::MIN, isize::MAX;
    i64: 0, 1, i64::MIN, i64::MAX;
    i32: 0, 1, i32::MIN, i32::MAX;
    i16: 0, 1, i16::MIN, i16::MAX;
    i8: 0, 1, i8::MIN, i8::MAX;
}

impl<S, Q, N> Loop<'_, S, Q>
where
    S: Producer,
    Q: Step<S::Item, Out: NumberRef<Number = N>>,
    N: Number,
{
    /// The sum of the items; 0 if there are none. For floats it is the same on any number of threads, bit for bit (and more
    /// accurate than adding them one after the other).
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

    /// The smallest item; `None` if there are none. Items that are not a number (NaN) are passed over; if there is nothing
    /// else, the result is infinite.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn min(self) -> Option<N> {
        S::fold_numbers(self, N::GREATEST, N::smaller)
    }

    /// The largest item; `None` if there are none. For items that are not a number see [`min`](Self::min).
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
    /// The scalar product: the sum of the products of the numbers with those of `other`. For floats see [`sum`](Self::sum).
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
