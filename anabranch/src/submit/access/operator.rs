//! Operators of reductions.

use crate::data::element::Element;
use std::fmt;

/// An associative operation with an identity.
///
/// It need not be commutative: values are combined in the order of the index space. If it is only nearly
/// associative, like the sum of floating-point numbers, the result is that of one fixed tree.
///
/// ```
/// use anabranch::{Operator, prelude::*};
///
/// struct Longest;
/// impl Operator<u64> for Longest {
///     fn identity(&self) -> u64 {
///         0
///     }
///     fn combine(&self, a: u64, b: u64) -> u64 {
///         if b.count_ones() > a.count_ones() { b } else { a }
///     }
/// }
///
/// let rt = Runtime::new()?;
/// let longest = rt.buffer::<u64, 0>([]);
/// rt.task("search")
///     .over([100])
///     .reduce(&longest, Longest)
///     .kernel(|tile, (longest,)| tile.points().for_each(|[i]| longest.combine([], i as u64)))?;
/// assert_eq!(rt.fence(&longest)?.wait()?[[]], 63);
/// # Ok::<(), anabranch::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    label = "no operator for `{T}`",
    note = "`sum()`, `product()`, `min()` and `max()` combine numbers, `and()` and `or()` integers and `bool`, and all of them \
            arrays of these, element by element; complex numbers have `sum()`, with the feature `num-complex`",
    note = "for other elements, `operator(identity, |a, b| …)` makes an operator from a closure"
)]
pub trait Operator<T>: Send + Sync + 'static {
    /// The identity: `combine(identity, x)` and `combine(x, identity)` are `x`.
    fn identity(&self) -> T;

    /// Combines two values; `a` comes before `b`.
    fn combine(&self, a: T, b: T) -> T;
}

/// An operator made by [`operator`].
#[derive(Clone, Copy)]
pub struct Custom<T, F> {
    identity: T,
    combine: F,
}

impl<T, F> Operator<T> for Custom<T, F>
where
    T: Element,
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    fn identity(&self) -> T {
        self.identity
    }

    #[inline]
    fn combine(&self, a: T, b: T) -> T {
        (self.combine)(a, b)
    }
}

impl<T, F> fmt::Debug for Custom<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operator(…)")
    }
}

/// Makes an operator from its identity and a closure.
pub fn operator<T: Element, F>(identity: T, combine: F) -> Custom<T, F>
where
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    Custom { identity, combine }
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $kind:ident: $([$($type:ty),*] $identity:expr, $combine:expr;)*)*) => {$(
        /// See [`fn@
        #[doc = stringify!($name)]
        /// `].
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        $(#[$doc])*
        pub fn $name() -> $kind {
            $kind
        }

        $($(
            impl Operator<$type> for $kind {
                #[inline]
                fn identity(&self) -> $type {
                    const { $identity as $type }
                }

                #[inline]
                fn combine(&self, a: $type, b: $type) -> $type {
                    let combine: fn($type, $type) -> $type = $combine;
                    combine(a, b)
                }
            }
        )*)*
    )*};
}

operators! {
    /// The sum; of arrays, element by element. Sums of integers wrap around.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let forces = rt.buffer_from(&vec![[1.0, 0.5, -2.0]; 100])?;
    /// let total = rt.buffer::<[f64; 3], 0>([]);
    /// rt.task("total force")
    ///     .over([100])
    ///     .read(&forces, one_to_one())
    ///     .reduce(&total, sum())
    ///     .kernel(|tile, (forces, total)| tile.points().for_each(|p| total.combine([], forces[p])))?;
    /// assert_eq!(rt.fence(&total)?.wait()?[[]], [100.0, 50.0, -200.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sum Sum:
        [f32, f64] -0.0, |a, b| a + b;
        [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] 0, |a, b| a.wrapping_add(b);
    /// The product; of arrays, element by element. Products of integers wrap around.
    product Product:
        [f32, f64] 1.0, |a, b| a * b;
        [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] 1, |a, b| a.wrapping_mul(b);
}

