//! Loads that have their elements in one row of an operand. They share a slice: of the operand, as far as the
//! region has the row in one piece, or of a [padded](super::padded) copy where some of them lead out of the
//! buffer.
//!
//! What is the same for all blocks of a run is found out when the run begins.

use super::{
    argument::Elements,
    load::{Place, coordinate, within},
    operands::Others,
    padded::{Beyond, PaddedRows, What},
};
use crate::{
    number::{Scalar, Slice},
    operation::{Along, Edge},
    program::Program,
    steps::RowOfLoads,
};
use smallvec::SmallVec;
use std::ops::Range;

/// The most points of a block that takes elements of padded copies.
const LONGEST: usize = 2048;

/// The slices of operands. If a program has loops, those that differ from turn to turn come first, at the
/// numbers of their loads.
pub(super) type Slices<'a> = SmallVec<[Slice<'a>; 8]>;

/// The rows of loads of a program, in a run.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The loads of all rows: their numbers in the program, and how many elements they begin after the least
    /// coordinate of their row. Those of a row are in this order.
    loads: Vec<(u32, usize)>,
    padded: PaddedRows,
}

/// A row of loads.
#[derive(Debug)]
struct Row {
    operand: usize,
    extent: [usize; 3],
    edge: Edge,
    /// What is beyond the edges; `None` if there are none, or if loads differ in their literals.
    beyond: Option<Beyond>,
    /// The coordinates of the row.
    z: Coordinate,
    y: Coordinate,
    /// The least coordinate of a load along the row, less that of the point.
    least: isize,
    /// How many elements after it the last load begins.
    spread: usize,
    /// The most elements between the beginnings of two loads, without a third one between them.
    gap: usize,
    /// Its loads, in the list of all.
    loads: Range<usize>,
    taken: Taken,
}

/// A coordinate: the sum of a number and, perhaps, the coordinate of the point in a dimension.
#[derive(Clone, Copy, Debug)]
struct Coordinate {
    dim: Option<usize>,
    number: isize,
}

/// Where a block takes the elements of a row of loads.
#[derive(Clone, Copy, Debug)]
enum Taken {
    /// Of the operand.
    Operand,
    /// Of a padded copy: its number.
    Padded(usize),
    /// Of the operand, and of what is beyond its edges. The elements of each load are put together.
    Apart,
}

impl Rows {
    /// Begins a run.
    pub(super) fn begin(&mut self, program: &Program, parameters: &[Scalar], others: &Others<'_>) {
        self.rows.clear();
        self.loads.clear();
        self.padded.begin(program);
        let origin = &Place { point: &[0; 3], parameters, counters: &[] };
        for row in &program.rows {
            let first = |along: &Along| along.first(origin);
            let least = row.loads.iter().map(|(_, along)| first(along)).min().expect("a row has loads");
            let begin = self.loads.len();
            let behind = |(load, along): &(u32, Along)| (*load, (first(along) - least) as usize);
            self.loads.extend(row.loads.iter().map(behind));
            let loads = &mut self.loads[begin..];
            loads.sort_unstable_by_key(|&(_, behind)| behind);
            let gaps = loads.array_windows().map(|[(_, before), (_, after)]| after - before);
            let [z, y, _] = row.one.along.map(|along| Coordinate {
                dim: along.point.map(usize::from),
                number: first(&Along { point: None, ..along }),
            });
            self.rows.push(Row {
                operand: row.one.operand,
                extent: row.one.extent(others),
                edge: row.one.edge,
                beyond: row.beyond(program, parameters),
                z,
                y,
                least,
                spread: loads.last().map_or(0, |&(_, behind)| behind),
                gap: gaps.max().unwrap_or(0),
                loads: begin..self.loads.len(),
                taken: Taken::Operand,
            });
        }
    }

    /// Finds out where the block at a place takes the elements of each row, and pads those rows that need it.
    /// Makes `len`, the number of points of the block, smaller where a long row begins or ends beyond an
    /// edge.
    #[inline(always)]
    pub(super) fn prepare(
        &mut self,
        program: &Program,
        place: &Place<'_>,
        len: &mut usize,
        others: &Others<'_>,
    ) {
        for row in &self.rows {
            *len = row.shortened(*len, place.point[2]);
        }
        self.padded.begin_block();
        for (row, of_program) in self.rows.iter_mut().zip(&program.rows) {
            row.taken = if row.is_inside(*len, place.point) {
                Taken::Operand
            } else if let Some(what) = row.what(*len, place.point) {
                let len = *len + row.spread;
                Taken::Padded(self.padded.copy(&of_program.one, what, len, place, others))
            } else {
                Taken::Apart
            };
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
                Taken::Apart => {
                    loads.iter().for_each(|(load, _)| elements[*load as usize] = Elements::Assembled)
                }
            }
        }
    }
}

impl RowOfLoads {
    /// What is beyond the edges, if that is the same for all loads.
    fn beyond(&self, program: &Program, parameters: &[Scalar]) -> Option<Beyond> {
        let bits = |number: u32| match program.load(program.loads[number as usize]).edge {
            Edge::Parameter(value) => parameters[value as usize].bits(),
            _ => unreachable!("the loads of a row have edges of one kind"),
        };
        match self.one.edge {
            Edge::Inside => None,
            Edge::Clamped => Some(Beyond::Nearest),
            Edge::Periodic => Some(Beyond::OtherSide),
            Edge::Parameter(_) => {
                let mut all = self.loads.iter().map(|(number, _)| bits(*number));
                let first = all.next()?;
                all.all(|other| other == first).then_some(Beyond::Literal(first))
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

impl Row {
    /// How many of `len` points a block has whose first point is `x` in its row.
    #[inline(always)]
    fn shortened(&self, len: usize, x: usize) -> usize {
        if len <= LONGEST || self.edge == Edge::Inside {
            return len;
        }
        let least = x as isize + self.least;
        if least < 0 {
            return LONGEST;
        }
        // So many points have all of their elements inside. The others get a block of their own, which is not
        // very short.
        let inside = self.extent[2].saturating_sub(least as usize + self.spread);
        if inside >= len {
            len
        } else if inside <= LONGEST / 2 {
            LONGEST
        } else {
            inside.min(len - LONGEST / 2)
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
    fn what(&self, len: usize, point: &[usize; 3]) -> Option<What> {
        if self.gap > len {
            return None;
        }
        let (z, y, least) = (self.z.at(point), self.y.at(point), point[2] as isize + self.least);
        Some(What { operand: self.operand, beyond: self.beyond?, z, y, least })
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
        for &(load, behind) in loads {
            let at = [z, y, coordinate(least + behind as isize)];
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
