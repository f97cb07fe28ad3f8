//! The operands of a shader: what the task declares for them.

use crate::{
    data::{element::Element, stored::Stored},
    execute::devices::Buffers,
    submit::{
        access::{Access, Read, Update, Write, list::AccessList, sealed::Sealed},
        recorded::access::padded,
        task::on_device::Extents,
    },
};
use anabranch_grid::RangeMapper;
use anabranch_kernel::{Number, shader::ElementType};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// An element of a buffer that a shader may access: a number ([`Number`]), or an array of numbers.
#[diagnostic::on_unimplemented(
    message = "a shader cannot have elements of the type `{Self}`",
    label = "not for shaders",
    note = "shaders take `f32`, `f64`, `i32`, `u32`, `i64`, `u64` and arrays of these"
)]
pub trait ShaderElement: Element {
    /// The type in WGSL.
    #[doc(hidden)]
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($number:ident),*) => {$(
        impl ShaderElement for $number {
            const TYPE: ElementType = ElementType { kind: <$number as Number>::KIND, length: None };
        }

        impl<const N: usize> ShaderElement for [$number; N]
        where
            Self: Element,
        {
            const TYPE: ElementType = ElementType { kind: <$number as Number>::KIND, length: Some(N as u32) };
        }
    )*};
}

elements!(f32, f64, i32, u32, i64, u64);

/// An operand, as its type says it.
#[derive(Clone, Copy, Debug)]
pub struct OperandType {
    pub(crate) element: ElementType,
    pub(crate) dimensions: usize,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

/// An access that a shader may have: a read, write or update of a buffer of numbers, or of arrays of numbers.
#[diagnostic::on_unimplemented(
    message = "a shader over {K} dimensions cannot have the access `{Self}`",
    label = "not for shaders",
    note = "`shader` takes reads, writes and updates of buffers of numbers, or of arrays of numbers"
)]
pub trait ShaderAccess<const K: usize>: Access<K> {
    /// The operand.
    #[doc(hidden)]
    const OPERAND: OperandType;

    /// The buffer, without its type.
    #[doc(hidden)]
    fn stored(bound: &Self::Bound) -> Arc<dyn Stored>;

    /// What a chunk declares.
    #[doc(hidden)]
    fn declared(bound: &Self::Bound, chunk: usize) -> Extents;
}

macro_rules! shader_access {
    ($($access:ident $is_read:literal $is_written:literal),*) => {$(
        impl<T, M, const D: usize, const K: usize> ShaderAccess<K> for $access<T, D, M>
        where
            T: ShaderElement,
            M: RangeMapper<K, D> + 'static,
        {
            const OPERAND: OperandType = OperandType {
                element: T::TYPE,
                dimensions: D,
                is_read: $is_read,
                is_written: $is_written,
            };

            fn stored(bound: &Self::Bound) -> Arc<dyn Stored> {
                bound.stored()
            }

            fn declared(bound: &Self::Bound, chunk: usize) -> Extents {
                let boxes = bound.regions[chunk].boxes().iter();
                let boxes = boxes.map(|range| [padded(range.min().0, 0), padded(range.max().0, 1)]).collect();
                (padded(bound.extent().0, 1), boxes)
            }
        }
    )*};
}

shader_access!(Read true false, Write false true, Update true true);

/// The accesses of a shader.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of accesses of a shader over {K} dimensions",
    label = "not for shaders",
    note = "`shader` takes reads, writes and updates of buffers of numbers, or of arrays of numbers"
)]
pub trait ShaderAccessList<const K: usize>: AccessList<K> + Sealed {
    /// The operands.
    #[doc(hidden)]
    const OPERANDS: &'static [OperandType];

    /// The buffers, without their types.
    #[doc(hidden)]
    fn stored(bound: &Self::Bound) -> Buffers;

    /// See [`ShaderAccess::declared`].
    #[doc(hidden)]
    fn declared(bound: &Self::Bound, chunk: usize) -> SmallVec<[Extents; 4]>;
}

macro_rules! shader_access_list {
    ($($access:ident $i:tt),*) => {
        impl<const K: usize, $($access: ShaderAccess<K>),*> ShaderAccessList<K> for ($($access,)*) {
            const OPERANDS: &'static [OperandType] = &[$($access::OPERAND),*];

            fn stored(bound: &Self::Bound) -> Buffers {
                smallvec![$($access::stored(&bound.$i)),*]
            }

            fn declared(bound: &Self::Bound, chunk: usize) -> SmallVec<[Extents; 4]> {
                smallvec![$($access::declared(&bound.$i, chunk)),*]
            }
        }
    };
}

shader_access_list!(A 0);
shader_access_list!(A 0, B 1);
shader_access_list!(A 0, B 1, C 2);
shader_access_list!(A 0, B 1, C 2, D 3);
shader_access_list!(A 0, B 1, C 2, D 3, E 4);
shader_access_list!(A 0, B 1, C 2, D 3, E 4, F 5);
shader_access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
shader_access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
