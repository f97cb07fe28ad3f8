//! Several steps of a band of rows, in a wavefront.
//!
//! Level `s` is the state after `s` steps: level 0 is the input, level `steps` the output. Wave `w` computes
//! two rows of every level in turn, those of each level one row above those of the level before. The rows
//! that they need were computed just before, or by the wave before. This is wavefront temporal blocking on
//! one thread (for several threads: Wellein et al., <https://doi.org/10.1109/COMPSAC.2009.82>).
//!
//! The levels between the input and the output are in scratch and share their places: a row of level `s + 1`
//! replaces the row above it of level `s`, which is no longer needed. So step `s` of wave `w` reads block `w
//! - s` of two rows and block `w - s + 1`, and writes block `w - s` in place, while it is in the level 1
//! cache. `steps` blocks are alive at a time; they form a ring.
//!
//! At the ends of the band the ranges of the levels shrink by a row per step, but not where the grid ends:
//! there the row outside the grid has a place in scratch too, which is filled before it is read. With
//! periodic edges the rows beyond the end of the grid are computed like all rows.

use super::{
    output::Output,
    problem::Problem,
    rows::{FromTo, InPlace, Row, RowMut, Rows, Window},
    sweep::Sweep,
};
use crate::model::Edges;
use std::ops::Range;

/// One call of [`Stepper::advance`](super::Stepper::advance). Rows are numbered as in the grid, and on beyond
/// its ends.
pub(super) struct Wavefront<'a> {
    pub problem: &'a Problem,
    pub band: Range<isize>,
    pub steps: usize,
    /// A row of zeros.
    pub zeros: &'a [f32],
}

