//! The rows that a sweep reads and writes.

use std::array;

/// A row of both species.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub u: &'a [f32],
    pub v: &'a [f32],
}

/// A row of both species, for writing.
pub(super) struct RowMut<'a> {
    pub u: &'a mut [f32],
    pub v: &'a mut [f32],
}

/// `IN` neighbouring rows, and the places for the new state of the `OUT` = `IN` - 2 inner rows.
pub(super) trait Rows<const IN: usize, const OUT: usize> {
    /// A row of the state before.
    fn row(&self, index: usize) -> Row<'_>;

    /// `n` vectors of every row, from column `start`.
    fn panel<const N: usize>(&mut self, start: usize, n: usize) -> impl Panel<N>;
}

/// Rows of vectors, by row and vector.
pub(super) trait Panel<const N: usize> {
    fn u(&self, row: usize, i: usize) -> &[f32; N];
    fn v(&self, row: usize, i: usize) -> &[f32; N];
    /// The places for the new U and V of inner row `row`.
    fn target(&mut self, row: usize, i: usize) -> (&mut [f32; N], &mut [f32; N]);
}

/// A sweep from some rows to other rows.
pub(super) struct FromTo<'a, const IN: usize, const OUT: usize> {
    pub from: [Row<'a>; IN],
    pub to: [RowMut<'a>; OUT],
}

struct FromToPanel<'a, const N: usize, const IN: usize, const OUT: usize> {
    from_u: [&'a [[f32; N]]; IN],
    from_v: [&'a [[f32; N]]; IN],
    to_u: [&'a mut [[f32; N]]; OUT],
    to_v: [&'a mut [[f32; N]]; OUT],
}

impl<const IN: usize, const OUT: usize> Rows<IN, OUT> for FromTo<'_, IN, OUT> {
    #[inline(always)]
    fn row(&self, index: usize) -> Row<'_> {
        self.from[index]
    }

    #[inline(always)]
    fn panel<const N: usize>(&mut self, start: usize, n: usize) -> impl Panel<N> {
        let (mut from_u, mut from_v) = ([&[][..]; IN], [&[][..]; IN]);
        for i in 0..IN {
            from_u[i] = vectors(self.from[i].u, start, n);
            from_v[i] = vectors(self.from[i].v, start, n);
        }
        let (mut to_u, mut to_v) = (no_rows(), no_rows());
        for ((row, u), v) in self.to.iter_mut().zip(&mut to_u).zip(&mut to_v) {
            (*u, *v) = (vectors_mut(row.u, start, n), vectors_mut(row.v, start, n));
        }
        FromToPanel::<N, IN, OUT> { from_u, from_v, to_u, to_v }
    }
}

impl<const N: usize, const IN: usize, const OUT: usize> Panel<N> for FromToPanel<'_, N, IN, OUT> {
    #[inline(always)]
    fn u(&self, row: usize, i: usize) -> &[f32; N] {
        &self.from_u[row][i]
    }

    #[inline(always)]
    fn v(&self, row: usize, i: usize) -> &[f32; N] {
        &self.from_v[row][i]
    }

    #[inline(always)]
    fn target(&mut self, row: usize, i: usize) -> (&mut [f32; N], &mut [f32; N]) {
        (&mut self.to_u[row][i], &mut self.to_v[row][i])
    }
}

/// Four rows in scratch: two blocks of two rows. In a block U and V of each row are `stride` apart.
pub(super) struct Window<'a> {
    pub blocks: [&'a mut [f32]; 2],
    pub stride: usize,
    pub cols: usize,
}

impl Window<'_> {
    #[inline(always)]
    pub fn row(&self, index: usize) -> Row<'_> {
        let row = &self.blocks[index / 2][index % 2 * 2 * self.stride..];
        Row { u: &row[..self.cols], v: &row[self.stride..][..self.cols] }
    }

    /// The four rows.
    #[inline(always)]
    pub fn rows_mut(&mut self) -> [RowMut<'_>; 4] {
        let (cols, stride) = (self.cols, self.stride);
        let [top, bottom] = &mut self.blocks;
        let ((a, b), (c, d)) = (top.split_at_mut(2 * stride), bottom.split_at_mut(2 * stride));
        let [a, b, c, d] =
            [a.split_at_mut(stride), b.split_at_mut(stride), c.split_at_mut(stride), d.split_at_mut(stride)];
        [
            RowMut { u: &mut a.0[..cols], v: &mut a.1[..cols] },
            RowMut { u: &mut b.0[..cols], v: &mut b.1[..cols] },
            RowMut { u: &mut c.0[..cols], v: &mut c.1[..cols] },
            RowMut { u: &mut d.0[..cols], v: &mut d.1[..cols] },
        ]
    }
}

/// A sweep in place, over the rows of a window from row `FIRST` on: the new state of each inner row replaces
/// the row above it.
pub(super) struct InPlace<'a, const FIRST: usize> {
    pub window: Window<'a>,
}

struct InPlacePanel<'a, const N: usize, const FIRST: usize> {
    u: [&'a mut [[f32; N]]; 4],
    v: [&'a mut [[f32; N]]; 4],
}

impl<const FIRST: usize, const IN: usize, const OUT: usize> Rows<IN, OUT> for InPlace<'_, FIRST> {
    #[inline(always)]
    fn row(&self, index: usize) -> Row<'_> {
        self.window.row(FIRST + index)
    }

    #[inline(always)]
    fn panel<const N: usize>(&mut self, start: usize, n: usize) -> impl Panel<N> {
        let [a, b, c, d] = self.window.rows_mut();
        InPlacePanel::<N, FIRST> {
            u: [
                vectors_mut(a.u, start, n),
                vectors_mut(b.u, start, n),
                vectors_mut(c.u, start, n),
                vectors_mut(d.u, start, n),
            ],
            v: [
                vectors_mut(a.v, start, n),
                vectors_mut(b.v, start, n),
                vectors_mut(c.v, start, n),
                vectors_mut(d.v, start, n),
            ],
        }
    }
}

impl<const N: usize, const FIRST: usize> Panel<N> for InPlacePanel<'_, N, FIRST> {
    #[inline(always)]
    fn u(&self, row: usize, i: usize) -> &[f32; N] {
        &self.u[FIRST + row][i]
    }

    #[inline(always)]
    fn v(&self, row: usize, i: usize) -> &[f32; N] {
        &self.v[FIRST + row][i]
    }

    #[inline(always)]
    fn target(&mut self, row: usize, i: usize) -> (&mut [f32; N], &mut [f32; N]) {
        (&mut self.u[FIRST + row][i], &mut self.v[FIRST + row][i])
    }
}

/// `n` vectors from `start`, as a slice whose length the compiler knows to be `n`.
#[inline(always)]
fn vectors<const N: usize>(row: &[f32], start: usize, n: usize) -> &[[f32; N]] {
    &row[start..start + n * N].as_chunks().0[..n]
}

#[inline(always)]
fn vectors_mut<const N: usize>(row: &mut [f32], start: usize, n: usize) -> &mut [[f32; N]] {
    &mut row[start..start + n * N].as_chunks_mut().0[..n]
}

#[inline(always)]
fn no_rows<'a, const N: usize, const ROWS: usize>() -> [&'a mut [[f32; N]]; ROWS] {
    array::from_fn(|_| Default::default())
}
