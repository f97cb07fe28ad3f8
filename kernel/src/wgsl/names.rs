//! The names of types in WGSL.

use crate::number::Kind;

/// The name of a type.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::I32 => "i32",
        Kind::U32 => "u32",
        Kind::I64 => "i64",
        Kind::U64 => "u64",
    }
}
