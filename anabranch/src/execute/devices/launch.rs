//! Launches: the bodies of recorded kernels that run on a device.

use super::slot::Slot;
use crate::{
    data::stored::Stored,
    device::{Batch, DeviceProgram, DeviceStep, Launch, Operand},
    error::{Cause, Error, Failure},
    execute::{Body, Compute, task::later::Later},
};
use anabranch_kernel::Scalar;
use std::sync::Arc;

/// Says that the executor runs or skips a task once.
const ONCE: &str = "a launch is begun once";

/// The body of a launch.
pub(crate) struct LaunchBody(Option<Box<Parts>>);

struct Parts {
    program: DeviceProgram,
    points: [[usize; 3]; 2],
    operands: Vec<(Arc<Slot>, [usize; 3])>,
    parameters: Vec<Scalar>,
    /// The buffers, which stay until the launch has ended.
    buffers: Vec<Arc<dyn Stored>>,
}

impl LaunchBody {
    /// A launch for the points of a box. `operands` are the memories of the operands and the extents of their buffers, padded at the front.
    pub(crate) fn new(
        program: DeviceProgram,
        points: [[usize; 3]; 2],
        operands: Vec<(Arc<Slot>, [usize; 3])>,
        parameters: Vec<Scalar>,
        buffers: Vec<Arc<dyn Stored>>,
    ) -> Self {
        Self(Some(Box::new(Parts { program, points, operands, parameters, buffers })))
    }
}

impl Body for LaunchBody {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a launch is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let Parts { program, points, operands, parameters, buffers } = *self.0.take().expect(ONCE);
        let is_empty = points[0].iter().zip(&points[1]).any(|(min, max)| min >= max);
        let Some((first, _)) = operands.first().filter(|_| !is_empty) else { return Ok(()) };
        let device = Arc::clone(&first.device);
        let operand = |(slot, extent): &(Arc<Slot>, [usize; 3])| {
            Ok(Operand { memory: slot.memory()?, extent: *extent })
        };
        let operands: Result<Vec<_>, Error> = operands.iter().map(operand).collect();
        let operands = operands.map_err(|error| Cause::from(Box::new(error)))?;
        let launch = Launch { program, points, operands, parameters };
        let completion = later.completion();
        let value = device.submit(Batch { steps: vec![DeviceStep::Launch(launch)] });
        device.timeline().on_complete(value, move |result| {
            completion.finish_after(|| drop(buffers), result.map_err(|error| Cause::Error(Arc::new(error))));
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
