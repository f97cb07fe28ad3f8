//! Memory for one version of a buffer.

use crate::element::Element;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    ptr::NonNull,
};

/// A cache line: where every allocation begins at least.
const ALIGN: usize = 64;

/// A block of zeroed memory, shared by the tasks that use it.
///
/// Who may touch which part of it when is decided by the task graph, not by the type system: hence raw pointers
/// here, and the rules in [`view`](crate::view).
pub struct Allocation {
    /// What the system gave.
    block: NonNull<u8>,
    layout: Layout,
    /// The first aligned address in it.
    start: NonNull<u8>,
}

// SAFETY: a block of plain bytes; sharing and sending it is what it is for, under the rules in `view`.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Room for `len` values, all bytes zero; `None` where the system has no memory left (or could never have it).
    pub(crate) fn zeroed<T: Element>(len: usize) -> Option<Self> {
        // The system zeroes pages when they are first touched, but only for small alignments; so the alignment is made
        // here, by leaving out the beginning of a larger block.
        let bytes = len.checked_mul(size_of::<T>())?.checked_add(ALIGN)?;
        let layout = Layout::from_size_align(bytes, 16).ok()?;
        // SAFETY: the size is at least ALIGN.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = block.as_ptr().align_offset(ALIGN);
        // SAFETY: the offset is less than ALIGN, by which the block is larger than what is needed.
        let start = unsafe { block.add(offset) };
        Some(Self { block, layout, start })
    }

    /// The first `len` values, while nobody else has the allocation.
    ///
    /// # Panics
    /// If it is smaller.
    pub(crate) fn values_mut<T: Element>(&mut self, len: usize) -> &mut [T] {
        assert!(len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= self.layout.size() - ALIGN));
        // SAFETY: that many bytes lie behind `start`, which is aligned for `T`; all of them are initialised, any bytes
        // are a valid `T`, and `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start(), len) }
    }

    /// The first value.
    pub(crate) fn start<T: Element>(&self) -> *mut T {
        const { assert!(align_of::<T>() <= ALIGN) };
        self.start.cast().as_ptr()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout, and freed only here.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}

/// Where the values of an allocation begin that somebody else keeps alive.
#[derive(Debug)]
pub(crate) struct Start<T>(*mut T);

// SAFETY: an address; whoever uses it follows the rules in `view`.
unsafe impl<T: Element> Send for Start<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Start<T> {}

impl<T: Element> Start<T> {
    /// Of a task that has no memory yet.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());

    pub(crate) fn of(allocation: &Allocation) -> Self {
        Self(allocation.start())
    }

    /// An address that [`get`](Self::get) gave for the same type; `None` for null.
    pub(crate) fn known(address: *mut u8) -> Option<Self> {
        (!address.is_null()).then_some(Self(address.cast()))
    }

    #[inline]
    pub(crate) fn get(&self) -> *mut T {
        assert!(!self.0.is_null(), "a task that runs has memory");
        self.0
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation").field("bytes", &self.layout.size()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_and_zeroed() {
        for len in [0, 1, 3, 1000, 1 << 20] {
            let mut allocation = Allocation::zeroed::<f64>(len).unwrap();
            assert_eq!(allocation.start::<f64>().addr() % ALIGN, 0);
            let values = allocation.values_mut::<f64>(len);
            assert!(values.iter().all(|v| v.to_bits() == 0));
            values.fill(1.0);
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Allocation::zeroed::<f64>(usize::MAX).is_none());
        assert!(Allocation::zeroed::<u8>(isize::MAX as usize).is_none());
    }
}
