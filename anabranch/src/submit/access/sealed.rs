//! The trait that seals the traits in [`interface`](crate::interface): other crates can use them, but not
//! implement them.

/// Implemented by the types of this crate that implement a sealed trait, and by tuples of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot implement this trait, which is sealed",
    label = "sealed",
    note = "the runtime relies on how accesses and captures are implemented; to capture several values, use a tuple"
)]
pub trait Sealed {}

macro_rules! tuples {
    ($($type:ident)*) => {
        impl<$($type),*> Sealed for ($($type,)*) {}
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
