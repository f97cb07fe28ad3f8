//! Where the elements of a load are: in one slice of its operand, in one place for all points, or put together.

use super::{argument::Elements, assembled::Assembled, operands::Operands};
use crate::{
    fold::count,
    number::{Scalar, Slice},
    operation::{Along, Edge, Load, Row},
};

/// The number of points of a block at an edge, where elements have to be put together. It is enough for the longest vectors: with fewer,
/// chains would compute one vector at a time.
const AT_EDGE: usize = 256;

const OUTSIDE: &str =
    "an element is outside of the buffer: take it by `at_clamped`, `at_periodic`, `at_or` or their like";

/// What the coordinates of a load depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The first point of the block.
    pub(super) point: &'a [usize; 3],
    pub(super) parameters: &'a [Scalar],
    /// The counters of the folds.
    pub(super) counters: &'a [u32],
}

/// The coordinate that a load takes instead of `at`, in a dimension of this size; `None` if it is outside the buffer.
#[inline(always)]
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

impl Along {
    /// The coordinate for the first point of a block.
    #[inline(always)]
    fn first(&self, place: &Place<'_>) -> isize {
        let mut at = self.offset;
        if let Some(dim) = self.point {
            at += place.point[usize::from(dim)] as isize;
        }
        if let Some(number) = self.number {
            at += count(place.parameters, number) as isize;
        }
        if let Some(fold) = self.counter {
            at += place.counters[fold as usize] as isize;
        }
        at
    }
}

impl Load {
    /// The coordinates for the first point of a block.
    #[inline(always)]
    fn first(&self, place: &Place<'_>) -> [isize; 3] {
        let [z, y, x] = &self.along;
        [z.first(place), y.first(place), x.first(place)]
    }

