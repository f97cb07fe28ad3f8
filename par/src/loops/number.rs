//! The number types that loops combine.

/// A number type that loops can add up and multiply.
pub trait Number: Copy + Send + Sync + private::Arithmetic {}

/// A number, or a reference to one.
pub trait NumberRef {
    /// The number's type.
    type Number: Number;

    /// The number.
    fn number(self) -> Self::Number;
}

pub(super) mod private {
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
