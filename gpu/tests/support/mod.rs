//! What the tests on GPUs share: a device, arrays, and a kernel on the device and on the processor.
#![allow(dead_code)]

use anabranch::device::{
    Device, DeviceError, DeviceMemory, DeviceProgram, DeviceStep, Download, Launch, Operand, Run, Source,
    Upload,
};
use anabranch_gpu::Settings;
use anabranch_kernel as kernel;
use anabranch_kernel::{Instructions, Memory, Number, Program, Recording, Slice, SliceMut};
use parking_lot::Mutex;
use std::{io::Write as _, sync::Arc};

#[path = "../../../kernel/tests/plain/mod.rs"]
pub mod plain;

/// A GPU; or a driver that computes on the processor, where there is no GPU. Where there is neither, the test
/// is skipped.
pub fn gpu() -> Option<Arc<dyn Device>> {
    gpu_with(Settings::default())
}

/// A GPU with settings.
pub fn gpu_with(settings: Settings) -> Option<Arc<dyn Device>> {
    let any = || anabranch_gpu::adapters().first().map(|adapter| adapter.info.name.clone());
    let opened = anabranch_gpu::open_with(None, settings.clone());
    let opened = opened.or_else(|error| anabranch_gpu::open_with(Some(&any().ok_or(error)?), settings));
    match opened {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            // Not `println!`, which the test harness captures.
            let mut out = std::io::stderr();
            let _ = writeln!(out, "skipped: tests on a GPU (need the package mesa-vulkan-drivers)");
            let _ = writeln!(out, "{error}");
            None
        }
    }
}

macro_rules! arrays {
    ($($kind:ident $number:ident),*) => {
        /// The elements of an array.
        #[derive(Clone, Debug)]
        pub enum Elements {
            $($kind(Vec<$number>)),*
        }

        $(
            impl From<Vec<$number>> for Elements {
                fn from(from: Vec<$number>) -> Self {
                    Self::$kind(from)
                }
            }

            impl Elemental for $number {
                fn of(elements: &Elements) -> &[Self] {
                    if let Elements::$kind(elements) = elements { elements } else { panic!("another type") }
                }
            }
        )*

        impl Elements {
            pub fn bytes(&self) -> Vec<u8> {
                match self {
                    $(Self::$kind(all) => all.iter().flat_map(|element| element.to_le_bytes()).collect()),*
                }
            }

            fn set_bytes(&mut self, bytes: &[u8]) {
                match self {
                    $(Self::$kind(all) => {
                        let each = bytes.chunks_exact(size_of::<$number>());
                        let each = each.map(|bytes| $number::from_le_bytes(bytes.try_into().expect("so many")));
                        *all = each.collect();
                    })*
                }
            }

            fn slice(&self, from: usize, to: usize) -> Slice<'_> {
                match self {
                    $(Self::$kind(all) => Slice::$kind(&all[from..to])),*
                }
            }

            fn slice_mut(&mut self, from: usize, to: usize) -> SliceMut<'_> {
                match self {
                    $(Self::$kind(all) => SliceMut::$kind(&mut all[from..to])),*
                }
            }
        }
    };
}

arrays!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);

/// A type of elements.
pub trait Elemental: Number {
    fn of(elements: &Elements) -> &[Self];
}

/// An array, whose extent is padded at the front.
#[derive(Clone, Debug)]
pub struct Array {
    pub extent: [usize; 3],
    pub elements: Elements,
}

impl Array {
    pub fn new(extent: [usize; 3], elements: impl Into<Elements>) -> Self {
        Self { extent, elements: elements.into() }
    }

    pub fn row<T>(elements: Vec<T>) -> Self
    where
        Vec<T>: Into<Elements>,
    {
        Self::new([1, 1, elements.len()], elements)
    }

    pub fn get<T: Elemental>(&self) -> &[T] {
        T::of(&self.elements)
    }

    fn range(&self, [z, y, x]: [usize; 3]) -> (usize, usize) {
        let row = (z * self.extent[1] + y) * self.extent[2];
        (row + x, row + self.extent[2])
    }
}

