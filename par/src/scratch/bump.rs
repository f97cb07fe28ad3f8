//! The bump allocator behind [`scratch`](super).

use bytemuck::Pod;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
};

/// Every slice begins on its own cache line, against false sharing and for aligned vector instructions.
const ALIGN: usize = 64;
/// The size of the smallest chunk, in bytes.
const MIN_CHUNK: usize = 64 << 10;

/// Memory from which scopes take slices. It grows to the size that the deepest use needs, and keeps it until
/// it is dropped.
///
/// All of its memory is initialised when it is allocated, and only plain data ([`Pod`]: any bytes are a
/// value, and no byte is padding) is ever stored in it; so a slice with *unspecified* contents is still a
/// slice of valid values.
pub struct Bump {
    /// The begin of the free part of the chunk in use.
    next: Cell<*mut u8>,
    /// The end of the free part.
    end: Cell<*mut u8>,
    /// The number of chunks in use. The chunks behind them are kept for the next scope that needs them.
    used: Cell<usize>,
    chunks: RefCell<Vec<Chunk>>,
}

// SAFETY: the memory belongs to this value alone, and nothing in it is tied to the thread that made it.
unsafe impl Send for Bump {}

struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

/// An open scope of a [`Bump`]: takes slices that live until the scope ends.
///
/// The lifetime `'s` is chosen by the call that opens the scope and exists only inside it.
pub struct Scope<'s> {
    bump: &'s Bump,
    /// Invariant, so that slices of an inner scope cannot pass for slices of an outer one.
    _invariant: PhantomData<Cell<&'s ()>>,
}

/// Gives back all slices that were taken since it was made.
struct Reset<'a> {
    bump: &'a Bump,
    next: *mut u8,
    end: *mut u8,
    used: usize,
}

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.bump.next.set(self.next);
        self.bump.end.set(self.end);
        self.bump.used.set(self.used);
    }
}

impl Default for Bump {
    fn default() -> Self {
        Self::new()
    }
}

impl Bump {
    /// Has no memory yet.
    pub const fn new() -> Self {
        Self {
            next: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
            used: Cell::new(0),
            chunks: RefCell::new(Vec::new()),
        }
    }

    /// Opens a scope. All slices that are taken from it are given back when `f` ends or panics.
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
        if self.chunks.get_mut().len() > 1 {
            self.merge();
        }
        self.enter(f)
    }

    /// The number of bytes that it has allocated.
    pub fn capacity(&self) -> usize {
        self.chunks.borrow().iter().map(|c| c.layout.size()).sum()
    }

    #[inline]
    fn enter<R>(&self, f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
        let _reset = Reset { bump: self, next: self.next.get(), end: self.end.get(), used: self.used.get() };
        f(&mut Scope { bump: self, _invariant: PhantomData })
    }

    /// Takes an aligned block of `bytes` bytes.
    #[inline]
    fn take(&self, bytes: usize) -> *mut u8 {
        let start = self.next.get();
        // Sizes are rounded up, so `next` stays aligned. Before the first chunk both are null: nothing is
        // free.
        let rounded = bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        if rounded > self.end.get().addr() - start.addr() || start.is_null() {
            self.next_chunk(rounded);
        }
        let start = self.next.get();
        // SAFETY: at least `rounded` bytes are free in the chunk in use, from `start` on.
        self.next.set(unsafe { start.add(rounded) });
        start
    }

    /// Goes on to a chunk that has `bytes` bytes: the next one that is kept, if it is large enough, or a new
    /// one.
    #[cold]
    fn next_chunk(&self, bytes: usize) {
        let mut chunks = self.chunks.borrow_mut();
        let used = self.used.get();
        if chunks.get(used).is_none_or(|c| c.layout.size() < bytes) {
            let double = used.checked_sub(1).map_or(0, |last| chunks[last].layout.size().saturating_mul(2));
            // Kept chunks that are too small are freed: none of their memory is in use.
            chunks.truncate(used);
            chunks.push(Chunk::new(bytes.max(MIN_CHUNK).max(double)));
        }
        let chunk = &chunks[used];
        self.use_chunk(chunk);
        self.used.set(used + 1);
    }

    fn use_chunk(&self, chunk: &Chunk) {
        self.next.set(chunk.start.as_ptr());
        // SAFETY: one past the end of the chunk.
        self.end.set(unsafe { chunk.start.as_ptr().add(chunk.layout.size()) });
    }

    /// Replaces several chunks by one, so that a scope as large as the last one needs no second. No scope is
    /// open.
    #[cold]
    fn merge(&mut self) {
        let total = self.capacity();
        let chunks = self.chunks.get_mut();
        chunks.clear();
        chunks.push(Chunk::new(total));
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
        self.used.set(0);
    }
}

