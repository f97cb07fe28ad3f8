//! Loads that have their elements in one row of an operand. They share a slice of it, as far as the region
//! has the row in one piece.

use super::{
    argument::Elements,
    load::{Place, coordinate},
    operands::Others,
};
use crate::{number::Slice, operation::Edge, steps::RowOfLoads};
use smallvec::SmallVec;

/// The slices of operands. If a program has loops, those that differ from turn to turn come first, at the
/// numbers of their loads.
pub(super) type Slices<'a> = SmallVec<[Slice<'a>; 8]>;

/// The slice of a row that was found last: its first coordinate, and its number of elements.
#[derive(Default)]
struct Found {
    from: usize,
    len: usize,
}

impl RowOfLoads {
    /// Finds the elements of all loads for a block, and makes `len` smaller where fewer elements lie one
    /// after the other. Elements near an edge of the buffer have to be put together: there a block has at
    /// most `at_edge` points.
    #[inline(always)]
    pub(super) fn find<'a>(
        &self,
        place: &Place<'_>,
        (len, at_edge): (&mut usize, usize),
        others: &'a Others<'_>,
        slices: &mut Slices<'a>,
        elements: &mut [Elements],
    ) {
        let extent = self.one.extent(others);
        let Some([z, y]) = self.one.row_inside(place, extent) else { return };
        let mut found = Found::default();
        for (load, along) in &self.loads {
            let x = along.first(place);
            if self.one.edge != Edge::Inside {
                let most =
                    usize::try_from(x).map_or(0, |x| direct((x, place.point[2]), (*len, at_edge), extent[2]));
                *len = (*len).min(if most == 0 { at_edge } else { most });
                if most == 0 {
                    continue;
                }
            }
            let at = [z, y, coordinate(x)];
            let from = found.look(at, self.one.operand, others, slices);
            *len = (*len).min(found.len - from);
            elements[*load as usize] = Elements::Slice { number: slices.len() as u32 - 1, from };
        }
    }
}

impl Found {
    /// The place of an element in the last slice, which is another one if this one does not have it.
    #[inline(always)]
    fn look<'a>(
        &mut self,
        at: [usize; 3],
        operand: usize,
        others: &'a Others<'_>,
        slices: &mut Slices<'a>,
    ) -> usize {
        let [_, _, x] = at;
        let from = x.wrapping_sub(self.from);
        if from < self.len {
            return from;
        }
        let slice = others.get(operand).read(at);
        assert!(!slice.is_empty(), "operand {operand} gave no element at {at:?}");
        *self = Self { from: x, len: slice.len() };
        slices.push(slice);
        0
    }
}

/// How many elements a block of up to `len` points takes from `x` on, if its first point is `first` and the
/// buffer ends at `end`. It is 0 if the edge is so near that the elements are put together.
#[inline(always)]
fn direct((x, first): (usize, usize), (len, at_edge): (usize, usize), end: usize) -> usize {
    let inside = end.saturating_sub(x);
    if inside >= len {
        return len;
    }
    // The rest of the row is a block of its own. All loads agree where it begins, unless their offsets are
    // large.
    let most = inside.min(end.saturating_sub(first + at_edge));
    if most < at_edge / 2 { 0 } else { most }
}
