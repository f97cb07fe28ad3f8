//! Range mappers of launches: without types, and comparable.

use anabranch_grid::{
    All, Chunk, EvenSplit, Extent, Fixed, GridBox, OneToOne, Permuted, RangeMapper, Region,
};
use rustc_hash::FxHasher;
use std::{
    any::{Any, TypeId},
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A range mapper with the buffer's extent built in, and all dimensions padded to three.
///
/// It must be monotonic (a part of a chunk maps to a part of the chunk's region) and always give the same
/// answer.
///
/// Launches with equal mappers repeat each other, which saves work. Mappers that [`erase`] makes are equal if
/// they are made of [equal values](RangeMapper::as_value), for buffers of the same extent. So are mappers
/// that are made of one closure that captures nothing. Other mappers are equal only to their own clones.
#[derive(Clone)]
pub struct Mapper {
    /// Equal mappers have equal hashes.
    hash: u64,
    map: Arc<dyn Erased>,
}

/// Turns a range mapper of any dimensions into a [`Mapper`] for a buffer of this extent.
///
/// ```
/// use anabranch_graph::command::erase;
/// use anabranch_grid::{Chunk, Extent, GridBox, neighborhood};
/// let mapper = erase(neighborhood([1]), Extent([10]));
/// let chunk = Chunk { range: GridBox::new(4, 6), global: GridBox::full(10) };
/// let chunk = Chunk { range: chunk.range.cast(), global: chunk.global.cast() };
/// assert_eq!(mapper.map(&chunk), GridBox::new([3, 0, 0], [7, 1, 1]).into());
/// assert_eq!(mapper, erase(neighborhood([1]), Extent([10])));
/// assert_ne!(mapper, erase(neighborhood([2]), Extent([10])));
/// ```
pub fn erase<const K: usize, const B: usize>(
    mapper: impl RangeMapper<K, B> + 'static,
    extent: Extent<B>,
) -> Mapper {
    Mapper::of(Typed { mapper, extent })
}

impl Mapper {
    /// A mapper that a function defines.
    ///
    /// ```
    /// use anabranch_graph::command::Mapper;
    /// use anabranch_grid::{Chunk, GridBox};
    /// let rows = Mapper::new(|chunk| chunk.range.into());
    /// let chunk = Chunk::whole(GridBox::full([2, 3, 1]));
    /// assert_eq!(rows.map(&chunk), chunk.range.into());
    /// ```
    pub fn new(map: impl Fn(&Chunk<3>) -> Region<3> + Send + Sync + 'static) -> Self {
        Self::of(Untyped(map))
    }

    fn of(map: impl Erased) -> Self {
        let mut hasher = FxHasher::default();
        let comparable = map.hash(&mut hasher);
        let map: Arc<dyn Erased> = Arc::new(map);
        if !comparable {
            Arc::as_ptr(&map).cast::<()>().hash(&mut hasher);
        }
        Self { hash: hasher.finish(), map }
    }

    /// The region that a chunk accesses.
    #[inline]
    pub fn map(&self, chunk: &Chunk<3>) -> Region<3> {
        self.map.map(chunk)
    }

    /// A hash that is the same for equal mappers. It may be another one in another run of the program.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether the regions of chunks are known to be disjoint and to have the region of the whole index space
    /// as their union, if the index space is cut along the first `cut` axes only.
    pub(super) fn is_exact(&self, cut: usize) -> bool {
        self.map.is_exact(cut)
    }

    /// Whether all chunks are known to access the same region.
    pub(super) fn is_constant(&self) -> bool {
        self.map.is_constant()
    }
}

impl PartialEq for Mapper {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.map, &other.map) || self.map.equals(&*other.map))
    }
}

impl Eq for Mapper {}

impl Hash for Mapper {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.hash.hash(hasher);
    }
}

impl fmt::Debug for Mapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.map.describe())
    }
}

/// A mapper behind a pointer.
trait Erased: Any + Send + Sync {
    fn map(&self, chunk: &Chunk<3>) -> Region<3>;

    fn describe(&self) -> String;

    /// Adds the mapper to a hash, if it can be compared with others. Returns whether it can.
    fn hash(&self, hasher: &mut FxHasher) -> bool;

    /// Whether the other mapper can be compared with this one and is equal.
    fn equals(&self, other: &dyn Erased) -> bool;

    fn is_exact(&self, cut: usize) -> bool;

    fn is_constant(&self) -> bool;
}

