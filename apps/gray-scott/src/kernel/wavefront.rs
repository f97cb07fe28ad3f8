//! Several steps of a band of rows, in a wavefront.
//!
//! Level `s` is the state after `s` steps: level 0 is the input, level `steps` the output, and of each level
//! between a ring of four rows lives in scratch. Wave `w` makes two rows of every level in turn, those of each level
//! one row behind those of the level before: exactly what they need has just been made.
//!
//! At the band's ends the levels' ranges shrink by a row per step, but not where the grid ends.

use std::ops::Range;

use super::coefficients::Coefficients;
use super::simd::{Level, Simd};
use super::sweep::{Row, RowMut, Sweep};
use crate::model::{Edges, Params};

/// Rows of each level in scratch: two that a wave makes and the two before them.
const RING: usize = 4;

/// `f32`s in a cache line.
const LINE: usize = 16;

/// What a ring of all levels may take up of the level 2 cache, in bytes.
const CACHE_BUDGET: usize = 1_600_000;

/// Advances bands of rows of a grid; see the [module](super).
///
/// ```
/// use gray_scott::kernel::{Output, Simd, Stepper};
/// use gray_scott::model::{Edges, Params, initial};
///
/// struct Fields { u: Vec<f32>, v: Vec<f32>, cols: usize }
/// impl Output for Fields {
///     fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
///         let cells = row * self.cols..(row + 1) * self.cols;
///         (&mut self.u[cells.clone()], &mut self.v[cells])
///     }
/// }
///
/// let [rows, cols] = [64, 100];
/// let (u, v) = initial(rows, cols, None);
/// let stepper = Stepper::new(Simd::detect(), Params::default(), Edges::Absorbing, [rows, cols]);
/// let mut scratch = vec![0.0; stepper.scratch_len(8)];
/// let mut after = Fields { u: vec![0.0; rows * cols], v: vec![0.0; rows * cols], cols };
/// let row = |row: usize| (&u[row * cols..][..cols], &v[row * cols..][..cols]);
/// stepper.advance(0..rows, 8, row, &mut after, &mut scratch);
/// assert!(after.v.iter().sum::<f32>() > 0.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stepper {
    level: Level,
    coefficients: Coefficients,
    edges: Edges,
    rows: usize,
    cols: usize,
}

/// Where the state after is written.
pub trait Output {
    /// U and V of a row of the band, in full width.
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]);
}

impl Stepper {
    /// A stepper for a grid of `[rows, cols]`.
    ///
    /// # Panics
    /// If this processor lacks `simd` ([`Simd::is_available`]) or the grid has no cells.
    pub fn new(simd: Simd, params: Params, edges: Edges, [rows, cols]: [usize; 2]) -> Self {
        assert!(rows > 0 && cols > 0, "a grid of {rows} x {cols} has no cells");
        let level = Level::new(simd).unwrap_or_else(|| panic!("this processor has no {simd}"));
        Self { level, coefficients: Coefficients::new(params), edges, rows, cols }
    }

    /// The instruction set in use.
    pub fn simd(&self) -> Simd {
        self.level.simd()
    }

    /// How many `f32`s of scratch [`advance`](Self::advance) needs for `steps` steps.
    pub fn scratch_len(&self, steps: usize) -> usize {
        // One more line, to start at a multiple of a line; one row of zeros; the levels between.
        LINE + self.stride() + steps.saturating_sub(1) * self.level_len()
    }

    /// How many steps at once are fastest: as many as have their scratch in the level 2 cache, 16 at most.
    pub fn preferred_steps(&self) -> usize {
        let levels = CACHE_BUDGET / (self.level_len() * size_of::<f32>());
        (levels + 1).min(16)
    }

    /// Advances the rows `band` of the grid by `steps` steps.
    ///
    /// `input` gives U and V of a row of the state before, in full width. It is asked for the rows of the
    /// band and those within `steps` of it: where these lie outside the grid, for the rows from the opposite side if the
    /// edges are periodic, and for none otherwise. `output` is asked for each row of the band. What `scratch` holds
    /// before does not matter, and it is fastest where it starts at a multiple of 64 bytes.
    ///
    /// # Panics
    /// If the band reaches outside the grid, a row is not as wide as the grid, or `scratch` is shorter than
    /// [`scratch_len`](Self::scratch_len).
    pub fn advance<'a>(
        &self,
        band: Range<usize>,
        steps: usize,
        input: impl Fn(usize) -> (&'a [f32], &'a [f32]),
        output: &mut impl Output,
        scratch: &mut [f32],
    ) {
        assert!(band.end <= self.rows, "band {band:?} reaches outside of {} rows", self.rows);
        assert!(scratch.len() >= self.scratch_len(steps), "scratch is too short: {}", scratch.len());
        if band.is_empty() {
            return;
        }
        if steps == 0 {
            return self.copy(band, input, output);
        }
        let skip = scratch.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let (zeros, levels) = scratch[skip..].split_at_mut(self.stride());
        zeros.fill(0.0);
        let zeros = &zeros[..self.cols];
        let band = band.start as isize..band.end as isize;
        Wavefront { stepper: self, band, steps, zeros: Row { u: zeros, v: zeros }, stride: self.stride() }
            .run(levels, input, output);
    }

    fn copy<'a>(
        &self,
        band: Range<usize>,
        input: impl Fn(usize) -> (&'a [f32], &'a [f32]),
        output: &mut impl Output,
    ) {
        for row in band {
            let ((from_u, from_v), (to_u, to_v)) = (input(row), output.rows_mut(row));
            to_u.copy_from_slice(from_u);
            to_v.copy_from_slice(from_v);
        }
    }

    /// `f32`s from a row in scratch to the next: whole cache lines, an odd number of them, so that equal columns of
    /// different rows do not compete for the same places in the caches.
    fn stride(&self) -> usize {
        (self.cols.div_ceil(LINE) | 1) * LINE
    }

    fn level_len(&self) -> usize {
        RING * 2 * self.stride()
    }
}

