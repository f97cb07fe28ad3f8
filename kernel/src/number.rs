//! The numbers that kernels compute with, one by one and in slices whose type is known at run time.

use crate::operator::Reducible;
use std::fmt;

mod sealed {
    pub trait Sealed {}
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The result of a comparison.
    Bool,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i64`
    I64,
    /// `u64`
    U64,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bool => "bool",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
        })
    }
}

/// A number that a recorded kernel can compute with: `f32`, `f64`, `i32`, `u32`, `i64` or `u64`.
#[diagnostic::on_unimplemented(
    message = "a recorded kernel cannot compute with `{Self}`",
    label = "not a number of recorded kernels",
    note = "recorded kernels compute with `f32`, `f64`, `i32`, `u32`, `i64` and `u64`; `.kernel(…)` takes any Rust code"
)]
pub trait Number:
    sealed::Sealed + Reducible + Copy + Default + PartialOrd + fmt::Debug + Send + Sync + 'static
{
    /// The type.
    const KIND: Kind;

    /// The number, with its type.
    fn scalar(self) -> Scalar;

    /// A slice, with its type.
    fn slice(values: &[Self]) -> Slice<'_>;

    /// A slice that can be written, with its type.
    fn slice_mut(values: &mut [Self]) -> SliceMut<'_>;

    /// The number, if it has this type.
    #[doc(hidden)]
    fn of_scalar(scalar: Scalar) -> Option<Self>;

    /// The slice, if it has this type.
    #[doc(hidden)]
    fn of_slice(slice: Slice<'_>) -> Option<&[Self]>;

    /// The slice, if it has this type.
    #[doc(hidden)]
    fn of_slice_mut(slice: SliceMut<'_>) -> Option<&mut [Self]>;
}

impl Scalar {
    /// The bits. Two numbers of one type are the same if their bits are.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Self::F32(value) => value.to_bits().into(),
            Self::F64(value) => value.to_bits(),
            Self::I32(value) => value.cast_unsigned().into(),
            Self::U32(value) => value.into(),
            Self::I64(value) => value.cast_unsigned(),
            Self::U64(value) => value,
        }
    }
}

/// A floating-point number: `f32` or `f64`.
pub trait Float: Number {}
/// A number with a sign: not `u32` and not `u64`.
pub trait Signed: Number {}

impl Float for f32 {}
impl Float for f64 {}
impl Signed for f32 {}
impl Signed for f64 {}
impl Signed for i32 {}
impl Signed for i64 {}

macro_rules! numbers {
    ($($kind:ident $number:ident),*) => {
        /// A number, with its type.
        #[derive(Clone, Copy, Debug)]
        pub enum Scalar {
            $(#[doc = concat!("`", stringify!($number), "`")] $kind($number)),*
        }

        impl Scalar {
            /// The type.
            pub fn kind(self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind),*
                }
            }
        }

        /// Numbers of one type that lie one after the other.
        #[derive(Clone, Copy, Debug)]
        pub enum Slice<'a> {
            $(#[doc = concat!("`", stringify!($number), "`")] $kind(&'a [$number])),*
        }

        impl Slice<'_> {
            /// The number of elements.
            #[inline]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$kind(values) => values.len()),*
                }
            }

            /// The first element.
            #[inline]
            pub(crate) fn first(&self) -> Option<Scalar> {
                match self {
                    $(Self::$kind(values) => values.first().map(|&value| Scalar::$kind(value))),*
                }
            }

            /// Whether there are no elements.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The type of the elements.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind),*
                }
            }
        }

        /// Numbers of one type that lie one after the other and can be written.
        #[derive(Debug)]
        pub enum SliceMut<'a> {
            $(#[doc = concat!("`", stringify!($number), "`")] $kind(&'a mut [$number])),*
        }

        impl SliceMut<'_> {
            /// The number of elements.
            #[inline]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$kind(values) => values.len()),*
                }
            }

            /// Whether there are no elements.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The same slice, for a shorter time.
            #[inline(always)]
            pub(crate) fn reborrow(&mut self) -> SliceMut<'_> {
                match self {
                    $(Self::$kind(values) => SliceMut::$kind(values)),*
                }
            }
        }

        $(
            impl sealed::Sealed for $number {}

            impl Number for $number {
                const KIND: Kind = Kind::$kind;

                #[inline]
                fn scalar(self) -> Scalar {
                    Scalar::$kind(self)
                }

                #[inline]
                fn slice(values: &[Self]) -> Slice<'_> {
                    Slice::$kind(values)
                }

                #[inline]
                fn slice_mut(values: &mut [Self]) -> SliceMut<'_> {
                    SliceMut::$kind(values)
                }

                #[inline]
                fn of_scalar(scalar: Scalar) -> Option<Self> {
                    if let Scalar::$kind(value) = scalar { Some(value) } else { None }
                }

                #[inline]
                fn of_slice(slice: Slice<'_>) -> Option<&[Self]> {
                    if let Slice::$kind(values) = slice { Some(values) } else { None }
                }

                #[inline]
                fn of_slice_mut(slice: SliceMut<'_>) -> Option<&mut [Self]> {
                    if let SliceMut::$kind(values) = slice { Some(values) } else { None }
                }
            }
        )*
    };
}

numbers!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);
