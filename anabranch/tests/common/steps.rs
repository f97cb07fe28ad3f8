//! Steps of batches for devices.

use anabranch::{
    bytemuck,
    device::{
        Device, DeviceError, DeviceMemory, DeviceProgram, DeviceStep, Download, Launch, Operand, Run, Upload,
    },
    recorded::Recording,
};
use anabranch_kernel::Tape;
use std::sync::mpsc::{self, Receiver};

pub fn upload<T: bytemuck::Pod + Send>(to: &DeviceMemory, offset: u64, values: &[T]) -> DeviceStep {
    let values = values.to_vec();
    let bytes = size_of_val(&*values) as u64;
    DeviceStep::Upload(Upload {
        to: to.clone(),
        runs: vec![Run { offset, bytes }],
        fill: Box::new(move |put| put(bytemuck::cast_slice(&values))),
    })
}

/// A download of some runs, and where its values arrive.
pub fn download<T: bytemuck::Pod + Send>(
    from: &DeviceMemory,
    runs: &[Run],
) -> (DeviceStep, Receiver<Vec<T>>) {
    let (to, values) = mpsc::channel();
    let count = runs.iter().map(|run| run.bytes as usize).sum::<usize>() / size_of::<T>();
    let step = DeviceStep::Download(Download {
        from: from.clone(),
        runs: runs.to_vec(),
        take: Box::new(move |get| {
            let mut values = vec![T::zeroed(); count];
            get(bytemuck::cast_slice_mut(&mut values));
            to.send(values).unwrap();
        }),
    });
    (step, values)
}

pub fn all(memory: &DeviceMemory) -> [Run; 1] {
    [Run { offset: 0, bytes: memory.bytes() }]
}

/// All values of a memory, when the device has done what it got before.
pub fn values<T: bytemuck::Pod + Send>(device: &impl Device, memory: &DeviceMemory) -> Vec<T> {
    let (step, values) = download(memory, &all(memory));
    let value = submit(device, [step]);
    device.timeline().wait(value, || ()).unwrap();
    values.try_recv().unwrap()
}

pub fn submit(device: &impl Device, steps: impl IntoIterator<Item = DeviceStep>) -> u64 {
    device.submit(steps.into_iter().collect())
}

pub fn launch(
    program: &DeviceProgram,
    recording: &Recording,
    extent: [usize; 3],
    operands: &[&DeviceMemory],
) -> DeviceStep {
    let operands = operands
        .iter()
        .map(|&memory| Operand { memory: memory.clone(), extent, declared: Vec::new() })
        .collect();
    DeviceStep::Launch(Launch {
        program: program.clone(),
        points: [[0; 3], extent],
        operands,
        parameters: recording.parameters().into(),
        groups: [0; 3],
    })
}

/// Each element times a factor, plus the element before it; zero stands before the first.
pub fn scaled(factor: f32) -> Recording {
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(factor * u.here() + u.at_or([-1], 0.0));
    tape.finish().unwrap()
}

/// Adds one to each element.
pub fn incremented() -> Recording {
    let tape = Tape::new(1);
    let u = tape.input_output::<u32, 1>();
    u.set(u.here() + 1);
    tape.finish().unwrap()
}

pub fn failed(result: Result<(), DeviceError>) -> String {
    match result {
        Err(DeviceError::Failed { why, .. }) => why,
        other => panic!("it should have failed: {other:?}"),
    }
}

pub fn is_lost<T>(result: Result<T, DeviceError>) -> bool {
    matches!(result, Err(DeviceError::Lost { .. }))
}
