//! Where the elements of a load are: in one slice of its operand, or put together at an edge of the buffer.

use super::walk::Operands;
use crate::{
    number::{Kind, Number, Scalar, Slice},
    operation::{Edge, Load},
};

/// The elements of a load for one block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loaded<'a> {
    /// They lie one after the other in the operand.
    Slice(Slice<'a>),
    /// They have to be put together.
    Assembled,
}

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
            fn clear(&mut self, kind: Kind) {
                match (&mut *self, kind) {
                    $((Self::$kind(values), Kind::$kind) => values.clear(),)*
                    $((_, Kind::$kind) => *self = Self::$kind(Vec::new()),)*
                    (_, Kind::Bool) => unreachable!("no operand has masks"),
                }
            }

            /// Adds up to `most` elements. Returns how many there are.
            fn extend(&mut self, from: Slice<'_>, most: usize) -> usize {
                let count = from.len().min(most);
                match (self, from) {
                    $((Self::$kind(values), Slice::$kind(from)) => values.extend_from_slice(&from[..count]),)*
                    _ => panic!("an operand has elements of another type than it was recorded with"),
                }
                count
            }

            /// Adds `count` copies.
            fn repeat(&mut self, value: Scalar, count: usize) {
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

const OUTSIDE: &str = "an offset leads out of the buffer: use `at_clamped`, `at_periodic` or `at_or`";

/// The coordinate that a load takes instead of `at`, in a dimension of this size; `None` if it is outside the buffer.
fn within(edge: Edge, at: isize, size: usize) -> Option<usize> {
    if let Ok(inside) = usize::try_from(at)
        && inside < size
    {
        return Some(inside);
    }
    match edge {
        Edge::Inside => panic!("{OUTSIDE}"),
        Edge::Clamped => Some(if at < 0 { 0 } else { size - 1 }),
        Edge::Periodic => Some(at.rem_euclid(size as isize) as usize),
        Edge::Parameter(_) => None,
    }
}

impl Load {
    /// The point of the first element of a block that begins at `point`, if all of its `len` elements are in one row of the buffer.
    pub(super) fn direct(&self, point: [usize; 3], len: usize, extent: [usize; 3]) -> Option<[usize; 3]> {
        let [z, y, x] = [0, 1, 2].map(|dim| point[dim] as isize + self.offset[dim]);
        let (z, y) = (within(self.edge, z, extent[0])?, within(self.edge, y, extent[1])?);
        let x = match (self.edge, usize::try_from(x)) {
            // The declaration says that they are there.
            (Edge::Inside, x) => x.expect(OUTSIDE),
            (_, x) => x.ok().filter(|x| x + len <= extent[2])?,
        };
        Some([z, y, x])
    }

    /// Puts the elements of a block together.
    pub(super) fn assemble(
        &self,
        point: [usize; 3],
        len: usize,
        operands: &impl Operands,
        parameters: &[Scalar],
        to: &mut Assembled,
    ) {
        to.clear(self.kind);
        let extent = operands.extent(self.operand);
        let [z, y, x] = [0, 1, 2].map(|dim| point[dim] as isize + self.offset[dim]);
        let row = within(self.edge, z, extent[0]).zip(within(self.edge, y, extent[1]));
        let outside = |count: usize, to: &mut Assembled| {
            let Edge::Parameter(value) = self.edge else { unreachable!("all others have an element") };
            to.repeat(parameters[value as usize], count);
        };
        let Some((z, y)) = row else { return outside(len, to) };
        let mut done = 0;
        while done < len {
            let at = x + done as isize;
            let Some(inside) = within(self.edge, at, extent[2]) else {
                outside(1, to);
                done += 1;
                continue;
            };
            let is_repeated = self.edge == Edge::Clamped && inside as isize != at;
            let most = if is_repeated { 1 } else { (len - done).min(extent[2] - inside) };
            let added = to.extend(operands.read(self.operand, [z, y, inside]), most);
            assert!(added > 0, "operand {} gave no element at {:?}", self.operand, [z, y, inside]);
            done += added;
        }
    }
}

/// The slice, as numbers of a type.
#[inline(always)]
pub(super) fn numbers<T: Number>(slice: Slice<'_>) -> &[T] {
    T::of_slice(slice).expect("an operand has the type that it was recorded with")
}
