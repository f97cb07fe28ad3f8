//! Buffers of any rank.

use crate::program::{Shape, initial};
use anabranch::{
    Error, Initial,
    interface::{Part, Parts},
    prelude::*,
};

/// A buffer of any rank.
pub enum AnyBuffer {
    R0(Buffer<u64, 0>),
    R1(Buffer<u64, 1>),
    R2(Buffer<u64, 2>),
    R3(Buffer<u64, 3>),
}

macro_rules! with_rank {
    ($any:expr, $buffer:ident => $result:expr) => {
        match $any {
            AnyBuffer::R0($buffer) => $result,
            AnyBuffer::R1($buffer) => $result,
            AnyBuffer::R2($buffer) => $result,
            AnyBuffer::R3($buffer) => $result,
        }
    };
}

pub fn create(rt: &Runtime, slot: usize, shape: Shape) -> Result<AnyBuffer, Error> {
    fn one<const D: usize>(
        rt: &Runtime,
        slot: usize,
        shape: Shape,
        contents: &(impl Initial<D, Element = u64> + ?Sized),
    ) -> Result<Buffer<u64, D>, Error> {
        let buffer = match shape.initialised {
            true => rt.buffer_from(contents)?,
            false => rt.buffer(Extent(shape.extent).cast::<D>()),
        };
        Ok(buffer.with_versions(shape.versions).named(format!("slot {slot}")))
    }
    let array = ndarray::Array3::from_shape_vec(
        shape.extent,
        (0..shape.whole().len()).map(|at| initial(slot, at)).collect(),
    );
    let array = array.expect("as many as there are points");
    let first = |axes: usize| {
        array.view().into_dyn().into_shape_with_order(&shape.extent[..axes]).expect("the other extents are 1")
    };
    Ok(match shape.rank {
        0 => AnyBuffer::R0(one(
            rt,
            slot,
            shape,
            &first(0).into_dimensionality::<ndarray::Ix0>().expect("0 axes"),
        )?),
        1 => AnyBuffer::R1(one(rt, slot, shape, array.as_slice().expect("in order"))?),
        2 => AnyBuffer::R2(one(
            rt,
            slot,
            shape,
            &first(2).into_dimensionality::<ndarray::Ix2>().expect("2 axes"),
        )?),
        _ => AnyBuffer::R3(one(rt, slot, shape, &array)?),
    })
}

pub fn part<const D: usize>(buffer: &Buffer<u64, D>, range: &GridBox<3>) -> Part<u64, D> {
    buffer.part(range.cast())
}

/// Other parts for each node, in turn. No part and an empty one are the same.
pub fn parts_of<const D: usize>(buffer: &Buffer<u64, D>, parts: [GridBox<3>; 3]) -> Parts<u64, D> {
    let part = move |node: u16| (usize::from(node) % parts.len(), parts[usize::from(node) % parts.len()]);
    buffer.parts(move |node| {
        let (at, part) = part(node);
        (at == 0 || !part.is_empty()).then(|| part.cast())
    })
}

pub(super) use with_rank;
