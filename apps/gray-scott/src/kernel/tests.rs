//! The kernel agrees with the model in `f64`, and with itself however the work is cut.

use super::{Output, Simd, Stepper};
use crate::model::{Edges, Params, initial, reference::Reference};
use std::ops::Range;

/// Both species of a grid.
#[derive(Clone, Debug, PartialEq)]
struct Fields {
    u: Vec<f32>,
    v: Vec<f32>,
    cols: usize,
}

impl Fields {
    fn initial([rows, cols]: [usize; 2], noise: Option<u64>) -> Self {
        let (u, v) = initial(rows, cols, noise);
        Self { u, v, cols }
    }

    fn row(&self, row: usize) -> (&[f32], &[f32]) {
        let cells = row * self.cols..(row + 1) * self.cols;
        (&self.u[cells.clone()], &self.v[cells])
    }

    fn bits(&self) -> Vec<u32> {
        self.u.iter().chain(&self.v).map(|x| x.to_bits()).collect()
    }
}

impl Output for Fields {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        let cells = row * self.cols..(row + 1) * self.cols;
        (&mut self.u[cells.clone()], &mut self.v[cells])
    }
}

/// The cut of a run into bands, and into calls of at most `steps` steps.
#[derive(Clone, Copy, Debug)]
struct Cut {
    bands: usize,
    steps: usize,
}

const WHOLE: Cut = Cut { bands: 1, steps: 16 };

/// The state `steps` steps after `state`. Scratch holds NaN before each call.
fn run(stepper: &Stepper, mut state: Fields, mut steps: usize, cut: Cut) -> Fields {
    let rows = state.u.len() / state.cols;
    let mut after = state.clone();
    while steps > 0 {
        let now = steps.min(cut.steps);
        after.u.fill(f32::NAN);
        after.v.fill(f32::NAN);
        for band in 0..cut.bands {
            let band = rows * band / cut.bands..rows * (band + 1) / cut.bands;
            let mut scratch = vec![f32::NAN; stepper.scratch_len(now)];
            stepper.advance(band, now, |row| state.row(row), &mut after, &mut scratch);
        }
        std::mem::swap(&mut state, &mut after);
        steps -= now;
    }
    state
}

/// Asserts that V stays within `tolerance` of the model in `f64`, for every instruction set.
fn assert_right(params: Params, edges: Edges, grid: [usize; 2], steps: usize, tolerance: f64) {
    let mut exact = Reference::new(params, edges, grid, None);
    exact.advance(steps);
    for simd in Simd::available() {
        let stepper = Stepper::new(simd, params, edges, grid);
        let state = run(&stepper, Fields::initial(grid, None), steps, WHOLE);
        let error = exact.max_error(&state.v);
        assert!(error < tolerance, "{simd} {edges} {grid:?} {params:?}: {error:e}");
    }
}

#[test]
fn v_is_right_to_1e_6_after_34_steps() {
    assert_right(Params::default(), Edges::Absorbing, [256, 256], 34, 1e-6);
    for edges in Edges::ALL {
        for grid in [[100, 173], [48, 31], [40, 9]] {
            assert_right(Params::default(), edges, grid, 34, 1e-6);
        }
    }
}

#[test]
fn v_is_right_to_2e_5_after_1000_steps() {
    for (edges, grid) in Edges::ALL.into_iter().zip([[96, 97], [64, 80], [71, 64]]) {
        assert_right(Params::default(), edges, grid, 1000, 2e-5);
    }
}

#[test]
fn other_parameters_are_right() {
    let mitosis = Params { feed: 0.0367, kill: 0.0649, ..Params::default() };
    assert_right(mitosis, Edges::Absorbing, [64, 64], 200, 4e-6);
    let short_steps = Params { dt: 0.5, du: 0.16, dv: 0.08, ..Params::default() };
    assert_right(short_steps, Edges::Absorbing, [64, 64], 200, 4e-6);
}

const ODD_GRIDS: [[usize; 2]; 14] = [
    [1, 1],
    [1, 7],
    [7, 1],
    [7, 5],
    [2, 2],
    [3, 40],
    [33, 17],
    [5, 16],
    [40, 15],
    [9, 33],
    [17, 8],
    [64, 31],
    [4, 48],
    [21, 100],
];

#[test]
fn bits_do_not_depend_on_how_the_grid_and_the_steps_are_cut() {
    for simd in Simd::available() {
        for (edges, grid) in every_edge_of_every_odd_grid() {
            let stepper = Stepper::new(simd, Params::default(), edges, grid);
            let start = Fields::initial(grid, Some(3));
            let whole = run(&stepper, start.clone(), 19, Cut { bands: 1, steps: 1 });
            for bands in [1, 2, 3, 5] {
                for steps in [1, 2, 3, 7, 16] {
                    let cut = run(&stepper, start.clone(), 19, Cut { bands, steps });
                    assert!(
                        cut.bits() == whole.bits(),
                        "{simd} {edges} {grid:?} {bands} bands {steps} steps"
                    );
                }
            }
        }
    }
}

