//! Elements of a load that do not lie one after the other.

use crate::number::{Number, Slice};

/// Elements that were gathered in a list.
#[derive(Debug, Default)]
pub(super) enum Gathered {
    #[default]
    Nothing,
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
}

/// A number, and the list where its elements are gathered.
pub(super) trait Gather: Number {
    /// An empty list, whose elements will be those of the load.
    fn emptied(gathered: &mut Gathered) -> &mut Vec<Self>;
}

macro_rules! gathered {
    ($($kind:ident $number:ident),*) => {
        impl Gathered {
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
            impl Gather for $number {
                fn emptied(gathered: &mut Gathered) -> &mut Vec<Self> {
                    if !matches!(gathered, Gathered::$kind(_)) {
                        *gathered = Gathered::$kind(Vec::new());
                    }
                    let Gathered::$kind(values) = gathered else { unreachable!("the list has this type now") };
                    values.clear();
                    values
                }
            }
        )*
    };
}

gathered!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);
