//! Loads that have their elements in one row of an operand. They share a slice: of the operand, as far as the
//! region has the row in one piece, or of a [padded](super::padded) copy where some of them lead out of the
//! buffer.
//!
//! When a run begins, [`Rows`] finds out what is the same for all of its blocks.

use super::{
    argument::Elements,
    load::{Place, coordinate, within},
    operands::Others,
    padded::{Contents, PaddedRows, Padding},
};
use crate::{
    number::{Scalar, Slice},
    operation::Edge,
    program::Program,
    steps::RowOfLoads,
};
use smallvec::SmallVec;
use std::ops::Range;

/// The most points of a block that begins and ends at edges. Copying a longer row costs more than the blocks
/// at its ends, which have `SHORT` points.
const LONGEST: usize = 2048;
const SHORT: usize = 512;

/// Loads further apart than this share no slice: a padded copy would have many elements that no load takes.
const FAR: usize = 64;

/// The slices of operands. If a program has loops, those that differ between iterations come first, at the
/// numbers of their loads.
pub(super) type Slices<'a> = SmallVec<[Slice<'a>; 8]>;

/// The rows of loads of a program, in a run.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<RowInRun>,
    /// The loads of all rows: their numbers in the program, and how many elements they begin after the least
    /// coordinate of their row. Those of a row are in this order.
    loads: Vec<(u32, usize)>,
    padded: PaddedRows,
}

/// Loads that share a slice.
#[derive(Debug)]
struct RowInRun {
    operand: usize,
    extent: [usize; 3],
    edge: Edge,
    /// What is beyond the edges, if there are any.
    padding: Option<Padding>,
    /// The coordinates of the row in the operand.
    z: Coordinate,
    y: Coordinate,
    /// The least coordinate of a load along the row, less that of the point.
    least: isize,
    /// How many elements after it the last load begins.
    spread: usize,
    /// The most elements between the beginnings of two loads, without a third one between them.
    gap: usize,
    /// The loads, in the list of all.
    loads: Range<usize>,
    taken: Taken,
}

/// A coordinate: the sum of a number and, perhaps, the coordinate of the point in a dimension.
#[derive(Clone, Copy, Debug)]
struct Coordinate {
    dim: Option<usize>,
    number: isize,
}

/// Where a block takes the elements of a row of loads from.
#[derive(Clone, Copy, Debug)]
enum Taken {
    /// From the operand.
    Operand,
    /// From the padded copy with this number.
    Padded(usize),
    /// From a padded copy that no block has made yet.
    NewlyPadded(Contents),
    /// The block gathers the elements of each load.
    Gathered,
}

impl Rows {
    /// Begins a run.
    pub(super) fn begin(&mut self, program: &Program, parameters: &[Scalar], others: &Others<'_>) {
        self.rows.clear();
        self.loads.clear();
        let origin = &Place { point: &[0; 3], parameters, counters: &[] };
        let mut loads = SmallVec::<[_; 8]>::new();
        for row in &program.rows {
            loads.clear();
            loads.extend(row.loads.iter().map(|&(number, along)| {
                let padding = Padding::of(program.load(program.loads[number as usize]).edge, parameters);
                (padding, along.first(origin), number)
            }));
            loads.sort_unstable();
            let share = |a: &(Option<Padding>, isize, u32), b: &(Option<Padding>, isize, u32)| {
                a.0 == b.0 && a.1.abs_diff(b.1) <= FAR
            };
            for loads in loads.chunk_by(share) {
                self.add(row, loads, origin, others);
            }
        }
        self.padded.begin(self.rows.iter().filter(|row| row.padding.is_some()).count());
    }

    /// Adds a row with these loads: what is beyond their edges, their coordinates along the row, ascending, and
    /// their numbers.
    fn add(
        &mut self,
        row: &RowOfLoads,
        loads: &[(Option<Padding>, isize, u32)],
        origin: &Place<'_>,
        others: &Others<'_>,
    ) {
        let [z, y, _] = row
            .one
            .along
            .map(|along| Coordinate { dim: along.point.map(usize::from), number: along.first(origin) });
        let (padding, least, _) = loads[0];
        let begin = self.loads.len();
        self.loads.extend(loads.iter().map(|&(_, at, number)| (number, at.abs_diff(least))));
        let of_row = &self.loads[begin..];
        let gaps = of_row.array_windows().map(|[(_, before), (_, after)]| after - before);
        self.rows.push(RowInRun {
            operand: row.one.operand,
            extent: row.one.extent(others),
            edge: row.one.edge,
            padding,
            z,
            y,
            least,
            spread: of_row.last().map_or(0, |&(_, distance)| distance),
            gap: gaps.max().unwrap_or(0),
            loads: begin..self.loads.len(),
            taken: Taken::Operand,
        });
    }

