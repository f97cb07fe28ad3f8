//! Memory of the program that a transfer reads or writes after the call that began it has returned.

#![allow(unsafe_code, reason = "the compiler does not know what a transfer does with memory")]

use crate::Layout;
use std::{ptr, slice};

/// Memory that transfers read.
///
/// It stands for a window of a whole block: the bytes from [`at`](Self::at) on, as many as the memory has. A
/// [`Layout`] counts from the start of the whole block, so that nodes that hold different windows name the
/// same bytes by the same offsets.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    start: *const u8,
    len: usize,
    first: usize,
}

/// Memory that transfers write; otherwise the same as [`Memory`].
#[derive(Clone, Copy, Debug)]
pub struct MemoryMut {
    start: *mut u8,
    len: usize,
    first: usize,
}

// SAFETY: a `Memory` only reads bytes of which the caller of `new` promised that no thread writes them.
unsafe impl Send for Memory {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Memory {}
// SAFETY: a `MemoryMut` only touches bytes of which the caller of `new` promised that no other thread touches
// them.
unsafe impl Send for MemoryMut {}
// SAFETY: as above: the promise is about all copies of the value.
unsafe impl Sync for MemoryMut {}

impl Memory {
    /// The `len` bytes from `start` on.
    ///
    /// ```
    /// use anabranch_wire::Memory;
    ///
    /// let numbers = [1_u64, 2, 3];
    /// // SAFETY: `numbers` outlives every transfer from it.
    /// let memory = unsafe { Memory::new(numbers.as_ptr().cast(), size_of_val(&numbers)) };
    /// ```
    ///
    /// # Safety
    /// From when a transfer from the memory begins until it is done, or until the endpoint of this node has
    /// been dropped, the bytes of the layouts that the transfer names are initialised, stay where they are,
    /// and are written by no thread.
    pub const unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len, first: 0 }
    }

    /// The same memory as the window of the block that begins at the byte `first` of the block.
    #[must_use]
    pub const fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Whether the window has all bytes of the layout.
    pub fn holds(&self, layout: &Layout) -> bool {
        holds(self.first, self.len, layout)
    }

    /// The address of the first byte of the layout, for a [`Transport`](crate::Transport) of your own.
    pub fn address(&self, layout: &Layout) -> *const u8 {
        self.byte(layout.offset())
    }

    fn byte(&self, offset: usize) -> *const u8 {
        self.start.wrapping_add(offset.wrapping_sub(self.first))
    }

    /// Gives the bytes of the layout to a function, row after row.
    ///
    /// # Panics
    /// If the window does not have them.
    pub fn read(&self, layout: &Layout, mut take: impl FnMut(&[u8])) {
        assert!(self.holds(layout), "{layout:?} is outside of the memory");
        for (offset, bytes) in layout.rows() {
            // SAFETY: the row lies in the window, as asserted. The caller of `new` promised that it is
            // initialised and not written meanwhile.
            take(unsafe { slice::from_raw_parts(self.byte(offset), bytes) });
        }
    }

    /// Appends the bytes of the layout to the message.
    ///
    /// # Panics
    /// If the window does not have them.
    pub(crate) fn append_to(&self, layout: &Layout, message: &mut Vec<u8>) {
        message.reserve(layout.bytes());
        self.read(layout, |row| message.extend_from_slice(row));
    }
}

