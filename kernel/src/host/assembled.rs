//! Elements of a load that do not lie one after the other.

use crate::number::{Kind, Scalar, Slice};

/// Elements that were put together.
#[derive(Debug, Default)]
pub(super) enum Assembled {
    #[default]
    Nothing,
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
}

macro_rules! assembled {
    ($($kind:ident),*) => {
        impl Assembled {
            /// Makes this an empty block of a type.
            pub(super) fn clear(&mut self, kind: Kind) {
                match (&mut *self, kind) {
                    $((Self::$kind(values), Kind::$kind) => values.clear(),)*
                    $((_, Kind::$kind) => *self = Self::$kind(Vec::new()),)*
                    (_, Kind::Bool) => unreachable!("no operand has masks"),
                }
            }

            /// Adds up to `most` elements. Returns how many there are.
            pub(super) fn extend(&mut self, from: Slice<'_>, most: usize) -> usize {
                let count = from.len().min(most);
                match (self, from) {
                    $((Self::$kind(values), Slice::$kind(from)) => values.extend_from_slice(&from[..count]),)*
                    _ => panic!("an operand has elements of another type than it was recorded with"),
                }
                count
            }

            /// Adds `count` copies.
            pub(super) fn repeat(&mut self, value: Scalar, count: usize) {
                match (self, value) {
                    $((Self::$kind(values), Scalar::$kind(value)) => {
                        values.extend(std::iter::repeat_n(value, count));
                    })*
                    _ => unreachable!("a value outside the buffer has the type of its elements"),
                }
            }

            /// The elements.
            pub(super) fn slice(&self) -> Slice<'_> {
                match self {
                    Self::Nothing => Slice::F32(&[]),
                    $(Self::$kind(values) => Slice::$kind(values)),*
                }
            }
        }
    };
}

assembled!(F32, F64, I32, U32, I64, U64);
