//! The programs of recorded kernels that a runtime keeps, so that a kernel which is submitted again is not prepared again.

use crate::device::{Device, DeviceError, DeviceProgram};
use anabranch_kernel::{Program, Recording};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::{fmt, mem, sync::Arc};

/// With more programs than this all are forgotten: a runtime that makes new kernels without end needs no memory without end.
const MOST: usize = 1024;

/// The programs.
#[derive(Default)]
pub(crate) struct Programs {
    /// Those of the processor, by the hash of their recordings.
    host: Mutex<FxHashMap<u64, Arc<Program>>>,
    /// Those of devices, by the addresses of the devices and the hashes, with their programs of the processor, which tell apart recordings
    /// with one hash.
    devices: Mutex<FxHashMap<(usize, u64), Prepared>>,
}

/// A program of a device.
struct Prepared {
    /// The address in the key stays that of this device.
    _device: Arc<dyn Device>,
    of: Arc<Program>,
    program: DeviceProgram,
}

impl Programs {
    /// The program of a recording.
    pub(crate) fn of(&self, recording: &Recording) -> Arc<Program> {
        let hash = recording.program_hash();
        let known = self.host.lock().get(&hash).filter(|program| program.is_of(recording)).cloned();
        known.unwrap_or_else(|| {
            let program = Arc::new(Program::new(recording));
            let mut programs = self.host.lock();
            if programs.len() >= MOST {
                programs.clear();
            }
            programs.insert(hash, Arc::clone(&program));
            program
        })
    }

    /// The program of a recording on a device.
    ///
    /// # Errors
    /// If the device cannot run it.
    pub(crate) fn on(
        &self,
        device: &Arc<dyn Device>,
        recording: &Recording,
    ) -> Result<DeviceProgram, DeviceError> {
        let key = (Arc::as_ptr(device).cast::<()>().addr(), recording.program_hash());
        if let Some(known) = self.devices.lock().get(&key).filter(|known| known.of.is_of(recording)) {
            return Ok(known.program.clone());
        }
        let program = device.compile(recording)?;
        let new = Prepared { _device: Arc::clone(device), of: self.of(recording), program: program.clone() };
        let mut programs = self.devices.lock();
        // Dropped outside the lock: the last handle of a device ends its threads.
        let _forgotten =
            if programs.len() >= MOST { mem::take(&mut *programs) } else { FxHashMap::default() };
        let _same = programs.insert(key, new);
        drop(programs);
        Ok(program)
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Programs({})", self.host.lock().len())
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
            assert!(programs.host.lock().len() <= MOST);
        }
    }
}
