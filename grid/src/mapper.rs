//! Range mappers: which region of a buffer a chunk of an index space accesses.
//!
//! A [`RangeMapper`] must be *monotonic*: it must map a part of a chunk to a part of the chunk's region,
//! because chunks are split again. All mappers of this crate are monotonic. Mappers that follow the chunk
//! without looking at the buffer ([`one_to_one`], [`slice()`], [`permuted`], [`transposed`]) may map to
//! points outside the buffer: a chunk that leaves the buffer is a mistake, which the runtime reports and does
//! not hide. [`neighborhood`](crate::neighborhood), [`all`] and [`even_split`] never leave the buffer.
//! [`fixed`] and closures may do either.

use crate::{
    grid_box::GridBox,
    point::Extent,
    region::Region,
    shape::{MappedRegion, OneBox, RegionShape},
    value::MapperValue,
};
use std::{fmt, hash::Hash};

/// A part of an index space, given to one node, device or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk<const K: usize> {
    /// The points of this chunk.
    pub range: GridBox<K>,
    /// The whole index space that the chunk is a part of.
    pub global: GridBox<K>,
}

impl<const K: usize> Chunk<K> {
    /// The chunk that is the whole index space.
    pub fn whole(global: GridBox<K>) -> Self {
        Self { range: global, global }
    }
}

/// A function from a chunk of a `K`-dimensional index space to a region of a `B`-dimensional buffer.
///
/// Closures that return a box or a region are mappers; see [`mapper`] for how to write them without type
/// annotations.
///
/// ```
/// use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, mapper, slice};
/// let chunk = Chunk { range: GridBox::new([2, 0], [4, 9]), global: GridBox::full([9, 9]) };
///
/// // The rows of the chunk, whole: the left operand of a matrix product.
/// assert_eq!(slice(1).map(&chunk, Extent([9, 5])), GridBox::new([2, 0], [4, 5]).into());
///
/// // A row-sum vector, by a closure.
/// let sums = mapper(|chunk: &Chunk<2>, _| GridBox::new(chunk.range.min()[0], chunk.range.max()[0]));
/// assert_eq!(sums.map(&chunk, Extent([9])), GridBox::new(2, 4).into());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not map an index space of {K} dimensions to a buffer of {B} dimensions",
    label = "no range mapper for these dimensions",
    note = "`one_to_one()`, `slice(…)`, `neighborhood(…)` and `permuted(…)` need as many dimensions in the index space as in the \
            buffer; `all()`, `fixed(…)`, `even_split()` and `mapper(|chunk, extent| …)` map between any"
)]
pub trait RangeMapper<const K: usize, const B: usize>: Send + Sync {
    /// The shape of all regions that this mapper gives, which makes access to single elements fast:
    /// [`OneBox`], [`Cross`](crate::Cross), or [`AnyBoxes`](crate::AnyBoxes) if the mapper promises nothing.
    /// A task with a region of another shape is refused.
    type Shape: RegionShape<B>
    where
        Self: Sized;

    /// The region of a buffer of extent `buffer` that `chunk` accesses.
    fn map(&self, chunk: &Chunk<K>, buffer: Extent<B>) -> Region<B>;

    /// The mapper in words, for error messages: as it is written in the program, if possible.
    fn describe(&self) -> String {
        format!("mapper {}", std::any::type_name::<Self>())
    }

    /// The mapper as a value that can be compared, or `None` if it cannot. Equal values of one type must map
    /// equal chunks to equal regions.
    ///
    /// A program that submits a task again and again makes a new mapper each time. Comparing the mappers
    /// shows that the task repeats, so that its commands need not be derived again. All mappers of this crate
    /// are values. For a mapper of your own that is `Eq` and `Hash`, return `Some(self)`. Closures are
    /// not values. The runtime still recognises a closure that captures nothing.
    ///
    /// ```
    /// use anabranch_grid::{Chunk, Extent, GridBox, MapperValue, OneBox, RangeMapper, Region};
    /// /// Each chunk accesses the points behind it.
    /// #[derive(PartialEq, Eq, Hash)]
    /// struct Shifted(usize);
    /// impl RangeMapper<1, 1> for Shifted {
    ///     type Shape = OneBox<1>;
    ///     fn map(&self, chunk: &Chunk<1>, _: Extent<1>) -> Region<1> {
    ///         GridBox::new(chunk.range.min()[0] + self.0, chunk.range.max()[0] + self.0).into()
    ///     }
    ///     fn as_value(&self) -> Option<&dyn MapperValue> {
    ///         Some(self)
    ///     }
    /// }
    /// assert!(Shifted(2).as_value().unwrap().equals(&Shifted(2)));
    /// ```
    fn as_value(&self) -> Option<&dyn MapperValue> {
        None
    }
}

