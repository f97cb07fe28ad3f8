//! Splits: how an index space is cut into chunks.

use crate::grid_box::GridBox;
use std::ops::Range;

/// Cuts `range` along axis 0 into at most `count` boxes, in order.
///
/// All pieces are non-empty. The cuts are at multiples of `granularity` from the first point, so every size
/// but the last is a multiple of it. In units of `granularity` (the last unit may be a partial one) the sizes
/// differ by at most one, and larger pieces come first. There are fewer than `count` pieces only if there are
/// fewer units. An empty box gives no piece; a 0-dimensional box gives itself.
///
/// ```
/// use anabranch_grid::{GridBox, split_1d};
/// let pieces = split_1d(&GridBox::new([10, 0], [31, 5]), 3, 4);
/// let rows: Vec<_> = pieces.iter().map(|b| b.extent()[0]).collect();
/// assert_eq!(rows, [8, 8, 5]);
/// assert_eq!(split_1d(&GridBox::new(0, 2), 8, 1).len(), 2);
/// ```
///
/// # Panics
/// If `count` or `granularity` is 0.
#[track_caller]
pub fn split_1d<const D: usize>(range: &GridBox<D>, count: usize, granularity: usize) -> Vec<GridBox<D>> {
    check(count, &[granularity]);
    if range.is_empty() {
        return Vec::new();
    }
    if D == 0 {
        return vec![*range];
    }
    cuts(range, 0, count.min(units(range, 0, granularity)), granularity)
        .map(|rows| range.with_axis(0, rows))
        .collect()
}

/// Cuts `range` along axes 0 and 1 into a grid of at most `count` tiles, in row-major order.
///
/// The grid has as many tiles as fit (`rows * columns <= count`, no more rows or columns than units of
/// granularity on that axis). Of the grids with that many tiles it is the one with the squarest tiles
/// (smallest height plus width), and at a tie the one with more rows, because rows are contiguous in memory.
/// Each axis is then cut as in [`split_1d`]. So a prime count gives strips, and uses every chunk. An empty
/// box gives no tile.
///
/// ```
/// use anabranch_grid::{GridBox, split_2d};
/// let tiles = split_2d(&GridBox::full([100, 100]), 4, [1, 1]);
/// assert_eq!(tiles[1], GridBox::new([0, 50], [50, 100]));
/// assert_eq!(split_2d(&GridBox::full([100, 10]), 4, [1, 1])[1], GridBox::new([25, 0], [50, 10]));
/// ```
///
/// # Panics
/// If `count` or a granularity is 0. With fewer than two dimensions it does not compile.
#[track_caller]
pub fn split_2d<const D: usize>(
    range: &GridBox<D>,
    count: usize,
    granularity: [usize; 2],
) -> Vec<GridBox<D>> {
    const { assert!(D >= 2, "split_2d needs an index space of at least two dimensions") };
    check(count, &granularity);
    if range.is_empty() {
        return Vec::new();
    }
    let [rows, columns] = tile_grid(range, count, granularity);
    cuts(range, 0, rows, granularity[0])
        .flat_map(|row| {
            let strip = range.with_axis(0, row);
            cuts(range, 1, columns, granularity[1]).map(move |column| strip.with_axis(1, column))
        })
        .collect()
}

/// The number of rows and columns of tiles for [`split_2d`].
fn tile_grid<const D: usize>(range: &GridBox<D>, count: usize, granularity: [usize; 2]) -> [usize; 2] {
    let most = [units(range, 0, granularity[0]), units(range, 1, granularity[1])];
    let mut best = ([1, 1], 0, usize::MAX);
    for rows in 1..=most[0].min(count) {
        let columns = (count / rows).min(most[1]);
        let tiles = rows * columns;
        let height = most[0].div_ceil(rows).saturating_mul(granularity[0]);
        let width = most[1].div_ceil(columns).saturating_mul(granularity[1]);
        let perimeter = height.saturating_add(width);
        if tiles > best.1 || tiles == best.1 && perimeter <= best.2 {
            best = ([rows, columns], tiles, perimeter);
        }
    }
    best.0
}

#[track_caller]
fn check(count: usize, granularity: &[usize]) {
    assert!(count > 0, "cannot split into 0 pieces: the count must be at least 1");
    assert!(!granularity.contains(&0), "the granularity of a split must be at least 1, not 0");
}

/// The number of units of `granularity` along `axis`; the last unit may be partial.
fn units<const D: usize>(range: &GridBox<D>, axis: usize, granularity: usize) -> usize {
    range.extent()[axis].div_ceil(granularity)
}

/// Cuts `axis` into `pieces` consecutive intervals of whole units. `pieces` is at most the number of units.
fn cuts<const D: usize>(
    range: &GridBox<D>,
    axis: usize,
    pieces: usize,
    granularity: usize,
) -> impl Iterator<Item = Range<usize>> + use<D> {
    let units = units(range, axis, granularity);
    let (each, larger) = (units / pieces, units % pieces);
    let (first, size) = (range.low(axis), range.extent()[axis]);
    let cut = move |piece: usize| {
        let units = piece * each + piece.min(larger);
        first + units.saturating_mul(granularity).min(size)
    };
    (0..pieces).map(move |piece| cut(piece)..cut(piece + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_use_every_chunk_where_they_can() {
        let square = GridBox::full([60, 60, 7]);
        assert_eq!(split_2d(&square, 6, [1, 1]).len(), 6);
        assert_eq!(split_2d(&square, 6, [1, 1])[0], GridBox::full([20, 30, 7]));
        assert_eq!(split_2d(&square, 7, [1, 1]).len(), 7);
        assert_eq!(split_2d(&square, 16, [1, 1])[0], GridBox::full([15, 15, 7]));
    }

    #[test]
    fn small_spaces_give_fewer_pieces() {
        assert_eq!(split_2d(&GridBox::full([2, 3]), 100, [1, 1]).len(), 6);
        assert_eq!(split_2d(&GridBox::full([2, 3]), 100, [2, 2]).len(), 2);
        assert_eq!(split_1d(&GridBox::full([]), 4, 1), [GridBox::full([])]);
        assert!(split_1d(&GridBox::<2>::EMPTY, 4, 1).is_empty());
    }

    #[test]
    #[should_panic(expected = "the granularity of a split must be at least 1")]
    fn granularity_zero_is_refused() {
        split_1d(&GridBox::full(5), 2, 0);
    }
}