macro_rules! extremes {
    ($([$($type:ident),*] $low:ident $high:ident, |$a:ident, $b:ident| $min:expr, $max:expr;)*) => {
        /// See [`min`].
        #[derive(Clone, Copy, Debug)]
        pub struct Min;

        /// See [`max`].
        #[derive(Clone, Copy, Debug)]
        pub struct Max;

        /// The smallest value; of no values, the largest of the type. Of floating-point numbers, the smallest
        /// that is not NaN, if there is one. Of arrays, element by element.
        pub fn min() -> Min {
            Min
        }

        /// The largest value; of no values, the smallest of the type. Of floating-point numbers, the largest
        /// that is not NaN, if there is one. Of arrays, element by element.
        pub fn max() -> Max {
            Max
        }

        $($(
            impl Operator<$type> for Min {
                fn identity(&self) -> $type {
                    $type::$high
                }
                #[inline]
                fn combine(&self, $a: $type, $b: $type) -> $type {
                    $min
                }
            }

            impl Operator<$type> for Max {
                fn identity(&self) -> $type {
                    $type::$low
                }
                #[inline]
                fn combine(&self, $a: $type, $b: $type) -> $type {
                    $max
                }
            }
        )*)*
    };
}

extremes! {
    // Of two zeros the first: which one `f32::min` gives depends on the machine.
    [f32, f64] NEG_INFINITY INFINITY, |a, b| if b < a || a.is_nan() { b } else { a }, if b > a || a.is_nan() { b } else { a };
    [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] MIN MAX, |a, b| a.min(b), a.max(b);
}

macro_rules! bitwise {
    ($($(#[$doc:meta])* $name:ident $kind:ident $op:tt $bool:literal $identity:literal;)*) => {$(
        /// See [`fn@
        #[doc = stringify!($name)]
        /// `].
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        $(#[$doc])*
        pub fn $name() -> $kind {
            $kind
        }

        impl Operator<bool> for $kind {
            fn identity(&self) -> bool {
                $bool
            }
            #[inline]
            fn combine(&self, a: bool, b: bool) -> bool {
                a $op b
            }
        }

        bitwise!(@ $kind $op $identity u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
    )*};
    (@ $kind:ident $op:tt $identity:literal $($type:ident)*) => {$(
        impl Operator<$type> for $kind {
            fn identity(&self) -> $type {
                if $identity == 1 { !0 } else { 0 }
            }
            #[inline]
            fn combine(&self, a: $type, b: $type) -> $type {
                a $op b
            }
        }
    )*};
}

bitwise! {
    /// Whether all values are true; for integers, bit by bit.
    and And & true 1;
    /// Whether any value is true; for integers, bit by bit.
    or Or | false 0;
}

/// Arrays are combined element by element.
macro_rules! element_by_element {
    ($($kind:ident)*) => {$(
        impl<T: Copy, const N: usize> Operator<[T; N]> for $kind
        where
            Self: Operator<T>,
        {
            fn identity(&self) -> [T; N] {
                [Operator::<T>::identity(self); N]
            }
            #[inline]
            fn combine(&self, a: [T; N], b: [T; N]) -> [T; N] {
                std::array::from_fn(|i| self.combine(a[i], b[i]))
            }
        }
    )*};
}

element_by_element!(Sum Product Min Max And Or);

/// There is no product: `(1 + 0i) · z` is not `z` if a part of `z` is infinite, so it has no identity.
#[cfg(feature = "num-complex")]
impl<T: Copy> Operator<num_complex::Complex<T>> for Sum
where
    Self: Operator<T>,
{
    fn identity(&self) -> num_complex::Complex<T> {
        let zero = Operator::<T>::identity(self);
        num_complex::Complex { re: zero, im: zero }
    }
    #[inline]
    fn combine(&self, a: num_complex::Complex<T>, b: num_complex::Complex<T>) -> num_complex::Complex<T> {
        num_complex::Complex { re: self.combine(a.re, b.re), im: self.combine(a.im, b.im) }
    }
}
