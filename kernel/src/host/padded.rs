//! Copies of rows, padded with what loads take beyond the edges of the buffer.
//!
//! Where loads of a row lead out of the buffer, they have slices of such a copy, as all other loads have
//! slices of the operand. So a block need not end near the edge. A stencil takes the same row for several
//! rows of points: a copy is kept until another row needs its memory.

use super::{
    assembled::{Assemble, Assembled},
    load::Place,
    operands::Others,
};
use crate::{
    number::{Kind, Slice},
    operation::Load,
    program::Program,
};

/// How many copies are kept for each row of loads: a row of points may have a block at each of its ends.
const FOR_EACH_ROW: usize = 2;

/// Copies are aligned to cache lines.
const LINE: usize = 64;

/// The copies.
#[derive(Debug, Default)]
pub(super) struct PaddedRows {
    copies: Vec<PaddedRow>,
    /// How many blocks have looked for copies.
    blocks: u64,
}

#[derive(Debug, Default)]
struct PaddedRow {
    /// What it has; `None` before it is made in this run, and if making it panicked.
    what: Option<What>,
    len: usize,
    /// The elements, behind `front` others.
    values: Assembled,
    front: usize,
    /// The last block that took elements of it.
    used: u64,
}

/// What a copy has, from which element on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct What {
    pub(super) operand: usize,
    pub(super) beyond: Beyond,
    /// The coordinates of the row. They may lead out of the buffer.
    pub(super) z: isize,
    pub(super) y: isize,
    /// The coordinate of the first element.
    pub(super) least: isize,
}

/// What is beyond the edges of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// The nearest element of the buffer.
    Nearest,
    /// The elements on the other side.
    OtherSide,
    /// The literal with these bits.
    Literal(u64),
}

impl PaddedRows {
    /// Begins a run: the copies of another one are of no use.
    pub(super) fn begin(&mut self, program: &Program) {
        self.copies.iter_mut().for_each(|copy| copy.what = None);
        let count = FOR_EACH_ROW * program.rows.len();
        self.copies.resize_with(count.max(self.copies.len()), PaddedRow::default);
    }

    /// Begins a block. The copies that it takes stay until it ends.
    #[inline]
    pub(super) fn begin_block(&mut self) {
        self.blocks += 1;
    }

    /// The number of a copy with `len` elements of a row. It is made by a load of this row if there is none.
    ///
    /// Later blocks of the run may use it, too: the program sets no operand that it takes beyond an edge.
    #[inline(always)]
    pub(super) fn copy(
        &mut self,
        load: &Load,
        what: What,
        len: usize,
        place: &Place<'_>,
        others: &Others<'_>,
    ) -> usize {
        let has_all = |copy: &PaddedRow| copy.what == Some(what) && copy.len >= len;
        let number = self.copies.iter().position(has_all).unwrap_or_else(|| {
            let oldest = self.copies.iter().enumerate().min_by_key(|(_, copy)| copy.used);
            let (number, _) = oldest.expect("there are copies for each row of loads");
            let copy = &mut self.copies[number];
            copy.what = None;
            copy.fill(load, what, len, place, others);
            copy.what = Some(what);
            number
        });
        self.copies[number].used = self.blocks;
        number
    }

    /// The elements of a copy.
    #[inline]
    pub(super) fn slice(&self, copy: usize) -> Slice<'_> {
        let PaddedRow { values, front, .. } = &self.copies[copy];
        values.slice(*front)
    }
}

impl PaddedRow {
    #[inline(never)]
    fn fill(&mut self, load: &Load, what: What, len: usize, place: &Place<'_>, others: &Others<'_>) {
        self.len = len;
        match load.kind {
            Kind::F32 => self.fill_with::<f32>(load, what, place, others),
            Kind::F64 => self.fill_with::<f64>(load, what, place, others),
            Kind::I32 => self.fill_with::<i32>(load, what, place, others),
            Kind::U32 => self.fill_with::<u32>(load, what, place, others),
            Kind::I64 => self.fill_with::<i64>(load, what, place, others),
            Kind::U64 => self.fill_with::<u64>(load, what, place, others),
            Kind::Bool => unreachable!("no operand has masks"),
        }
    }

    fn fill_with<T: Assemble>(&mut self, load: &Load, what: What, place: &Place<'_>, others: &Others<'_>) {
        let line = LINE / size_of::<T>();
        let values = T::emptied(&mut self.values);
        values.reserve(self.len + 2 * line);
        // The element at the first point begins a line, as it mostly does in the operand.
        let before = (place.point[2] as isize - what.least).rem_euclid(line as isize) as usize;
        let to_line = values.as_ptr().align_offset(LINE).min(line);
        self.front = (to_line + line - before) % line;
        values.resize(self.front, T::default());
        load.assemble_runs(what.least, place, self.len, others, values);
    }
}
