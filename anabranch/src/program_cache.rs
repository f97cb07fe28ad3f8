//! The programs of recorded kernels and shaders that a runtime keeps, so that a kernel which is submitted
//! again is not prepared again.

use crate::device::{Device, DeviceError, DeviceProgram, Shader, ShaderError, Source};
use anabranch_kernel::{Program, Recording, shader::ShaderSource};
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::{fmt, hash::BuildHasher, mem, sync::Arc};

/// A map with this number of programs is cleared before the next one is added, so that a runtime that makes
/// new kernels without end needs bounded memory.
const MOST: usize = 1024;

/// The programs and checked shaders of a runtime.
#[derive(Default)]
pub(crate) struct ProgramCache {
    /// The programs of recordings for the processor, by the hashes of the recordings.
    host: Mutex<FxHashMap<u64, Arc<Program>>>,
    /// The programs of recordings for devices, by the addresses of the devices and the hashes of the
    /// recordings. Each has the program for the processor, which tells apart recordings with equal hashes.
    devices: Mutex<FxHashMap<(usize, u64), Prepared>>,
    /// The shaders whose texts have been checked, by the hashes of their sources.
    shaders: Mutex<FxHashMap<u64, Arc<Shader>>>,
    /// The programs of shaders for devices, by the addresses of the devices and the hashes of the sources.
    of_shaders: Mutex<FxHashMap<(usize, u64), PreparedShader>>,
}

/// A program of a device.
struct Prepared {
    /// The address in the key stays that of this device.
    _device: Arc<dyn Device>,
    of: Arc<Program>,
    program: DeviceProgram,
}

/// A program of a shader on a device.
struct PreparedShader {
    /// The address in the key stays that of this device.
    _device: Arc<dyn Device>,
    of: Arc<Shader>,
    program: DeviceProgram,
}

impl ProgramCache {
    /// The program of a recording.
    pub(crate) fn of(&self, recording: &Recording) -> Arc<Program> {
        let hash = recording.program_hash();
        let known = self.host.lock().get(&hash).filter(|program| program.is_of(recording)).cloned();
        known.unwrap_or_else(|| {
            let program = Arc::new(Program::new(recording));
            let mut programs = self.host.lock();
            // Dropped outside the lock: a program may have memory for its machine code.
            let _forgotten =
                if programs.len() >= MOST { mem::take(&mut *programs) } else { FxHashMap::default() };
            let _same = programs.insert(hash, Arc::clone(&program));
            drop(programs);
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
        let program = device.compile(Source::Recording(recording))?;
        let new = Prepared { _device: Arc::clone(device), of: self.of(recording), program: program.clone() };
        let mut programs = self.devices.lock();
        // Dropped outside the lock: the last handle of a device ends its threads.
        let _forgotten =
            if programs.len() >= MOST { mem::take(&mut *programs) } else { FxHashMap::default() };
        let _same = programs.insert(key, new);
        drop(programs);
        Ok(program)
    }

    /// The shader, checked.
    ///
    /// # Errors
    /// If its text or its names are wrong.
    pub(crate) fn shader(&self, source: ShaderSource) -> Result<Arc<Shader>, ShaderError> {
        let hash = FxBuildHasher.hash_one(&source);
        let known = self.shaders.lock().get(&hash).filter(|shader| *shader.source() == source).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let shader = Arc::new(Shader::new(source)?);
        let mut shaders = self.shaders.lock();
        if shaders.len() >= MOST {
            shaders.clear();
        }
        shaders.insert(hash, Arc::clone(&shader));
        Ok(shader)
    }

    /// The program of a shader on a device.
    ///
    /// # Errors
    /// If the device cannot run it, or finds a mistake in it.
    pub(crate) fn shader_on(
        &self,
        device: &Arc<dyn Device>,
        shader: &Arc<Shader>,
    ) -> Result<DeviceProgram, DeviceError> {
        let key = (Arc::as_ptr(device).cast::<()>().addr(), FxBuildHasher.hash_one(shader.source()));
        if let Some(known) = self.of_shaders.lock().get(&key).filter(|known| known.of == *shader) {
            return Ok(known.program.clone());
        }
        let program = device.compile(Source::Shader(shader))?;
        let new =
            PreparedShader { _device: Arc::clone(device), of: Arc::clone(shader), program: program.clone() };
        let mut programs = self.of_shaders.lock();
        // Dropped outside the lock, as above.
        let _forgotten =
            if programs.len() >= MOST { mem::take(&mut *programs) } else { FxHashMap::default() };
        let _same = programs.insert(key, new);
        drop(programs);
        Ok(program)
    }
}

impl fmt::Debug for ProgramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramCache({})", self.host.lock().len())
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
        let programs = ProgramCache::default();
        assert!(Arc::ptr_eq(&programs.of(&shift(1)), &programs.of(&shift(1))));
        for by in 0..3 * MOST as isize {
            assert!(programs.of(&shift(by)).is_of(&shift(by)));
            assert!(programs.host.lock().len() <= MOST);
        }
    }
}
