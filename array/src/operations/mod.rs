//! The operations. Each file has the methods of one kind.

mod copy;
mod find;
mod map;
mod permute;
mod product;
mod reduce;
mod scan;
mod select;
mod sort;

pub use find::Found;
