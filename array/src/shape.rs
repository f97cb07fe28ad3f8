//! Arithmetic with shapes. Elements are in row-major order: the last axis is contiguous.

use crate::error::{ArrayError, Call, MAX_LEN};

/// The number of elements.
///
/// # Errors
/// If there are too many.
pub(crate) fn len_of<const D: usize>(shape: [usize; D], call: Call) -> Result<usize, ArrayError> {
    const { assert!(D <= 4, "arrays have up to 4 dimensions") };
    if shape.contains(&0) {
        return Ok(0);
    }
    let len = shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n));
    len.filter(|&len| len < MAX_LEN).ok_or(ArrayError::TooLarge { call, shape: shape.to_vec() })
}

/// How far apart neighbours along each axis are.
pub(crate) fn strides<const D: usize>(shape: [usize; D]) -> [usize; D] {
    let mut strides = [1; D];
    for axis in (1..D).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// The coordinates of an element.
pub(crate) fn coordinates<const D: usize>(shape: [usize; D], mut flat: usize) -> [usize; D] {
    let mut index = [0; D];
    for axis in (0..D).rev() {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    index
}

/// Moves coordinates to the next element, in row-major order.
pub(crate) fn advance<const D: usize>(shape: [usize; D], index: &mut [usize; D]) {
    for axis in (0..D).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return;
        }
        index[axis] = 0;
    }
}

/// The shape that two arrays are broadcast to: along each axis their lengths are equal, or one of them is 1.
pub(crate) fn broadcast<const D: usize>(
    left: [usize; D],
    right: [usize; D],
    call: Call,
) -> Result<[usize; D], ArrayError> {
    let mut shape = left;
    for axis in 0..D {
        match (left[axis], right[axis]) {
            (a, b) if a == b => {}
            (1, b) => shape[axis] = b,
            (_, 1) => {}
            _ => {
                let rule = "along each axis the lengths must be equal, or one of them 1";
                return Err(ArrayError::Shapes { call, left: left.to_vec(), right: right.to_vec(), rule });
            }
        }
    }
    Ok(shape)
}

/// An array as seen from one of its axes: element `x` of position `i` of row `o` is number
/// `(o * len + i) * inner + x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The product of the lengths before the axis.
    pub(crate) outer: usize,
    /// The length of the axis.
    pub(crate) len: usize,
    /// The product of the lengths after the axis.
    pub(crate) inner: usize,
}

impl Lines {
    /// All elements, as one line.
    pub(crate) fn whole(len: usize) -> Self {
        Self { outer: 1, len, inner: 1 }
    }

    /// The number of elements of all lines.
    pub(crate) fn elements(self) -> usize {
        self.outer * self.len * self.inner
    }

    /// The lines along an axis.
    pub(crate) fn along<const D: usize>(
        shape: [usize; D],
        axis: usize,
        call: Call,
    ) -> Result<Self, ArrayError> {
        let Some(&len) = shape.get(axis) else {
            return Err(ArrayError::Axis { call, axis, shape: shape.to_vec() });
        };
        let outer = shape[..axis].iter().product();
        Ok(Self { outer, len, inner: shape[axis + 1..].iter().product() })
    }
}
