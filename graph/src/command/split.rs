//! Splits by arithmetic: the box and the node of each chunk and its pieces, without a list of them.
//!
//! An index space is cut into chunks, at most one for each node, and each chunk into pieces. The chunks do
//! not depend on the number of pieces, so that no data moves between nodes because two tasks have different
//! numbers of pieces.
//!
//! Without weights, chunks are as even as possible, and each of the first nodes has one that is not empty.
//! With [`Weights`], each node has one, in proportion to its weight and perhaps empty. A row of tiles is as
//! high as the weights of its nodes are together, and divided by these weights. If the tiles were fewer than
//! nodes, the chunks are rows.

use super::{
    launch::{Hints, Tiling, Work},
    tree::default_leaves,
    types::NodeId,
    weights::Weights,
};
use anabranch_grid::{Chunk, GridBox, Point};
use std::ops::Range;

/// Consecutive things, divided into runs as evenly as possible, larger runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Runs {
    count: usize,
    each: usize,
    larger: usize,
}

impl Runs {
    fn new(things: usize, count: usize) -> Self {
        // Divisions dominate the cost of a split, and most of them are one of the first two cases.
        let (each, larger) = match count {
            0 | 1 => (things, 0),
            _ if count == things => (1, 0),
            _ => (things / count, things % count),
        };
        Self { count, each, larger }
    }

    /// The first thing of run `at`, or the number of things for `at == count`.
    fn start(&self, at: usize) -> usize {
        at * self.each + at.min(self.larger)
    }
}

/// An axis of an index space. It is cut into leaves (units of granularity, or the leaves of a reduction
/// tree), and the leaves are divided into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Axis {
    first: usize,
    size: usize,
    granularity: usize,
    leaves: Runs,
    chunks: Runs,
}

impl Axis {
    fn new(space: &GridBox<3>, axis: usize, granularity: usize) -> Self {
        let (first, size) = (space.min()[axis], space.extent()[axis]);
        let units = if granularity == 1 { size } else { size.div_ceil(granularity) };
        Self { first, size, granularity, leaves: Runs::new(units, units), chunks: Runs::new(units, 1) }
    }

    fn units(&self) -> usize {
        self.chunks.start(self.chunks.count)
    }

    /// At most `leaves` leaves, each of whole units.
    fn with_leaves(mut self, leaves: usize) -> Self {
        let units = self.units();
        self.leaves = Runs::new(units, units.min(leaves));
        self
    }

    /// At most `chunks` chunks, each of whole leaves.
    fn with_chunks(mut self, chunks: usize) -> Self {
        self.chunks = Runs::new(self.leaves.count, self.leaves.count.min(chunks));
        self
    }

    /// This number of chunks, some of them perhaps empty. Weights say which leaves each of them has.
    fn with_weighted_chunks(mut self, chunks: usize) -> Self {
        self.chunks = Runs::new(self.leaves.count, chunks);
        self
    }

    /// The leaves of the chunks `run`, without weights.
    fn leaves_of(&self, run: Range<usize>) -> Range<usize> {
        self.chunks.start(run.start)..self.chunks.start(run.end)
    }

    fn interval_of_leaves(&self, leaves: Range<usize>) -> Range<usize> {
        let cut = |leaf| {
            let unit = self.leaves.start(leaf);
            self.first + unit.saturating_mul(self.granularity).min(self.size)
        };
        cut(leaves.start)..cut(leaves.end)
    }
}

/// The split of a task's index space. The chunks are numbered row by row, and each of the first nodes has
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Split {
    space: GridBox<3>,
    rows: Axis,
    columns: Axis,
    /// The weights of the nodes, unless all are equal.
    weights: Option<Weights>,
    /// The number of chunks on all nodes. A space that every node executes is one chunk.
    chunks: usize,
    /// The node of the first chunk.
    first_node: u16,
    /// The largest number of pieces of a chunk.
    pieces: usize,
    /// Whether every node executes the whole space.
    pub(crate) everywhere: bool,
    /// The number of leaves of the reduction tree; 0 for tasks without reductions.
    pub(crate) leaves: u32,
}

