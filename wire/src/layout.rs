//! Where the bytes of a box lie in a block of memory.

use std::fmt;

/// Where the bytes of a box lie in a block of memory: planes of rows of bytes, at equal distances.
///
/// Offsets are in bytes from the start of the *whole* block, which both sides of a transfer know. A node may
/// hold only a part of the block ([`Memory::at`](crate::Memory::at)).
///
/// ```
/// use anabranch_wire::Layout;
///
/// // Columns 3 to 5 of a matrix of 10 rows and 8 columns of `f32`.
/// let columns = Layout::of_box([10, 8, 1], 4, [0, 3, 0], [10, 5, 1]);
/// assert_eq!(columns.rows().count(), 10);
/// assert_eq!(columns.rows().next(), Some((12, 8)));
/// // Whole rows lie side by side.
/// assert_eq!(Layout::of_box([10, 8, 1], 4, [2, 0, 0], [5, 8, 1]), Layout::contiguous(64, 96));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    offset: usize,
    row: usize,
    /// Rows in a plane; planes.
    counts: [usize; 2],
    /// Bytes from one row to the next; from one plane to the next.
    strides: [usize; 2],
}

impl Layout {
    /// `bytes` bytes that lie side by side.
    pub const fn contiguous(offset: usize, bytes: usize) -> Self {
        let offset = if bytes == 0 { 0 } else { offset };
        Self { offset, row: bytes, counts: [1, 1], strides: [0, 0] }
    }

    /// Planes of rows: each row has `row` bytes, a plane `counts[0]` rows that begin `strides[0]` bytes
    /// apart, and there are `counts[1]` planes that begin `strides[1]` bytes apart.
    ///
    /// # Panics
    /// If the last byte has an offset beyond `usize`.
    pub fn strided(offset: usize, row: usize, counts: [usize; 2], strides: [usize; 2]) -> Self {
        let layout = Self { offset, row, counts, strides }.merged();
        assert!(layout.checked_end().is_some(), "a layout must end before the largest address");
        layout
    }

    /// The box of the points from `min` to below `max` in an array of `extent` points of `element` bytes
    /// each; the last dimension is the one that varies fastest. Fewer dimensions are padded with ones.
    ///
    /// # Panics
    /// If the box does not lie in the extent.
    pub fn of_box(extent: [usize; 3], element: usize, min: [usize; 3], max: [usize; 3]) -> Self {
        if (0..3).any(|d| min[d] >= max[d]) {
            return Self::contiguous(0, 0);
        }
        assert!(
            (0..3).all(|d| max[d] <= extent[d]),
            "the box [{min:?}, {max:?}) is not in the extent {extent:?}"
        );
        let strides = [extent[2] * element, extent[1] * extent[2] * element];
        Self::strided(
            min[0] * strides[1] + min[1] * strides[0] + min[2] * element,
            (max[2] - min[2]) * element,
            [max[1] - min[1], max[0] - min[0]],
            strides,
        )
    }

    /// The same bytes with as few rows and planes as possible.
    fn merged(mut self) -> Self {
        if self.bytes() == 0 {
            return Self::contiguous(0, 0);
        }
        for _ in 0..2 {
            if self.counts[0] == 1 || self.strides[0] == self.row {
                self.row *= self.counts[0];
                self.counts = [self.counts[1], 1];
                self.strides = [self.strides[1], 0];
            }
        }
        if self.counts[1] == 1 {
            self.strides[1] = 0;
        }
        if self.counts == [1, 1] {
            self.strides = [0, 0];
        }
        self
    }

    /// The number of bytes.
    pub const fn bytes(&self) -> usize {
        self.row * self.counts[0] * self.counts[1]
    }

    /// The first byte.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes of each row.
    pub const fn row(&self) -> usize {
        self.row
    }

    /// The number of rows in a plane, and of planes.
    pub const fn counts(&self) -> [usize; 2] {
        self.counts
    }

    /// The bytes from the beginning of one row to that of the next, and the same for planes.
    pub const fn strides(&self) -> [usize; 2] {
        self.strides
    }

    /// Whether all bytes lie side by side.
    pub fn is_contiguous(&self) -> bool {
        self.counts == [1, 1]
    }

    /// The offset after the last byte.
    pub fn end(&self) -> usize {
        if self.bytes() == 0 {
            return self.offset;
        }
        self.offset
            + self.row
            + (self.counts[0] - 1) * self.strides[0]
            + (self.counts[1] - 1) * self.strides[1]
    }

    fn checked_end(&self) -> Option<usize> {
        let rows = self.counts[0].checked_sub(1)?.checked_mul(self.strides[0])?;
        let planes = self.counts[1].checked_sub(1)?.checked_mul(self.strides[1])?;
        self.row.checked_mul(self.counts[0])?.checked_mul(self.counts[1])?;
        self.offset.checked_add(self.row)?.checked_add(rows)?.checked_add(planes)
    }