impl Wavefront<'_> {
    /// Advances the band, in scratch of two rows of both species for each step.
    pub fn run<'i, I>(&self, scratch: &mut [f32], input: I, output: &mut impl Output)
    where
        I: Fn(usize) -> (&'i [f32], &'i [f32]),
    {
        let origin = self.rows(1).start;
        for wave in 0.. {
            let first = origin + 2 * wave as isize;
            if first - (self.steps as isize - 1) >= self.band.end {
                return;
            }
            for step in 1..=self.steps {
                let first = first - (step as isize - 1);
                let range = self.rows(step);
                let rows = first.max(range.start)..(first + 2).min(range.end);
                if rows.is_empty() {
                    continue;
                }
                if step == 1 {
                    self.first_step(wave, rows, scratch, &input, output);
                } else {
                    let window = self.window(scratch, wave + self.steps - step);
                    self.next_step(step, first, rows, window, output);
                }
            }
        }
    }

    /// The rows of level `step` that are needed.
    #[inline(always)]
    fn rows(&self, step: usize) -> Range<isize> {
        let reach = (self.steps - step) as isize;
        let range = self.band.start - reach..self.band.end + reach;
        match self.problem.edges {
            Edges::Periodic => range,
            Edges::Absorbing | Edges::Clamped => {
                range.start.max(0)..range.end.min(self.problem.rows as isize)
            }
        }
    }

    fn first_step<'i, I>(
        &self,
        wave: usize,
        rows: Range<isize>,
        scratch: &mut [f32],
        input: &I,
        output: &mut impl Output,
    ) where
        I: Fn(usize) -> (&'i [f32], &'i [f32]),
    {
        if self.steps == 1 {
            for row in rows {
                let to = [self.output(row, output)];
                self.sweep(FromTo { from: self.input::<_, 3>(row - 1, input), to });
            }
            return;
        }
        let mut window = self.window(scratch, wave + self.steps - 1);
        let [a, b, ..] = window.rows_mut();
        // Rows of the first level start with the block, so a single row is the last one.
        match rows.len() {
            1 => self.sweep(FromTo { from: self.input::<_, 3>(rows.start - 1, input), to: [a] }),
            _ => self.sweep(FromTo { from: self.input::<_, 4>(rows.start - 1, input), to: [a, b] }),
        }
    }

    /// Computes `rows` of level `step` from `window`, which holds rows `first - 1..first + 3` of the level
    /// before.
    #[inline(always)]
    fn next_step(
        &self,
        step: usize,
        first: isize,
        rows: Range<isize>,
        mut window: Window<'_>,
        output: &mut impl Output,
    ) {
        self.fill_outside(first - 1, &mut window);
        if step == self.steps {
            for row in rows {
                let at = (row - first) as usize;
                let from = [window.row(at), window.row(at + 1), window.row(at + 2)];
                self.sweep(FromTo { from, to: [self.output(row, output)] });
            }
        } else if rows.len() == 2 {
            self.sweep::<_, 4, 2>(InPlace::<0> { window });
        } else if rows.start == first {
            self.sweep::<_, 3, 1>(InPlace::<0> { window });
        } else {
            self.sweep::<_, 3, 1>(InPlace::<1> { window });
        }
    }

    /// Fills the rows of `window` that lie just outside the grid. The first row of the window is row `first`.
    #[inline(always)]
    fn fill_outside(&self, first: isize, window: &mut Window<'_>) {
        let last = self.problem.rows as isize - 1;
        if self.problem.edges != Edges::Periodic && (first < 0 || first + 3 > last) {
            self.fill(-1 - first, -first, window);
            self.fill(last + 1 - first, last - first, window);
        }
    }

    /// Fills the row at `outside`, if it is in `window`, from the row at `inside` or with zeros.
    #[cold]
    fn fill(&self, outside: isize, inside: isize, window: &mut Window<'_>) {
        let [Ok(outside), Ok(inside)] = [outside, inside].map(usize::try_from) else { return };
        let mut rows = window.rows_mut();
        let Ok([outside, inside]) = rows.get_disjoint_mut([outside, inside]) else { return };
        let (u, v) = match self.problem.edges {
            Edges::Clamped => (&*inside.u, &*inside.v),
            _ => (self.zeros, self.zeros),
        };
        outside.u.copy_from_slice(u);
        outside.v.copy_from_slice(v);
    }

    /// `IN` rows of the input, from row `first`.
    #[inline(always)]
    fn input<'r, 'i: 'r, I, const IN: usize>(&'r self, first: isize, input: &I) -> [Row<'r>; IN]
    where
        I: Fn(usize) -> (&'i [f32], &'i [f32]),
    {
        let mut sources = [Row { u: self.zeros, v: self.zeros }; IN];
        for (row, source) in (first..).zip(&mut sources) {
            if let Some(inside) = self.problem.edges.resolve(row, self.problem.rows) {
                (source.u, source.v) = input(inside);
                self.assert_full(inside, source.u, source.v);
            }
        }
        sources
    }

    /// A row of the output.
    #[inline(always)]
    fn output<'o>(&self, row: isize, output: &'o mut impl Output) -> RowMut<'o> {
        let (u, v) = output.rows_mut(row as usize);
        self.assert_full(row as usize, u, v);
        RowMut { u, v }
    }

    #[inline(always)]
    fn assert_full(&self, row: usize, u: &[f32], v: &[f32]) {
        let cols = self.problem.cols;
        assert!(u.len() == cols && v.len() == cols, "row {row} does not have {cols} columns");
    }

    /// A block of two rows in scratch, and the block after it. The blocks form a ring of one block for each
    /// step.
    #[inline(always)]
    fn window<'s>(&self, scratch: &'s mut [f32], block: usize) -> Window<'s> {
        let Problem { cols, .. } = *self.problem;
        let stride = self.problem.stride();
        let (before, after) = scratch.split_at_mut(block % self.steps * 4 * stride);
        let (this, after) = after.split_at_mut(4 * stride);
        let next = if after.is_empty() { before } else { after };
        Window { blocks: [this, &mut next[..4 * stride]], stride, cols }
    }

    /// Computes the inner rows.
    #[inline(always)]
    fn sweep<R: Rows<IN, OUT>, const IN: usize, const OUT: usize>(&self, rows: R) {
        let Problem { token, edges, ref coefficients, .. } = *self.problem;
        token.run(Sweep { coefficients, edges, rows });
    }
}
