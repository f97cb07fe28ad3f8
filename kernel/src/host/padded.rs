//! Copies of rows, padded with what loads take beyond the edges of the buffer.
//!
//! Where loads of a row lead out of the buffer, they have slices of such a copy, as all other loads have
//! slices of the operand. So a block need not end near the edge. A stencil takes the same row for several
//! rows of points, so a copy stays until another row needs its memory.

use super::{
    gathered::{Gather, Gathered},
    load::Place,
    operands::Others,
};
use crate::{
    number::{Kind, Scalar, Slice},
    operation::{Edge, Load},
};

/// The number of copies for each row of loads. A row of points may have a block at each of its ends and one
/// between them, and each of these blocks takes at most one copy. The block between them needs one where the
/// whole row is outside of the buffer.
const FOR_EACH_ROW: usize = 3;

/// Copies are aligned to cache lines.
const LINE: usize = 64;

/// The copies.
#[derive(Debug, Default)]
pub(super) struct PaddedRows {
    copies: Vec<PaddedRow>,
    /// How many of them this run uses. The others are those of programs that need more.
    count: usize,
    /// The number of the block, of all that this memory has seen.
    block: u64,
}

#[derive(Debug, Default)]
struct PaddedRow {
    /// What it has; `None` before it is made in this run, and if making it panicked.
    contents: Option<Contents>,
    len: usize,
    /// The elements, after `front` others.
    values: Gathered,
    front: usize,
    /// The last block that took elements of it.
    last_block: u64,
}

/// Says which elements a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) operand: usize,
    pub(super) padding: Padding,
    /// The coordinates of the row. They may lead out of the buffer.
    pub(super) z: isize,
    pub(super) y: isize,
    /// The coordinate of the first element.
    pub(super) least: isize,
}

/// What is beyond the edges of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Padding {
    /// The nearest element of the buffer.
    Nearest,
    /// The elements on the other side.
    OtherSide,
    /// The literal with these bits.
    Literal(u64),
}

impl Padding {
    pub(super) fn of(edge: Edge, parameters: &[Scalar]) -> Option<Self> {
        match edge {
            Edge::Inside => None,
            Edge::Clamped => Some(Self::Nearest),
            Edge::Periodic => Some(Self::OtherSide),
            Edge::Parameter(value) => Some(Self::Literal(parameters[value as usize].bits())),
        }
    }
}

impl PaddedRows {
    /// Begins a run with this number of rows that may need copies. Those of another run are of no use.
    pub(super) fn begin(&mut self, rows: usize) {
        self.count = FOR_EACH_ROW * rows;
        if self.copies.len() < self.count {
            self.copies.resize_with(self.count, PaddedRow::default);
        }
        self.copies[..self.count].iter_mut().for_each(|copy| copy.contents = None);
    }

    /// Whether a block of this run may need copies.
    #[inline]
    pub(super) fn may_be_needed(&self) -> bool {
        self.count > 0
    }

    /// Begins a block. The copies that it finds or makes stay until it ends.
    #[inline]
    pub(super) fn begin_block(&mut self) {
        self.block += 1;
    }

    /// Finds a copy with these contents and at least `len` elements. Returns its number.
    ///
    /// A block may use a copy that an earlier one has made: a program sets no operand that it takes elements
    /// of beyond an edge.
    #[inline(always)]
    pub(super) fn find(&mut self, contents: Contents, len: usize) -> Option<usize> {
        let has_all = |copy: &PaddedRow| copy.contents == Some(contents) && copy.len >= len;
        let number = self.copies[..self.count].iter().position(has_all)?;
        self.copies[number].last_block = self.block;
        Some(number)
    }

    /// Makes a copy with these contents and `len` elements, in place of the one that the blocks have not used
    /// for longest. `load` is a load of the row. Returns the number of the copy.
    pub(super) fn make(
        &mut self,
        load: &Load,
        contents: Contents,
        len: usize,
        place: &Place<'_>,
        others: &Others<'_>,
    ) -> usize {
        let oldest = self.copies[..self.count].iter().enumerate().min_by_key(|(_, copy)| copy.last_block);
        let (number, _) = oldest.expect("there are copies for each row of loads");
        let copy = &mut self.copies[number];
        copy.contents = None;
        copy.fill(load, contents, len, place, others);
        copy.contents = Some(contents);
        copy.last_block = self.block;
        number
    }

    /// The elements of a copy.
    #[inline]
    pub(super) fn slice(&self, copy: usize) -> Slice<'_> {
        let PaddedRow { values, front, last_block, .. } = &self.copies[copy];
        debug_assert_eq!(*last_block, self.block, "a block takes only copies that it has found or made");
        values.slice(*front)
    }
}

impl PaddedRow {
    fn fill(&mut self, load: &Load, contents: Contents, len: usize, place: &Place<'_>, others: &Others<'_>) {
        self.len = len;
        match load.kind {
            Kind::F32 => self.fill_with::<f32>(load, contents, place, others),
            Kind::F64 => self.fill_with::<f64>(load, contents, place, others),
            Kind::I32 => self.fill_with::<i32>(load, contents, place, others),
            Kind::U32 => self.fill_with::<u32>(load, contents, place, others),
            Kind::I64 => self.fill_with::<i64>(load, contents, place, others),
            Kind::U64 => self.fill_with::<u64>(load, contents, place, others),
            Kind::Bool => unreachable!("no operand has masks"),
        }
    }

    fn fill_with<T: Gather>(
        &mut self,
        load: &Load,
        contents: Contents,
        place: &Place<'_>,
        others: &Others<'_>,
    ) {
        let line = LINE / size_of::<T>();
        let values = T::emptied(&mut self.values);
        values.reserve(self.len + 2 * line);
        // The element at the first point begins a line, as it mostly does in the operand.
        let before = (place.point[2] as isize - contents.least).rem_euclid(line as isize) as usize;
        let to_line = values.as_ptr().align_offset(LINE).min(line);
        self.front = (to_line + line - before) % line;
        values.resize(self.front, T::default());
        load.gather_runs(contents.least, place, self.len, others, values);
    }
}
