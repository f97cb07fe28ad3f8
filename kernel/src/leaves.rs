//! The tree of a reduction.

/// The most points of a leaf.
pub const LEAF: usize = 4096;

/// The number of lanes of a leaf.
pub const LANES: usize = 64;

/// The leaves of the tree in which reductions combine the values of the points of a box.
///
/// The tree depends on the box and on nothing else, so a sum of floats has the same bits on any number of
/// threads and nodes and on any device that rounds sums as the processor does:
///
/// 1. The box is cut along its first dimension into *bands* of `b` rows, the last one with the rest. If a
///    row, which is what the other dimensions span, has `p` points, `b` is the largest number with `b · p` at
///    most [`LEAF`], and at least 1.
/// 2. The points of a band, in row-major order, are cut into *leaves* of [`LEAF`] points, the last one with
///    the rest. So a band of several rows is one leaf, and each row with more points than `LEAF` has several.
/// 3. A leaf has [`LANES`] *lanes*. Lane `j` combines the points `j`, `j + 64`, `j + 128`, … of the leaf in
///    this order, after the identity of the operator. Then lane `j` combines lane `j + 32`, for each `j`
///    below 32; then lane `j + 16`, for each `j` below 16; and so on. Lane 0 is the result of the leaf.
/// 4. The leaves are numbered in the order of their points. Leaf `2 i` is combined with leaf `2 i + 1`; a
///    last one that has no neighbour stays as it is. The results are numbered and combined in the same way,
///    until there is one.
///
/// A number that the operand had before is combined with the result of leaf 0, and comes first. Over no
/// points the result is that number, or the identity.
///
/// ```
/// use anabranch_kernel::Leaves;
///
/// // 40 rows of 1000 points: ten bands of four rows, each of which is a leaf.
/// let leaves = Leaves::new(2, [[0, 0, 0], [1, 40, 1000]]);
/// assert_eq!((leaves.rows_of_band(), leaves.per_band(), leaves.count()), (4, 1, 10));
/// // Two rows of 10,000 points: three leaves for each.
/// let leaves = Leaves::new(2, [[0, 0, 0], [1, 2, 10_000]]);
/// assert_eq!((leaves.rows_of_band(), leaves.per_band(), leaves.count()), (1, 3, 6));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The number of rows along the first dimension.
    pub(crate) rows: usize,
    /// The number of points of a row.
    pub(crate) row: usize,
}

impl Leaves {
    /// The leaves of the points from the first of `points` to below the second, which are padded at the
    /// front, in an index space of this many dimensions.
    pub fn new(dimensions: usize, [min, max]: [[usize; 3]; 2]) -> Self {
        let extent = |dim: usize| max[dim].saturating_sub(min[dim]);
        let first = (3 - dimensions.min(3)).min(2);
        let row = (first + 1..3).map(extent).fold(1, usize::saturating_mul);
        Self { rows: extent(first), row }
    }

    /// The number of rows of a band. A part of the box that begins and ends at the bands has leaves of the
    /// whole box.
    pub fn rows_of_band(&self) -> usize {
        (LEAF / self.row.max(1)).max(1)
    }

    /// The number of leaves of each band.
    pub fn per_band(&self) -> usize {
        self.row.div_ceil(LEAF).max(1)
    }

    /// The number of leaves.
    pub fn count(&self) -> usize {
        if self.row == 0 {
            0
        } else {
            self.rows.div_ceil(self.rows_of_band()).saturating_mul(self.per_band())
        }
    }
}

/// Combines the results of leaves in the tree of [`Leaves`], and uses their memory for that. `None` if there
/// are no leaves.
///
/// ```
/// use anabranch_kernel::combine_leaves;
///
/// // ((1 - 2) - (3 - 4)) - 5
/// assert_eq!(combine_leaves(&mut [1, 2, 3, 4, 5], |left, right| left - right), Some(-5));
/// ```
pub fn combine_leaves<T: Copy>(leaves: &mut [T], mut operator: impl FnMut(T, T) -> T) -> Option<T> {
    let mut count = leaves.len();
    while count > 1 {
        for pair in 0..count / 2 {
            leaves[pair] = operator(leaves[2 * pair], leaves[2 * pair + 1]);
        }
        if count % 2 == 1 {
            leaves[count / 2] = leaves[count - 1];
        }
        count = count.div_ceil(2);
    }
    leaves.first().copied()
}
