//! Scans and reductions.

use anabranch::{recorded::Value, sum};
use anabranch_array::{Array, ArrayError, Numeric};

use super::bed::{Bed, Operation, row};
use crate::row::Row;

/// The arrays of a group of rows: one dimension, two, or two of which one is long.
struct Arrays<T> {
    line: fn(&mut Bed) -> Result<Array<T, 1>, ArrayError>,
    matrix: fn(&mut Bed) -> Result<Array<T, 2>, ArrayError>,
    long: fn(&mut Bed) -> Result<Array<T, 2>, ArrayError>,
}

const FLOATS: Arrays<f32> = Arrays {
    line: |bed| bed.drawn([bed.len()]),
    matrix: |bed| bed.drawn(bed.matrix),
    long: |bed| bed.drawn(bed.long),
};

const INTEGERS: Arrays<i64> = Arrays {
    line: |bed| bed.integers([bed.len()]),
    matrix: |bed| bed.integers(bed.matrix),
    long: |bed| bed.integers(bed.long),
};

/// The rows of one operation: of a line, and along each axis of both matrices.
fn group<T: Numeric>(
    names: [&'static str; 5],
    about: [&'static str; 5],
    arrays: Arrays<T>,
    of_all: fn(&Array<T, 1>) -> Result<(), ArrayError>,
    along: fn(&Array<T, 2>, usize) -> Result<(), ArrayError>,
) -> Vec<Row> {
    let Arrays { line, matrix, long } = arrays;
    let mut rows = vec![row(names[0], about[0], move |bed| {
        let (a, all) = (line(bed)?, bed.arrays.clone());
        Ok(Box::new(move || of_all(&a).and_then(|()| all.wait())) as Operation)
    })];
    for (at, make, axis) in [(1, matrix, 1), (2, matrix, 0), (3, long, 1), (4, long, 0)] {
        rows.push(row(names[at], about[at], move |bed| {
            let (a, all) = (make(bed)?, bed.arrays.clone());
            Ok(Box::new(move || along(&a, axis).and_then(|()| all.wait())) as Operation)
        }));
    }
    rows
}

macro_rules! names {
    ($prefix:literal) => {
        [
            concat!("array/", $prefix, "/1d"),
            concat!("array/", $prefix, "/dims=1"),
            concat!("array/", $prefix, "/dims=2"),
            concat!("array/", $prefix, "/dims=1L"),
            concat!("array/", $prefix, "/dims=2L"),
        ]
    };
}

macro_rules! about {
    ($operation:literal, $number:literal) => {
        [
            concat!($operation, " of 512,000 `", $number, "`"),
            concat!($operation, " along the rows of 1000 × 512 `", $number, "`"),
            concat!($operation, " along the columns of 1000 × 512 `", $number, "`"),
            concat!($operation, " along the rows of 1,000,000 × 3 `", $number, "`"),
            concat!($operation, " along the columns of 1,000,000 × 3 `", $number, "`"),
        ]
    };
}

fn plus_one(x: Value<'_, f32>) -> Value<'_, f32> {
    x + 1.0
}

fn plus_one_i64(x: Value<'_, i64>) -> Value<'_, i64> {
    x + 1
}

pub fn rows() -> Vec<Row> {
    [
        group(
            names!("accumulate/Float32"),
            about!("the running sums", "f32"),
            FLOATS,
            |a| a.scan(sum()).map(drop),
            |a, axis| a.scan_axis(axis, sum()).map(drop),
        ),
        group(
            names!("accumulate/Int64"),
            about!("the running sums", "i64"),
            INTEGERS,
            |a| a.scan(sum()).map(drop),
            |a, axis| a.scan_axis(axis, sum()).map(drop),
        ),
        group(
            names!("reductions/mapreduce/Float32"),
            about!("the sum of x + 1", "f32"),
            FLOATS,
            |a| a.map_reduce(plus_one, sum()).map(drop),
            |a, axis| a.map_reduce_axis(axis, plus_one, sum()).map(drop),
        ),
        group(
            names!("reductions/mapreduce/Int64"),
            about!("the sum of x + 1", "i64"),
            INTEGERS,
            |a| a.map_reduce(plus_one_i64, sum()).map(drop),
            |a, axis| a.map_reduce_axis(axis, plus_one_i64, sum()).map(drop),
        ),
        group(
            names!("reductions/reduce/Float32"),
            about!("the sum", "f32"),
            FLOATS,
            |a| a.reduce(sum()).map(drop),
            |a, axis| a.reduce_axis(axis, sum()).map(drop),
        ),
        group(
            names!("reductions/reduce/Int64"),
            about!("the sum", "i64"),
            INTEGERS,
            |a| a.reduce(sum()).map(drop),
            |a, axis| a.reduce_axis(axis, sum()).map(drop),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