    /// Finds out where the block at a place takes the elements of each row from, and pads those rows that need
    /// it. Makes `len`, the number of points of the block, smaller where a long row of points begins or ends at
    /// an edge.
    #[inline(always)]
    pub(super) fn prepare(
        &mut self,
        program: &Program,
        place: &Place<'_>,
        len: &mut usize,
        others: &Others<'_>,
    ) {
        if !self.padded.may_be_needed() {
            return;
        }
        for row in &self.rows {
            *len = row.shortened(*len, place.point[2]);
        }
        self.padded.begin_block();
        // This finds all copies that are there, before the next loop makes others: a new copy must not take
        // the memory of another one of this block.
        for row in &mut self.rows {
            row.taken = if row.is_inside(*len, place.point) {
                Taken::Operand
            } else if let Some(contents) = row.contents(*len, place.point) {
                let copy = self.padded.find(contents, *len + row.spread);
                copy.map_or(Taken::NewlyPadded(contents), Taken::Padded)
            } else {
                Taken::Gathered
            };
        }
        for row in &mut self.rows {
            if let Taken::NewlyPadded(contents) = row.taken {
                let (number, _) = self.loads[row.loads.start];
                let load = program.load(program.loads[number as usize]);
                row.taken = Taken::Padded(self.padded.make(load, contents, *len + row.spread, place, others));
            }
        }
    }

    /// Finds the elements of all rows for a block that [`prepare`](Self::prepare) has prepared. Makes `len`
    /// smaller where fewer elements lie one after the other.
    #[inline(always)]
    pub(super) fn find<'a>(
        &'a self,
        point: &[usize; 3],
        len: &mut usize,
        others: &'a Others<'_>,
        slices: &mut Slices<'a>,
        elements: &mut [Elements],
    ) {
        for row in &self.rows {
            let loads = &self.loads[row.loads.clone()];
            match row.taken {
                Taken::Operand => row.find(loads, point, len, others, slices, elements),
                Taken::Padded(number) => {
                    for &(load, from) in loads {
                        let number = slices.len() as u32;
                        elements[load as usize] = Elements::Slice { number, from };
                    }
                    slices.push(self.padded.slice(number));
                }
                Taken::NewlyPadded(_) => unreachable!("the copy was made"),
                Taken::Gathered => {}
            }
        }
    }
}

impl Coordinate {
    #[inline(always)]
    fn at(self, point: &[usize; 3]) -> isize {
        self.number + self.dim.map_or(0, |dim| point[dim] as isize)
    }
}

impl RowInRun {
    /// How many of `len` points a block has whose first point is `x` in its row of points.
    #[inline(always)]
    fn shortened(&self, len: usize, x: usize) -> usize {
        if len <= SHORT || self.edge == Edge::Inside {
            return len;
        }
        let least = x as isize + self.least;
        if least < 0 {
            return if len <= LONGEST { len } else { SHORT };
        }
        // The first points, up to this number, have all of their elements inside of the buffer.
        let inside = self.extent[2].saturating_sub(least as usize + self.spread);
        if inside >= len {
            len
        } else if inside >= 2 * SHORT {
            inside.min(len - SHORT)
        } else {
            len.min(LONGEST)
        }
    }

    /// Whether all elements of a block are inside of the buffer. Without an edge the declaration says so.
    #[inline(always)]
    fn is_inside(&self, len: usize, point: &[usize; 3]) -> bool {
        let least = point[2] as isize + self.least;
        let is_inside = || least >= 0 && least as usize + self.spread + len <= self.extent[2];
        self.edge == Edge::Inside || (is_inside() && self.place(point).is_some())
    }

    /// The coordinates of the row that the block takes elements of; `None` if they lead out of the buffer, to
    /// the value of the edge.
    #[inline(always)]
    fn place(&self, point: &[usize; 3]) -> Option<[usize; 2]> {
        let [z, y] = [self.z, self.y].map(|coordinate| coordinate.at(point));
        Some([within(self.edge, z, self.extent[0])?, within(self.edge, y, self.extent[1])?])
    }

    /// What a padded copy of the row has for a block. There is none if it would have elements that no load
    /// takes, because the declaration need not have these.
    #[inline(always)]
    fn contents(&self, len: usize, point: &[usize; 3]) -> Option<Contents> {
        if self.gap > len {
            return None;
        }
        let (z, y, least) = (self.z.at(point), self.y.at(point), point[2] as isize + self.least);
        Some(Contents { operand: self.operand, padding: self.padding?, z, y, least })
    }

    /// Finds the elements of all loads in the operand.
    #[inline(always)]
    fn find<'a>(
        &self,
        loads: &[(u32, usize)],
        point: &[usize; 3],
        len: &mut usize,
        others: &'a Others<'_>,
        slices: &mut Slices<'a>,
        elements: &mut [Elements],
    ) {
        let [z, y] = self.place(point).expect("the row is inside of the buffer");
        let least = point[2] as isize + self.least;
        let mut found = Found::default();
        for &(load, distance) in loads {
            let at = [z, y, coordinate(least + distance as isize)];
            let from = found.look(at, self.operand, others, slices);
            *len = (*len).min(found.len - from);
            elements[load as usize] = Elements::Slice { number: slices.len() as u32 - 1, from };
        }
    }
}

/// The slice of a row that was found last: its first coordinate, and its number of elements.
#[derive(Default)]
struct Found {
    from: usize,
    len: usize,
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
