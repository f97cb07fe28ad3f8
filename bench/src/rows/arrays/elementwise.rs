//! Filling, permutations, random numbers, and sums of matrices.

use anabranch_array::{Array, ArrayError, Numeric};

use super::bed::{Bed, Operation, row};
use crate::row::Row;

pub fn rows() -> Vec<Row> {
    vec![
        row("array/broadcast", "setting 1000 × 512 `f32` to 0", |bed| {
            let (a, all) = (bed.drawn::<f32, 2>(bed.matrix)?, bed.arrays.clone());
            Ok(Box::new(move || a.fill(0.0).and_then(|()| all.wait())))
        }),
        row("array/construct", "making an array of one `i64` without contents", |bed| {
            let all = bed.arrays.clone();
            Ok(Box::new(move || all.from_buffer(&all.group().buffer::<i64, 1>([1])).map(drop)))
        }),
        row("array/permutedims/2d", "the transposed matrix of 1000 × 512 `f32`", |bed| {
            permuted(bed.drawn::<f32, 2>(bed.matrix)?, [1, 0])
        }),
        row("array/permutedims/3d", "25 × 40 × 512 `f32` with the axes 1, 2, 0", |bed| {
            let [rows, columns] = bed.matrix;
            let shape = if rows == 1000 { [25, 40, columns] } else { [4, 5, columns] };
            permuted(bed.drawn::<f32, 3>(shape)?, [1, 2, 0])
        }),
        row("array/permutedims/4d", "10 × 10 × 10 × 512 `f32` with the axes 1, 0, 3, 2", |bed| {
            let [rows, columns] = bed.matrix;
            let shape = if rows == 1000 { [10, 10, 10, columns] } else { [2, 5, 2, columns] };
            permuted(bed.drawn::<f32, 4>(shape)?, [1, 0, 3, 2])
        }),
        row("array/random/rand/Float32", "a new array of 512,000 uniform `f32`", drawn::<f32>),
        row("array/random/rand/Int64", "a new array of 512,000 uniform `i64`", drawn::<i64>),
        row("array/random/rand!/Float32", "512,000 uniform `f32` into an array", filled::<f32>),
        row("array/random/rand!/Int64", "512,000 uniform `i64` into an array", filled::<i64>),
        row("array/random/randn/Float32", "a new array of 512,000 normal `f32`", |bed| {
            let (len, all, mut random) = (bed.len(), bed.arrays.clone(), bed.random.clone());
            Ok(Box::new(move || random.normal::<f32, 1>([len]).and_then(|_| all.wait())))
        }),
        row("array/random/randn!/Float32", "512,000 normal `f32` into an array", |bed| {
            let a = bed.drawn::<f32, 1>([bed.len()])?;
            let (all, mut random) = (bed.arrays.clone(), bed.random.clone());
            Ok(Box::new(move || random.fill_normal(&a).and_then(|()| all.wait())))
        }),
        row("integration/byval/reference", "the sum of two matrices of 1536 × 3072 `f32`", |bed| {
            slices(bed, 1)
        }),
        row("integration/byval/slices=1", "the same for one pair in a list", |bed| slices(bed, 1)),
        row(
            "integration/byval/slices=2",
            "the same for two pairs in a list: two kernels, and one wait",
            |bed| slices(bed, 2),
        ),
        row("integration/byval/slices=3", "the same for three pairs", |bed| slices(bed, 3)),
        row(
            "integration/metaldevrt",
            "the sum of a matrix of 1536 × 3072 `f32` and a column, which is broadcast",
            |bed| {
                let column = bed.drawn::<f32, 2>([bed.large[0], 1])?;
                let (a, all) = (bed.drawn::<f32, 2>(bed.large)?, bed.arrays.clone());
                Ok(Box::new(move || a.zip(&column, |x, y| x + y).and_then(|_| all.wait())))
            },
        ),
    ]
}

fn permuted<const D: usize>(a: Array<f32, D>, axes: [usize; D]) -> Result<Operation, ArrayError> {
    Ok(Box::new(move || a.permute(axes).and_then(|_| a.arrays().wait())))
}

fn drawn<T: Numeric>(bed: &mut Bed) -> Result<Operation, ArrayError> {
    let (len, all, mut random) = (bed.len(), bed.arrays.clone(), bed.random.clone());
    Ok(Box::new(move || random.uniform::<T, 1>([len]).and_then(|_| all.wait())))
}

fn filled<T: Numeric>(bed: &mut Bed) -> Result<Operation, ArrayError> {
    let a = bed.drawn::<T, 1>([bed.len()])?;
    let (all, mut random) = (bed.arrays.clone(), bed.random.clone());
    Ok(Box::new(move || random.fill_uniform(&a).and_then(|()| all.wait())))
}

/// Sums of pairs of matrices, into matrices that are there.
fn slices(bed: &mut Bed, count: usize) -> Result<Operation, ArrayError> {
    let make =
        |bed: &mut Bed| (0..count).map(|_| bed.drawn::<f32, 2>(bed.large)).collect::<Result<Vec<_>, _>>();
    let (left, right, all) = (make(bed)?, make(bed)?, bed.arrays.clone());
    Ok(Box::new(move || {
        let sums = left.iter().zip(&right).map(|(a, b)| a.zip(b, |x, y| x + y));
        sums.collect::<Result<Vec<_>, _>>().and_then(|_| all.wait())
    }))
}