    /// The rows, each as its offset and its bytes.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let Self { offset, row, counts, strides } = *self;
        let planes = (0..counts[1]).map(move |plane| offset + plane * strides[1]);
        planes
            .flat_map(move |plane| (0..counts[0]).map(move |line| (plane + line * strides[0], row)))
            .filter(|&(_, bytes)| bytes > 0)
    }

    /// Cuts the layout into layouts of at most `limit` bytes each, in the order of the rows.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn pieces(self, limit: usize) -> impl Iterator<Item = Layout> {
        assert!(limit > 0, "a piece needs at least one byte");
        let mut rest = Rest { stack: [self; 4], len: usize::from(self.bytes() > 0) };
        std::iter::from_fn(move || rest.next(limit))
    }

    /// Planes, rows or bytes from `first` on.
    fn part(&self, level: Level, first: usize, count: usize) -> Self {
        let Self { offset, row, counts, strides } = *self;
        let part = match level {
            Level::Planes => {
                Self { offset: offset + first * strides[1], row, counts: [counts[0], count], strides }
            }
            Level::Rows => Self { offset: offset + first * strides[0], row, counts: [count, 1], strides },
            Level::Bytes => Self { offset: offset + first, row: count, counts: [1, 1], strides },
        };
        part.merged()
    }

    pub(crate) fn to_words(self) -> [u64; 6] {
        let Self { offset, row, counts, strides } = self;
        [offset, row, counts[0], counts[1], strides[0], strides[1]].map(|word| word as u64)
    }

    /// The layout with these words, if there is one.
    pub(crate) fn from_words(words: [u64; 6]) -> Option<Self> {
        let mut sizes = [0; 6];
        for (size, word) in sizes.iter_mut().zip(words) {
            *size = usize::try_from(word).ok()?;
        }
        let [offset, row, lines, planes, line_stride, plane_stride] = sizes;
        let layout = Self { offset, row, counts: [lines, planes], strides: [line_stride, plane_stride] };
        layout.checked_end().map(|_| layout)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, row, counts, strides } = self;
        if self.is_contiguous() {
            return write!(f, "bytes {offset}..{}", offset + row);
        }
        write!(f, "{} × {} rows of {row} bytes from {offset} on, {strides:?} apart", counts[1], counts[0])
    }
}

#[derive(Clone, Copy)]
enum Level {
    Planes,
    Rows,
    Bytes,
}

/// What is left to be cut, the first part on top. Each level of planes, rows and bytes leaves at most one
/// part behind.
struct Rest {
    stack: [Layout; 4],
    len: usize,
}

impl Rest {
    fn next(&mut self, limit: usize) -> Option<Layout> {
        loop {
            self.len = self.len.checked_sub(1)?;
            let top = self.stack[self.len];
            if top.bytes() <= limit {
                return Some(top);
            }
            let (level, total, size) = match top.counts {
                [lines, planes] if planes > 1 => (Level::Planes, planes, lines * top.row),
                [lines, _] if lines > 1 => (Level::Rows, lines, top.row),
                _ => (Level::Bytes, top.row, 1),
            };
            let first = (limit / size).clamp(1, total);
            if first < total {
                self.stack[self.len] = top.part(level, first, total - first);
                self.len += 1;
            }
            self.stack[self.len] = top.part(level, 0, first);
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(layout: Layout) -> Vec<usize> {
        layout.rows().flat_map(|(offset, bytes)| offset..offset + bytes).collect()
    }

    #[test]
    fn an_empty_box_has_no_rows_and_no_pieces() {
        let empty = Layout::of_box([4, 4, 4], 8, [1, 2, 3], [1, 4, 4]);
        assert_eq!((empty.bytes(), empty.end(), empty.rows().count(), empty.pieces(1).count()), (0, 0, 0, 0));
    }

    #[test]
    #[should_panic(expected = "is not in the extent")]
    fn a_box_outside_of_the_extent_is_refused() {
        let _ = Layout::of_box([4, 4, 1], 8, [0, 0, 0], [4, 5, 1]);
    }

    #[test]
    fn words_that_overflow_are_no_layout() {
        assert_eq!(Layout::from_words([u64::MAX, 1, 1, 1, 0, 0]), None);
        assert_eq!(Layout::from_words([0, 8, u64::MAX, 2, u64::MAX, 1]), None);
        assert_eq!(Layout::from_words([0, 8, 0, 2, 8, 1]), None);
    }

    fn boxes() -> impl Strategy<Value = ([usize; 3], usize, [usize; 3], [usize; 3])> {
        let dimension = || (1..6_usize).prop_flat_map(|n| (Just(n), 0..=n, 0..=n));
        ([dimension(), dimension(), dimension()], 1..5_usize).prop_map(|(dims, element)| {
            let pick = |f: fn((usize, usize, usize)) -> usize| dims.map(f);
            (pick(|d| d.0), element, pick(|d| d.1.min(d.2)), pick(|d| d.1.max(d.2)))
        })
    }

    proptest! {
        #[test]
        fn a_layout_names_the_bytes_of_its_box((extent, element, min, max) in boxes()) {
            let mut expected = Vec::new();
            for z in min[0]..max[0] {
                for y in min[1]..max[1] {
                    for x in min[2]..max[2] {
                        let first = ((z * extent[1] + y) * extent[2] + x) * element;
                        expected.extend(first..first + element);
                    }
                }
            }
            let layout = Layout::of_box(extent, element, min, max);
            prop_assert_eq!(bytes(layout), expected.clone());
            prop_assert_eq!(layout.bytes(), expected.len());
            prop_assert_eq!(layout.end(), expected.last().map_or(0, |last| last + 1));
            prop_assert_eq!(Layout::from_words(layout.to_words()), Some(layout));
        }

        #[test]
        fn pieces_are_the_layout_in_order((extent, element, min, max) in boxes(), limit in 1..70_usize) {
            let layout = Layout::of_box(extent, element, min, max);
            let pieces: Vec<_> = layout.pieces(limit).collect();
            prop_assert!(pieces.iter().all(|piece| (1..=limit).contains(&piece.bytes())));
            prop_assert_eq!(pieces.into_iter().flat_map(bytes).collect::<Vec<_>>(), bytes(layout));
        }
    }
}