    /// Finds the elements of a block. Makes `len` smaller where fewer elements lie one after the other, and near an edge of the buffer, so that
    /// only short blocks have to be put together.
    #[inline(always)]
    pub(super) fn find<'a>(
        &self,
        place: &Place<'_>,
        len: &mut usize,
        operands: &'a impl Operands,
    ) -> Elements<'a> {
        match self.row() {
            Row::Contiguous => self.find_slice(place, len, operands),
            Row::Same => Elements::Same(self.find_one(self.first(place), place.parameters, operands)),
            Row::Apart => Elements::Assembled,
        }
    }

    /// Finds the elements of a block that lie one after the other.
    #[inline(always)]
    fn find_slice<'a>(
        &self,
        place: &Place<'_>,
        len: &mut usize,
        operands: &'a impl Operands,
    ) -> Elements<'a> {
        let extent = operands.extent(self.operand);
        let [z, y, x] = self.first(place);
        let (Some(z), Some(y)) = (within(self.edge, z, extent[0]), within(self.edge, y, extent[1])) else {
            return Elements::Assembled;
        };
        let x = match self.edge {
            // The declaration says that all of them are there.
            Edge::Inside => usize::try_from(x).expect(OUTSIDE),
            _ => {
                let most = usize::try_from(x).map_or(0, |x| direct(x, place.point[2], *len, extent[2]));
                *len = (*len).min(if most == 0 { AT_EDGE } else { most });
                if most == 0 {
                    return Elements::Assembled;
                }
                x as usize
            }
        };
        let elements = operands.read(self.operand, [z, y, x]);
        if elements.is_empty() {
            self.refuse([z, y, x]);
        }
        *len = (*len).min(elements.len());
        Elements::Slice(elements)
    }

    /// Finds the elements of all `len` points of a block, or says that they have to be put together.
    pub(super) fn find_all<'a>(
        &self,
        place: &Place<'_>,
        len: usize,
        operands: &'a dyn Operands,
    ) -> Elements<'a> {
        let first = self.first(place);
        match self.row() {
            Row::Same => Elements::Same(self.find_one(first, place.parameters, operands)),
            Row::Contiguous => {
                let slice = self.slice_of_all(first, len, operands);
                slice.map_or(Elements::Assembled, Elements::Slice)
            }
            Row::Apart => Elements::Assembled,
        }
    }

    /// The slice that has the elements of all points; `None` if there is none.
    fn slice_of_all<'a>(
        &self,
        [z, y, x]: [isize; 3],
        len: usize,
        operands: &'a dyn Operands,
    ) -> Option<Slice<'a>> {
        let extent = operands.extent(self.operand);
        let (z, y) = (within(self.edge, z, extent[0])?, within(self.edge, y, extent[1])?);
        let x = usize::try_from(x).ok().filter(|x| x + len <= extent[2])?;
        Some(operands.read(self.operand, [z, y, x])).filter(|slice| slice.len() >= len)
    }

    /// The coordinates that the load takes instead of these; `None` if they lead out of the buffer, to the value of the edge.
    #[inline(always)]
    fn inside(&self, [z, y, x]: [isize; 3], extent: [usize; 3]) -> Option<[usize; 3]> {
        let [z, y, x] = [(z, extent[0]), (y, extent[1]), (x, extent[2])];
        Some([within(self.edge, z.0, z.1)?, within(self.edge, y.0, y.1)?, within(self.edge, x.0, x.1)?])
    }

    /// Finds one element.
    fn find_one(&self, at: [isize; 3], parameters: &[Scalar], operands: &dyn Operands) -> Scalar {
        match self.inside(at, operands.extent(self.operand)) {
            Some(at) => operands.read(self.operand, at).first().unwrap_or_else(|| self.refuse(at)),
            None => self.outside(parameters),
        }
    }

    /// The value of the edge.
    fn outside(&self, parameters: &[Scalar]) -> Scalar {
        match self.edge {
            Edge::Parameter(value) => parameters[value as usize],
            Edge::Inside | Edge::Clamped | Edge::Periodic => unreachable!("all others have an element"),
        }
    }

    #[cold]
    fn refuse(&self, at: [usize; 3]) -> ! {
        panic!("operand {} gave no element at {at:?}", self.operand)
    }

    /// Puts the elements of a block together.
    pub(super) fn assemble(
        &self,
        place: &Place<'_>,
        len: usize,
        operands: &dyn Operands,
        to: &mut Assembled,
    ) {
        to.clear(self.kind);
        match self.row() {
            Row::Contiguous => self.assemble_runs(place, len, operands, to),
            Row::Same => to.repeat(self.find_one(self.first(place), place.parameters, operands), len),
            Row::Apart => self.assemble_apart(place, len, operands, to),
        }
    }

    /// Puts together elements that lie apart from each other.
    fn assemble_apart(&self, place: &Place<'_>, len: usize, operands: &dyn Operands, to: &mut Assembled) {
        let extent = operands.extent(self.operand);
        let (mut at, steps) =
            (self.first(place), self.along.map(|along| isize::from(along.point == Some(2))));
        for _ in 0..len {
            match self.inside(at, extent) {
                Some(at) if to.extend(operands.read(self.operand, at), 1) == 0 => self.refuse(at),
                Some(_) => {}
                None => to.repeat(self.outside(place.parameters), 1),
            }
            at.iter_mut().zip(steps).for_each(|(at, step)| *at += step);
        }
    }

    /// Puts together elements that lie one after the other as far as they are inside of the buffer, and in one box of the region.
    fn assemble_runs(&self, place: &Place<'_>, len: usize, operands: &dyn Operands, to: &mut Assembled) {
        let extent = operands.extent(self.operand);
        let [z, y, x] = self.first(place);
        let row = within(self.edge, z, extent[0]).zip(within(self.edge, y, extent[1]));
        let outside = |count: usize, to: &mut Assembled| {
            let Edge::Parameter(value) = self.edge else { unreachable!("all others have an element") };
            to.repeat(place.parameters[value as usize], count);
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