// The message is that of `RangeMapper`, which says what to do.
#[diagnostic::do_not_recommend]
impl<F, R, const K: usize, const B: usize> RangeMapper<K, B> for F
where
    F: Fn(&Chunk<K>, Extent<B>) -> R + Send + Sync,
    R: MappedRegion<B>,
{
    type Shape = R::Shape;

    fn map(&self, chunk: &Chunk<K>, buffer: Extent<B>) -> Region<B> {
        self(chunk, buffer).into()
    }
}

impl<const K: usize, const B: usize> fmt::Debug for dyn RangeMapper<K, B> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Turns a closure into a range mapper, with the types of its arguments inferred.
///
/// ```
/// use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, mapper};
/// // The mirror image of the chunk.
/// let mirrored = mapper(|chunk, extent| {
///     GridBox::new(extent[0] - chunk.range.max()[0], extent[0] - chunk.range.min()[0])
/// });
/// let chunk = Chunk { range: GridBox::new(0, 3), global: GridBox::full(10) };
/// assert_eq!(mirrored.map(&chunk, Extent([10])), GridBox::new(7, 10).into());
/// ```
pub fn mapper<const K: usize, const B: usize, F, R>(closure: F) -> F
where
    F: Fn(&Chunk<K>, Extent<B>) -> R + Send + Sync,
    R: MappedRegion<B>,
{
    closure
}

/// Each point of the index space accesses the same point of the buffer. Not clamped to the buffer.
pub fn one_to_one() -> OneToOne {
    OneToOne
}

/// See [`one_to_one`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneToOne;

impl<const K: usize> RangeMapper<K, K> for OneToOne {
    type Shape = OneBox<K>;

    fn map(&self, chunk: &Chunk<K>, _: Extent<K>) -> Region<K> {
        chunk.range.into()
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl fmt::Debug for OneToOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one_to_one()")
    }
}

/// Each point accesses the whole line of the buffer through it along axis `dim`: `slice(1)` of a matrix gives
/// whole rows, `slice(0)` whole columns. On the other axes the region is the chunk, not clamped to the
/// buffer.
///
/// Mapping a chunk of `dim` dimensions or fewer panics.
pub fn slice(dim: usize) -> Slice {
    Slice { dim }
}

/// See [`slice()`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    dim: usize,
}

impl<const K: usize> RangeMapper<K, K> for Slice {
    type Shape = OneBox<K>;

    fn map(&self, chunk: &Chunk<K>, buffer: Extent<K>) -> Region<K> {
        let Self { dim } = *self;
        assert!(dim < K, "slice({dim}) has no meaning in {K} dimensions: the axis must be below {K}");
        if chunk.range.is_empty() || buffer[dim] == 0 {
            return Region::empty();
        }
        chunk.range.with_axis(dim, 0..buffer[dim]).into()
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slice({})", self.dim)
    }
}

/// Every chunk accesses the whole buffer.
pub fn all() -> All {
    All
}

/// See [`all`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct All;

impl<const K: usize, const B: usize> RangeMapper<K, B> for All {
    type Shape = OneBox<B>;

    fn map(&self, _: &Chunk<K>, buffer: Extent<B>) -> Region<B> {
        GridBox::full(buffer).into()
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl fmt::Debug for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all()")
    }
}

/// Every chunk accesses the same box or region. Not clamped to the buffer.
pub fn fixed<R>(region: R) -> Fixed<R> {
    Fixed { region }
}

/// See [`fixed`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fixed<R> {
    region: R,
}

impl<R, const K: usize, const B: usize> RangeMapper<K, B> for Fixed<R>
where
    R: MappedRegion<B> + Clone + Eq + Hash + fmt::Display + Send + Sync + 'static,
{
    type Shape = R::Shape;

    fn map(&self, _: &Chunk<K>, _: Extent<B>) -> Region<B> {
        self.region.clone().into()
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl<R: fmt::Display> fmt::Debug for Fixed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fixed({})", self.region)
    }
}

/// Divides the buffer along axis 0 in proportion to the index space: a chunk that is a certain share of the
/// index space along axis 0 (the third quarter, say) accesses the same share of the buffer, whole on the
/// other axes.
///
/// The shares of chunks that partition the index space along axis 0 are disjoint and cover the buffer. Some
/// shares are empty if the buffer is shorter than the number of chunks. Chunks that differ only on other axes
/// get the same share. The single point of a 0-dimensional index space gets the whole buffer. A 0-dimensional
/// buffer goes to the chunk with the last points.
pub fn even_split() -> EvenSplit {
    EvenSplit
}