impl Split {
    /// The split of a task's index space. If the task reduces, `reduced` is the number of elements of the
    /// largest buffer that it reduces to. Weights concern tasks that the nodes [divide](Work::is_divided).
    pub(crate) fn new(
        work: &Work,
        hints: &Hints,
        nodes: u16,
        reduced: Option<usize>,
        weights: Option<&Weights>,
    ) -> Self {
        let weights = weights.filter(|_| work.is_divided(hints));
        let given = weights.map_or(nodes.into(), Weights::nodes);
        assert!(given == usize::from(nodes), "{given} weights for {nodes} nodes: give one to each node");
        let one = GridBox::full([1, 1, 1]);
        let [first_node, count] = match (work, hints.node) {
            (Work::Collective, _) => [0, nodes],
            (Work::Fence | Work::Epoch, _) if hints.own_regions.is_some() => [0, nodes],
            (work, None) if work.is_divided(hints) => [0, nodes],
            (_, node) => [node.map_or(0, |node| node.0), 1],
        };
        assert!(first_node < nodes, "hint: node {first_node} of {nodes} does not exist");
        let (space, everywhere) = match *work {
            Work::Kernel { space } | Work::HostChunks { space } => (space, false),
            Work::Collective => (GridBox::full([nodes as usize, 1, 1]), false),
            Work::HostOnce => (one, false),
            Work::Fence | Work::Epoch if hints.own_regions.is_some() => {
                (GridBox::full([nodes as usize, 1, 1]), false)
            }
            Work::Fence | Work::Epoch | Work::Horizon => (one, true),
        };
        let hints = match work {
            Work::Kernel { .. } | Work::HostChunks { .. } => *hints,
            _ => Hints { leaves: Some(usize::MAX), ..Hints::default() },
        };
        let mut split = Self::of_space(space, &hints, count, reduced, weights);
        (split.first_node, split.everywhere) = (first_node, everywhere);
        split
    }

    fn of_space(
        space: GridBox<3>,
        hints: &Hints,
        nodes: u16,
        reduced: Option<usize>,
        weights: Option<&Weights>,
    ) -> Self {
        let Hints { tiling, granularity, pieces, leaves, .. } = *hints;
        assert!(
            granularity.iter().chain([&pieces]).chain(&leaves).all(|&n| n > 0),
            "hints: granularity, pieces and leaves must be at least 1, not 0"
        );
        let wanted = nodes as usize;
        let (rows, columns) = (Axis::new(&space, 0, granularity[0]), Axis::new(&space, 1, granularity[1]));
        let (rows, columns) = if let Some(elements) = reduced {
            let leaves = leaves.unwrap_or_else(|| default_leaves(&space, elements));
            (rows.with_leaves(leaves).with_chunks(wanted), columns)
        } else if tiling == Tiling::Rows || space.is_empty() {
            (rows.with_chunks(wanted), columns)
        } else {
            let [r, c] = tile_grid([&rows, &columns], wanted);
            (rows.with_chunks(r), columns.with_chunks(c))
        };
        let (rows, columns) = match weights {
            Some(_) if rows.chunks.count * columns.chunks.count < wanted => {
                (rows.with_weighted_chunks(wanted), columns.with_chunks(1))
            }
            _ => (rows, columns),
        };
        let chunks = if space.is_empty() { 0 } else { rows.chunks.count * columns.chunks.count };
        let leaves = if reduced.is_some() { rows.leaves.count as u32 } else { 0 };
        let weights = weights.cloned();
        Self { space, rows, columns, weights, chunks, first_node: 0, pieces, everywhere: false, leaves }
    }

    /// The whole index space.
    pub(crate) fn space(&self) -> GridBox<3> {
        self.space
    }

