//! Elements of a load that do not lie one after the other.

use crate::number::{Number, Slice};

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

/// A number, and where its elements are put together.
pub(super) trait Assemble: Number {
    /// An empty list, whose elements will be those of the load.
    fn emptied(assembled: &mut Assembled) -> &mut Vec<Self>;
}

macro_rules! assembled {
    ($($kind:ident $number:ident),*) => {
        impl Assembled {
            /// The elements from this one on.
            #[inline]
            pub(super) fn slice(&self, from: usize) -> Slice<'_> {
                match self {
                    Self::Nothing => Slice::F32(&[]),
                    $(Self::$kind(values) => Slice::$kind(&values[from..])),*
                }
            }
        }

        $(
            impl Assemble for $number {
                fn emptied(assembled: &mut Assembled) -> &mut Vec<Self> {
                    if !matches!(assembled, Assembled::$kind(_)) {
                        *assembled = Assembled::$kind(Vec::new());
                    }
                    let Assembled::$kind(values) = assembled else { unreachable!("the list has this type now") };
                    values.clear();
                    values
                }
            }
        )*
    };
}

assembled!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);
