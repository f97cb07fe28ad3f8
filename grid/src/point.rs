//! Points and extents: arrays of coordinates with a meaning.

use std::{
    fmt,
    ops::{Index, IndexMut},
};

/// A position in a `D`-dimensional index space. Points are ordered lexicographically, which is row-major
/// order.
///
/// ```
/// use anabranch_grid::Point;
/// let p = Point([3, 4]);
/// assert_eq!(p[1], 4);
/// assert_eq!(p.to_string(), "[3, 4]");
/// assert!(p < Point([4, 0]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point<const D: usize>(pub [usize; D]);

/// The size of a `D`-dimensional index space along each axis.
///
/// ```
/// use anabranch_grid::Extent;
/// let e = Extent([3, 4]);
/// assert_eq!(e.len(), 12);
/// assert_eq!(e.cast::<3>(), Extent([3, 4, 1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent<const D: usize>(pub [usize; D]);

macro_rules! coordinates {
    ($name:ident) => {
        impl<const D: usize> fmt::Display for $name<D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl<const D: usize> fmt::Debug for $name<D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl<const D: usize> Index<usize> for $name<D> {
            type Output = usize;

            #[inline]
            fn index(&self, axis: usize) -> &usize {
                &self.0[axis]
            }
        }

        impl<const D: usize> IndexMut<usize> for $name<D> {
            #[inline]
            fn index_mut(&mut self, axis: usize) -> &mut usize {
                &mut self.0[axis]
            }
        }

        impl<const D: usize> From<[usize; D]> for $name<D> {
            #[inline]
            fn from(coordinates: [usize; D]) -> Self {
                Self(coordinates)
            }
        }

        impl From<usize> for $name<1> {
            #[inline]
            fn from(coordinate: usize) -> Self {
                Self([coordinate])
            }
        }
    };
}

coordinates!(Point);
coordinates!(Extent);

impl<const D: usize> Point<D> {
    /// The point whose coordinates are all zero.
    pub const ORIGIN: Self = Self([0; D]);

    /// The same point in `E` dimensions. Added coordinates are 0.
    ///
    /// # Panics
    /// If a dropped coordinate is not 0.
    #[track_caller]
    pub fn cast<const E: usize>(&self) -> Point<E> {
        Point(cast(&self.0, 0, self))
    }
}

impl<const D: usize> Default for Point<D> {
    fn default() -> Self {
        Self::ORIGIN
    }
}

impl<const D: usize> Extent<D> {
    /// The number of points: the product of the sizes, or `usize::MAX` if that overflows. 1 in 0 dimensions.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().fold(1, |product: usize, &size| product.saturating_mul(size))
    }

    /// The number of points, or `None` if it overflows.
    pub fn checked_len(&self) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        self.0.iter().try_fold(1, |product: usize, &size| product.checked_mul(size))
    }

    /// Whether there is no point, because some size is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.contains(&0)
    }

    /// The same extent in `E` dimensions. Added sizes are 1.
    ///
    /// # Panics
    /// If a dropped size is not 1.
    #[track_caller]
    pub fn cast<const E: usize>(&self) -> Extent<E> {
        Extent(cast(&self.0, 1, self))
    }
}

/// Pads `from` with `fill`, or drops trailing values that all equal `fill`.
#[track_caller]
fn cast<const D: usize, const E: usize>(
    from: &[usize; D],
    fill: usize,
    shown: &impl fmt::Display,
) -> [usize; E] {
    for (axis, &value) in from.iter().enumerate().skip(E) {
        assert!(
            value == fill,
            "cannot cast {shown} from {D} to {E} dimensions: axis {axis} is dropped and must be {fill}"
        );
    }
    std::array::from_fn(|axis| if axis < D { from[axis] } else { fill })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_pad_and_drop() {
        assert_eq!(Extent([5]).cast::<3>(), Extent([5, 1, 1]));
        assert_eq!(Extent([5, 1, 1]).cast::<1>(), Extent([5]));
        assert_eq!(Extent([]).cast::<2>(), Extent([1, 1]));
        assert_eq!(Extent([1, 1]).cast::<0>(), Extent([]));
        assert_eq!(Point([5]).cast::<2>(), Point([5, 0]));
        assert_eq!(Point([5, 0]).cast::<1>(), Point([5]));
    }

    #[test]
    #[should_panic(expected = "cannot cast [5, 2] from 2 to 1 dimensions: axis 1 is dropped and must be 1")]
    fn casting_down_needs_size_one() {
        let _ = Extent([5, 2]).cast::<1>();
    }

    #[test]
    fn lengths_saturate() {
        assert_eq!(Extent([usize::MAX, 2]).len(), usize::MAX);
        assert_eq!(Extent([usize::MAX, 2]).checked_len(), None);
        assert_eq!(Extent([usize::MAX, usize::MAX, 0]).len(), 0);
        assert_eq!(Extent([usize::MAX, usize::MAX, 0]).checked_len(), Some(0));
        assert_eq!(Extent([]).len(), 1);
    }

    #[test]
    fn a_number_is_a_one_dimensional_point() {
        assert_eq!(Point::from(7), Point([7]));
        assert_eq!(format!("{} {:?}", Point([3, 4]), Extent([])), "[3, 4] []");
    }
}