    /// The number of chunks on all nodes, those that are empty included. A space that every node executes is
    /// one chunk.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks
    }

    /// Whether the chunks of two splits are the same boxes on the same nodes.
    pub(crate) fn has_same_chunks(&self, other: &Self) -> bool {
        // Pieces change no chunk.
        if self == other || (Self { pieces: other.pieces, ..self.clone() }) == *other {
            return true;
        }
        let of = |split: &Self| (split.space, split.chunks, split.first_node, split.everywhere);
        let range = |split: &Self, chunk| split.range(chunk..chunk + 1);
        of(self) == of(other) && (0..self.chunks).all(|chunk| range(self, chunk) == range(other, chunk))
    }

    /// The chunk of a node, if it has one that is not empty.
    pub(crate) fn of_node(&self, node: NodeId) -> Range<usize> {
        if self.everywhere {
            return 0..self.chunks;
        }
        match node.0.checked_sub(self.first_node).map(usize::from) {
            Some(at) if at < self.chunks && !self.is_empty(at) => at..at + 1,
            _ => 0..0,
        }
    }

    /// Whether a chunk is empty, because its node has a small weight or none.
    pub(crate) fn is_empty(&self, chunk: usize) -> bool {
        self.weights.is_some() && self.range(chunk..chunk + 1).is_empty()
    }

    /// A chunk.
    pub(crate) fn chunk(&self, at: usize) -> Chunk<3> {
        Chunk { range: self.range(at..at + 1), global: self.space }
    }

    /// The node of a chunk.
    pub(crate) fn node_of(&self, chunk: usize) -> NodeId {
        debug_assert!(!self.everywhere);
        NodeId(self.first_node + chunk as u16)
    }

    /// The leaves of the chunks `run`; empty for tasks without reductions.
    pub(crate) fn leaves_of(&self, run: Range<usize>) -> Range<u32> {
        if self.leaves == 0 {
            return 0..0;
        }
        let leaves = self.row_leaves(run);
        leaves.start as u32..leaves.end as u32
    }

    /// The number of pieces of a chunk.
    pub(crate) fn pieces(&self, chunk: usize) -> usize {
        if self.pieces == 1 { 1 } else { self.rows_and_pieces(chunk).1.count }
    }

    /// The first row leaf of a chunk, and the runs of its row leaves that are its pieces.
    fn rows_and_pieces(&self, chunk: usize) -> (usize, Runs) {
        let row = chunk / self.columns.chunks.count;
        let leaves = self.row_leaves(row..row + 1);
        (leaves.start, Runs::new(leaves.len(), leaves.len().min(self.pieces)))
    }

    /// The row leaves of a piece.
    fn rows_of_piece(&self, chunk: usize, at: usize) -> Range<usize> {
        let (first, pieces) = self.rows_and_pieces(chunk);
        first + pieces.start(at)..first + pieces.start(at + 1)
    }

    /// The leaves of piece `at` of a chunk; empty for tasks without reductions.
    pub(crate) fn leaves_of_piece(&self, chunk: usize, at: usize) -> Range<u32> {
        if self.leaves == 0 {
            return 0..0;
        }
        let leaves = self.rows_of_piece(chunk, at);
        leaves.start as u32..leaves.end as u32
    }

    /// The box of piece `at` of a chunk.
    pub(crate) fn piece(&self, chunk: usize, at: usize) -> GridBox<3> {
        let range = self.range(chunk..chunk + 1);
        if self.pieces == 1 {
            return range;
        }
        let rows = self.rows.interval_of_leaves(self.rows_of_piece(chunk, at));
        let (min, max) = (range.min(), range.max());
        GridBox::new([rows.start, min[1], min[2]], [rows.end, max[1], max[2]])
    }

    /// The boxes of all pieces of all chunks.
    pub(crate) fn all_pieces(&self) -> impl Iterator<Item = GridBox<3>> {
        let chunks = (0..self.chunks).filter(|&chunk| !self.is_empty(chunk));
        chunks.flat_map(move |chunk| (0..self.pieces(chunk)).map(move |at| self.piece(chunk, at)))
    }

    /// The number of axes along which the space is cut: the first, or the first two.
    pub(crate) fn cut_axes(&self) -> usize {
        if self.columns.chunks.count > 1 { 2 } else { 1 }
    }

    /// The box of the chunks `run`, which are one chunk, several of a row, or whole rows.
    pub(crate) fn range(&self, run: Range<usize>) -> GridBox<3> {
        let width = self.columns.chunks.count;
        if run.len() == self.chunks {
            return self.space;
        }
        let all_columns = self.space.min()[1]..self.space.max()[1];
        let (rows, columns) = if width == 1 {
            (run, all_columns)
        } else {
            let row = run.start / width;
            if run.len() < width {
                let within = run.start - row * width;
                let leaves = self.column_leaves(row, within..within + run.len());
                (row..row + 1, self.columns.interval_of_leaves(leaves))
            } else {
                (row..run.end / width, all_columns)
            }
        };
        let rows = self.rows.interval_of_leaves(self.row_leaves(rows));
        GridBox::new(
            Point([rows.start, columns.start, self.space.min()[2]]),
            Point([rows.end, columns.end, self.space.max()[2]]),
        )
    }

    /// The row leaves of the rows of chunks `run`.
    fn row_leaves(&self, run: Range<usize>) -> Range<usize> {
        let Some(weights) = &self.weights else { return self.rows.leaves_of(run) };
        let width = self.columns.chunks.count;
        let (all, nodes) = (0..self.rows.chunks.count * width, run.start * width..run.end * width);
        weights.share_of(self.rows.leaves.count, all, nodes)
    }

    /// The column leaves of the chunks `run` of one row of chunks.
    fn column_leaves(&self, row: usize, run: Range<usize>) -> Range<usize> {
        let Some(weights) = &self.weights else { return self.columns.leaves_of(run) };
        let width = self.columns.chunks.count;
        let first = row * width;
        weights.share_of(self.columns.leaves.count, first..first + width, first + run.start..first + run.end)
    }

    /// The middle of a run of several chunks, so that each half has a box.
    pub(crate) fn middle(&self, run: &Range<usize>) -> usize {
        let width = self.columns.chunks.count;
        let step = if run.len() > width { width } else { 1 };
        run.start + run.len() / step / 2 * step
    }
}

