//! A table of things by small numbers that are given away in order: a hash map with next to no hashing.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Values by [`BufferId`](crate::BufferId) or [`ObjectId`](crate::ObjectId). Its order of iteration means nothing.
pub(crate) type Named<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Numbers in a row differ in the low bits, which find the place; a product with a large odd number differs in the
/// high ones, too, by which the map tells entries apart. Names come from the graph, so nobody can make them collide.
#[derive(Clone, Copy, Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    #[inline]
    fn write_u64(&mut self, name: u64) {
        self.0 = name.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 << 8 | u64::from(byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