#[test]
fn odd_grids_are_right() {
    for simd in Simd::available() {
        for (edges, grid) in every_edge_of_every_odd_grid() {
            let mut exact = Reference::new(Params::default(), edges, grid, Some(3));
            exact.advance(20);
            let stepper = Stepper::new(simd, Params::default(), edges, grid);
            let state = run(&stepper, Fields::initial(grid, Some(3)), 20, Cut { bands: 2, steps: 6 });
            let error = exact.max_error(&state.v);
            assert!(error < 1e-6, "{simd} {edges} {grid:?}: {error:e}");
        }
    }
}

fn every_edge_of_every_odd_grid() -> impl Iterator<Item = (Edges, [usize; 2])> {
    Edges::ALL.into_iter().flat_map(|edges| ODD_GRIDS.map(|grid| (edges, grid)))
}

#[test]
fn fused_instruction_sets_give_the_same_bits() {
    let fused: Vec<Simd> = Simd::available().into_iter().filter(|&simd| simd != Simd::Portable).collect();
    for (edges, grid) in every_edge_of_every_odd_grid().chain([(Edges::Absorbing, [64, 200])]) {
        let bits = |simd: &Simd| {
            let stepper = Stepper::new(*simd, Params::default(), edges, grid);
            run(&stepper, Fields::initial(grid, Some(5)), 50, WHOLE).bits()
        };
        let all: Vec<_> = fused.iter().map(bits).collect();
        assert!(all.windows(2).all(|two| two[0] == two[1]), "{edges} {grid:?}");
    }
}

#[test]
fn a_grid_without_v_stays_exactly_as_it_is_where_nothing_is_lost() {
    for simd in Simd::available() {
        for edges in [Edges::Periodic, Edges::Clamped] {
            let start = Fields { u: vec![1.0; 20 * 37], v: vec![0.0; 20 * 37], cols: 37 };
            let stepper = Stepper::new(simd, Params::default(), edges, [20, 37]);
            assert!(run(&stepper, start.clone(), 40, WHOLE) == start, "{simd} {edges}");
        }
    }
}

#[test]
fn only_rows_within_reach_of_the_band_are_read() {
    let rows_read = |edges, band: Range<usize>, steps: usize| {
        let state = Fields::initial([40, 20], None);
        let mut after = state.clone();
        let stepper = Stepper::new(Simd::detect(), Params::default(), edges, [40, 20]);
        let rows = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let input = |row: usize| {
            rows.borrow_mut().insert(row);
            state.row(row)
        };
        stepper.advance(band, steps, input, &mut after, &mut vec![0.0; stepper.scratch_len(steps)]);
        rows.into_inner().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(rows_read(Edges::Absorbing, 10..20, 3), (7..23).collect::<Vec<_>>());
    assert_eq!(rows_read(Edges::Clamped, 0..5, 3), (0..8).collect::<Vec<_>>());
    assert_eq!(rows_read(Edges::Periodic, 38..40, 2), [0, 1, 36, 37, 38, 39]);
    assert_eq!(rows_read(Edges::Absorbing, 10..20, 0), (10..20).collect::<Vec<_>>());
    assert!(rows_read(Edges::Absorbing, 10..10, 3).is_empty());
}

#[test]
fn preferred_steps_keep_scratch_in_the_cache() {
    let steps =
        |cols| Stepper::new(Simd::Portable, Params::default(), Edges::Absorbing, [9, cols]).preferred_steps();
    assert_eq!((steps(1), steps(1920)), (16, 16));
    assert_eq!(steps(10_000_000), 1);
    let wide = Stepper::new(Simd::Portable, Params::default(), Edges::Absorbing, [9, 8192]);
    assert!(wide.scratch_len(wide.preferred_steps()) * 4 < 1_700_000);
}

#[test]
#[should_panic(expected = "band 3..11 reaches outside of 10 rows")]
fn a_band_outside_the_grid_panics() {
    let state = Fields::initial([10, 10], None);
    let stepper = Stepper::new(Simd::Portable, Params::default(), Edges::Absorbing, [10, 10]);
    stepper.advance(
        3..11,
        1,
        |row| state.row(row),
        &mut state.clone(),
        &mut vec![0.0; stepper.scratch_len(1)],
    );
}

#[test]
#[should_panic(expected = "scratch is too short")]
fn short_scratch_panics() {
    let state = Fields::initial([10, 10], None);
    let stepper = Stepper::new(Simd::Portable, Params::default(), Edges::Absorbing, [10, 10]);
    stepper.advance(3..10, 4, |row| state.row(row), &mut state.clone(), &mut [0.0; 10]);
}

#[test]
#[should_panic(expected = "row 4 does not have 10 columns")]
fn a_short_row_panics() {
    let state = Fields::initial([10, 10], None);
    let stepper = Stepper::new(Simd::Portable, Params::default(), Edges::Absorbing, [10, 10]);
    let input = |row: usize| (&state.u[..10 - row % 2], &state.v[..10 - row / 4]);
    stepper.advance(5..10, 1, input, &mut state.clone(), &mut vec![0.0; stepper.scratch_len(1)]);
}
