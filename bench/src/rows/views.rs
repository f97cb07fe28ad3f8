//! Kernels in the forms in which programs write them: by points, by rows and columns, and by the slices of rows.

use std::mem::swap;

use anabranch::{
    Error, ReadView, Runtime, Tile, WriteView,
    grid::{GridBox, RangeMapper, RegionShape, neighborhood, one_to_one},
};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::{Row, times},
};

const SLICES: &str = "slices of rows";
const SUBSLICES: &str = "slices of equal length, zipped";
const COLUMNS: &str = "rows and columns";
const FOR_LOOP: &str = "a `for` loop over the points";

pub fn rows() -> Vec<Row> {
    let row = |name, about, run: fn(&Context) -> Result<Outcome, Failure>| {
        Row::lower(name, "ns", about, run).bar(times(1.5, SLICES)).better(times(1.0, SLICES))
    };
    vec![
        row(
            "kernels/stencil-by-point",
            "per point of 1000 × 1000 `f64`: the mean of the four neighbours, by `view[p]` for each of the points of a tile; the region is a box",
            |context| by_point(context, neighborhood([1, 1])),
        ),
        row(
            "kernels/stencil-by-point-cross",
            "the same with a region of the neighbours along the axes only, which is a cross; the slices are of one box",
            |context| by_point(context, neighborhood([1, 1]).along_axes()),
        ),
    ]
}

fn by_point(context: &Context, around: impl RangeMapper<2, 2> + Clone + 'static) -> Result<Outcome, Failure> {
    let whole = || neighborhood([1, 1]);
    Contest::ours(steps(context, around.clone(), points)?)
        .peer(COLUMNS, steps(context, around.clone(), rows_and_columns)?)
        .peer(FOR_LOOP, steps(context, around, for_loop)?)
        .peer(SLICES, steps(context, whole(), slices)?)
        .peer(SUBSLICES, steps(context, whole(), zipped)?)
        .run(context, context.pick(10, 1))
}

/// Steps with one kernel, in nanoseconds per point.
fn steps<M, F>(
    context: &Context,
    around: M,
    kernel: F,
) -> Result<impl FnMut() -> Result<Vec<f64>, Failure>, Error>
where
    M: RangeMapper<2, 2> + Clone + 'static,
    F: Fn(&Tile<2>, &ReadView<f64, 2, M::Shape>, &mut WriteView<'_, f64, 2>) + Copy + Send + Sync + 'static,
{
    let side = context.pick(1000, 50);
    let load = Load::back_to_back(1, context.pick(60, 2));
    let runtime = Runtime::builder().threads(context.threads).checked(false).build()?;
    let start: Vec<f64> = (0..side * side).map(|at| (at % 1000) as f64).collect();
    let start = ndarray::Array2::from_shape_vec([side, side], start).expect("as many values as points");
    let [mut old, mut new] = [runtime.buffer_from(&start)?, runtime.buffer_from(&start)?];
    let inside = GridBox::new([1, 1], [side - 1, side - 1]);
    Ok(move || {
        let samples = load.try_time(|| -> Result<(), Error> {
            let task = runtime.task("step").over(inside).read(&old, around.clone());
            task.write(&new, one_to_one()).kernel(move |tile, (old, new)| kernel(tile, old, new))?;
            swap(&mut old, &mut new);
            runtime.wait()
        })?;
        Ok(samples.into_iter().map(|ns| ns / inside.len() as f64).collect())
    })
}

#[inline]
fn points<S: RegionShape<2>>(tile: &Tile<2>, old: &ReadView<f64, 2, S>, new: &mut WriteView<'_, f64, 2>) {
    tile.points().for_each(|p| new.set(p, mean(old, p)));
}

#[inline]
fn for_loop<S: RegionShape<2>>(tile: &Tile<2>, old: &ReadView<f64, 2, S>, new: &mut WriteView<'_, f64, 2>) {
    for p in tile.points() {
        new.set(p, mean(old, p));
    }
}

#[inline]
fn rows_and_columns<S: RegionShape<2>>(
    tile: &Tile<2>,
    old: &ReadView<f64, 2, S>,
    new: &mut WriteView<'_, f64, 2>,
) {
    for y in tile.rows() {
        for x in tile.cols() {
            new.set([y, x], mean(old, [y, x]));
        }
    }
}

/// The mean of the four neighbours.
#[inline]
fn mean<S: RegionShape<2>>(old: &ReadView<f64, 2, S>, [y, x]: [usize; 2]) -> f64 {
    0.25 * (old[[y - 1, x]] + old[[y + 1, x]] + old[[y, x - 1]] + old[[y, x + 1]])
}

/// The slices begin with the column before the tile.
#[inline]
fn slices(tile: &Tile<2>, old: &ReadView<f64, 2>, new: &mut WriteView<'_, f64, 2>) {
    for y in tile.rows() {
        let (above, here, below) = (old.row(y - 1), old.row(y), old.row(y + 1));
        for (i, new) in new.row_mut(y).iter_mut().enumerate() {
            *new = 0.25 * (above[i + 1] + below[i + 1] + here[i] + here[i + 2]);
        }
    }
}

#[inline]
fn zipped(tile: &Tile<2>, old: &ReadView<f64, 2>, new: &mut WriteView<'_, f64, 2>) {
    for y in tile.rows() {
        let new = new.row_mut(y);
        let n = new.len();
        let [above, below] = [y - 1, y + 1].map(|y| &old.row(y)[1..=n]);
        let here = old.row(y);
        let (left, right) = (&here[..n], &here[2..n + 2]);
        for i in 0..n {
            new[i] = 0.25 * (above[i] + below[i] + left[i] + right[i]);
        }
    }
}
