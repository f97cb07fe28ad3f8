//! The accesses of a task, as a tuple in the order of their declaration. The kernel gets the views as a tuple
//! of the same length.

use super::{Access, KernelAccess, sealed::Sealed};
use crate::{data::pattern::Pattern, error::Error, label::Label, submit::launch::declaration::Declaration};

/// The accesses of a task: a tuple of up to eight.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of accesses",
    label = "not a list of accesses"
)]
pub trait AccessList<const K: usize>: Sealed + 'static {
    /// All accesses, bound.
    type Bound: Send + Sync + 'static;
    /// All guards.
    type Guards<'b>;
    /// All views.
    type Views<'v>;
    /// Whether one of the accesses is a reduction.
    #[doc(hidden)]
    const REDUCES: bool;

    /// The number of elements of the largest buffer that the task reduces to; 0 without reductions.
    #[doc(hidden)]
    fn reduced(&self) -> usize;

    /// Declares all accesses: see [`Access::declare`].
    #[doc(hidden)]
    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error>;

    /// Attaches the memory of all accesses: see [`Access::attach`].
    #[doc(hidden)]
    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error>;

    /// The labels and ranks of the buffers.
    #[doc(hidden)]
    fn labels(bound: &Self::Bound) -> Vec<(Label, usize)>;

    /// Opens all accesses for chunk `chunk`.
    ///
    /// # Safety
    /// See [`Access::guard`].
    #[doc(hidden)]
    unsafe fn guards(bound: &Self::Bound, chunk: usize) -> Self::Guards<'_>;

    /// Calls a function with the views of these guards.
    #[doc(hidden)]
    fn with_views<R>(guards: &mut Self::Guards<'_>, function: impl for<'v> FnOnce(Self::Views<'v>) -> R)
    -> R;

    /// Fills what chunk `chunk` must write with a pattern: see [`Access::prepare`].
    ///
    /// # Safety
    /// See [`Access::guard`].
    #[doc(hidden)]
    unsafe fn prepare(bound: &Self::Bound, chunk: usize, pattern: &Pattern);

    /// Looks for elements that chunk `chunk` has not written: see [`Access::check`].
    ///
    /// # Safety
    /// See [`Access::guard`].
    #[doc(hidden)]
    unsafe fn check(bound: &Self::Bound, chunk: usize, pattern: &Pattern);

    /// Finishes all accesses when all chunks are done.
    ///
    /// # Safety
    /// See [`Access::finish`].
    #[doc(hidden)]
    unsafe fn finish(bound: &Self::Bound);
}

/// A list of accesses that a kernel may have.
pub trait KernelAccessList: Sealed {}

/// A list with room for one more access.
#[diagnostic::on_unimplemented(
    message = "a task has at most eight accesses",
    label = "this list is full",
    note = "put what belongs together into one buffer, of arrays or structures, or into one host object"
)]
pub trait Append<A>: Sealed {
    /// The longer list.
    type Longer;

    /// Adds the access at the end.
    fn append(self, access: A) -> Self::Longer;
}

macro_rules! access_list {
    ($($access:ident $i:tt),*) => {
        #[allow(unused_unsafe, unused_variables, clippy::unused_unit)]
        impl<const K: usize, $($access: Access<K>),*> AccessList<K> for ($($access,)*) {
            type Bound = ($($access::Bound,)*);
            type Guards<'b> = ($($access::Guard<'b>,)*);
            type Views<'v> = ($($access::View<'v>,)*);
            const REDUCES: bool = false $(|| $access::REDUCES)*;

            fn reduced(&self) -> usize {
                0_usize$(.max(self.$i.reduced()))*
            }

            #[inline(always)]
            fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
                Ok(($(self.$i.declare(declaration)?,)*))
            }

            fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
                $($access::attach(&mut bound.$i, versions)?;)*
                Ok(())
            }

            fn labels(bound: &Self::Bound) -> Vec<(Label, usize)> {
                let labels: [Option<(Label, usize)>; _] = [$($access::label(&bound.$i)),*];
                labels.into_iter().flatten().collect()
            }

            #[inline(always)]
            unsafe fn guards(bound: &Self::Bound, chunk: usize) -> Self::Guards<'_> {
                // SAFETY: the caller promises what each access requires.
                unsafe { ($($access::guard(&bound.$i, chunk),)*) }
            }

            #[inline]
            fn with_views<R>(
                guards: &mut Self::Guards<'_>,
                function: impl for<'v> FnOnce(Self::Views<'v>) -> R,
            ) -> R {
                // Calls the function. The views are parameters, and this is a function of its own, which is
                // not inlined: of references that are parameters the compiler knows that writes through other
                // pointers leave the views alone, and it keeps their numbers in registers in loops over
                // elements. Of references in a tuple it does not know this.
                #[inline(never)]
                #[allow(non_snake_case, clippy::too_many_arguments)]
                fn separately<$($access,)* R>($($access: $access,)* function: impl FnOnce(($($access,)*)) -> R) -> R {
                    function(($($access,)*))
                }
                separately($($access::view(&mut guards.$i),)* function)
            }

            unsafe fn prepare(bound: &Self::Bound, chunk: usize, pattern: &Pattern) {
                // SAFETY: the caller promises what each access requires.
                unsafe { $($access::prepare(&bound.$i, chunk, pattern);)* }
            }

            unsafe fn check(bound: &Self::Bound, chunk: usize, pattern: &Pattern) {
                // SAFETY: the caller promises what each access requires.
                unsafe { $($access::check(&bound.$i, chunk, pattern);)* }
            }

            unsafe fn finish(bound: &Self::Bound) {
                // SAFETY: the caller promises what each access requires.
                unsafe { $($access::finish(&bound.$i);)* }
            }
        }

        impl<$($access: KernelAccess),*> KernelAccessList for ($($access,)*) {}
    };
}

macro_rules! append {
    ($($access:ident $i:tt),*) => {
        impl<New, $($access),*> Append<New> for ($($access,)*) {
            type Longer = ($($access,)* New,);

            fn append(self, access: New) -> Self::Longer {
                ($(self.$i,)* access,)
            }
        }
    };
}

access_list!();
access_list!(A 0);
access_list!(A 0, B 1);
access_list!(A 0, B 1, C 2);
access_list!(A 0, B 1, C 2, D 3);
access_list!(A 0, B 1, C 2, D 3, E 4);
access_list!(A 0, B 1, C 2, D 3, E 4, F 5);
access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
append!();
append!(A 0);
append!(A 0, B 1);
append!(A 0, B 1, C 2);
append!(A 0, B 1, C 2, D 3);
append!(A 0, B 1, C 2, D 3, E 4);
append!(A 0, B 1, C 2, D 3, E 4, F 5);
append!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
