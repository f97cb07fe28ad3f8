//! Reductions: many values combined into one per element of a buffer, with the same bits on any number of threads.
//!
//! Each chunk of the kernel combines into a partial result of its own, which begins as the operator's identity (the first
//! one's, where it is asked for, as what the buffer holds). When all
//! chunks are done, the partial results are combined pairwise, neighbours first, in a tree whose shape depends on nothing
//! but their number. That number depends on the index space alone (and on [`chunks`](crate::TaskBuilder::chunks), where
//! the program says so), never on the threads.

use crate::{
    access::{Access, KernelAccess},
    buffer::{Buffer, Label},
    declare::Declaration,
    element::Element,
    error::Error,
    memory::Start,
};
use anabranch_graph::Mode;
use anabranch_grid::{Extent, GridBox, Point};
use parking_lot::{Mutex, MutexGuard};
use std::{fmt, ops::Index};

/// How many chunks the index space of a task with reductions is split into, at most, where the program does not say.
pub(crate) const CHUNKS: usize = 64;

/// An associative operation with an identity.
///
/// It need not be commutative: values are combined in the order of the index space. Where it is associative only nearly
/// (floating-point sums), the result is that of one fixed tree.
pub trait Operator<T>: Send + Sync + 'static {
    /// What changes nothing: `combine(identity, x)` and `combine(x, identity)` are `x`.
    fn identity(&self) -> T;

    /// The two values combined; `a` comes before `b`.
    fn combine(&self, a: T, b: T) -> T;
}

/// See [`operator`].
#[derive(Clone, Copy)]
pub struct Custom<T, F> {
    identity: T,
    combine: F,
}

impl<T, F> Operator<T> for Custom<T, F>
where
    T: Element,
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    fn identity(&self) -> T {
        self.identity
    }

    #[inline]
    fn combine(&self, a: T, b: T) -> T {
        (self.combine)(a, b)
    }
}

impl<T, F> fmt::Debug for Custom<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operator(…)")
    }
}

/// An operator from its identity and a closure.
pub fn operator<T: Element, F>(identity: T, combine: F) -> Custom<T, F>
where
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    Custom { identity, combine }
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $kind:ident: $([$($type:ty),*] $identity:expr, $combine:expr;)*)*) => {$(
        /// See [`fn@
        #[doc = stringify!($name)]
        /// `].
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        $(#[$doc])*
        pub fn $name() -> $kind {
            $kind
        }

        $($(
            impl Operator<$type> for $kind {
                #[inline]
                fn identity(&self) -> $type {
                    const { $identity as $type }
                }

                #[inline]
                fn combine(&self, a: $type, b: $type) -> $type {
                    let combine: fn($type, $type) -> $type = $combine;
                    combine(a, b)
                }
            }
        )*)*
    )*};
}

operators! {
    /// The sum; of integers modulo their size.
    sum Sum:
        [f32, f64] -0.0, |a, b| a + b;
        [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] 0, |a, b| a.wrapping_add(b);
    /// The product; of integers modulo their size.
    product Product:
        [f32, f64] 1.0, |a, b| a * b;
        [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] 1, |a, b| a.wrapping_mul(b);
}

macro_rules! extremes {
    ($([$($type:ident),*] $low:ident $high:ident;)*) => {
        /// See [`min`].
        #[derive(Clone, Copy, Debug)]
        pub struct Min;

        /// See [`max`].
        #[derive(Clone, Copy, Debug)]
        pub struct Max;

        /// The smallest value; the largest that there is where there is none. Of floating-point numbers, one that is not
        /// NaN where there is one.
        pub fn min() -> Min {
            Min
        }

        /// The largest value; the smallest that there is where there is none. Of floating-point numbers, one that is not
        /// NaN where there is one.
        pub fn max() -> Max {
            Max
        }

        $($(
            impl Operator<$type> for Min {
                fn identity(&self) -> $type {
                    $type::$high
                }
                #[inline]
                fn combine(&self, a: $type, b: $type) -> $type {
                    a.min(b)
                }
            }

            impl Operator<$type> for Max {
                fn identity(&self) -> $type {
                    $type::$low
                }
                #[inline]
                fn combine(&self, a: $type, b: $type) -> $type {
                    a.max(b)
                }
            }
        )*)*
    };
}

extremes! {
    [f32, f64] NEG_INFINITY INFINITY;
    [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize] MIN MAX;
}

