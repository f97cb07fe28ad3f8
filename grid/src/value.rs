//! Range mappers as values, so that a program can find out that two of them are equal.

use std::{
    any::Any,
    hash::{Hash, Hasher},
};

/// A range mapper that can be compared with others: see
/// [`RangeMapper::as_value`](crate::RangeMapper::as_value).
///
/// Every type that is `Eq`, `Hash` and `'static` implements it.
pub trait MapperValue: Any {
    /// Whether `other` is of the same type and equal.
    fn equals(&self, other: &dyn MapperValue) -> bool;

    /// Adds the value to a hash. Equal values add the same.
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

impl<T: Any + Eq + Hash> MapperValue for T {
    fn equals(&self, other: &dyn MapperValue) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }

    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        GridBox, RangeMapper, all, even_split, fixed, neighborhood, one_to_one, permuted, slice, transposed,
    };
    use std::hash::DefaultHasher;

    fn value<const K: usize, const B: usize>(mapper: &dyn RangeMapper<K, B>) -> &dyn MapperValue {
        mapper.as_value().expect("a mapper of this crate is a value")
    }

    fn hash(value: &dyn MapperValue) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash_into(&mut hasher);
        hasher.finish()
    }

    /// Mappers of which no two are equal.
    fn mappers() -> Vec<Box<dyn RangeMapper<2, 2>>> {
        let near = neighborhood([1, 1]);
        vec![
            Box::new(one_to_one()),
            Box::new(all()),
            Box::new(even_split()),
            Box::new(slice(0)),
            Box::new(slice(1)),
            Box::new(transposed()),
            Box::new(permuted([0, 1])),
            Box::new(fixed(GridBox::full([2, 2]))),
            Box::new(fixed(GridBox::full([2, 3]))),
            Box::new(near),
            Box::new(near.periodic()),
            Box::new(near.along_axes()),
            Box::new(neighborhood([1, 2])),
        ]
    }

    #[test]
    fn mappers_are_equal_if_their_values_are() {
        let (first, second) = (mappers(), mappers());
        for (i, a) in first.iter().enumerate() {
            for (j, b) in second.iter().enumerate() {
                let (a, b) = (value(&**a), value(&**b));
                assert_eq!(a.equals(b), i == j, "{:?} and {:?}", first[i], second[j]);
                assert!(i != j || hash(a) == hash(b));
            }
        }
    }

    #[test]
    fn a_closure_is_no_value() {
        let closure = |_: &crate::Chunk<1>, _: crate::Extent<1>| GridBox::full(3);
        let mapper: &dyn RangeMapper<1, 1> = &closure;
        assert!(mapper.as_value().is_none());
    }
}
