//! Where the elements of a load are: in one slice of its operand, or put together at an edge of the buffer.

use super::{assembled::Assembled, operands::Operands};
use crate::{
    number::{Scalar, Slice},
    operation::{Edge, Load},
};

/// The number of points of a block at an edge, where elements have to be put together. It is enough for the longest vectors: with fewer,
/// chains would compute one vector at a time.
const AT_EDGE: usize = 256;

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
    /// Finds the elements of a block that begins at `point`; `None` if they have to be put together. Makes `len` smaller where fewer
    /// elements lie one after the other, and near an edge of the buffer, so that only short blocks have to be put together.
    #[inline]
    pub(super) fn find<'a>(
        &self,
        point: [usize; 3],
        len: &mut usize,
        operands: &'a impl Operands,
    ) -> Option<Slice<'a>> {
        let extent = operands.extent(self.operand);
        let [z, y, x] = [0, 1, 2].map(|dim| point[dim] as isize + self.offset[dim]);
        let (z, y) = (within(self.edge, z, extent[0])?, within(self.edge, y, extent[1])?);
        let x = match self.edge {
            // The declaration says that all of them are there.
            Edge::Inside => usize::try_from(x).expect(OUTSIDE),
            _ => {
                let most = usize::try_from(x).map_or(0, |x| direct(x, point[2], *len, extent[2]));
                *len = (*len).min(if most == 0 { AT_EDGE } else { most });
                (most > 0).then_some(x as usize)?
            }
        };
        let elements = operands.read(self.operand, [z, y, x]);
        assert!(!elements.is_empty(), "operand {} gave no element at {:?}", self.operand, [z, y, x]);
        *len = (*len).min(elements.len());
        Some(elements)
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

/// How many elements a block of up to `len` points takes from `x` on, if its first point is `first` and the buffer ends at `end`. None, if
/// the edge is so near that the elements are put together.
fn direct(x: usize, first: usize, len: usize, end: usize) -> usize {
    let inside = end.saturating_sub(x);
    if inside >= len {
        return len;
    }
    // The rest of the row is a block of its own. All loads agree where it begins, unless their offsets are large.
    let most = inside.min(end.saturating_sub(first + AT_EDGE));
    if most < AT_EDGE / 2 { 0 } else { most }
}
