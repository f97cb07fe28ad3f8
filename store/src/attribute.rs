//! Attributes: named values in the root group of a file, where every HDF5 tool shows them.

use hdf5::types::{FloatSize, IntSize, TypeDescriptor, VarLenAscii, VarLenUnicode};
use std::fmt;

/// The value of an attribute.
///
/// Two values are equal when their types and bits are, so that a NaN equals itself.
///
/// ```
/// use anabranch_store::Attr;
/// assert_eq!(Attr::from(0.014_f32).to_string(), "0.014");
/// assert_ne!(Attr::from(1_u64), Attr::from(1_i64));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attr {
    /// Text.
    String(String),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// An unsigned integer.
    U64(u64),
    /// A signed integer.
    I64(i64),
}

impl PartialEq for Attr {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a == b,
            (Self::F32(a), Self::F32(b)) => a.to_bits() == b.to_bits(),
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::U64(a), Self::U64(b)) => a == b,
            (Self::I64(a), Self::I64(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Attr {}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(value) => write!(f, "{value:?}"),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::U64(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
        }
    }
}

macro_rules! from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Attr {
            fn from(value: $t) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
from!(&str => String, String => String, f32 => F32, f64 => F64, u64 => U64, u32 => U64, i64 => I64, i32 => I64);

impl From<usize> for Attr {
    fn from(value: usize) -> Self {
        Self::U64(value as u64)
    }
}

impl Attr {
    /// Writes the value as an attribute of an HDF5 object.
    pub(crate) fn write(&self, to: &hdf5::Location, name: &str) -> hdf5::Result<()> {
        match self {
            Self::String(text) => {
                let text: VarLenUnicode = text.parse().map_err(|e| hdf5::Error::from(format!("{e:?}")))?;
                to.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&text)
            }
            Self::F32(value) => to.new_attr::<f32>().create(name)?.write_scalar(value),
            Self::F64(value) => to.new_attr::<f64>().create(name)?.write_scalar(value),
            Self::U64(value) => to.new_attr::<u64>().create(name)?.write_scalar(value),
            Self::I64(value) => to.new_attr::<i64>().create(name)?.write_scalar(value),
        }
    }

    /// Reads an attribute, widening small integers. `None` for types and shapes without a variant.
    pub(crate) fn read(from: &hdf5::Location, name: &str) -> hdf5::Result<Option<Self>> {
        let attr = from.attr(name)?;
        if !attr.is_scalar() {
            return Ok(None);
        }
        Ok(Some(match attr.dtype()?.to_descriptor()? {
            TypeDescriptor::VarLenUnicode => Self::String(attr.read_scalar::<VarLenUnicode>()?.to_string()),
            TypeDescriptor::VarLenAscii => Self::String(attr.read_scalar::<VarLenAscii>()?.to_string()),
            TypeDescriptor::Float(FloatSize::U4) => Self::F32(attr.read_scalar()?),
            TypeDescriptor::Float(FloatSize::U8) => Self::F64(attr.read_scalar()?),
            TypeDescriptor::Unsigned(IntSize::U1 | IntSize::U2 | IntSize::U4 | IntSize::U8) => {
                Self::U64(attr.read_scalar()?)
            }
            TypeDescriptor::Integer(_) => Self::I64(attr.read_scalar()?),
            _ => return Ok(None),
        }))
    }

    /// Reads all attributes of an HDF5 object that have a variant.
    pub(crate) fn read_all(from: &hdf5::Location) -> hdf5::Result<Vec<(String, Self)>> {
        let mut found = Vec::new();
        for name in from.attr_names()? {
            if let Some(value) = Self::read(from, &name)? {
                found.push((name, value));
            }
        }
        Ok(found)
    }
}
