//! One step of one or two neighbouring rows: the stencil itself.
//!
//! The stencil is separable: sums over columns of three cells, weighted 1 2 1, and then over rows of three such sums.
//! Walking along the row, the vertical sums of the vector ahead are computed, those of the current one are shifted
//! by a lane from registers, and nothing is kept in memory between. Two rows at once share their loads.
//!
//! Every cell is computed by the same operations in the same order wherever it stands, so that results do not
//! depend on how the grid is cut.

use super::coefficients::Coefficients;
use super::lanes::Lanes;
use crate::model::Edges;

/// A row of both species.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub u: &'a [f32],
    pub v: &'a [f32],
}

/// A row of both species, to be written.
pub(super) struct RowMut<'a> {
    pub u: &'a mut [f32],
    pub v: &'a mut [f32],
}

/// One step of `OUT` rows, from these and the rows above and below: `IN` = `OUT` + 2.
pub(super) struct Sweep<'a, const IN: usize, const OUT: usize> {
    pub coefficients: &'a Coefficients,
    pub edges: Edges,
    pub from: [Row<'a>; IN],
    pub to: [RowMut<'a>; OUT],
}

impl<const IN: usize, const OUT: usize> Sweep<'_, IN, OUT> {
    /// Width of the grid.
    pub fn width(&self) -> usize {
        self.from[0].u.len()
    }

    /// Runs the sweep in vectors of `N` cells, of which a row must hold at least one.
    #[inline(always)]
    pub fn run<const N: usize>(&mut self, lanes: impl Lanes<N>) {
        if self.coefficients.dt == 1.0 {
            self.blocks::<N, false>(lanes)
        } else {
            self.blocks::<N, true>(lanes)
        }
    }

    #[inline(always)]
    fn blocks<const N: usize, const SCALED: bool>(&mut self, lanes: impl Lanes<N>) {
        // The last cells of the row are a full vector too, which computes some cells once more.
        let width = self.width();
        for (start, n) in [(0, width / N), (width - N, usize::from(width % N > 0))] {
            if n > 0 {
                self.block::<_, N, SCALED>(lanes, start, n);
            }
        }
    }

    /// Computes `n` vectors from column `start`.
    #[inline(always)]
    fn block<L: Lanes<N>, const N: usize, const SCALED: bool>(&mut self, lanes: L, start: usize, n: usize) {
        let end = start + n * N;
        let math = Math::<L, N, SCALED>::new(lanes, self.coefficients);
        let before = self.sums_of_column::<L, N>(lanes, start as isize - 1);
        let after = self.sums_of_column::<L, N>(lanes, end as isize);
        let mut from_u: [&[[f32; N]]; IN] = [&[]; IN];
        let mut from_v: [&[[f32; N]]; IN] = [&[]; IN];
        for i in 0..IN {
            from_u[i] = &self.from[i].u[start..end].as_chunks::<N>().0[..n];
            from_v[i] = &self.from[i].v[start..end].as_chunks::<N>().0[..n];
        }
        let mut to_u: [&mut [[f32; N]]; OUT] = std::array::from_fn(|_| Default::default());
        let mut to_v: [&mut [[f32; N]]; OUT] = std::array::from_fn(|_| Default::default());
        for ((row, u), v) in self.to.iter_mut().zip(&mut to_u).zip(&mut to_v) {
            *u = &mut row.u[start..end].as_chunks_mut::<N>().0[..n];
            *v = &mut row.v[start..end].as_chunks_mut::<N>().0[..n];
        }

        let mut here = (load_sums(lanes, &from_u, 0), load_sums(lanes, &from_v, 0));
        let mut left = (lefts(lanes, before.0, here.0), lefts(lanes, before.1, here.1));
        for i in 1..n {
            let next = (load_sums(lanes, &from_u, i), load_sums(lanes, &from_v, i));
            for o in 0..OUT {
                let (right_u, next_left_u) = lanes.neighbours(here.0[o], next.0[o]);
                let (right_v, next_left_v) = lanes.neighbours(here.1[o], next.1[o]);
                let sum_u = math.sum(left.0[o], here.0[o], right_u);
                let sum_v = math.sum(left.1[o], here.1[o], right_v);
                let (u, v) = (lanes.load(&from_u[o + 1][i - 1]), lanes.load(&from_v[o + 1][i - 1]));
                let (u, v) = math.react(u, v, sum_u, sum_v);
                lanes.store(&mut to_u[o][i - 1], u);
                lanes.store(&mut to_v[o][i - 1], v);
                (left.0[o], left.1[o]) = (next_left_u, next_left_v);
            }
            here = next;
        }
        {
            let i = n;
            let next = after;
            for o in 0..OUT {
                let (right_u, next_left_u) = lanes.neighbours(here.0[o], next.0[o]);
                let (right_v, next_left_v) = lanes.neighbours(here.1[o], next.1[o]);
                let sum_u = math.sum(left.0[o], here.0[o], right_u);
                let sum_v = math.sum(left.1[o], here.1[o], right_v);
                let (u, v) = (lanes.load(&from_u[o + 1][i - 1]), lanes.load(&from_v[o + 1][i - 1]));
                let (u, v) = math.react(u, v, sum_u, sum_v);
                lanes.store(&mut to_u[o][i - 1], u);
                lanes.store(&mut to_v[o][i - 1], v);
                (left.0[o], left.1[o]) = (next_left_u, next_left_v);
            }
        }
    }

    /// The vertical sums of U and V at a column, which may lie just outside the grid, in all lanes.
    #[inline(always)]
    fn sums_of_column<L: Lanes<N>, const N: usize>(
        &self,
        lanes: L,
        column: isize,
    ) -> ([L::V; OUT], [L::V; OUT]) {
        let (mut u, mut v) = ([lanes.splat(0.0); IN], [lanes.splat(0.0); IN]);
        if let Some(column) = self.edges.resolve(column, self.width()) {
            for i in 0..IN {
                (u[i], v[i]) = (lanes.splat(self.from[i].u[column]), lanes.splat(self.from[i].v[column]));
            }
        }
        (vertical_sums(lanes, u), vertical_sums(lanes, v))
    }
}

