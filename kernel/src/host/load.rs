//! Where the elements of a load are: in one slice of its operand, in one place for all points, or put
//! together.

use super::{
    argument::{Elements, number, numbers},
    gathered::{Gather, Gathered},
    operands::Others,
};
use crate::{
    fold::count,
    number::{Kind, Number, Scalar, Slice},
    operation::{Along, Edge, Load, Row},
};

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

/// The coordinate that a load takes instead of `at`, in a dimension of this size; `None` if it is outside the
/// buffer.
#[inline(always)]
pub(super) fn within(edge: Edge, at: isize, size: usize) -> Option<usize> {
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

/// A coordinate of an element that the declaration has.
#[inline(always)]
pub(super) fn coordinate(at: isize) -> usize {
    usize::try_from(at).expect(OUTSIDE)
}

impl Along {
    /// The coordinate for the first point of a block.
    #[inline(always)]
    pub(super) fn first(&self, place: &Place<'_>) -> isize {
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

    /// Finds the elements of a load that is in no row: one for all points, or some that have to be put
    /// together.
    pub(super) fn find_beside_rows(&self, place: &Place<'_>, others: &Others<'_>) -> Elements {
        match self.row() {
            Row::Same => Elements::Same(self.find_one(self.first(place), place.parameters, others)),
            Row::Contiguous => unreachable!("elements that lie one after the other are in a row"),
            Row::Apart => Elements::Gathered,
        }
    }

    /// Finds the elements of all `len` points of a block in an iteration of a fold. A slice of them goes to
    /// the place of this number.
    #[inline(always)]
    pub(super) fn find_in_iteration<'a>(
        &self,
        place: &Place<'_>,
        len: usize,
        others: &'a Others<'_>,
        (slices, number): (&mut [Slice<'a>], u32),
    ) -> Elements {
        match self.row() {
            Row::Same => Elements::Same(self.find_one(self.first(place), place.parameters, others)),
            Row::Contiguous => match self.slice_of_all(place, len, others) {
                Some(slice) => {
                    slices[number as usize] = slice;
                    Elements::Slice { number, from: 0 }
                }
                None => Elements::Gathered,
            },
            Row::Apart => Elements::Gathered,
        }
    }

    /// The slice that has the elements of all points; `None` if there is none.
    #[inline(always)]
    fn slice_of_all<'a>(&self, place: &Place<'_>, len: usize, others: &'a Others<'_>) -> Option<Slice<'a>> {
        let extent = self.extent(others);
        let [z, y] = self.row_inside(place, extent)?;
        let x = usize::try_from(self.along[2].first(place)).ok()?;
        let is_inside = len <= extent[2].saturating_sub(x);
        is_inside.then(|| others.get(self.operand).read([z, y, x])).filter(|slice| slice.len() >= len)
    }

    /// The extent of the operand, if the load has to know it. Without an edge the declaration says that all
    /// elements are there, and the operand refuses others.
    #[inline(always)]
    pub(super) fn extent(&self, others: &Others<'_>) -> [usize; 3] {
        match self.edge {
            Edge::Inside => [usize::MAX; 3],
            _ => others.get(self.operand).extent(),
        }
    }

    /// The coordinates that the load takes instead of these; `None` if they lead out of the buffer, to the
    /// value of the edge.
    #[inline(always)]
    fn inside(&self, [z, y, x]: [isize; 3], extent: [usize; 3]) -> Option<[usize; 3]> {
        let (z, y) = (within(self.edge, z, extent[0])?, within(self.edge, y, extent[1])?);
        Some([z, y, within(self.edge, x, extent[2])?])
    }

    /// The coordinates of the row of the load for the points of a block, like [`inside`](Self::inside).
    #[inline(always)]
    pub(super) fn row_inside(&self, place: &Place<'_>, extent: [usize; 3]) -> Option<[usize; 2]> {
        let [z, y, _] = &self.along;
        let (z, y) = (z.first(place), y.first(place));
        Some([within(self.edge, z, extent[0])?, within(self.edge, y, extent[1])?])
    }

    /// Finds one element.
    fn find_one(&self, at: [isize; 3], parameters: &[Scalar], others: &Others<'_>) -> Scalar {
        match self.inside(at, self.extent(others)) {
            Some(at) => others.get(self.operand).read(at).first().unwrap_or_else(|| self.refuse(at)),
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

    /// Gathers the elements of a block.
    pub(super) fn gather(&self, place: &Place<'_>, len: usize, others: &Others<'_>, to: &mut Gathered) {
        match self.kind {
            Kind::F32 => self.gather_numbers::<f32>(place, len, others, to),
            Kind::F64 => self.gather_numbers::<f64>(place, len, others, to),
            Kind::I32 => self.gather_numbers::<i32>(place, len, others, to),
            Kind::U32 => self.gather_numbers::<u32>(place, len, others, to),
            Kind::I64 => self.gather_numbers::<i64>(place, len, others, to),
            Kind::U64 => self.gather_numbers::<u64>(place, len, others, to),
            Kind::Bool => unreachable!("no operand has masks"),
        }
    }

    fn gather_numbers<T: Gather>(
        &self,
        place: &Place<'_>,
        len: usize,
        others: &Others<'_>,
        to: &mut Gathered,
    ) {
        let to = T::emptied(to);
        match self.row() {
            Row::Contiguous => self.gather_runs(self.along[2].first(place), place, len, others, to),
            Row::Same => unreachable!("one element for all points needs no list"),
            Row::Apart => self.gather_apart(place, len, others, to),
        }
    }

    /// Gathers elements that lie apart from each other.
    fn gather_apart<T: Number>(&self, place: &Place<'_>, len: usize, others: &Others<'_>, to: &mut Vec<T>) {
        let extent = self.extent(others);
        let (mut at, steps) =
            (self.first(place), self.along.map(|along| isize::from(along.point == Some(2))));
        for _ in 0..len {
            to.push(match self.inside(at, extent) {
                Some(at) => self.read(at, others)[0],
                None => number(self.outside(place.parameters)),
            });
            at.iter_mut().zip(steps).for_each(|(at, step)| *at += step);
        }
    }

    /// Appends `len` elements to a list, from coordinate `x` on. They lie one after the other as far as they
    /// are inside of the buffer, and in one box of the region.
    pub(super) fn gather_runs<T: Number>(
        &self,
        x: isize,
        place: &Place<'_>,
        len: usize,
        others: &Others<'_>,
        to: &mut Vec<T>,
    ) {
        let extent = self.extent(others);
        let end = to.len() + len;
        let Some([z, y]) = self.row_inside(place, extent) else {
            return to.resize(end, number(self.outside(place.parameters)));
        };
        let mut at = x;
        while to.len() < end {
            let before = to.len();
            match within(self.edge, at, extent[2]) {
                None => to.push(number(self.outside(place.parameters))),
                Some(inside) => {
                    let is_repeated = self.edge == Edge::Clamped && inside as isize != at;
                    let most = if is_repeated { 1 } else { (end - before).min(extent[2] - inside) };
                    let elements = self.read([z, y, inside], others);
                    to.extend_from_slice(&elements[..most.min(elements.len())]);
                }
            }
            at += (to.len() - before) as isize;
        }
    }

    /// The elements from a place on: at least one.
    #[inline(always)]
    fn read<'a, T: Number>(&self, at: [usize; 3], others: &'a Others<'_>) -> &'a [T] {
        let elements = numbers(others.get(self.operand).read(at));
        if elements.is_empty() {
            self.refuse(at);
        }
        elements
    }
}
