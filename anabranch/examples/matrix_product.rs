//! Two diagonal matrices and their product, verified by a kernel.
//!
//! `cargo run --release -p anabranch --example matrix_product`
//!
//! Nothing here says what waits for what. The two matrices are filled side by side, since neither task needs the other;
//! the product waits for both; the verification waits for the product. The only wait of the program is `drain`, which
//! brings the verdict.

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

    let all_right = rt.drain(ok.capture())?[[]];
    println!("diag(2) · diag(3) of {N} × {N} is diag(6): {all_right}");
    assert!(all_right, "the product is wrong");
    Ok(())
}

fn fill_diagonal(rt: &Runtime, matrix: &Buffer<f32, 2>, value: f32) -> Result<TaskHandle, Error> {
    rt.task("fill diagonal").over([N, N]).write(matrix, one_to_one()).kernel(move |tile, (matrix,)| {
        for [y, x] in tile.points() {
            matrix[[y, x]] = if y == x { value } else { 0.0 };
        }
    })
}

/// A tile of the product needs the rows of `a` and the columns of `b` that cross in it.
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
                    // The row of `b` as far as this tile declared it: the columns of `sums`.
                    for (sum, value) in sums.iter_mut().zip(b.row(k)) {
                        *sum += factor * value;
                    }
                }
            }
        })
}

/// Each element gives its verdict; the reduction is true if all of them are.
fn verify(
    rt: &Runtime,
    matrix: &Buffer<f32, 2>,
    value: f32,
    ok: &Buffer<bool, 0>,
) -> Result<TaskHandle, Error> {
    rt.task("verify").over([N, N]).read(matrix, one_to_one()).reduce(ok, and()).kernel(
        move |tile, (matrix, ok)| {
            for [y, x] in tile.points() {
                let expected = if y == x { value } else { 0.0 };
                ok.combine([], matrix[[y, x]] == expected);
            }
        },
    )
}
