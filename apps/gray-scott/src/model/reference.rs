//! The model in `f64`, slow and plain. Tests compare the fast kernel with it.
//!
//! The dynamics amplify rounding errors: a comparison cell by cell holds up to about 1,000 steps, not beyond.

use super::{Edges, Params, initial};

/// The state of a grid in `f64`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Constants of the model.
    pub constants: Constants,
    /// The values outside the grid.
    pub edges: Edges,
    /// Rows of the grid.
    pub rows: usize,
    /// Columns of the grid.
    pub cols: usize,
    /// U, row after row.
    pub u: Vec<f64>,
    /// V, row after row.
    pub v: Vec<f64>,
}

/// The constants of the model in `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of Params")]
pub struct Constants {
    pub du: f64,
    pub dv: f64,
    pub feed: f64,
    pub kill: f64,
    pub dt: f64,
}

impl From<Params> for Constants {
    /// The decimal numbers that the `f32`s were written as: 0.014 becomes 0.014, not 0.01400000043.
    fn from(p: Params) -> Self {
        let decimal = |x: f32| x.to_string().parse().expect("a printed number reads back");
        Self {
            du: decimal(p.du),
            dv: decimal(p.dv),
            feed: decimal(p.feed),
            kill: decimal(p.kill),
            dt: decimal(p.dt),
        }
    }
}

impl Reference {
    /// The [`initial`] state of a grid.
    pub fn new(params: Params, edges: Edges, [rows, cols]: [usize; 2], noise: Option<u64>) -> Self {
        let (u, v) = initial(rows, cols, noise);
        let wide = |field: Vec<f32>| field.into_iter().map(f64::from).collect();
        Self { constants: params.into(), edges, rows, cols, u: wide(u), v: wide(v) }
    }

    /// Advances by `steps` steps.
    pub fn advance(&mut self, steps: usize) {
        for _ in 0..steps {
            let cells = (0..self.rows as isize).flat_map(|r| (0..self.cols as isize).map(move |c| (r, c)));
            (self.u, self.v) = cells.map(|(row, col)| self.stepped(row, col)).unzip();
        }
    }

    /// The largest value of V.
    pub fn max_v(&self) -> f64 {
        self.v.iter().copied().fold(f64::MIN, f64::max)
    }

    /// The sum of V over the grid.
    pub fn sum_v(&self) -> f64 {
        self.v.iter().sum()
    }

    /// The largest distance of `v` from V.
    pub fn max_error(&self, v: &[f32]) -> f64 {
        let errors = self.v.iter().zip(v).map(|(exact, &v)| (exact - f64::from(v)).abs());
        errors.fold(0.0, |worst, error| if error <= worst { worst } else { error })
    }

    /// One cell after one step.
    fn stepped(&self, row: isize, col: isize) -> (f64, f64) {
        let k = self.constants;
        let (u, v) = (self.at(&self.u, row, col), self.at(&self.v, row, col));
        let uvv = u * v * v;
        let du = k.du * self.laplacian(&self.u, row, col) - uvv + k.feed * (1.0 - u);
        let dv = k.dv * self.laplacian(&self.v, row, col) + uvv - (k.feed + k.kill) * v;
        (u + k.dt * du, v + k.dt * dv)
    }

    fn laplacian(&self, field: &[f64], row: isize, col: isize) -> f64 {
        let at = |r, c| self.at(field, row + r, col + c);
        let edges = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1);
        let corners = at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1);
        0.25 * corners + 0.5 * edges - 3.0 * at(0, 0)
    }

    fn at(&self, field: &[f64], row: isize, col: isize) -> f64 {
        match (self.edges.resolve(row, self.rows), self.edges.resolve(col, self.cols)) {
            (Some(row), Some(col)) => field[row * self.cols + col],
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(params: Params, grid: [usize; 2], steps: usize) -> Reference {
        let mut model = Reference::new(params, Edges::Absorbing, grid, None);
        model.advance(steps);
        model
    }

    #[test]
    fn v_has_the_published_figures() {
        let (moving_spots, mitosis) =
            (Params::default(), Params { feed: 0.0367, kill: 0.0649, ..Params::default() });
        for (params, grid, steps, max, sum) in [
            (moving_spots, [256, 256], 34, 0.495002554, 130.532573544),
            (moving_spots, [100, 173], 34, 0.495093889, 63.4016272254),
            (moving_spots, [100, 173], 400, 0.327846952, 82.9279745138),
            (mitosis, [64, 64], 200, 0.305475809, 15.6534920056),
        ] {
            let model = after(params, grid, steps);
            assert!((model.max_v() - max).abs() < 1e-9, "{grid:?} {steps}: max {}", model.max_v());
            assert!((model.sum_v() - sum).abs() < 1e-9, "{grid:?} {steps}: sum {}", model.sum_v());
        }
    }

    #[test]
    fn one_step_spreads_and_decays_the_rectangle() {
        let model = after(Params::default(), [256, 256], 1);
        assert!((model.max_v() - 0.932).abs() < 1e-12 && (model.sum_v() - 238.592).abs() < 1e-9);
    }

    #[test]
    fn a_uniform_state_stays_uniform_where_nothing_is_lost() {
        for edges in [Edges::Periodic, Edges::Clamped] {
            let mut model = Reference::new(Params::default(), edges, [5, 4], None);
            model.u.fill(0.5);
            model.v.fill(0.25);
            model.advance(3);
            let uniform = |field: &[f64]| field.iter().all(|x| (x - field[0]).abs() < 1e-15);
            assert!(uniform(&model.u) && uniform(&model.v), "{edges}");
        }
    }
}
