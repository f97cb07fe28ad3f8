//! Memory with code that this process has made.
//!
//! The memory is written while it cannot be executed, and executed when it cannot be written any more.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::{
    ffi::c_void,
    mem,
    ptr::{self, NonNull},
};

/// Code. It does not change until it is dropped.
#[derive(Debug)]
pub(super) struct Executable {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: nothing changes the memory after `new`, so all threads may read and execute it.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

/// A function of the code: see [`translate`](super::translate).
type Function =
    unsafe extern "sysv64" fn(pointers: *const *mut u8, numbers: *const u8, end: usize, begin: usize);

impl Executable {
    /// Copies code to memory of its own. `None` if the system gives no such memory, or does not allow to
    /// execute what this process has written.
    pub(super) fn new(code: &[u8]) -> Option<Self> {
        let len = code.len().max(1);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses the place of the memory, so it is no other memory of this process.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, writable, MapFlags::PRIVATE) }.ok()?;
        // From here on the memory is given back when this is dropped.
        let memory = Self { start: NonNull::new(start)?, len };
        // SAFETY: the memory was made above, with at least as many bytes, and nothing else has a pointer to
        // it.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), start.cast::<u8>(), code.len()) };
        // SAFETY: this is the whole mapping, and there is no reference to it.
        unsafe { mprotect(start, len, MprotectFlags::READ | MprotectFlags::EXEC) }.ok()?;
        Some(memory)
    }

    /// Calls the function that begins at a byte of the code.
    ///
    /// # Safety
    /// The code has a function there, with the calling convention of System V, which this processor can
    /// execute. What it does with its arguments is sound.
    pub(super) unsafe fn call(
        &self,
        entry: usize,
        pointers: &[*mut u8],
        numbers: *const u8,
        [begin, end]: [usize; 2],
    ) {
        debug_assert!(entry < self.len, "the function is in the code");
        // SAFETY: the caller promises that a function begins there. The memory has been made executable, and
        // stays so while `self` is borrowed.
        let function =
            unsafe { mem::transmute::<*mut c_void, Function>(self.start.as_ptr().byte_add(entry)) };
        // SAFETY: the caller promises that this is sound.
        unsafe { function(pointers.as_ptr(), numbers, end, begin) };
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this memory, and no function in it runs: each call borrows `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "the memory was mapped: {unmapped:?}");
    }
}