impl kernel::Operand for Array {
    fn extent(&self) -> [usize; 3] {
        self.extent
    }

    fn read(&self, point: [usize; 3]) -> Slice<'_> {
        let (from, to) = self.range(point);
        self.elements.slice(from, to)
    }

    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_> {
        let (from, to) = self.range(point);
        self.elements.slice_mut(from, to)
    }
}

/// Runs a recording on the processor.
pub fn on_processor(recording: &Recording, points: [[usize; 3]; 2], arrays: &mut [Array]) {
    let program = Program::new(recording);
    let mut memory = Memory::default();
    let (parameters, instructions) = (recording.parameters(), Instructions::detect());
    let mut operands: Vec<_> = arrays.iter_mut().map(|array| array as &mut dyn kernel::Operand).collect();
    if recording.ends_at_leaves() {
        program.run(parameters, points, &mut operands, &mut memory, instructions);
    } else {
        program.run_whole(parameters, points, &mut operands, &mut memory, instructions);
    }
}

/// All bytes of a memory.
pub fn whole(memory: &DeviceMemory) -> Vec<Run> {
    vec![Run { offset: 0, bytes: memory.bytes() }]
}

pub fn upload(to: &DeviceMemory, bytes: Vec<u8>) -> DeviceStep {
    let fill = Box::new(move |put: &mut dyn FnMut(&[u8])| put(&bytes));
    DeviceStep::Upload(Upload { to: to.clone(), runs: whole(to), fill })
}

/// The next bytes of a download.
pub fn got(get: &mut dyn FnMut(&mut [u8]), bytes: usize) -> Vec<u8> {
    let mut got = vec![0; bytes];
    get(&mut got);
    got
}

/// A download, and where its bytes come to.
pub fn download(from: &DeviceMemory) -> (DeviceStep, Arc<Mutex<Option<Vec<u8>>>>) {
    let taken = Arc::new(Mutex::new(None));
    let to = Arc::clone(&taken);
    let len = from.bytes() as usize;
    let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| *to.lock() = Some(got(get, len)));
    (DeviceStep::Download(Download { from: from.clone(), runs: whole(from), take }), taken)
}

/// Compiles a recording for a GPU and runs it there, in one batch with the copies of all arrays.
pub fn on_gpu(
    gpu: &dyn Device,
    recording: &Recording,
    points: [[usize; 3]; 2],
    arrays: &mut [Array],
) -> Result<(), DeviceError> {
    let program = gpu.compile(Source::Recording(recording))?;
    run_on_gpu(gpu, (recording, &program), points, arrays)
}

/// Runs a recording that was compiled, as [`on_gpu`] does.
pub fn run_on_gpu(
    gpu: &dyn Device,
    (recording, program): (&Recording, &DeviceProgram),
    points: [[usize; 3]; 2],
    arrays: &mut [Array],
) -> Result<(), DeviceError> {
    let (mut steps, mut operands) = (Vec::new(), Vec::new());
    for array in arrays.iter() {
        let bytes = array.elements.bytes();
        let memory = gpu.allocate(bytes.len() as u64)?;
        steps.push(upload(&memory, bytes));
        operands.push(Operand { memory, extent: array.extent, declared: Vec::new() });
    }
    let (back, taken): (Vec<_>, Vec<_>) = operands.iter().map(|operand| download(&operand.memory)).unzip();
    steps.push(DeviceStep::Launch(Launch {
        program: program.clone(),
        points,
        operands: operands.into(),
        parameters: recording.parameters().into(),
        groups: [0; 3],
    }));
    steps.extend(back);
    let value = gpu.submit(steps.into_iter().collect());
    gpu.timeline().wait(value, || gpu.poll())?;
    for (array, bytes) in arrays.iter_mut().zip(taken) {
        array.elements.set_bytes(&bytes.lock().take().expect("the batch is done"));
    }
    Ok(())
}
