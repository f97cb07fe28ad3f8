//! Recorded kernels that take elements of buffers with other ranks than the index space, by their
//! coordinates.

mod common;

use anabranch::{
    Mistake,
    device::{Device, Simulated},
    grid::{Chunk, RangeMapper},
    local_nodes,
    prelude::*,
};
use common::{runtime, runtimes};
use std::sync::Arc;
use testing::deadline;

const ROWS: usize = 23;
const COLS: usize = 300;

fn numbers(count: usize, salt: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + salt * 31) % 1000) as f32 / 250.0 - 2.0).collect()
}

/// A buffer of two dimensions with these elements, row by row.
fn matrix(rt: &Runtime, from: &[f32], shape: [usize; 2]) -> Result<Buffer<f32, 2>, Error> {
    let row = rt.buffer_from(from)?;
    let to = rt.buffer::<f32, 2>(shape);
    rt.task("reshape").over(shape).read(&row, all()).write(&to, one_to_one()).kernel(
        move |tile, (from, to)| {
            tile.points().for_each(|[y, x]| to.set([y, x], from[[y * shape[1] + x]]));
        },
    )?;
    Ok(to)
}

/// Each node, chunk and piece declares the elements of a vector that belong to its rows, or to its columns.
fn rows_of() -> impl RangeMapper<2, 1> + 'static {
    mapper(|chunk: &Chunk<2>, _| GridBox::new(chunk.range.min()[0], chunk.range.max()[0]))
}

fn columns_of() -> impl RangeMapper<2, 1> + 'static {
    mapper(|chunk: &Chunk<2>, _| GridBox::new(chunk.range.min()[1], chunk.range.max()[1]))
}

/// `factor * row + column`, with the neighbours of the column and one element of the row for all points.
fn broadcast(rt: &Runtime, pieces: usize) -> Result<Vec<u32>, Error> {
    let factor = rt.buffer::<f32, 0>([]);
    rt.task("factor").over([]).write(&factor, one_to_one()).each(|(factor,)| factor.set(1.25))?;
    let (rows, cols) = (rt.buffer_from(&numbers(ROWS, 1))?, rt.buffer_from(&numbers(COLS, 2))?);
    let sum = rt.buffer::<f32, 2>([ROWS, COLS]);
    let task = rt.task("broadcast").over([ROWS, COLS]).pieces(pieces);
    let task = task.read(&factor, all()).read(&rows, rows_of()).read(&cols, all()).write(&sum, one_to_one());
    task.each(|(factor, rows, cols, sum)| {
        let (row, col) = (sum.point(0), sum.point(1));
        let around = cols.get_clamped([col - 1]) + cols.get_periodic([col + 2]) + cols.get_or([col + 1], 0.5);
        sum.set(factor.value() * rows.get([row]) + around - cols.get([7.into()]));
    })?;
    Ok(rt.fence(&sum)?.wait()?.as_slice().iter().map(|value| value.to_bits()).collect())
}

fn broadcast_by_loops() -> Vec<u32> {
    let (rows, cols) = (numbers(ROWS, 1), numbers(COLS, 2));
    let mut sums = Vec::new();
    for row in &rows {
        for x in 0..COLS {
            let right = if x + 1 < COLS { cols[x + 1] } else { 0.5 };
            let around = cols[x.saturating_sub(1)] + cols[(x + 2) % COLS] + right;
            sums.push((1.25 * row + around - cols[7]).to_bits());
        }
    }
    sums
}

#[test]
fn rows_columns_and_numbers_are_broadcast_on_any_number_of_threads_in_pieces_and_on_nodes() {
    let _deadline = deadline();
    let expected = broadcast_by_loops();
    for rt in runtimes() {
        for pieces in [1, 3, 100] {
            assert_eq!(broadcast(&rt, pieces).unwrap(), expected, "{rt:?}, {pieces} pieces");
        }
    }
    for nodes in [1, 2, 3] {
        for bits in local_nodes(nodes).threads(2).run(|rt| broadcast(&rt, 2)) {
            assert_eq!(bits.unwrap(), expected, "{nodes} nodes");
        }
    }
}

#[test]
fn rows_columns_and_numbers_are_broadcast_on_a_device() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let rt = Runtime::builder().threads(2).device(&device).build().unwrap();
    assert_eq!(broadcast(&rt, 1).unwrap(), broadcast_by_loops());
}