/// One call of [`Stepper::advance`]. Rows are numbered as in the grid and go on beyond its ends.
struct Wavefront<'a> {
    stepper: &'a Stepper,
    band: Range<isize>,
    steps: usize,
    zeros: Row<'a>,
    stride: usize,
}

impl<'a> Wavefront<'a> {
    fn run<'i, I>(&self, levels: &mut [f32], input: I, output: &mut impl Output)
    where
        I: Fn(usize) -> (&'i [f32], &'i [f32]),
    {
        let level_len = self.stepper.level_len();
        let mut start = self.rows(1).start;
        while start - (self.steps as isize - 1) < self.band.end {
            for step in 1..=self.steps {
                let skewed = start - (step as isize - 1);
                let range = self.rows(step);
                let rows = skewed.max(range.start)..(skewed + 2).min(range.end);
                let (before, level) = levels.split_at_mut((step - 1) * level_len);
                let ring = if step > 1 { Some(&before[(step - 2) * level_len..]) } else { None };
                if step == self.steps {
                    for row in rows {
                        let (u, v) = output.rows_mut(row as usize);
                        let from = self.sources::<_, 3>(row - 1, ring, &input);
                        self.sweep(from, [RowMut { u, v }]);
                    }
                } else if rows.len() == 2 {
                    let from = self.sources::<_, 4>(rows.start - 1, ring, &input);
                    self.sweep(from, self.slots([rows.start, rows.start + 1], level));
                } else if rows.len() == 1 {
                    let from = self.sources::<_, 3>(rows.start - 1, ring, &input);
                    self.sweep(from, self.slots([rows.start], level));
                }
            }
            start += 2;
        }
    }

    /// The rows of a level that are needed.
    #[inline(always)]
    fn rows(&self, step: usize) -> Range<isize> {
        let reach = (self.steps - step) as isize;
        let range = self.band.start - reach..self.band.end + reach;
        match self.stepper.edges {
            Edges::Periodic => range,
            Edges::Absorbing | Edges::Clamped => {
                range.start.max(0)..range.end.min(self.stepper.rows as isize)
            }
        }
    }

    /// `IN` rows from row `first` of the level before: the input, or a level in scratch.
    #[inline(always)]
    fn sources<'i: 's, 's, I, const IN: usize>(
        &self,
        first: isize,
        ring: Option<&'s [f32]>,
        input: &I,
    ) -> [Row<'s>; IN]
    where
        I: Fn(usize) -> (&'i [f32], &'i [f32]),
        'a: 's,
    {
        let Stepper { edges, rows, cols, .. } = *self.stepper;
        let mut sources = [self.zeros; IN];
        for i in 0..IN {
            let row = first + i as isize;
            // In scratch a row beyond a periodic edge has a place of its own.
            let inside = match edges {
                Edges::Periodic if ring.is_some() => Some(row as usize),
                _ => edges.resolve(row, rows),
            };
            let Some(inside) = inside else { continue };
            match ring {
                None => (sources[i].u, sources[i].v) = input(inside),
                Some(ring) => {
                    let slot = (inside % RING) * 2 * self.stride;
                    let slot = &ring[slot..][..2 * self.stride];
                    sources[i].u = &slot[..cols];
                    sources[i].v = &slot[self.stride..][..cols];
                }
            }
        }
        sources
    }

    /// The places of `rows` in the ring of their level.
    #[inline(always)]
    fn slots<'s, const OUT: usize>(&self, rows: [isize; OUT], ring: &'s mut [f32]) -> [RowMut<'s>; OUT] {
        let slots = ring
            .get_disjoint_mut(rows.map(|row| {
                let slot = (row as usize % RING) * 2 * self.stride;
                slot..slot + 2 * self.stride
            }))
            .expect("rows have different slots");
        slots.map(|slot| {
            let (u, v) = slot.split_at_mut(self.stride);
            RowMut { u: &mut u[..self.stepper.cols], v: &mut v[..self.stepper.cols] }
        })
    }

    /// Makes the `OUT` rows from `row`.
    #[inline(always)]
    fn sweep<const IN: usize, const OUT: usize>(&self, from: [Row<'_>; IN], to: [RowMut<'_>; OUT]) {
        let Stepper { level, edges, ref coefficients, .. } = *self.stepper;
        level.run(&mut Sweep { coefficients, edges, from, to });
    }
}
