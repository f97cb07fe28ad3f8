//! Launches: the bodies of recorded kernels and shaders that run on a device.

use super::{
    Buffers,
    leaves::{Landings, LeavesOnHost},
    slot::Slot,
};
use crate::{
    data::stored::Stored,
    device::{Batch, DeviceError, DeviceProgram, DeviceStep, Launch, Operand, Parameters},
    error::{Cause, Error, Failure},
    execute::{Body, Compute, task::node::Later},
};
use anabranch_grid::{GridBox, Point, Region};
use smallvec::SmallVec;
use std::{array, sync::Arc};

/// Says that the executor runs or skips a task once.
const ONCE: &str = "a launch is begun once";

/// The body of a launch.
pub(crate) struct LaunchBody(Option<LaunchParts>);

/// An operand of a launch.
pub(crate) struct LaunchOperand {
    pub(crate) slot: Arc<Slot>,
    /// The extent of its buffer, padded at the front.
    pub(crate) extent: [usize; 3],
    /// For a shader: the boxes that the task declares.
    pub(crate) declared: Boxes,
}

/// The operands of a launch. Most launches have so few that a node has room for them.
pub(crate) type LaunchOperands = SmallVec<[LaunchOperand; 3]>;

/// Boxes of three dimensions.
type Boxes = Vec<[[usize; 3]; 2]>;

/// A launch for the points of a box.
pub(crate) struct LaunchParts {
    /// The program. If it is an error, the launch fails.
    pub(crate) program: Result<DeviceProgram, DeviceError>,
    pub(crate) points: [[usize; 3]; 2],
    pub(crate) operands: LaunchOperands,
    pub(crate) parameters: Parameters,
    /// For a shader: the number of its groups.
    pub(crate) groups: [usize; 3],
    /// For a shader: the ranks of the buffers.
    pub(crate) ranks: Option<Vec<usize>>,
    /// Whether there is something to do without points: the result of a reduction.
    pub(crate) reduces: bool,
    /// With several nodes: what gets the results of the leaves, if there are reductions.
    pub(crate) leaves: Option<Box<dyn LeavesOnHost>>,
    /// The buffers, which stay until the launch has ended.
    pub(crate) buffers: Buffers,
}

impl LaunchBody {
    #[inline(always)]
    pub(crate) fn new(parts: LaunchParts) -> Self {
        Self(Some(parts))
    }
}

impl Body for LaunchBody {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a launch is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let LaunchParts { program, points, operands, parameters, groups, ranks, reduces, leaves, buffers } =
            self.0.take().expect(ONCE);
        let program = program.map_err(|error| Cause::Error(Arc::new(error)))?;
        let is_empty = points[0].iter().zip(&points[1]).any(|(min, max)| min >= max);
        let Some(first) = operands.first().filter(|_| reduces || !is_empty) else { return Ok(()) };
        let device = Arc::clone(&first.slot.device);
        let boxes = || operands.iter().map(|operand| operand.declared.clone()).collect::<Vec<_>>();
        let checked = ranks.map(|ranks| Checked { ranks, boxes: boxes() });
        let (mut landings, mut downloads) = (Landings::default(), Vec::new());
        let mut operand = |number, LaunchOperand { slot, extent, declared }| -> Result<Operand, Error> {
            let Some([count, width]) = leaves.as_ref().and_then(|leaves| leaves.results(number)) else {
                return Ok(Operand { memory: slot.memory()?, extent, declared });
            };
            let memory = slot.allocate((count * width) as u64)?;
            downloads.push(landings.download(&*device, number, &memory, count * width));
            Ok(Operand { memory, extent: [1, 1, count], declared })
        };
        // Loops instead of `collect`, which copies each launch several times.
        let mut launched = SmallVec::with_capacity(operands.len());
        for (number, given) in operands.into_iter().enumerate() {
            launched.push(operand(number, given).map_err(|error| Cause::from(Box::new(error)))?);
        }
        let completion = later.completion();
        let mut batch = Batch::default();
        batch.steps.push(DeviceStep::Launch(Launch {
            program,
            points,
            operands: launched,
            parameters,
            groups,
        }));
        batch.steps.extend(downloads);
        let value = device.submit(batch);
        device.timeline().on_complete(value, move |result| {
            let landed = |()| leaves.as_ref().map_or(Ok(()), |leaves| landings.land(&**leaves));
            let result = result.and_then(landed).map_err(|error| match (error, checked) {
                (DeviceError::Outside { operand, index, .. }, Some(checked)) => {
                    checked.cause(operand, index, &buffers)
                }
                (error, _) => Cause::Error(Arc::new(error)),
            });
            completion.finish_after(|| drop((buffers, leaves)), result);
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

/// What a shader may access, for the message if it accesses something else.
struct Checked {
    ranks: Vec<usize>,
    boxes: Vec<Boxes>,
}

impl Checked {
    fn cause(self, operand: usize, index: [u32; 3], buffers: &[Arc<dyn Stored>]) -> Cause {
        // Below zero a difference has wrapped around. No extent is so large that an index behind it looks
        // like one of these.
        let index = index.map(|at| i64::from(at as i32));
        let boxes = &self.boxes[operand];
        let (asked, declared) = match self.ranks[operand] {
            0 => ("[]".to_string(), region::<0>(boxes)),
            1 => (asked(&index[2..]), region::<1>(boxes)),
            2 => (asked(&index[1..]), region::<2>(boxes)),
            _ => (asked(&index), region::<3>(boxes)),
        };
        Cause::OutsideDeclared { buffer: buffers[operand].label().to_string(), asked, declared, chunk: None }
    }
}

fn asked(index: &[i64]) -> String {
    format!("{index:?}")
}

/// Prints boxes, which are padded at the front, in `D` dimensions.
fn region<const D: usize>(boxes: &Boxes) -> String {
    let end = |point: [usize; 3]| Point(array::from_fn::<_, D, _>(|dim| point[dim + 3 - D]));
    Region::from_boxes(boxes.iter().map(|&[min, max]| GridBox::new(end(min), end(max)))).to_string()
}
