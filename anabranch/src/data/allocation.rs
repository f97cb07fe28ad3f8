//! The memory of one version of a buffer.
//!
//! A version is allocated, zeroed, when a task that uses it is first submitted. It is freed when the last
//! handle of the buffer is dropped and the last task that uses the buffer has ended.
//!
//! On one node, memory that the system does not have is refused. With several nodes, each node has addresses
//! for all of a buffer, and memory for the parts that it touches: see [`Allocation::reserved`].
//!
//! On Linux, large allocations are mappings of their own, which ask for huge pages, so that the first touch
//! of their memory takes fewer page faults.

use super::element::Element;
#[cfg(target_os = "linux")]
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    ptr::NonNull,
};

/// Every allocation begins at a multiple of this: a cache line.
const ALIGN: usize = 64;

/// Fewer bytes than this are no mapping of their own, if memory is only reserved.
#[cfg(target_os = "linux")]
const SMALL: usize = 1 << 20;

/// The size of a huge page. From this size on, an allocation asks for them.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// A block of zeroed memory, shared by the tasks that use it.
///
/// The task graph decides which task may touch which part of it at which time. The type system cannot: hence
/// the raw pointers here, and the rules in [`view`](super::view).
pub(crate) struct Allocation {
    /// The block that the system gave.
    block: NonNull<u8>,
    layout: Layout,
    /// The first aligned address in the block.
    start: NonNull<u8>,
    /// Whether the block is a mapping of its own, not of the allocator.
    is_mapped: bool,
}

// SAFETY: a block of plain bytes, which tasks on several threads access under the rules in `view`.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Memory of this number of bytes, all zero; `None` if the system has no memory left (or could never have
    /// as much).
    pub(crate) fn zeroed(bytes: usize) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if bytes >= HUGE {
            return Self::mapped(bytes, MapFlags::PRIVATE);
        }
        // The system zeroes pages when they are first touched, but only for small alignments. So this
        // allocates a larger block and skips its beginning to get the alignment.
        let size = bytes.checked_add(ALIGN)?;
        let layout = Layout::from_size_align(size, 16).ok()?;
        // SAFETY: the size is at least ALIGN.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = block.as_ptr().align_offset(ALIGN);
        // SAFETY: the offset is less than ALIGN, and the block is larger than the values by that much.
        let start = unsafe { block.add(offset) };
        Some(Self { block, layout, start, is_mapped: false })
    }

    /// Addresses of this number of bytes, all zero. The system gives memory for them, page by page, when they
    /// are first touched, and does not check before whether it has enough. Where it cannot do so, this is
    /// [`zeroed`](Self::zeroed).
    #[cfg(target_os = "linux")]
    pub(crate) fn reserved(bytes: usize) -> Option<Self> {
        if bytes < SMALL {
            return Self::zeroed(bytes);
        }
        Self::mapped(bytes, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    /// A mapping for this number of bytes, in huge pages if there are enough bytes and the system has such
    /// pages.
    #[cfg(target_os = "linux")]
    fn mapped(bytes: usize, flags: MapFlags) -> Option<Self> {
        let is_huge = bytes >= HUGE;
        let layout =
            Layout::from_size_align(bytes.checked_add(if is_huge { HUGE } else { 0 })?, ALIGN).ok()?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses addresses that nothing else uses.
        let block = unsafe { mmap_anonymous(std::ptr::null_mut(), layout.size(), access, flags) }.ok()?;
        let block = NonNull::new(block.cast::<u8>())?;
        // A mapping begins with a page; the values begin with a huge one.
        let offset = if is_huge { block.as_ptr().align_offset(HUGE) } else { 0 };
        // SAFETY: the offset is less than HUGE, and the block is larger than the values by that much.
        let start = unsafe { block.add(offset) };
        if is_huge {
            // SAFETY: the advice changes how the system backs this part of the mapping, and not what it
            // holds. Without huge pages the memory is as good.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
        Some(Self { block, layout, start, is_mapped: true })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn reserved(bytes: usize) -> Option<Self> {
        Self::zeroed(bytes)
    }

    /// The first `len` values, for the only owner of the allocation.
    ///
    /// # Panics
    /// If the allocation is smaller.
    pub(crate) fn values_mut<T: Element>(&mut self, len: usize) -> &mut [T] {
        assert!(len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= self.size()));
        // SAFETY: that many bytes lie behind `start`, which is aligned for `T`; all of them are initialised,
        // any bytes are a valid `T`, and `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start(), len) }
    }

    /// The bytes from the first value on.
    fn size(&self) -> usize {
        self.layout.size() - (self.start.addr().get() - self.block.addr().get())
    }

    /// The first value.
    pub(crate) fn start<T: Element>(&self) -> *mut T {
        const { assert!(align_of::<T>() <= ALIGN) };
        self.start.cast().as_ptr()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if self.is_mapped {
            // SAFETY: mapped in `mapped` with this size, and unmapped only here.
            let unmapped = unsafe { munmap(self.block.as_ptr().cast(), self.layout.size()) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
            return;
        }
        debug_assert!(!self.is_mapped);
        // SAFETY: allocated in `zeroed` with this layout, and freed only here.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}

/// The address of the first value of an allocation, which a buffer keeps alive.
#[derive(Debug)]
pub(crate) struct Start<T>(*mut T);

// SAFETY: an address; its users follow the rules in `view`.
unsafe impl<T: Element> Send for Start<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Start<T> {}

impl<T: Element> Start<T> {
    /// The address in an access that has no memory yet.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());

    /// The address of the first value, of which the memory is known by its bytes.
    pub(super) fn of_bytes(address: *mut u8) -> Self {
        Self(address.cast())
    }

    /// The address.
    #[inline]
    pub(crate) fn get(&self) -> *mut T {
        assert!(!self.0.is_null(), "memory is attached before a task runs");
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
            for allocate in [Allocation::zeroed, Allocation::reserved] {
                let mut allocation = allocate(8 * len).unwrap();
                assert_eq!(allocation.start::<f64>().addr() % ALIGN, 0);
                let values = allocation.values_mut::<f64>(len);
                assert!(values.iter().all(|v| v.to_bits() == 0));
                values.fill(1.0);
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for allocate in [Allocation::zeroed, Allocation::reserved] {
            assert!(allocate(usize::MAX).is_none());
            assert!(allocate(isize::MAX as usize).is_none());
            assert!(allocate(isize::MAX as usize - 1000).is_none());
        }
    }
}
