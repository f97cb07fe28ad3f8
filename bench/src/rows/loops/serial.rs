//! Reductions on one thread, written for vector instructions.

/// The number of partial results. Additions to different ones do not wait for each other, and the compiler
/// turns them into vector instructions.
const LANES: usize = 16;

/// Adds all elements.
pub fn sum_of(x: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for block in blocks {
        (0..LANES).for_each(|lane| sums[lane] += block[lane]);
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// Computes the scalar product.
pub fn dot_of(x: &[f64], y: &[f64]) -> f64 {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (x, y) in xs.iter().zip(ys) {
        (0..LANES).for_each(|lane| sums[lane] += x[lane] * y[lane]);
    }
    sums.iter().sum::<f64>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
}

/// Finds the smallest element; infinity if there is none.
pub fn min_of(x: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut least = [f64::INFINITY; LANES];
    for block in blocks {
        (0..LANES).for_each(|lane| least[lane] = smaller(block[lane], least[lane]));
    }
    least.iter().chain(rest).copied().fold(f64::INFINITY, smaller)
}

/// The smaller of two numbers. Unlike `f64::min`, this does not check for NaN.
#[inline]
pub fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}
