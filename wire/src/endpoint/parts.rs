//! Parts of what is expected: each is reported as soon as its own bytes are in place, whatever the others
//! wait for.

use crate::Layout;

/// A row of bytes that belongs to a part.
struct Row {
    begin: usize,
    end: usize,
    part: usize,
}

pub(super) struct Parts {
    /// By ascending offset. No two overlap.
    rows: Vec<Row>,
    /// For each part, the number of its bytes that are not in place.
    missing: Vec<usize>,
    /// The parts that are in place, and were not reported.
    pub over: Vec<usize>,
}

impl Parts {
    /// Parts of disjoint bytes.
    pub fn new(parts: &[Vec<Layout>]) -> Self {
        let row = |part| move |(begin, bytes)| Row { begin, end: begin + bytes, part };
        let rows = |(part, layouts): (usize, &Vec<Layout>)| {
            layouts.iter().flat_map(move |layout| layout.rows().map(row(part))).collect::<Vec<_>>()
        };
        let mut rows: Vec<_> = parts.iter().enumerate().flat_map(rows).collect();
        rows.sort_unstable_by_key(|row| row.begin);
        debug_assert!(rows.windows(2).all(|pair| pair[0].end <= pair[1].begin), "parts that overlap");
        let bytes = |layouts: &Vec<Layout>| layouts.iter().map(Layout::bytes).sum();
        Self { rows, missing: parts.iter().map(bytes).collect(), over: Vec::new() }
    }

    /// The bytes of a layout are in place, for the first time.
    pub fn placed(&mut self, layout: &Layout) {
        for (begin, bytes) in layout.rows() {
            let end = begin + bytes;
            let first = self.rows.partition_point(|row| row.end <= begin);
            for row in self.rows[first..].iter().take_while(|row| row.begin < end) {
                let missing = &mut self.missing[row.part];
                let before = *missing;
                // Another node may be wrong about what it sends. The inbox checks the sum of all bytes.
                *missing = before.saturating_sub(end.min(row.end) - begin.max(row.begin));
                if *missing == 0 && before > 0 {
                    self.over.push(row.part);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_box([rows, columns]: [[usize; 2]; 2]) -> Layout {
        Layout::of_box([9, 7, 1], 4, [rows[0], columns[0], 0], [rows[1], columns[1], 1])
    }

    #[test]
    fn a_part_is_over_with_its_last_byte() {
        // Two columns on the left, one on the right, and the row between them.
        let (left, right) = (of_box([[0, 9], [0, 2]]), of_box([[0, 9], [6, 7]]));
        let row = of_box([[4, 5], [2, 6]]);
        let mut parts = Parts::new(&[vec![right], vec![left, row], vec![]]);
        for (placed, expected) in [
            (of_box([[0, 4], [0, 7]]), &[][..]),
            (of_box([[4, 5], [5, 7]]), &[]),
            (of_box([[5, 9], [6, 7]]), &[0]),
            (of_box([[4, 5], [0, 5]]), &[0]),
            (of_box([[5, 9], [0, 2]]), &[0, 1]),
        ] {
            parts.placed(&placed);
            assert_eq!(parts.over, expected);
        }
    }

    proptest! {
        /// The cells of an array belong to parts, and come in any order.
        #[test]
        fn parts_are_over_in_the_order_of_their_last_bytes(
            owners in proptest::collection::vec(0..4_usize, 63),
            order in Just((0..63).collect::<Vec<usize>>()).prop_shuffle(),
        ) {
            let cell = |i: usize| of_box([[i / 7, i / 7 + 1], [i % 7, i % 7 + 1]]);
            let of = |part| (0..63).filter(|&i| owners[i] == part).map(cell).collect::<Vec<_>>();
            let mut parts = Parts::new(&[of(0), of(1), of(2)]);
            let mut left = [0, 1, 2, 3].map(|part| of(part).len());
            for i in order {
                let before = parts.over.len();
                parts.placed(&cell(i));
                left[owners[i]] -= 1;
                let expected = (left[owners[i]] == 0 && owners[i] < 3).then_some(owners[i]);
                prop_assert_eq!(&parts.over[before..], expected.as_slice());
            }
        }
    }
}
