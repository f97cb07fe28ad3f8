//! One step of one or two neighbouring rows: the stencil itself.
//!
//! The stencil is separable: sums over columns of three cells, weighted 1 2 1, and then over rows of three
//! such sums. A walk along the row computes the vertical sums of the next vector, shifts those of the current
//! vector by a lane in registers, and keeps nothing in memory between. Two rows in one sweep share their
//! loads.
//!
//! Every cell is computed by the same operations in the same order, wherever it is, so that results do not
//! depend on how the grid is cut.

use super::{
    coefficients::Coefficients,
    lanes::Lanes,
    rows::{Panel, Rows},
};
use crate::model::Edges;

/// One step of `OUT` rows, from these rows and the rows above and below: `IN` = `OUT` + 2.
pub(super) struct Sweep<'a, R, const IN: usize, const OUT: usize> {
    pub coefficients: &'a Coefficients,
    pub edges: Edges,
    pub rows: R,
}

/// Vectors of U and V of `OUT` rows.
type Both<V, const OUT: usize> = ([V; OUT], [V; OUT]);

impl<R: Rows<IN, OUT>, const IN: usize, const OUT: usize> Sweep<'_, R, IN, OUT> {
    /// Width of the grid.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.rows.row(0).u.len()
    }

    /// Runs the sweep in vectors of `N` cells. A row must be at least one vector wide.
    #[inline(always)]
    pub fn run<const N: usize>(&mut self, lanes: impl Lanes<N>) {
        match self.coefficients.dt {
            1.0 => self.row::<_, N, false>(lanes),
            _ => self.row::<_, N, true>(lanes),
        }
    }

    /// Steps full vectors from the left, and one full vector at the right end for the rest. Some cells of
    /// that vector are computed twice. It is computed first, because the sweep may be in place.
    #[inline(always)]
    fn row<L: Lanes<N>, const N: usize, const SCALED: bool>(&mut self, lanes: L) {
        let math = Math::<L, N, SCALED>::new(lanes, self.coefficients);
        let width = self.width();
        if width.is_multiple_of(N) {
            return self.vectors(&math, width / N);
        }
        let last = self.vector(&math, width - N);
        self.vectors(&math, width / N);
        let mut panel = self.rows.panel(width - N, 1);
        for o in 0..OUT {
            let (to_u, to_v) = panel.target(o, 0);
            lanes.store(to_u, last.0[o]);
            lanes.store(to_v, last.1[o]);
        }
    }

    /// Steps the first `n` vectors.
    #[inline(always)]
    fn vectors<L: Lanes<N>, const N: usize, const SCALED: bool>(
        &mut self,
        math: &Math<L, N, SCALED>,
        n: usize,
    ) {
        let lanes = math.lanes;
        let before = self.column(lanes, -1);
        let after = self.column(lanes, (n * N) as isize);
        let mut panel = self.rows.panel(0, n);
        let mut walk = Walk::<L, N, OUT>::start::<IN>(lanes, &panel, before);
        for i in 1..n {
            let next = vertical_sums::<L, N, IN, OUT>(lanes, &panel, i);
            walk.step(math, &mut panel, i - 1, next);
        }
        walk.step(math, &mut panel, n - 1, after);
    }

    /// The vector at column `start`, a step later.
    #[inline(always)]
    fn vector<L: Lanes<N>, const N: usize, const SCALED: bool>(
        &mut self,
        math: &Math<L, N, SCALED>,
        start: usize,
    ) -> Both<L::V, OUT> {
        let before = self.column(math.lanes, start as isize - 1);
        let after = self.column(math.lanes, (start + N) as isize);
        let panel = self.rows.panel(start, 1);
        Walk::<L, N, OUT>::start::<IN>(math.lanes, &panel, before).values(math, &panel, 0, after).0
    }

    /// The vertical sums at a column, which may lie just outside the grid, in all lanes.
    #[inline(always)]
    fn column<L: Lanes<N>, const N: usize>(&self, lanes: L, column: isize) -> Both<L::V, OUT> {
        let (mut u, mut v) = ([lanes.splat(0.0); IN], [lanes.splat(0.0); IN]);
        if let Some(column) = self.edges.resolve(column, self.width()) {
            for i in 0..IN {
                let row = self.rows.row(i);
                (u[i], v[i]) = (lanes.splat(row.u[column]), lanes.splat(row.v[column]));
            }
        }
        (sums(lanes, u), sums(lanes, v))
    }
}