#[test]
fn a_transposed_matrix_is_gathered() {
    let _deadline = deadline();
    let from = numbers(ROWS * COLS, 3);
    for rt in runtimes() {
        let (a, b) = (matrix(&rt, &from, [ROWS, COLS]).unwrap(), rt.buffer::<f32, 2>([COLS, ROWS]));
        let task = rt.task("transpose").over([COLS, ROWS]).read(&a, transposed()).write(&b, one_to_one());
        task.each(|(a, b)| b.set(a.get([b.point(1), b.point(0)]))).unwrap();
        let b = rt.fence(&b).unwrap().wait().unwrap();
        assert!((0..COLS * ROWS).all(|i| b.as_slice()[i] == from[i % ROWS * COLS + i / ROWS]));
    }
}

/// The mistake of a task that was refused, and its message.
fn mistake<T: std::fmt::Debug>(refused: Result<T, Error>) -> (Mistake, String) {
    let error = refused.expect_err("the declaration is wrong");
    let message = error.to_string();
    match error {
        Error::Declaration(error) => (error.mistake, message),
        other => panic!("{other:?} is no mistake of a declaration"),
    }
}

#[test]
fn coordinates_outside_the_declaration_are_an_error_that_names_the_line_and_the_coordinates() {
    let _deadline = deadline();
    for threads in common::THREADS {
        let rt = runtime(threads);
        let cols = rt.buffer_from(&numbers(COLS, 2)).unwrap();
        let v = rt.buffer::<f32, 2>([COLS, COLS]);
        // Each chunk has some rows and all columns.
        let task = || rt.task("wrong").over([COLS, COLS]).chunks(threads).write(&v, one_to_one());
        task().read(&cols, columns_of()).each(|(v, cols)| v.set(cols.get([v.point(1)]))).unwrap();
        let refused = task().read(&cols, rows_of()).each(|(v, cols)| v.set(cols.get([v.point(1)])));
        let line = line!() - 1;
        if threads > 1 {
            let (mistake, message) = mistake(refused);
            let Mistake::CoordinatesOutside { coordinates, at, .. } = mistake else { panic!("{mistake:?}") };
            assert_eq!((coordinates.as_str(), at.file(), at.line()), ("[point(1)]", file!(), line));
            assert!(message.contains("task \"wrong\"") && message.contains("`get_clamped`"), "{message}");
        }
        let refused = task().read(&cols, all()).each(|(v, cols)| v.set(cols.get([v.point(1) - 1])));
        let (_, message) = mistake(refused);
        assert!(message.contains("[point(1) - 1]"), "{message}");
        let refused = task().read(&cols, all()).each(|(v, cols)| v.set(cols.get([COLS.into()])));
        let (_, message) = mistake(refused);
        assert!(message.contains("coordinates [300]") && message.contains("[300..301]"), "{message}");
    }
}

const INNER: usize = 41;

/// Sums of columns, sums of rows, and the elements of a product.
type Results = (Vec<f32>, Vec<f32>, Vec<f32>);

/// A matrix product, and its sums along each axis, by folds.
fn product(rt: &Runtime, pieces: usize) -> Result<Results, Error> {
    let a = matrix(rt, &numbers(ROWS * INNER, 4), [ROWS, INNER])?;
    let b = matrix(rt, &numbers(INNER * COLS, 5), [INNER, COLS])?;
    let c = rt.buffer::<f32, 2>([ROWS, COLS]);
    let task = rt.task("product").over([ROWS, COLS]).pieces(pieces);
    task.read(&a, slice(1)).read(&b, slice(0)).write(&c, one_to_one()).each(|(a, b, c)| {
        let (row, col) = (c.point(0), c.point(1));
        c.set(c.fold(0..INNER, 0.0, |sum, k| sum + a.get([row, k]) * b.get([k, col])));
    })?;

    let rows = rt.buffer::<f32, 1>([ROWS]);
    let whole_rows = mapper(|chunk: &Chunk<1>, extent: Extent<2>| {
        GridBox::new([chunk.range.min()[0], 0], [chunk.range.max()[0], extent[1]])
    });
    let task = rt.task("sums of rows").over([ROWS]).pieces(pieces);
    task.read(&c, whole_rows).write(&rows, one_to_one()).each(|(c, rows)| {
        rows.set(rows.fold(0..COLS, 0.0, |sum, k| sum + c.get([rows.point(0), k])));
    })?;

    let cols = rt.buffer::<f32, 1>([COLS]);
    let whole_columns = mapper(|chunk: &Chunk<1>, extent: Extent<2>| {
        GridBox::new([0, chunk.range.min()[0]], [extent[0], chunk.range.max()[0]])
    });
    let task = rt.task("sums of columns").over([COLS]).pieces(pieces);
    task.read(&c, whole_columns).write(&cols, one_to_one()).each(|(c, cols)| {
        cols.set(cols.fold(0..ROWS, 0.0, |sum, k| sum + c.get([k, cols.point(0)])));
    })?;
    let (rows, cols) = (rt.fence(&rows)?.wait()?, rt.fence(&cols)?.wait()?);
    Ok((cols.as_slice().to_vec(), rows.as_slice().to_vec(), rt.fence(&c)?.wait()?.as_slice().to_vec()))
}