impl Chunk {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size, ALIGN).expect("scratch of less than isize::MAX bytes");
        // SAFETY: the size is at least MIN_CHUNK, so it is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl<'s> Scope<'s> {
    /// Takes a slice of `len` values, 64-byte aligned. Its contents are unspecified: they are left from
    /// earlier uses.
    ///
    /// # Panics
    /// If the slice would have more than `isize::MAX` bytes. Aborts like `Vec` when memory runs out.
    #[inline]
    pub fn slice<T: Pod>(&self, len: usize) -> &'s mut [T] {
        const { assert!(align_of::<T>() <= ALIGN) };
        let bytes = len.checked_mul(size_of::<T>()).expect("scratch of less than isize::MAX bytes");
        let start = self.bump.take(bytes).cast::<T>();
        // SAFETY: the block is aligned, has this size, lies inside a live chunk, and is not given out again
        // until the scope ends, which 's does not outlive. Its bytes are initialised (chunks are allocated
        // zeroed, and only `Pod` values, which have no uninitialised bytes, are stored), and any bytes are a
        // valid `T`.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Takes a slice of `len` copies of `value`, 64-byte aligned.
    ///
    /// # Panics
    /// As [`slice`](Self::slice).
    #[inline]
    pub fn filled<T: Pod>(&self, len: usize, value: T) -> &'s mut [T] {
        let slice = self.slice(len);
        slice.fill(value);
        slice
    }

    /// Opens a scope inside this one. Slices of this scope stay usable, but it gives out none until the inner
    /// one ends.
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'t> FnOnce(&mut Scope<'t>) -> R) -> R {
        self.bump.enter(f)
    }
}

impl fmt::Debug for Bump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bump").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_aligned_disjoint_and_filled() {
        let mut bump = Bump::new();
        bump.scope(|s| {
            let a = s.filled(3, 7u8);
            let b = s.filled(100, 2.5f64);
            assert_eq!(a.as_ptr() as usize % ALIGN, 0);
            assert_eq!(b.as_ptr() as usize % ALIGN, 0);
            b.fill(0.0);
            assert_eq!(a, [7, 7, 7]);
        });
    }

    #[test]
    fn the_end_of_a_scope_frees_its_slices() {
        let mut bump = Bump::new();
        let first = bump.scope(|s| s.slice::<u64>(10).as_ptr().addr());
        let again = bump.scope(|s| s.slice::<u64>(10).as_ptr().addr());
        assert_eq!(first, again);
    }

    #[test]
    fn outer_slices_survive_an_inner_scope_that_grows() {
        let mut bump = Bump::new();
        bump.scope(|outer| {
            let kept = outer.filled(100, 42u32);
            for _ in 0..3 {
                outer.scope(|inner| inner.filled(1 << 20, 1u8).len());
            }
            let more = outer.filled(100, 43u32);
            assert!(kept.iter().all(|&x| x == 42) && more.iter().all(|&x| x == 43));
        });
    }

    #[test]
    fn a_panic_frees_the_slices_of_its_scope() {
        let mut bump = Bump::new();
        let first = bump.scope(|s| s.slice::<u64>(10).as_ptr().addr());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bump.scope(|s| {
                s.filled(1000, 1u64);
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(bump.scope(|s| s.slice::<u64>(10).as_ptr().addr()), first);
    }

    #[test]
    fn a_scope_that_needed_many_chunks_needs_one_next_time() {
        let mut bump = Bump::new();
        let use_it = |s: &mut Scope<'_>| (0..10).map(|_| s.filled(100_000, 0u8).len()).sum::<usize>();
        bump.scope(use_it);
        let capacity = bump.capacity();
        bump.scope(use_it);
        assert_eq!(bump.capacity(), capacity);
        assert_eq!(bump.chunks.borrow().len(), 1);
    }

    #[test]
    fn a_large_scope_after_a_small_one_reuses_its_memory() {
        let mut bump = Bump::new();
        bump.scope(|s| s.slice::<u8>(10).len());
        let start = |bump: &mut Bump| bump.scope(|s| s.slice::<u8>(10 << 20).as_ptr().addr());
        start(&mut bump);
        assert_eq!(start(&mut bump), start(&mut bump));
        assert_eq!(bump.chunks.borrow().len(), 1);
    }

    /// Inner scopes in a loop that do not fit the outer one's chunk allocate once.
    #[test]
    fn inner_scopes_reuse_their_chunk() {
        let mut bump = Bump::new();
        bump.scope(|outer| {
            let kept = outer.filled(100, 7u8);
            let mut addresses: Vec<_> =
                (0..10).map(|_| outer.scope(|inner| inner.filled(1 << 20, 1u8).as_ptr().addr())).collect();
            addresses.dedup();
            assert_eq!(addresses.len(), 1);
            assert!(kept.iter().all(|&x| x == 7));
        });
    }

    #[test]
    fn a_nested_thread_scope_has_its_own_memory() {
        super::super::scope(|a| {
            let x = a.filled(64, 1u8);
            super::super::scope(|b| b.filled(64, 2u8).fill(3));
            assert!(x.iter().all(|&v| v == 1));
        });
    }

    #[test]
    fn slices_may_be_empty() {
        Bump::new().scope(|s| assert!(s.slice::<u64>(0).is_empty() && s.filled(0, 1u8).is_empty()));
    }
}