/// A walk along a row: the vertical sums of the current vector, and of its left neighbours.
struct Walk<L: Lanes<N>, const N: usize, const OUT: usize> {
    here: Both<L::V, OUT>,
    left: Both<L::V, OUT>,
}

impl<L: Lanes<N>, const N: usize, const OUT: usize> Walk<L, N, OUT> {
    /// A walk at the first vector of `panel`. The sums of the vector before it are `before`.
    #[inline(always)]
    fn start<const IN: usize>(lanes: L, panel: &impl Panel<N>, before: Both<L::V, OUT>) -> Self {
        let here = vertical_sums::<L, N, IN, OUT>(lanes, panel, 0);
        let left = (lefts(lanes, before.0, here.0), lefts(lanes, before.1, here.1));
        Self { here, left }
    }

    /// Writes the new vectors at `i` and goes on to the next vectors, whose sums are `next`.
    #[inline(always)]
    fn step<const SCALED: bool>(
        &mut self,
        math: &Math<L, N, SCALED>,
        panel: &mut impl Panel<N>,
        i: usize,
        next: Both<L::V, OUT>,
    ) {
        let (new, left) = self.values(math, panel, i, next);
        for o in 0..OUT {
            let (to_u, to_v) = panel.target(o, i);
            math.lanes.store(to_u, new.0[o]);
            math.lanes.store(to_v, new.1[o]);
        }
        (self.here, self.left) = (next, left);
    }

    /// The new vectors at `i`, and the left neighbours of the sums `next` of the next vectors.
    #[inline(always)]
    fn values<const SCALED: bool>(
        &self,
        math: &Math<L, N, SCALED>,
        panel: &impl Panel<N>,
        i: usize,
        next: Both<L::V, OUT>,
    ) -> (Both<L::V, OUT>, Both<L::V, OUT>) {
        let Self { here, left } = self;
        let (mut new, mut next_left) = (next, next);
        for o in 0..OUT {
            let (right_u, next_left_u) = math.lanes.neighbours(here.0[o], next.0[o]);
            let (right_v, next_left_v) = math.lanes.neighbours(here.1[o], next.1[o]);
            let sum_u = math.sum(left.0[o], here.0[o], right_u);
            let sum_v = math.sum(left.1[o], here.1[o], right_v);
            let (u, v) = (math.lanes.load(panel.u(o + 1, i)), math.lanes.load(panel.v(o + 1, i)));
            (new.0[o], new.1[o]) = math.react(u, v, sum_u, sum_v);
            (next_left.0[o], next_left.1[o]) = (next_left_u, next_left_v);
        }
        (new, next_left)
    }
}

/// The vertical sums of the vectors at `i`.
#[inline(always)]
fn vertical_sums<L: Lanes<N>, const N: usize, const IN: usize, const OUT: usize>(
    lanes: L,
    panel: &impl Panel<N>,
    i: usize,
) -> Both<L::V, OUT> {
    let (mut u, mut v) = ([lanes.splat(0.0); IN], [lanes.splat(0.0); IN]);
    for row in 0..IN {
        (u[row], v[row]) = (lanes.load(panel.u(row, i)), lanes.load(panel.v(row, i)));
    }
    (sums(lanes, u), sums(lanes, v))
}

/// Sums of three rows, weighted 1 2 1, around each of the `OUT` inner ones of `IN` rows.
#[inline(always)]
fn sums<L: Lanes<N>, const N: usize, const IN: usize, const OUT: usize>(
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

/// The left neighbours of the cells of `b`, which follows `a`.
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
