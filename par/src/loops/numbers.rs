//! Sums, extremes and products of numbers, in lanes that the compiler makes vectors of.

use super::{
    Loop, Source, Step, Stream,
    output::Output,
    source::{IntoParallel, Slice, UnequalLengths},
};
use std::convert::Infallible;

/// How many partial results a participant keeps at a time: enough to hide the latency of an addition.
const LANES: usize = 16;

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
        /// Not larger, or not smaller, than any other number.
        const LEAST: Self;
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

            // One comparison, which is one instruction of vectors. What is not a number is passed over.
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
    S: Source,
    Q: Step<S::Item>,
    Q::Out: NumberRef<Number = N>,
    N: Number,
{
    /// The sum of the items; 0 where there are none. For floats it is the same on any number of threads, bit for bit (and
    /// more accurate than adding them one after the other).
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each); in debug builds where integers overflow.
    pub fn sum(self) -> N {
        self.fold_numbers(N::ZERO, N::plus)
    }

    /// The product of the items; 1 where there are none. Floats and overflow: see [`sum`](Self::sum).
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
        self.fold_numbers(N::ONE, N::times)
    }

    /// The smallest item; `None` where there are none. Items that are not a number (NaN) are passed over; where there is
    /// nothing else, the result is infinite.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn min(self) -> Option<N> {
        (self.len() > 0).then(|| self.fold_numbers(N::GREATEST, N::smaller))
    }

    /// The largest item; `None` where there are none. For items that are not a number see [`min`](Self::min).
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn max(self) -> Option<N> {
        (self.len() > 0).then(|| self.fold_numbers(N::LEAST, N::larger))
    }

    fn fold_numbers(self, identity: N, op: impl Fn(N, N) -> N + Copy + Sync) -> N {
        let split = self.leaves_of_numbers();
        let mut leaves: Vec<Option<N>> = Vec::new();
        let output = Output::behind(&mut leaves, split.chunks());
        let done = self.drive_by::<Infallible, _>(split, |units, mut run| {
            // SAFETY: runs are disjoint, and so are their units.
            let mut writer = unsafe { output.writer(units.clone()) };
            for unit in units {
                let part = run.split_off(split.chunk(unit).end);
                let lanes = part.lanes::<N, LANES>(identity, |sum, item| op(sum, item.number()));
                writer.push(Some(pairwise(lanes, op)));
            }
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
        output.finish();
        // SAFETY: all of them are written.
        unsafe { leaves.set_len(split.chunks()) };
        let combined = self.combine::<_, Infallible>(&split, &mut leaves, &op, true);
        combined.unwrap_or_else(|error| error.resume()).unwrap_or(identity)
    }
}

impl<I, Q, N> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item, Out: NumberRef<Number = N>>,
    N: Number,
{
    /// The sum of the items; 0 where there are none. For floats it is the same on any number of threads, bit for bit.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let numbers = "1.5 2.5 -1".split(' ').par_stream().map(|word| word.parse::<f64>().unwrap());
    /// assert_eq!(numbers.clone().sum(), 3.0);
    /// assert_eq!((numbers.clone().min(), numbers.max()), (Some(-1.0), Some(2.5)));
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each); in debug builds where integers overflow.
    pub fn sum(self) -> N {
        self.fold(|| N::ZERO, |sum, item| sum.plus(item.number()), N::plus)
    }

    /// The product of the items; 1 where there are none. Floats: see [`sum`](Self::sum).
    ///
    /// # Panics
    /// As [`sum`](Self::sum).
    pub fn product(self) -> N {
        self.fold(|| N::ONE, |product, item| product.times(item.number()), N::times)
    }

    /// The smallest item; `None` where there are none. For items that are not a number see [`Loop::min`].
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn min(self) -> Option<N> {
        self.extreme(N::GREATEST, N::smaller)
    }

    /// The largest item; `None` where there are none. For items that are not a number see [`Loop::min`].
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn max(self) -> Option<N> {
        self.extreme(N::LEAST, N::larger)
    }

    fn extreme(self, identity: N, op: impl Fn(N, N) -> N + Copy + Sync) -> Option<N> {
        let either = |a: Option<N>, b: Option<N>| match (a, b) {
            (Some(a), Some(b)) => Some(op(a, b)),
            (a, b) => a.or(b),
        };
        self.fold(|| None, |best, item| either(best.or(Some(identity)), Some(item.number())), either)
    }
}

/// Combines lane k with lane k + half, until one is left.
#[inline]
fn pairwise<N: Copy>(mut lanes: [N; LANES], op: impl Fn(N, N) -> N) -> N {
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = op(lanes[k], lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0]
}

impl<'s, N> Loop<'_, Slice<'s, N>>
where
    N: Number,
    for<'n> &'n N: NumberRef<Number = N>,
{
    /// The sum of the products of the numbers with those of `other`. Floats: see [`sum`](Self::sum).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!([1.0, 2.0].par().dot(&[3.0, 4.0])?, 11.0);
    /// # Ok::<(), anabranch_par::UnequalLengths>(())
    /// ```
    ///
    /// # Errors
    /// Where there are not as many.
    pub fn dot<I>(self, other: I) -> Result<N, UnequalLengths>
    where
        I: IntoParallel<Source = Slice<'s, N>>,
        N: NumberRef<Number = N>,
    {
        Ok(self.zip(other)?.map(|(a, b)| a.times(*b)).sum())
    }
}
