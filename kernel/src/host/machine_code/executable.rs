//! Memory with code that this process has made.
//!
//! [`Executable::new`] writes the memory while no thread may execute it. From then on no thread may write it.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::{
    ffi::c_void,
    mem,
    ptr::{self, NonNull},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether the system has refused to execute what this process has written. It would refuse it again, and
/// some systems log each try.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Code. It does not change until it is dropped.
#[derive(Debug)]
pub(super) struct Executable {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: nothing changes the memory after `new`, so all threads may execute it. Any thread may unmap it.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

/// A function of the code: see [`translate`](mod@super::translate).
type Function =
    unsafe extern "sysv64" fn(pointers: *const *mut u8, numbers: *const u8, end: usize, begin: usize);

impl Executable {
    /// Copies code to memory of its own. `None` if the system gives no such memory, or does not allow to
    /// execute what this process has written.
    pub(super) fn new(code: &[u8]) -> Option<Self> {
        if IS_REFUSED.load(Relaxed) {
            return None;
        }
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
        let allowed = unsafe { mprotect(start, len, MprotectFlags::READ | MprotectFlags::EXEC) };
        if allowed.is_err() {
            IS_REFUSED.store(true, Relaxed);
            return None;
        }
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
        // The system may refuse it, if a mapping would have to be cut and there are too many. Then it stays.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}
