//! The programs of recorded kernels that a runtime keeps, so that a kernel which is submitted again is not prepared again.

use anabranch_kernel::{Program, Recording};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::{fmt, sync::Arc};

/// With more programs than this all are forgotten: a runtime that makes new kernels without end needs no memory without end.
const MOST: usize = 1024;

/// The programs, by the hash of their recordings.
#[derive(Default)]
pub(crate) struct Programs(Mutex<FxHashMap<u64, Arc<Program>>>);

impl Programs {
    /// The program of a recording.
    pub(crate) fn of(&self, recording: &Recording) -> Arc<Program> {
        let hash = recording.program_hash();
        let known = self.0.lock().get(&hash).filter(|program| program.is_of(recording)).cloned();
        known.unwrap_or_else(|| {
            let program = Arc::new(Program::new(recording));
            let mut programs = self.0.lock();
            if programs.len() >= MOST {
                programs.clear();
            }
            programs.insert(hash, Arc::clone(&program));
            program
        })
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Programs({})", self.0.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_kernel::Tape;
    use testing::deadline;

    fn shift(by: isize) -> Recording {
        let tape = Tape::new(1);
        let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
        v.set(u.at_clamped([by]) * 2.0);
        tape.finish().expect("the kernel is right")
    }

    #[test]
    fn a_kernel_that_comes_again_has_its_program_and_endless_kernels_need_bounded_memory() {
        let _deadline = deadline();
        let programs = Programs::default();
        assert!(Arc::ptr_eq(&programs.of(&shift(1)), &programs.of(&shift(1))));
        for by in 0..3 * MOST as isize {
            assert!(programs.of(&shift(by)).is_of(&shift(by)));
            assert!(programs.0.lock().len() <= MOST);
        }
    }
}
