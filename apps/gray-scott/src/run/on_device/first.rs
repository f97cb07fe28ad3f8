//! How a device looks for the first cell of a frame that is not finite.
//!
//! The device looks itself, so V of a frame that is not stored stays there. The last step to the frame has
//! marked in V where U is not finite.

use super::super::finite::Findings;
use crate::error::Error;
use anabranch::{device::Device, prelude::*};
use std::sync::Arc;

/// The buffers for what a device finds in a frame.
#[derive(Clone)]
pub(in super::super) struct FirstCell {
    shape: [usize; 2],
    numbers: Numbers,
}

/// The least of no numbers is the largest one, `u32::MAX`, so no cell, row or column has that number.
#[derive(Clone)]
enum Numbers {
    /// Cells count row after row.
    Cell(Buffer<u32, 0>),
    /// For a grid whose cells 32 bits do not count: the first row, and the first column in it. That takes a
    /// second look at V.
    RowAndCol([Buffer<u32, 0>; 2]),
}

impl FirstCell {
    /// For frames of this shape in the buffer of frames with this number.
    pub(in super::super) fn new(rt: &Runtime, shape: [usize; 2], number: usize) -> Self {
        let cells = shape[0].checked_mul(shape[1]);
        Self::with(rt, shape, number, cells.is_some_and(|cells| u32::try_from(cells).is_ok()))
    }

    fn with(rt: &Runtime, shape: [usize; 2], number: usize, are_counted: bool) -> Self {
        let buffer = |of: &str| rt.buffer([]).named(format!("first {of} {number}"));
        let numbers = if are_counted {
            Numbers::Cell(buffer("cell"))
        } else {
            Numbers::RowAndCol(["row", "column"].map(buffer))
        };
        Self { shape, numbers }
    }

    /// Submits the kernels that look at V, and a task that writes the finding to the first element of
    /// `found`.
    pub(super) fn look(
        &self,
        rt: &Runtime,
        device: &Arc<dyn Device>,
        v: &Buffer<f32, 2>,
        found: &Buffer<u64, 1>,
    ) -> Result<(), Error> {
        // The kernels count rows and columns with 32 bits.
        let cols = self.shape[1] as u32;
        // 0 times what is not finite is NaN, which differs from all numbers.
        let find = |name| rt.task(name).over(self.shape).on(device).read(v, one_to_one());
        let tell = || rt.task("found").over([1]).write(found, one_to_one());
        match &self.numbers {
            Numbers::Cell(cell) => {
                find("first cell").reduce(cell, min()).each(move |(v, cell)| {
                    cell.combine_if((v.here() * 0.0).differs(0.0), v.index(0) * cols + v.index(1));
                })?;
                tell()
                    .read(cell, all())
                    .kernel(|_, (found, cell)| found.fill(finding(cell[[]].into(), cell[[]])))?;
            }
            Numbers::RowAndCol([row, col]) => {
                find("first row")
                    .reduce(row, min())
                    .each(|(v, row)| row.combine_if((v.here() * 0.0).differs(0.0), v.index(0)))?;
                find("first column").read(row, all()).reduce(col, min()).each(|(v, row, col)| {
                    let is_found = (v.here() * 0.0).differs(0.0) & v.index(0).equals(row.value());
                    col.combine_if(is_found, v.index(1));
                })?;
                tell().read(row, all()).read(col, all()).kernel(move |_, (found, row, col)| {
                    let cell = u64::from(row[[]]) * u64::from(cols) + u64::from(col[[]]);
                    found.fill(finding(cell, row[[]]));
                })?;
            }
        }
        Ok(())
    }
}

/// The finding for a cell, as the number of [`Findings`]; nothing if the least number of a look is that of no
/// cell.
fn finding(cell: u64, least: u32) -> u64 {
    let findings = Findings::default();
    if least != u32::MAX {
        findings.record(cell, true);
    }
    findings.lowest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::device::Simulated;

    #[test]
    fn the_first_cell_that_is_not_finite_is_found_with_one_number_and_with_two() {
        let _deadline = testing::deadline();
        let rt = Runtime::builder().threads(2).build().unwrap();
        let device: Arc<dyn Device> = Arc::new(Simulated::new());
        let shape = [5, 7];
        // Cells count row after row. A later row with an earlier column does not win.
        for cells in [&[][..], &[0], &[34], &[6, 7], &[20, 14, 28], &[33, 19, 26]] {
            let mut values = [f32::MAX; 35];
            for (i, &cell) in cells.iter().enumerate() {
                values[cell] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][i % 3];
            }
            let v = rt.buffer(shape);
            let fill = rt.task("fill").over(shape).write(&v, one_to_one());
            fill.kernel(move |_, (v,)| v.fill_with(|[row, col]| values[row * shape[1] + col])).unwrap();
            for are_counted in [true, false] {
                let found = rt.buffer_from(&[0_u64; 5]).unwrap();
                FirstCell::with(&rt, shape, 1, are_counted).look(&rt, &device, &v, &found).unwrap();
                let found = rt.fence(&found).unwrap().wait().unwrap();
                let first = Findings::of_all([found.into_vec()[0]]).first();
                let expected = cells.iter().min().map(|&cell| (cell as u64, true));
                assert_eq!(first, expected, "cells {cells:?}, one number: {are_counted}");
            }
        }
    }

    #[test]
    fn only_a_grid_whose_cells_32_bits_count_needs_one_number() {
        let _deadline = testing::deadline();
        let rt = Runtime::builder().threads(1).build().unwrap();
        for (shape, are_counted) in
            [([1, 1], true), ([65_535, 65_537], true), ([1 << 16, 1 << 16], false), ([usize::MAX, 2], false)]
        {
            let first = FirstCell::new(&rt, shape, 1);
            assert_eq!(matches!(first.numbers, Numbers::Cell(_)), are_counted, "{shape:?}");
        }
    }
}