/// The number of rows and columns of tiles: as many tiles as fit, as square as possible, more rows at a tie.
/// The same rule as in [`split_2d`](anabranch_grid::split_2d).
fn tile_grid(axes: [&Axis; 2], count: usize) -> [usize; 2] {
    let most = axes.map(Axis::units);
    let mut best = ([1, 1], 0, usize::MAX);
    for rows in 1..=most[0].min(count) {
        let columns = (count / rows).min(most[1]);
        let tiles = rows * columns;
        if tiles < best.1 {
            continue;
        }
        let size = |axis: usize, pieces| most[axis].div_ceil(pieces).saturating_mul(axes[axis].granularity);
        let perimeter = size(0, rows).saturating_add(size(1, columns));
        if tiles > best.1 || perimeter <= best.2 {
            best = ([rows, columns], tiles, perimeter);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_grid::{split_1d, split_2d};
    use proptest::prelude::*;

    fn split(space: GridBox<3>, hints: Hints, nodes: u16, reduced: Option<usize>) -> Split {
        Split::new(&Work::Kernel { space }, &hints, nodes, reduced, None)
    }

    /// Weights of which some are 0 and some very small, but not all are equal.
    fn weights() -> impl Strategy<Value = Weights> {
        let weight = prop_oneof![Just(0.0), Just(1.0), 0.01..1.0, Just(1e-9)];
        let weights =
            proptest::collection::vec(weight, 1..20).prop_filter_map("all are 0", |all| Weights::new(&all));
        weights.prop_filter("all are equal", |weights| !weights.are_equal())
    }

    fn weighted(space: GridBox<3>, hints: Hints, reduced: Option<usize>, weights: &Weights) -> Split {
        Split::new(&Work::Kernel { space }, &hints, weights.nodes() as u16, reduced, Some(weights))
    }

    /// Checks that the chunks of the runs that a bisection visits have the box of the run as their union.
    fn check_bisection(split: &Split, run: Range<usize>) -> GridBox<3> {
        let range = split.range(run.clone());
        if run.len() > 1 {
            let middle = split.middle(&run);
            let halves = [run.start..middle, middle..run.end].map(|half| check_bisection(split, half));
            assert_eq!(halves[0].bounding(&halves[1]), if range.is_empty() { GridBox::EMPTY } else { range });
            assert_eq!(halves[0].len() + halves[1].len(), range.len(), "disjoint, and without a gap");
        }
        if range.is_empty() { GridBox::EMPTY } else { range }
    }

    proptest! {
        #[test]
        fn chunks_are_those_of_the_grid_crate(
            min in [0..5usize, 0..5usize, 0..3usize],
            size in [1..40usize, 1..40usize, 1..3usize],
            nodes in 1..20u16,
            granularity in [1..5usize, 1..5usize],
            pieces in 1..6usize,
            tiles in any::<bool>(),
        ) {
            let space = GridBox::new(min, std::array::from_fn(|axis| min[axis] + size[axis]));
            let tiling = if tiles { Tiling::Tiles } else { Tiling::Rows };
            let hints = Hints { tiling, granularity, pieces, ..Hints::default() };
            let split = split(space, hints, nodes, None);
            let count = nodes as usize;
            let expected = if tiles { split_2d(&space, count, granularity) } else { split_1d(&space, count, granularity[0]) };
            let found: Vec<_> = (0..split.chunks()).map(|i| split.range(i..i + 1)).collect();
            prop_assert_eq!(&found, &expected);
            for node in 0..nodes {
                let own = split.of_node(NodeId(node));
                prop_assert_eq!(own.len(), usize::from((node as usize) < expected.len()));
                prop_assert!(own.clone().all(|chunk| split.node_of(chunk) == NodeId(node)));
            }
            // A chunk is cut at multiples of the granularity, counted from its first row.
            let expected = found.iter().flat_map(|chunk| split_1d(chunk, pieces, granularity[0]));
            prop_assert!(split.all_pieces().eq(expected));
        }

        #[test]
        fn weighted_chunks_are_in_proportion(
            min in [0..5usize, 0..5usize, 0..3usize],
            size in [1..60usize, 1..40usize, 1..3usize],
            granularity in [1..5usize, 1..5usize],
            pieces in 1..6usize,
            tiles in any::<bool>(),
            weights in weights(),
        ) {
            let space = GridBox::new(min, std::array::from_fn(|axis| min[axis] + size[axis]));
            let tiling = if tiles { Tiling::Tiles } else { Tiling::Rows };
            let hints = Hints { tiling, granularity, pieces, ..Hints::default() };
            let split = weighted(space, hints, None, &weights);
            prop_assert_eq!(split.chunks(), weights.nodes());
            prop_assert_eq!(check_bisection(&split, 0..split.chunks()), space);
            let mut all_pieces = split.all_pieces();
            let share = |node: usize| weights.share(1 << 40, node).len() as f64 / (1_u64 << 40) as f64;
            let width = split.columns.chunks.count;
            let rows = size[0].div_ceil(granularity[0]);
            for chunk in 0..split.chunks() {
                let range = split.range(chunk..chunk + 1);
                let own = split.of_node(NodeId(chunk as u16));
                prop_assert_eq!(own, if range.is_empty() { 0..0 } else { chunk..chunk + 1 });
                // The row of chunks is in proportion, and so is the chunk within it.
                let row = chunk / width * width..(chunk / width + 1) * width;
                let of_row: f64 = row.clone().map(share).sum();
                let height = split.row_leaves(chunk / width..chunk / width + 1).len() as f64;
                prop_assert!((height - of_row * rows as f64).abs() < 1.001);
                if width > 1 && of_row > 0.0 {
                    let columns = size[1].div_ceil(granularity[1]) as f64;
                    let within = split.column_leaves(chunk / width, chunk % width..chunk % width + 1).len() as f64;
                    prop_assert!((within - share(chunk) / of_row * columns).abs() < 1.001);
                }
                prop_assert!(share(chunk) > 0.0 || range.is_empty());
                // A chunk is cut into pieces as without weights.
                if !range.is_empty() {
                    let expected = split_1d(&range, pieces, granularity[0]);
                    prop_assert!(all_pieces.by_ref().take(expected.len()).eq(expected));
                }
            }
            prop_assert_eq!(all_pieces.next(), None);
        }

        #[test]
        fn leaves_do_not_depend_on_weights(size in 1..200usize, granularity in 1..4usize, weights in weights()) {
            let space = GridBox::full([size, 3, 1]);
            let hints = Hints { granularity: [granularity, 1], leaves: Some(16), ..Hints::default() };
            let leaves = split_1d(&space, 16, granularity);
            let split = weighted(space, hints, Some(1), &weights);
            prop_assert_eq!(split.leaves as usize, leaves.len());
            let mut next = 0;
            for chunk in 0..split.chunks() {
                let run = split.leaves_of(chunk..chunk + 1);
                prop_assert_eq!(run.start, next);
                next = run.end;
                prop_assert_eq!(run.is_empty(), split.of_node(NodeId(chunk as u16)).is_empty());
                if !run.is_empty() {
                    let range = split.range(chunk..chunk + 1);
                    prop_assert_eq!(split_1d(&range, run.len(), granularity), &leaves[run.start as usize..run.end as usize]);
                }
            }
            prop_assert_eq!(next, split.leaves);
        }

        #[test]
        fn leaves_do_not_depend_on_the_number_of_nodes_and_pieces(
            size in 1..200usize,
            granularity in 1..4usize,
            nodes in 1..20u16,
            pieces in 1..6usize,
        ) {
            let space = GridBox::full([size, 3, 1]);
            let hints = Hints { granularity: [granularity, 1], leaves: Some(16), pieces, ..Hints::default() };
            let leaves = split_1d(&space, 16, granularity);
            let split = split(space, hints, nodes, Some(1));
            let union = |run: Range<u32>| {
                leaves[run.start as usize..run.end as usize].iter().fold(GridBox::EMPTY, |a, b| a.bounding(b))
            };
            prop_assert_eq!(split.leaves as usize, leaves.len());
            for chunk in 0..split.chunks() {
                let run = split.leaves_of(chunk..chunk + 1);
                prop_assert_eq!(split.range(chunk..chunk + 1), union(run.clone()));
                let mut next = run.start;
                for at in 0..split.pieces(chunk) {
                    let piece = split.leaves_of_piece(chunk, at);
                    prop_assert_eq!(split.piece(chunk, at), union(piece.clone()));
                    prop_assert_eq!(piece.start, next);
                    next = piece.end;
                }
                prop_assert_eq!(next, run.end);
            }
            prop_assert_eq!(split.leaves_of(0..split.chunks()), 0..split.leaves);
        }
    }

    #[test]
    fn weights_do_not_concern_tasks_that_are_not_divided() {
        let space = GridBox::full([8, 8, 1]);
        let on_node = Hints { node: Some(NodeId(1)), ..Hints::default() };
        let weights = Weights::new(&[0.0, 1.0, 3.0]).unwrap();
        for (work, hints) in [
            (Work::Kernel { space }, on_node),
            (Work::HostChunks { space }, on_node),
            (Work::HostOnce, Hints::default()),
            (Work::Collective, Hints::default()),
            (Work::Epoch, Hints::default()),
        ] {
            let parts = |weights| {
                let split = Split::new(&work, &hints, 3, None, weights);
                [0, 1, 2].map(|node| {
                    split.of_node(NodeId(node)).map(|at| split.range(at..at + 1)).collect::<Vec<_>>()
                })
            };
            assert_eq!(parts(Some(&weights)), parts(None), "{work:?}");
        }
    }

    #[test]
    fn large_reductions_have_leaves_for_many_nodes() {
        let hints = Hints::default();
        let leaves =
            |rows, elements| split(GridBox::full([rows, 1 << 10, 1]), hints, 1, Some(elements)).leaves;
        assert_eq!([leaves(10, 1), leaves(1080, 1), leaves(1 << 11, 1)], [10, 64, 64]);
        assert_eq!([leaves(1 << 13, 1), leaves(1 << 18, 1)], [256, 1 << 13]);
        assert_eq!(leaves(1 << 18, 1 << 12), 128, "large partial results: fewer of them");
        assert_eq!(split(GridBox::full([1 << 13, 1 << 10, 1]), hints, 4096, Some(1)).chunks(), 256);
    }
}
