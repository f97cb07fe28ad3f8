//! Matrix products: a pair of matrices, and the scratch buffer for their product.

use ndarray::{Array2, ArrayViewMut2, linalg::general_mat_mul};

use super::{serial::sum_of, work::fraction};

/// Rows and columns of a product.
const SIDE: usize = 256;
/// Numbers in a cache line.
const LINE: usize = 8;

/// Two matrices to be multiplied.
pub struct Pair(Array2<f64>, Array2<f64>);

impl Pair {
    /// A matrix with `inner` columns, and one with `inner` rows.
    pub fn new(inner: usize) -> Self {
        let matrix =
            |rows, columns| Array2::from_shape_fn((rows, columns), |(i, j)| fraction(i * columns + j));
        Self(matrix(SIDE, inner), matrix(inner, SIDE))
    }

    /// Writes the product to `c` and returns the sum of its elements.
    pub fn sum(&self, c: &mut [f64]) -> f64 {
        let mut product =
            ArrayViewMut2::from_shape((SIDE, SIDE), c).expect("as many elements as the product");
        general_mat_mul(1.0, &self.0, &self.1, 0.0, &mut product);
        sum_of(c)
    }
}

/// A buffer for the product of any pair.
pub struct Scratch(Vec<f64>);

impl Scratch {
    /// Allocates the buffer.
    pub fn new() -> Self {
        Self(vec![0.0; SIDE * SIDE + LINE])
    }

    /// The elements. They begin at a cache line.
    pub fn elements(&mut self) -> &mut [f64] {
        let begin = self.0.as_ptr().align_offset(LINE * size_of::<f64>());
        &mut self.0[begin..begin + SIDE * SIDE]
    }
}
