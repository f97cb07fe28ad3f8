//! What a device does: batches of steps.

use super::{DeviceMemory, DeviceProgram};
use anabranch_kernel::Scalar;
use smallvec::SmallVec;
use std::fmt;

/// The parameters of a launch: see [`Launch::parameters`].
pub(crate) type Parameters = SmallVec<[Scalar; 2]>;

/// Steps that a device does one after the other. A program makes a batch by `[first, second].into()` or by
/// `collect`.
///
/// Most batches are one launch with few operands and parameters. The batch itself has room for them, because
/// it is expensive when one thread allocates memory and the thread of the device frees it.
#[derive(Debug, Default)]
pub struct Batch {
    /// The steps, in their order.
    pub steps: SmallVec<[DeviceStep; 1]>,
}

impl<const N: usize> From<[DeviceStep; N]> for Batch {
    fn from(steps: [DeviceStep; N]) -> Self {
        steps.into_iter().collect()
    }
}

impl FromIterator<DeviceStep> for Batch {
    fn from_iter<I: IntoIterator<Item = DeviceStep>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

/// A step of a batch.
#[expect(
    clippy::large_enum_variant,
    reason = "almost all steps are launches, and a box is memory that another thread frees"
)]
#[derive(Debug)]
pub enum DeviceStep {
    /// Copies to the device.
    Upload(Upload),
    /// Copies from the device.
    Download(Download),
    /// Runs a program.
    Launch(Launch),
}

/// Bytes of a device's memory that lie one after the other. Both numbers are multiples of 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// Gives new bytes: calls the function with slices of any lengths, which come one after the other.
pub type Fill = Box<dyn FnOnce(&mut dyn FnMut(&[u8])) + Send>;

/// Takes bytes: calls the function with slices of any lengths, and it fills them one after the other.
pub type Take = Box<dyn FnOnce(&mut dyn FnMut(&mut [u8])) + Send>;

/// A copy to the memory of a device.
pub struct Upload {
    /// The memory.
    pub to: DeviceMemory,
    /// The bytes that the step sets.
    pub runs: Vec<Run>,
    /// Gives the new bytes of all runs, one run after the other. The device calls it once, on any thread,
    /// before its timeline says that the batch is done; or drops it before that, if the batch fails. A batch
    /// fails if it gives too few bytes or too many.
    pub fill: Fill,
}

/// A copy from the memory of a device.
pub struct Download {
    /// The memory.
    pub from: DeviceMemory,
    /// The bytes that the step takes.
    pub runs: Vec<Run>,
    /// Takes the bytes of all runs, one run after the other. The device calls it once, on any thread, before
    /// its timeline says that the batch is done; or drops it before that, if the batch fails. A batch fails
    /// if it takes more bytes than there are. The function must not wait for the device, which may begin with
    /// no other batch meanwhile.
    pub take: Take,
}

/// A launch of a program for all points of a box. The [reductions](crate::recorded::Recording::reductions) of
/// the recording combine the values of these points, also if there are none: the result goes to the first
/// element of the operand. Of a recording that [ends at leaves](crate::recorded::Recording::ends_at_leaves),
/// the result of each leaf of these points goes to an element of the operand, and nothing combines them.
#[derive(Debug)]
pub struct Launch {
    /// The program.
    pub program: DeviceProgram,
    /// The box: the first point, and the point behind the last one along each dimension, padded at the front.
    pub points: [[usize; 3]; 2],
    /// The operands of the recording or shader, in their order: `collect`, or `into` from a vector, makes the
    /// list.
    pub operands: SmallVec<[Operand; 2]>,
    /// The values of the literals of the recording, or of the parameters of the shader.
    pub parameters: SmallVec<[Scalar; 2]>,
    /// The groups along each dimension, padded with ones at the front, of a shader that has groups.
    pub groups: [usize; 3],
}

/// An operand of a launch: a whole buffer, row by row.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The memory of the buffer.
    pub memory: DeviceMemory,
    /// The extent of the buffer, padded with ones at the front.
    pub extent: [usize; 3],
    /// For a shader: the boxes that the task declares, which the shader must not leave. Each has the first
    /// element, and the one behind the last along each dimension, padded at the front with 0 and 1. The
    /// runtime has checked a recording before.
    pub declared: Vec<[[usize; 3]; 2]>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("to", &self.to).field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("from", &self.from).field("runs", &self.runs).finish_non_exhaustive()
    }
}