macro_rules! bitwise {
    ($($(#[$doc:meta])* $name:ident $kind:ident $op:tt $bool:literal $identity:literal;)*) => {$(
        /// See [`fn@
        #[doc = stringify!($name)]
        /// `].
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        $(#[$doc])*
        pub fn $name() -> $kind {
            $kind
        }

        impl Operator<bool> for $kind {
            fn identity(&self) -> bool {
                $bool
            }
            #[inline]
            fn combine(&self, a: bool, b: bool) -> bool {
                a $op b
            }
        }

        bitwise!(@ $kind $op $identity u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
    )*};
    (@ $kind:ident $op:tt $identity:literal $($type:ident)*) => {$(
        impl Operator<$type> for $kind {
            fn identity(&self) -> $type {
                if $identity == 1 { !0 } else { 0 }
            }
            #[inline]
            fn combine(&self, a: $type, b: $type) -> $type {
                a $op b
            }
        }
    )*};
}

bitwise! {
    /// Whether all are true; of integers bit by bit.
    and And & true 1;
    /// Whether any is true; of integers bit by bit.
    or Or | false 0;
}

/// A declared [reduction](crate::TaskBuilder::reduce).
#[derive(Debug)]
pub struct Reduce<T, const D: usize, O> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) operator: O,
    pub(crate) include_current: bool,
}

/// A reduction with its partial results, and once it is attached its memory.
pub struct BoundReduction<T, const D: usize, O> {
    reduce: Reduce<T, D, O>,
    start: Start<T>,
    /// One for each chunk, as long as the buffer; empty until the chunk is called.
    partials: Box<[Mutex<Vec<T>>]>,
}

impl<T: Element, const D: usize, O: Operator<T>> BoundReduction<T, D, O> {
    /// Combines the partial results into the first: neighbours, then neighbours of those, and so on.
    fn combine(&self) {
        let operator = &self.reduce.operator;
        let count = self.partials.len();
        let mut distance = 1;
        while distance < count {
            for left in (0..count - distance).step_by(2 * distance) {
                let right = std::mem::take(&mut *self.partials[left + distance].lock());
                let mut left = self.partials[left].lock();
                left.iter_mut().zip(right).for_each(|(a, b)| *a = operator.combine(*a, b));
            }
            distance *= 2;
        }
    }
}

impl<T, const D: usize, O, const K: usize> Access<K> for Reduce<T, D, O>
where
    T: Element,
    O: Operator<T>,
{
    type Bound = BoundReduction<T, D, O>;
    type Guard<'b> = Reduction<'b, T, D, O>;
    type View<'v> = &'v mut Reduction<'v, T, D, O>;

    const REDUCES: bool = true;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        let mode = if self.include_current { Mode::Update } else { Mode::Write };
        declaration.reduction(&self.buffer, mode)?;
        let partials = declaration.chunks.iter().map(|_| Mutex::default()).collect();
        Ok(BoundReduction { reduce: self, start: Start::NONE, partials })
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        let version = versions.next().expect("a version for every access");
        // It stays there as long as the buffer's handle in `reduce` does.
        bound.start = bound.reduce.buffer.memory(version)?;
        Ok(())
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.reduce.buffer.inner.label(), D))
    }

    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        let mut partial = bound.partials[chunk].lock();
        let Reduce { buffer, operator, include_current } = &bound.reduce;
        let extent = buffer.inner.extent;
        let len = GridBox::full(extent).len();
        if *include_current && chunk == 0 {
            // SAFETY: the task is alone with the whole buffer, as it has declared, and only reads it before it finishes.
            partial.extend_from_slice(unsafe { std::slice::from_raw_parts(bound.start.get(), len) });
        } else {
            partial.resize(len, operator.identity());
        }
        Reduction { partial, operator, extent, buffer }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }

    unsafe fn finish(bound: &Self::Bound) {
        bound.combine();
        let Reduce { buffer, operator, include_current } = &bound.reduce;
        let len = GridBox::full(buffer.inner.extent).len();
        // SAFETY: the task is alone with the whole buffer, as it has declared; that is as long.
        let target = unsafe { std::slice::from_raw_parts_mut(bound.start.get(), len) };
        match bound.partials.first() {
            Some(first) => target.copy_from_slice(&first.lock()),
            // There were no chunks.
            None if *include_current => {}
            None => target.fill(operator.identity()),
        }
    }
}

impl<T, const D: usize, O> KernelAccess for Reduce<T, D, O> {}

/// What one chunk of a kernel sees of a [reduction](crate::TaskBuilder::reduce): its own partial result.
///
/// Indices are the buffer's own.
pub struct Reduction<'v, T, const D: usize, O> {
    partial: MutexGuard<'v, Vec<T>>,
    operator: &'v O,
    extent: Extent<D>,
    buffer: &'v Buffer<T, D>,
}

impl<'b, T: Element, const D: usize, O: Operator<T>> Reduction<'b, T, D, O> {
    /// Combines a value into the element at `point`, behind those that this chunk has combined before.
    ///
    /// # Panics
    /// Ends the task where the buffer has no such element.
    #[inline]
    pub fn combine(&mut self, point: [usize; D], value: T) {
        let at = self.index(point);
        let slot = &mut self.partial[at];
        *slot = self.operator.combine(*slot, value);
    }

    /// All elements of the partial result in row-major order, for loops that combine by themselves.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.partial
    }

    /// The extent of the buffer.
    pub fn extent(&self) -> Extent<D> {
        self.extent
    }

    #[inline]
    fn index(&self, point: [usize; D]) -> usize {
        if !GridBox::full(self.extent).contains_point(Point(point)) {
            self.refuse(point);
        }
        self.extent.0.iter().zip(point).fold(0, |index, (n, i)| index * n + i)
    }

    #[cold]
    fn refuse(&self, point: [usize; D]) -> ! {
        crate::error::Outside {
            buffer: self.buffer.inner.label().to_string(),
            asked: Point(point).to_string(),
            declared: GridBox::full(self.extent).to_string(),
        }
        .throw()
    }

    /// The view for the time of one call.
    fn for_call<'v>(&'v mut self) -> &'v mut Reduction<'v, T, D, O>
    where
        'b: 'v,
    {
        // SAFETY: only the lifetime parameter changes, which no field's layout depends on. It shrinks behind a unique
        // reference: what could be put there is another chunk's partial result, whose lock is then held in this one's
        // place as long as this call; both are this task's own.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

impl<T: Element, const D: usize, O: Operator<T>> Index<[usize; D]> for Reduction<'_, T, D, O> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        &self.partial[Reduction::index(self, point)]
    }
}

impl<T, const D: usize, O> fmt::Debug for Reduction<'_, T, D, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reduction({})", self.buffer.inner.label())
    }
}
