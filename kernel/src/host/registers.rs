//! The registers of a program while it runs: a block for each, in a bank for each type.

use crate::{number::Kind, program::Program};

/// The most points of a block, and those of a block of a program that needs many registers.
const BLOCK: usize = 2048;
const SHORT_BLOCK: usize = 512;

/// The memory for the registers of a program whose blocks are longer than [`SHORT_BLOCK`]. They share the
/// first-level cache with the operands, and a long block costs less for each point: its elements are found
/// once.
const LONG_BLOCKS: usize = 32 << 10;

/// The most points of a block of a program that keeps nothing for its points: it goes through its operands
/// once.
const WITHOUT_MEMORY: usize = 8192;

/// The most points of the blocks of a program.
pub(super) fn block_len(program: &Program) -> usize {
    match program.bytes_of_point {
        0 => WITHOUT_MEMORY,
        bytes => (LONG_BLOCKS / bytes / SHORT_BLOCK * SHORT_BLOCK).clamp(SHORT_BLOCK, BLOCK),
    }
}

/// No operation reads the register that it writes.
pub(super) const IN_BANK: &str = "the block is in its bank";

/// The blocks of the registers of one type. A block that an operation writes leaves its bank meanwhile.
pub(crate) type Bank<T> = Vec<Option<Box<Aligned<T>>>>;

/// A block. It begins at a cache line, so that no vector lies in two.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) [T; BLOCK]);

macro_rules! banks {
    ($($field:ident $kind:ident $number:ty),*) => {
        /// The registers of all types.
        #[derive(Debug, Default)]
        pub(crate) struct Banks {
            $(pub(crate) $field: Bank<$number>),*
        }

        impl Banks {
            /// Lets two registers of a type change their places.
            pub(super) fn swap(&mut self, kind: Kind, a: usize, b: usize) {
                match kind {
                    $(Kind::$kind => self.$field.swap(a, b)),*
                }
            }

            pub(super) fn reserve(&mut self, program: &Program) {
                $(
                    let count = program.registers.of(Kind::$kind);
                    let bank = &mut self.$field;
                    bank.resize_with(count.max(bank.len()), || None);
                    // A panic of an operation may have lost a block.
                    for block in &mut bank[..count] {
                        block.get_or_insert_with(|| Box::new(Aligned([Default::default(); BLOCK])));
                    }
                )*
            }
        }
    };
}

banks!(bool Bool bool, f32 F32 f32, f64 F64 f64, i32 I32 i32, u32 U32 u32, i64 I64 i64, u64 U64 u64);
