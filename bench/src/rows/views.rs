//! Kernels in the forms in which programs write them: by points, by rows and columns, and by the slices of
//! rows.

use std::mem::swap;

use anabranch::{
    Error, ReadView, Runtime, Tile, WriteView,
    grid::{GridBox, OneBox, RangeMapper, RegionShape, neighborhood, one_to_one},
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
        row(
            "kernels/two-fields-by-point",
            "per point of 1000 × 1000: a step of two `f64` fields that react and diffuse (Gray-Scott, five points), by `view[p]`; a function that \
             is always inlined gives the Laplacian of either; the regions are boxes",
            |context| two_fields(context, neighborhood([1, 1])),
        ),
        row(
            "kernels/two-fields-by-point-cross",
            "the same with regions that are crosses; the slices are of boxes",
            |context| two_fields(context, neighborhood([1, 1]).along_axes()),
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
    let (runtime, start) = (runtime(context)?, start(context, |at| (at % 1000) as f64));
    let [mut old, mut new] = [runtime.buffer_from(&start)?, runtime.buffer_from(&start)?];
    timed(context, move |inside| {
        let task = runtime.task("step").over(inside).read(&old, around.clone());
        task.write(&new, one_to_one()).kernel(move |tile, (old, new)| kernel(tile, old, new))?;
        swap(&mut old, &mut new);
        runtime.wait()
    })
}

fn runtime(context: &Context) -> Result<Runtime, Error> {
    Runtime::builder().threads(context.threads).checked(false).build()
}

fn side(context: &Context) -> usize {
    context.pick(1000, 50)
}

/// What the buffers hold at first: for each element what `value` makes of its number.
fn start(context: &Context, value: fn(usize) -> f64) -> ndarray::Array2<f64> {
    let side = side(context);
    let values = (0..side * side).map(value).collect();
    ndarray::Array2::from_shape_vec([side, side], values).expect("as many values as points")
}

/// Repeats a step over all points but those of the border, and gives nanoseconds per point.
fn timed(
    context: &Context,
    mut step: impl FnMut(GridBox<2>) -> Result<(), Error>,
) -> Result<impl FnMut() -> Result<Vec<f64>, Failure>, Error> {
    let load = Load::back_to_back(1, context.pick(60, 2));
    let side = side(context);
    let inside = GridBox::new([1, 1], [side - 1, side - 1]);
    Ok(move || {
        let samples = load.try_time(|| step(inside))?;
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
#[inline(always)]
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

/// What a kernel of two fields gets: the fields before the step, and after it.
type Fields<'a, 'b, S> = ([&'a ReadView<f64, 2, S>; 2], [&'a mut WriteView<'b, f64, 2>; 2]);

fn two_fields(
    context: &Context,
    around: impl RangeMapper<2, 2> + Clone + 'static,
) -> Result<Outcome, Failure> {
    Contest::ours(field_steps(context, around.clone(), fields_by_point)?)
        .peer(COLUMNS, field_steps(context, around, fields_by_column)?)
        .peer(SLICES, field_steps(context, neighborhood([1, 1]), fields_by_slice)?)
        .run(context, context.pick(10, 1))
}

/// As `steps`, with two fields.
fn field_steps<M, F>(
    context: &Context,
    around: M,
    kernel: F,
) -> Result<impl FnMut() -> Result<Vec<f64>, Failure>, Error>
where
    M: RangeMapper<2, 2> + Clone + 'static,
    F: Fn(&Tile<2>, Fields<'_, '_, M::Shape>) + Copy + Send + Sync + 'static,
{
    let runtime = runtime(context)?;
    let starts =
        [start(context, |at| (at % 1000) as f64 * 1e-3), start(context, |at| (at % 1000) as f64 * 2e-4)];
    let buffers =
        || -> Result<_, Error> { Ok([runtime.buffer_from(&starts[0])?, runtime.buffer_from(&starts[1])?]) };
    let (mut old, mut new) = (buffers()?, buffers()?);
    timed(context, move |inside| {
        let task =
            runtime.task("step").over(inside).read(&old[0], around.clone()).read(&old[1], around.clone());
        let task = task.write(&new[0], one_to_one()).write(&new[1], one_to_one());
        task.kernel(move |tile, (u, v, next_u, next_v)| kernel(tile, ([u, v], [next_u, next_v])))?;
        swap(&mut old, &mut new);
        runtime.wait()
    })
}

#[inline]
fn fields_by_point<S: RegionShape<2>>(tile: &Tile<2>, (old, [next_u, next_v]): Fields<'_, '_, S>) {
    tile.points().for_each(|p| {
        let [u, v] = react_and_diffuse(old, p);
        next_u.set(p, u);
        next_v.set(p, v);
    });
}

#[inline]
fn fields_by_column<S: RegionShape<2>>(tile: &Tile<2>, (old, [next_u, next_v]): Fields<'_, '_, S>) {
    for y in tile.rows() {
        for x in tile.cols() {
            let [u, v] = react_and_diffuse(old, [y, x]);
            next_u.set([y, x], u);
            next_v.set([y, x], v);
        }
    }
}

#[inline(always)]
fn react_and_diffuse<S: RegionShape<2>>([u, v]: [&ReadView<f64, 2, S>; 2], p: [usize; 2]) -> [f64; 2] {
    advance([u[p], v[p]], [laplacian(u, p), laplacian(v, p)])
}

#[inline(always)]
fn laplacian<S: RegionShape<2>>(u: &ReadView<f64, 2, S>, [y, x]: [usize; 2]) -> f64 {
    u[[y - 1, x]] + u[[y + 1, x]] + u[[y, x - 1]] + u[[y, x + 1]] - 4.0 * u[[y, x]]
}

/// The slices begin with the column before the tile, and have the same length in each row.
#[inline]
fn fields_by_slice(tile: &Tile<2>, ([u, v], [next_u, next_v]): Fields<'_, '_, OneBox<2>>) {
    for y in tile.rows() {
        let (next_u, next_v) = (next_u.row_mut(y), next_v.row_mut(y));
        let n = next_u.len();
        let next_v = &mut next_v[..n];
        let [u, v] = [u, v].map(|field| [y - 1, y, y + 1].map(|y| &field.row(y)[..n + 2]));
        for i in 0..n {
            let x = i + 1;
            [next_u[i], next_v[i]] =
                advance([u[1][x], v[1][x]], [laplacian_of_rows(u, x), laplacian_of_rows(v, x)]);
        }
    }
}

#[inline(always)]
fn laplacian_of_rows([above, here, below]: [&[f64]; 3], x: usize) -> f64 {
    above[x] + below[x] + here[x - 1] + here[x + 1] - 4.0 * here[x]
}

#[inline(always)]
fn advance([u, v]: [f64; 2], [laplacian_u, laplacian_v]: [f64; 2]) -> [f64; 2] {
    let uvv = u * v * v;
    [u + 0.2 * laplacian_u - uvv + 0.03 * (1.0 - u), v + 0.1 * laplacian_v + uvv - 0.09 * v]
}