fn product_by_loops() -> Results {
    let (a, b) = (numbers(ROWS * INNER, 4), numbers(INNER * COLS, 5));
    let mut c = vec![0.0_f32; ROWS * COLS];
    for (i, c) in c.iter_mut().enumerate() {
        for k in 0..INNER {
            *c += a[i / COLS * INNER + k] * b[k * COLS + i % COLS];
        }
    }
    let rows = c.chunks(COLS).map(|row| row.iter().fold(0.0, |sum, &element| sum + element)).collect();
    let cols = (0..COLS).map(|x| (0..ROWS).fold(0.0, |sum, y| sum + c[y * COLS + x])).collect();
    (cols, rows, c)
}

#[test]
fn a_matrix_product_and_sums_along_axes_have_the_bits_of_loops_on_threads_in_pieces_and_on_nodes() {
    let _deadline = deadline();
    let expected = product_by_loops();
    for rt in runtimes() {
        for pieces in [1, 4, 100] {
            assert!(product(&rt, pieces).unwrap() == expected, "{rt:?}, {pieces} pieces");
        }
    }
    for nodes in [1, 2, 3] {
        for result in local_nodes(nodes).threads(2).run(|rt| product(&rt, 3)) {
            assert!(result.unwrap() == expected, "{nodes} nodes");
        }
    }
}

#[test]
fn a_matrix_product_and_sums_along_axes_have_the_bits_of_loops_on_a_device() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let rt = Runtime::builder().threads(2).device(&device).build().unwrap();
    assert!(product(&rt, 1).unwrap() == product_by_loops());
}

#[test]
fn a_fold_that_leaves_the_declaration_is_an_error_that_names_its_numbers() {
    let _deadline = deadline();
    let rt = runtime(1);
    let a = matrix(&rt, &numbers(ROWS * INNER, 4), [ROWS, INNER]).unwrap();
    let v = rt.buffer::<f32, 1>([ROWS]);
    let task = || rt.task("sums").over([ROWS]).read(&a, all()).write(&v, one_to_one());
    let refused = task().each(|(a, v)| {
        v.set(v.fold(2..INNER + 1, 0.0, |sum, k| sum + a.get([v.point(0), k])));
    });
    let line = line!() - 2;
    let (found, message) = mistake(refused);
    let Mistake::CoordinatesOutside { coordinates, at, missing, .. } = found else { panic!("{found:?}") };
    assert_eq!((coordinates.as_str(), at.line()), ("[point(0), 2..42]", line));
    assert_eq!(missing, "[0..23, 41..42]", "{message}");

    let refused = task().each(|(a, v)| {
        v.set(v.fold(0..3, 0.0, |sum, k| sum + a.get([v.point(0) + k - 1, 0.into()])));
    });
    let (_, message) = mistake(refused);
    assert!(message.contains("[point(0) + (-1..2), 0]"), "{message}");
    assert!(message.contains("points before the first one"), "{message}");

    // Without turns nothing is taken.
    for turns in [0..0, 7..7] {
        task().each(|(a, v)| v.set(v.fold(turns, 2.5, |sum, k| sum + a.get([k + 1000, k])))).unwrap();
        assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [2.5; ROWS]);
    }
}