/// Whether all values of a type are equal, because they contain nothing.
fn is_empty<T>() -> bool {
    size_of::<T>() == 0
}

/// A range mapper, and the extent of the buffer.
struct Typed<M, const K: usize, const B: usize> {
    mapper: M,
    extent: Extent<B>,
}

impl<M: RangeMapper<K, B> + 'static, const K: usize, const B: usize> Erased for Typed<M, K, B> {
    fn map(&self, chunk: &Chunk<3>) -> Region<3> {
        let chunk = match K {
            // An index space without dimensions has one point, whatever node of a snapshot it stands for.
            0 => Chunk::whole(GridBox::full([0; K])),
            _ => Chunk { range: chunk.range.cast::<K>(), global: chunk.global.cast::<K>() },
        };
        self.mapper.map(&chunk, self.extent).cast()
    }

    fn describe(&self) -> String {
        self.mapper.describe()
    }

    fn hash(&self, hasher: &mut FxHasher) -> bool {
        TypeId::of::<Self>().hash(hasher);
        self.extent.hash(hasher);
        match self.mapper.as_value() {
            Some(value) => value.hash_into(hasher),
            None => return is_empty::<M>(),
        }
        true
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<Self>() else { return false };
        self.extent == other.extent
            && match (self.mapper.as_value(), other.mapper.as_value()) {
                (Some(a), Some(b)) => a.equals(b),
                _ => is_empty::<M>(),
            }
    }

    fn is_exact(&self, cut: usize) -> bool {
        // Only types that are known, because the promise of any other type might be wrong.
        let mapper: &dyn Any = &self.mapper;
        cut <= K
            && (mapper.is::<OneToOne>()
                || mapper.is::<Permuted<K>>()
                || (mapper.is::<EvenSplit>() && cut == 1 && B > 0))
    }

    fn is_constant(&self) -> bool {
        let mapper: &dyn Any = &self.mapper;
        mapper.is::<All>() || mapper.is::<Fixed<GridBox<B>>>() || mapper.is::<Fixed<Region<B>>>()
    }
}

/// A function that is a mapper.
struct Untyped<F>(F);

impl<F: Fn(&Chunk<3>) -> Region<3> + Send + Sync + 'static> Erased for Untyped<F> {
    fn map(&self, chunk: &Chunk<3>) -> Region<3> {
        (self.0)(chunk)
    }

    fn describe(&self) -> String {
        format!("mapper {}", std::any::type_name::<F>())
    }

    fn hash(&self, hasher: &mut FxHasher) -> bool {
        TypeId::of::<Self>().hash(hasher);
        is_empty::<F>()
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        is_empty::<F>() && (other as &dyn Any).is::<Self>()
    }

    fn is_exact(&self, _: usize) -> bool {
        false
    }

    fn is_constant(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_grid::{GridBox, all, fixed, mapper, neighborhood, one_to_one, slice};

    #[test]
    fn mappers_of_equal_values_are_equal() {
        let extent = Extent([8, 8]);
        let near = |radius: usize| erase(neighborhood([radius, 1]), extent);
        assert_eq!(near(1), near(1));
        assert_ne!(near(1), near(2));
        assert_ne!(near(1), erase(neighborhood([1, 1]), Extent([8, 9])));
        assert_eq!(erase(slice(1), extent), erase(slice(1), extent));
        assert_ne!(erase::<2, 2>(one_to_one(), extent), erase::<2, 2>(all(), extent));
        let first = |columns| erase::<2, 2>(fixed(GridBox::full([2, columns])), extent);
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
        // The same value for index spaces of different dimensions.
        assert_ne!(erase::<1, 2>(all(), extent), erase::<2, 2>(all(), extent));
    }

    #[test]
    fn closures_are_equal_if_they_capture_nothing() {
        let row = || mapper(|chunk: &Chunk<1>, _: Extent<1>| chunk.range);
        assert_eq!(erase(row(), Extent([8])), erase(row(), Extent([8])));
        let column = |at: usize| Mapper::new(move |_| GridBox::new([0, at, 0], [8, at + 1, 1]).into());
        let one = column(1);
        assert_eq!(one, one.clone());
        assert_ne!(one, column(1));
        let whole = || Mapper::new(|chunk| chunk.global.into());
        assert_eq!(whole(), whole());
        assert_ne!(whole(), Mapper::new(|chunk| chunk.range.into()));
    }
}