/// The vertical sums of the vector at index `at`.
#[inline(always)]
fn load_sums<L: Lanes<N>, const N: usize, const IN: usize, const OUT: usize>(
    lanes: L,
    rows: &[&[[f32; N]]; IN],
    at: usize,
) -> [L::V; OUT] {
    let mut vectors = [lanes.splat(0.0); IN];
    for i in 0..IN {
        vectors[i] = lanes.load(&rows[i][at]);
    }
    vertical_sums(lanes, vectors)
}

/// Sums of three rows, weighted 1 2 1, around each of the `OUT` inner ones of `IN` rows.
#[inline(always)]
fn vertical_sums<L: Lanes<N>, const N: usize, const IN: usize, const OUT: usize>(
    lanes: L,
    rows: [L::V; IN],
) -> [L::V; OUT] {
    let two = lanes.splat(2.0);
    let mut sums = [two; OUT];
    for o in 0..OUT {
        sums[o] = lanes.mul_add(two, rows[o + 1], lanes.add(rows[o], rows[o + 2]));
    }
    sums
}

/// The left neighbours of the cells of `b`, which follow those of `a`.
#[inline(always)]
fn lefts<L: Lanes<N>, const N: usize, const OUT: usize>(
    lanes: L,
    a: [L::V; OUT],
    b: [L::V; OUT],
) -> [L::V; OUT] {
    let mut left = b;
    for o in 0..OUT {
        left[o] = lanes.neighbours(a[o], b[o]).1;
    }
    left
}

/// The arithmetic of a step, with its constants in vectors.
struct Math<L: Lanes<N>, const N: usize, const SCALED: bool> {
    lanes: L,
    two: L::V,
    u_spread: L::V,
    u_loss: L::V,
    feed: L::V,
    v_spread: L::V,
    v_keep: L::V,
    dt: L::V,
}

impl<L: Lanes<N>, const N: usize, const SCALED: bool> Math<L, N, SCALED> {
    #[inline(always)]
    fn new(lanes: L, k: &Coefficients) -> Self {
        Self {
            lanes,
            two: lanes.splat(2.0),
            u_spread: lanes.splat(k.u_spread),
            u_loss: lanes.splat(k.u_loss),
            feed: lanes.splat(k.feed),
            v_spread: lanes.splat(k.v_spread),
            v_keep: lanes.splat(k.v_keep),
            dt: lanes.splat(k.dt),
        }
    }

    /// Three neighbours, weighted 1 2 1.
    #[inline(always)]
    fn sum(&self, left: L::V, here: L::V, right: L::V) -> L::V {
        self.lanes.mul_add(self.two, here, self.lanes.add(left, right))
    }

    /// `u` and `v` a step later, from the weighted sums around them. `SCALED`: dt is not 1.
    #[inline(always)]
    fn react(&self, u: L::V, v: L::V, sum_u: L::V, sum_v: L::V) -> (L::V, L::V) {
        let l = self.lanes;
        let uv = l.mul(if SCALED { l.mul(self.dt, u) } else { u }, v);
        let change = l.mul_add(self.u_spread, sum_u, l.neg_mul_add(self.u_loss, u, self.feed));
        let kept = l.mul_add(self.v_spread, sum_v, l.mul(self.v_keep, v));
        (l.add(u, l.neg_mul_add(uv, v, change)), l.mul_add(uv, v, kept))
    }
}