/// See [`even_split`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EvenSplit;

impl<const K: usize, const B: usize> RangeMapper<K, B> for EvenSplit {
    type Shape = OneBox<B>;

    fn map(&self, chunk: &Chunk<K>, buffer: Extent<B>) -> Region<B> {
        let range = chunk.range.intersection(&chunk.global);
        if range.is_empty() || buffer.is_empty() {
            return Region::empty();
        }
        if K == 0 {
            return GridBox::full(buffer).into();
        }
        let rows = if B == 0 { 1 } else { buffer[0] };
        let (start, points) = (chunk.global.min()[0], chunk.global.extent()[0]);
        // Both ends round the same function down, so that neighbouring pieces meet exactly.
        let cut = |at: usize| ((at - start) as u128 * rows as u128 / points as u128) as usize;
        let (low, high) = (cut(range.min()[0]), cut(range.max()[0]));
        if low == high {
            return Region::empty();
        }
        let whole = GridBox::full(buffer);
        if B == 0 { whole.into() } else { whole.with_axis(0, low..high).into() }
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl fmt::Debug for EvenSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("even_split()")
    }
}

/// Each point accesses the point with permuted coordinates: axis `d` of the buffer follows axis `axes[d]` of
/// the index space. Not clamped to the buffer.
///
/// ```
/// use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, permuted};
/// let chunk = Chunk::whole(GridBox::new([0, 1, 2], [5, 6, 7]));
/// let mapped = permuted([2, 0, 1]).map(&chunk, Extent([9, 9, 9]));
/// assert_eq!(mapped, GridBox::new([2, 0, 1], [7, 5, 6]).into());
/// ```
///
/// # Panics
/// If `axes` is not a permutation of `0..K`.
#[track_caller]
pub fn permuted<const K: usize>(axes: [usize; K]) -> Permuted<K> {
    let valid = (0..K).all(|axis| axes.contains(&axis));
    assert!(valid, "permuted({axes:?}): each axis from 0 to {} must occur once", K.saturating_sub(1));
    Permuted { axes }
}

/// Each point `[i, j]` accesses the point `[j, i]`: `permuted([1, 0])`. Not clamped to the buffer.
pub fn transposed() -> Permuted<2> {
    Permuted { axes: [1, 0] }
}

/// See [`permuted`] and [`transposed`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permuted<const K: usize> {
    axes: [usize; K],
}

impl<const K: usize> RangeMapper<K, K> for Permuted<K> {
    type Shape = OneBox<K>;

    fn map(&self, chunk: &Chunk<K>, _: Extent<K>) -> Region<K> {
        let (min, max) = (chunk.range.min(), chunk.range.max());
        GridBox::new(self.axes.map(|axis| min[axis]), self.axes.map(|axis| max[axis])).into()
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl<const K: usize> fmt::Debug for Permuted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.axes[..] {
            [1, 0] => f.write_str("transposed()"),
            _ => write!(f, "permuted({:?})", self.axes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappers_describe_themselves_as_written() {
        let mappers: [&dyn RangeMapper<2, 2>; 8] = [
            &one_to_one(),
            &slice(1),
            &all(),
            &fixed(GridBox::full([2, 2])),
            &even_split(),
            &transposed(),
            &permuted([0, 1]),
            &|_: &Chunk<2>, extent: Extent<2>| GridBox::full(extent),
        ];
        let words: Vec<_> = mappers.iter().map(|mapper| format!("{mapper:?}")).collect();
        assert_eq!(
            words[..7],
            [
                "one_to_one()",
                "slice(1)",
                "all()",
                "fixed([0..2, 0..2])",
                "even_split()",
                "transposed()",
                "permuted([0, 1])"
            ]
        );
        assert!(words[7].starts_with("mapper ") && words[7].contains("closure"), "{}", words[7]);
    }

    #[test]
    #[should_panic(expected = "permuted([0, 0]): each axis from 0 to 1 must occur once")]
    fn permutations_are_checked() {
        permuted([0, 0]);
    }

    #[test]
    #[should_panic(expected = "slice(2) has no meaning in 2 dimensions")]
    fn slices_name_an_axis() {
        slice(2).map(&Chunk::whole(GridBox::full([3, 3])), Extent([3, 3]));
    }
}