impl MemoryMut {
    /// The `len` bytes from `start` on.
    ///
    /// # Safety
    /// From when a transfer to the memory begins until it is done, or until the endpoint of this node has
    /// been dropped, the bytes that the senders name stay where they are, and no thread reads or writes them.
    /// (If the senders are the same program, these are the bytes that the receiver expects.)
    pub const unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len, first: 0 }
    }

    /// No memory, for transfers without bytes.
    pub const fn empty() -> Self {
        Self { start: ptr::null_mut(), len: 0, first: 0 }
    }

    /// The same memory as the window of the block that begins at the byte `first` of the block.
    #[must_use]
    pub const fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Whether the window has all bytes of the layout.
    pub fn holds(&self, layout: &Layout) -> bool {
        holds(self.first, self.len, layout)
    }

    /// The same memory, to be read: what has arrived is sent on.
    pub(crate) fn to_read(self) -> Memory {
        Memory { start: self.start, len: self.len, first: self.first }
    }

    /// The address of the first byte of the layout, for a [`Transport`](crate::Transport) of your own.
    pub fn address(&self, layout: &Layout) -> *mut u8 {
        self.byte(layout.offset())
    }

    fn byte(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset.wrapping_sub(self.first))
    }

    /// Gives the bytes of the layout to a function that sets them, row after row.
    ///
    /// # Panics
    /// If the window does not have them.
    ///
    /// # Safety
    /// The bytes are initialised: the function could read them. It reaches them through its slices only.
    pub unsafe fn write(&self, layout: &Layout, mut set: impl FnMut(&mut [u8])) {
        assert!(self.holds(layout), "{layout:?} is outside of the memory");
        for (offset, bytes) in layout.rows() {
            // SAFETY: the row lies in the window, as asserted. The caller of `new` promised that no thread
            // touches it, and our caller that it is initialised.
            set(unsafe { slice::from_raw_parts_mut(self.byte(offset), bytes) });
        }
    }

    /// Writes the bytes of the layout, in the order of its rows.
    ///
    /// # Panics
    /// If the window does not have them, or if there are too few or too many.
    pub(crate) fn fill(&self, layout: &Layout, mut bytes: &[u8]) {
        assert!(self.holds(layout), "{layout:?} is outside of the memory");
        assert_eq!(layout.bytes(), bytes.len(), "a message is as long as its layouts");
        for (offset, len) in layout.rows() {
            let (row, rest) = bytes.split_at(len);
            bytes = rest;
            // SAFETY: the row lies in the window, as asserted. The caller of `new` promised that no thread
            // touches it, so it does not overlap the message either.
            unsafe { ptr::copy_nonoverlapping(row.as_ptr(), self.byte(offset), len) };
        }
    }

    /// Copies the bytes of the layout from the memory of another node of this process.
    ///
    /// # Panics
    /// If one of the windows does not have them.
    pub(crate) fn copy(&self, from: &Memory, layout: &Layout) {
        assert!(self.holds(layout) && from.holds(layout), "{layout:?} is outside of the memory");
        for (offset, len) in layout.rows() {
            // SAFETY: the row lies in both windows, as asserted. The callers of both `new` promised that the
            // source is initialised and not written, and that no other thread touches the destination. A node
            // that sends to itself from a memory into the same memory copies onto the same place, which
            // `copy` permits.
            unsafe { ptr::copy(from.byte(offset), self.byte(offset), len) };
        }
    }
}

fn holds(first: usize, len: usize, layout: &Layout) -> bool {
    layout.bytes() == 0 || (layout.offset() >= first && layout.end() - first <= len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_what_lies_in_it() {
        let bytes = [0_u8; 10];
        // SAFETY: `bytes` is not written.
        let memory = unsafe { Memory::new(bytes.as_ptr(), 10) }.at(100);
        assert!(memory.holds(&Layout::contiguous(100, 10)));
        assert!(memory.holds(&Layout::strided(101, 1, [3, 1], [4, 0])));
        assert!(!memory.holds(&Layout::contiguous(99, 2)));
        assert!(!memory.holds(&Layout::contiguous(109, 2)));
        assert!(memory.holds(&Layout::contiguous(0, 0)));
    }

    #[test]
    fn rows_are_packed_and_unpacked() {
        let source: Vec<u8> = (0..24).collect();
        let mut target = [0_u8; 24];
        let columns = Layout::of_box([4, 6, 1], 1, [1, 2, 0], [3, 4, 1]);
        // SAFETY: both arrays outlive this test, and it does not touch them until it is over.
        let (from, to) =
            unsafe { (Memory::new(source.as_ptr(), 24), MemoryMut::new(target.as_mut_ptr(), 24)) };
        let mut message = vec![9];
        from.append_to(&columns, &mut message);
        assert_eq!(message, [9, 8, 9, 14, 15]);
        let mut rows = Vec::new();
        from.read(&columns, |row| rows.push(row.to_vec()));
        assert_eq!(rows, [[8, 9], [14, 15]]);
        to.fill(&columns, &message[1..]);
        // SAFETY: the array is initialised.
        unsafe { to.write(&columns, |row| row[1] += 1) };
        to.copy(&from, &Layout::contiguous(20, 4));
        assert_eq!(target.iter().filter(|&&byte| byte > 0).count(), 8);
        assert_eq!((target[8], target[9], target[15], target[23]), (8, 10, 16, 23));
    }
}
