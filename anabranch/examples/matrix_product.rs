//! Multiplies two diagonal matrices, and verifies the product with a kernel.
//!
//! `cargo run --release -p anabranch --example matrix_product`
//!
//! The program never says which task waits for which. The two matrices are filled at the same time, since
//! neither task needs the other. The product waits for both, and the verification waits for the product. The
//! program waits only in `drain`, which returns the result of the verification.

use anabranch::prelude::*;

const N: usize = 256;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let a = rt.buffer::<f32, 2>([N, N]).named("A");
    let b = rt.buffer::<f32, 2>([N, N]).named("B");
    let c = rt.buffer::<f32, 2>([N, N]).named("C");
    let ok = rt.buffer::<bool, 0>([]).named("ok");

    fill_diagonal(&rt, &a, 2.0)?;
    fill_diagonal(&rt, &b, 3.0)?;
    multiply(&rt, &a, &b, &c)?;
    verify(&rt, &c, 6.0, &ok)?;

    let node = rt.node();
    let all_right = rt.drain(ok.capture())?[[]];
    if node == 0 {
        println!("diag(2) · diag(3) of {N} × {N} is diag(6): {all_right}");
    }
    assert!(all_right, "the product is wrong");
    Ok(())
}

fn fill_diagonal(rt: &Runtime, matrix: &Buffer<f32, 2>, value: f32) -> Result<TaskHandle, Error> {
    rt.task("fill diagonal").over([N, N]).write(matrix, one_to_one()).kernel(move |tile, (matrix,)| {
        tile.points().for_each(|[y, x]| matrix.set([y, x], if y == x { value } else { 0.0 }));
    })
}

/// Multiplies. A tile of the product reads the rows of `a` and the columns of `b` that cross in it.
fn multiply(
    rt: &Runtime,
    a: &Buffer<f32, 2>,
    b: &Buffer<f32, 2>,
    c: &Buffer<f32, 2>,
) -> Result<TaskHandle, Error> {
    rt.task("multiply")
        .over([N, N])
        .tiles(16, 16)
        .read(a, slice(1))
        .read(b, slice(0))
        .write(c, one_to_one())
        .kernel(|tile, (a, b, c)| {
            for y in tile.rows() {
                let sums = c.row_mut(y);
                sums.fill(0.0);
                for (k, factor) in a.row(y).iter().enumerate() {
                    // The part of the row of `b` that this tile declared: the columns of `sums`.
                    for (sum, value) in sums.iter_mut().zip(b.row(k)) {
                        *sum += factor * value;
                    }
                }
            }
        })
}

/// Compares each element with its expected value. The reduction is true if all comparisons are.
fn verify(
    rt: &Runtime,
    matrix: &Buffer<f32, 2>,
    value: f32,
    ok: &Buffer<bool, 0>,
) -> Result<TaskHandle, Error> {
    rt.task("verify").over([N, N]).read(matrix, one_to_one()).reduce(ok, and()).kernel(
        move |tile, (matrix, ok)| {
            tile.points().for_each(|[y, x]| {
                let expected = if y == x { value } else { 0.0 };
                ok.combine([], matrix[[y, x]] == expected);
            });
        },
    )
}
