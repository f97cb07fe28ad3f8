//! Programs reach nothing beside their operands: these end right before memory that nobody may touch, or
//! begin right after it. A program that reads or writes one element too far ends the test with a signal.

#![cfg(unix)]

mod array;

use anabranch_kernel::{Float, Instructions, Memory, Number, Operand, Program, Recording, Tape};
use array::{Array, row_mut};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::{ffi::c_void, ptr, slice};
use testing::deadline;

/// A multiple of the memory pages of all systems that the tests run on.
const PAGE: usize = 64 << 10;

/// Some numbers in memory of their own.
struct Guarded<T> {
    start: *mut c_void,
    numbers: *mut T,
    len: usize,
}

impl<T: Number> Guarded<T> {
    /// Numbers right before memory that nobody may touch, or right after it.
    fn new(numbers: &[T], is_before: bool) -> Self {
        let bytes = size_of_val(numbers);
        assert!(bytes <= PAGE, "the numbers fit");
        // SAFETY: the system chooses the place.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), 3 * PAGE, ProtFlags::empty(), MapFlags::PRIVATE) };
        let start = start.expect("the system has memory");
        // SAFETY: all of this is inside of the mapping.
        let (page, at) = unsafe {
            let page = start.byte_add(PAGE);
            (page, page.byte_add(if is_before { PAGE - bytes } else { 0 }).cast::<T>())
        };
        // SAFETY: the page is the one in the middle of the mapping, and nothing refers to it.
        unsafe { mprotect(page, PAGE, MprotectFlags::READ | MprotectFlags::WRITE) }
            .expect("it is our memory");
        // SAFETY: the numbers fit in the page, and it begins and ends at multiples of their size.
        unsafe { ptr::copy_nonoverlapping(numbers.as_ptr(), at, numbers.len()) };
        Self { start, numbers: at, len: numbers.len() }
    }

    fn get(&mut self) -> &mut [T] {
        // SAFETY: `new` has put `len` numbers there, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.numbers, self.len) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped it, and nothing refers to it any more.
        unsafe { munmap(self.start, 3 * PAGE) }.expect("the memory was mapped");
    }
}

macro_rules! tests {
    ($($name:ident $float:ident),*) => {
        $(
            #[test]
            fn $name() {
                let _deadline = deadline();
                for are_alone in [true, false] {
                    let tape = Tape::new(1);
                    let u = tape.input::<$float, 1>();
                    let [v, sum] = [(); 2].map(|()| tape.output::<$float, 1>());
                    let terms = (0..20).map(|shift| u.at([shift]) * (shift as $float));
                    let all = terms.reduce(|sum, next| sum + next).expect("there are terms");
                    let difference = u.here() - all;
                    // A function is a step of its own: it takes the results so far from memory, and leaves its
                    // own there.
                    let difference = if are_alone { difference } else { difference.abs() };
                    // These results are needed twice. The first one may go where the difference was.
                    let square = difference * difference + u.at([19]);
                    let next = square * square - u.at([3]);
                    v.set(next * next + square);
                    sum.set(all * 0.5 + next);
                    let recording = tape.finish().expect("the kernel is right");
                    check::<$float>(&recording);
                }
            }
        )*
    };
}

tests!(programs_of_f32_touch_nothing_beside_their_operands f32, programs_of_f64_touch_nothing_beside_their_operands f64);

/// Runs a kernel that takes twenty elements of its input, with operands at the border of memory.
fn check<T: Float + From<i8>>(recording: &Recording) {
    let (program, mut memory) = (Program::new(recording), Memory::default());
    for len in (1..40).chain([63, 64, 65, 511, 512, 513, 2047, 2048, 2049, 4100]) {
        let numbers: Vec<T> = (0..len + 19).map(|at| T::from((at % 13) as i8 - 6)).collect();
        let mut results = Vec::new();
        for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
            for is_before in [true, false] {
                let mut input = Guarded::new(&numbers, is_before);
                let [mut v, mut sum] = [(); 2].map(|()| Guarded::new(&vec![T::default(); len], is_before));
                let operands: &mut [&mut dyn Operand] = &mut [
                    &mut Array::new(&*input.get(), [1, 1, len + 19], usize::MAX),
                    &mut row_mut(v.get(), usize::MAX),
                    &mut row_mut(sum.get(), usize::MAX),
                ];
                program.run(
                    recording.parameters(),
                    [[0; 3], [1, 1, len]],
                    operands,
                    &mut memory,
                    instructions,
                );
                results.push([v.get().to_vec(), sum.get().to_vec()]);
            }
        }
        assert!(results.windows(2).all(|both| both[0] == both[1]), "{len} points");
    }
}
