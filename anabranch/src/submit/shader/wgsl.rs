//! What a program says about a shader.

use super::access::OperandType;
use crate::{device::Parameters, recorded::Number};
use anabranch_kernel::{
    Scalar, replay_number,
    shader::{Operand, ShaderError, ShaderSource},
};
use std::sync::Arc;

/// A shader: its text in [WGSL](https://www.w3.org/TR/WGSL/), the names of its operands, and its parameters.
///
/// The text has a function `each`, which is called for each point of the index space, with one `u32` for each
/// dimension. It reaches the buffers through functions that are generated from the declarations of the task:
///
/// | for | the text calls |
/// |---|---|
/// | an operand `u` of two dimensions that is read or updated | `u_get(y, x)` |
/// | one that is written or updated | `u_set(y, x, value)` |
/// | any operand | `u_extent()`, which is a `vec2u`: `x` is the last dimension, here and everywhere |
/// | a parameter `dt` | `dt()` |
/// | a parameter `n` that is the number of the [replay](Self::replay) | `n()` |
/// | the index space | `first_point()`, and `end_point()`, which is one behind the last along each dimension |
///
/// Indices are `u32`, in the order of the dimensions: `u_get(x)`, `u_get(y, x)`, `u_get(z, y, x)`, and
/// `u_get()` for a buffer of one element without dimensions. In one dimension an extent or point is a `u32`,
/// and in three a `vec3u`. Elements are numbers, or for a buffer of `[f32; 4]` an `array<f32, 4>`.
///
/// ```no_run
/// use anabranch::{device::Wgsl, prelude::*};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device: std::sync::Arc<dyn anabranch::device::Device> = std::sync::Arc::new(anabranch::device::Simulated::new());
/// let rt = Runtime::builder().device(&device).build()?; // `anabranch_gpu::open(None)?`
/// let (u, next) = (rt.buffer_from(&[1.0_f32; 1000])?, rt.buffer::<f32, 1>([1000]));
/// let shader = Wgsl::new(
///     "
///     fn each(x: u32) {
///         let left = u_get(max(x, 1u) - 1u);
///         let right = u_get(min(x + 1u, u_extent() - 1u));
///         next_set(x, u_get(x) + dt() * (left - 2.0 * u_get(x) + right));
///     }
///     ",
/// );
/// rt.task("step")
///     .over([1000])
///     .read(&u, neighborhood([1]))
///     .write(&next, one_to_one())
///     .shader(shader.names(["u", "next"]).parameter("dt", 0.1_f32))
///     .submit()?;
/// # Ok(()) }
/// ```
///
/// # Groups
/// With [`groups`](Self::groups) the text has a function `group` in place of `each`. Each invocation of each
/// group calls it. Invocations of one group share `var<workgroup>` variables, and wait for each other with
/// `workgroupBarrier()`.
///
/// # What is checked
/// - An element that the task does not declare: `get` gives zero and `set` does nothing, and at its end the
///   task fails with [`Cause::OutsideDeclared`](crate::Cause::OutsideDeclared), which names the buffer, the
///   index and the declared region. Of several such accesses it names any. What the task has written is
///   poisoned, as after any failure.
/// - The text, when the task is submitted: names that are taken, brackets, and by the device all that its
///   compiler knows. The error has the line.
///
/// # What is not checked
/// - Whether the shader writes all that the task declares to write. Elements that it does not write are
///   unspecified.
/// - Whether two invocations write one element, or one of them reads what another one writes. Then the
///   element is any of the values, and another one in the next run. What one launch computes and another one
///   reads is two tasks.
/// - Whether a loop ends. Some drivers stop a shader after some seconds, and the device is lost then. Others
///   wait for ever.
///
/// A text that changes is another shader, which the device compiles anew. A parameter with another value is
/// not.
#[derive(Clone, Debug)]
pub struct Wgsl {
    text: Arc<str>,
    names: Vec<Arc<str>>,
    parameters: Vec<(Arc<str>, Parameter)>,
    groups: Option<Groups>,
    zeroes_workgroup: bool,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug)]
enum Parameter {
    Number(Scalar),
    /// The number of the replay.
    Replay,
}

/// The groups of a shader, padded with ones at the front.
#[derive(Clone, Copy, Debug)]
struct Groups {
    size: [u32; 3],
    count: Count,
}

/// How many groups there are.
#[derive(Clone, Copy, Debug)]
enum Count {
    /// This many along each dimension.
    Fixed([usize; 3]),
    /// One for each tile of this many points.
    Tiles([usize; 3]),
}

impl Wgsl {
    /// A shader with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            names: Vec::new(),
            parameters: Vec::new(),
            groups: None,
            zeroes_workgroup: true,
        }
    }

    /// Names the accesses of the task, all of them, in the order in which it declares them.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a parameter: a number that may differ between launches without a new compilation. The text calls
    /// its name: `dt()`.
    pub fn parameter(mut self, name: impl Into<Arc<str>>, value: impl Number) -> Self {
        self.parameters.push((name.into(), Parameter::Number(value.scalar())));
        self
    }

    /// Adds a parameter that is the number of the replay of a [sequence](crate::Sequence), from 0, as a
    /// `u32`: its lower 32 bits. Outside of a sequence it is 0. The text calls its name.
    pub fn replay(mut self, name: impl Into<Arc<str>>) -> Self {
        self.parameters.push((name.into(), Parameter::Replay));
        self
    }

    /// Runs the shader in groups of `size` invocations along each dimension. There are `count` groups along
    /// each dimension, whatever the index space is; but if that is empty, there are none. The last dimension
    /// is `x`. With several nodes a shader needs [`tiles`](Self::tiles) instead, because each node launches
    /// its own part of the index space.
    ///
    /// The text has a function `group(id: vec3u, local: vec3u, index: u32)`. Its arguments are the number of
    /// the group, that of the invocation in the group, and the latter as one number: the `workgroup_id`,
    /// `local_invocation_id` and `local_invocation_index` of WGSL.
    ///
    /// All devices take groups of up to 256 invocations, and 16 KiB of `var<workgroup>` variables.
    pub fn groups<const N: usize>(mut self, size: [u32; N], count: [usize; N]) -> Self {
        self.groups =
            Some(Groups { size: padded_groups(size, 1), count: Count::Fixed(padded_groups(count, 1)) });
        self
    }

    /// Runs the shader in groups as [`groups`](Self::groups) does, with one group for each tile of this many
    /// points. The tile of a group begins at `first_point()` plus the number of the group times the size of
    /// the tile; the last one along each dimension may be cut off at `end_point()`. With [several
    /// nodes](crate::guide::nodes), where each node launches the shader for its own points, groups must be
    /// tiles.
    ///
    /// # Panics
    /// If a tile has no points.
    pub fn tiles<const N: usize>(mut self, size: [u32; N], tile: [usize; N]) -> Self {
        assert!(!tile.contains(&0), "the tiles of a shader have no points: {tile:?}");
        self.groups =
            Some(Groups { size: padded_groups(size, 1), count: Count::Tiles(padded_groups(tile, 1)) });
        self
    }

    /// Leaves the `var<workgroup>` variables of a group as they are when it begins. Otherwise a device fills
    /// them with zeros, as WGSL wants it. A text that sets them all before it reads them saves this time.
    ///
    /// What an invocation reads of a variable that none has set is unspecified, and may differ between runs.
    pub fn uninitialized_workgroup(mut self) -> Self {
        self.zeroes_workgroup = false;
        self
    }

    /// The shader without what differs between launches, over an index space of `K` dimensions.
    pub(super) fn source<const K: usize>(
        &self,
        operands: &[OperandType],
    ) -> Result<ShaderSource, ShaderError> {
        if self.names.len() != operands.len() {
            return Err(ShaderError::Operands { names: self.names.len(), accesses: operands.len() });
        }
        let operand = |(name, of): (&Arc<str>, &OperandType)| Operand {
            name: Arc::clone(name),
            element: of.element,
            dimensions: of.dimensions,
            is_read: of.is_read,
            is_written: of.is_written,
        };
        Ok(ShaderSource {
            text: Arc::clone(&self.text),
            operands: self.names.iter().zip(operands).map(operand).collect(),
            parameters: self
                .parameters
                .iter()
                .map(|(name, value)| (Arc::clone(name), value.in_replay(0).kind()))
                .collect(),
            dimensions: K,
            group: self.groups.map(|groups| groups.size),
            zeroes_workgroup: self.zeroes_workgroup,
        })
    }

    /// The values of the parameters, in the replay with this number.
    pub(super) fn parameters(&self, replay: u64) -> Parameters {
        self.parameters.iter().map(|&(_, value)| value.in_replay(replay)).collect()
    }

    /// Whether the number of groups does not depend on the points.
    pub(super) fn has_fixed_groups(&self) -> bool {
        matches!(self.groups, Some(Groups { count: Count::Fixed(_), .. }))
    }

    /// The number of groups for some points, which are padded at the front.
    pub(super) fn count(&self, [min, max]: [[usize; 3]; 2]) -> [usize; 3] {
        match self.groups.map(|groups| groups.count) {
            None => [0; 3],
            Some(Count::Fixed(count)) => count,
            Some(Count::Tiles(tile)) => {
                [0, 1, 2].map(|dim| max[dim].saturating_sub(min[dim]).div_ceil(tile[dim]))
            }
        }
    }
}

impl Parameter {
    fn in_replay(self, number: u64) -> Scalar {
        match self {
            Self::Number(value) => value,
            Self::Replay => replay_number(number),
        }
    }
}

/// Numbers along the dimensions of groups, padded at the front.
fn padded_groups<T: Copy, const N: usize>(numbers: [T; N], with: T) -> [T; 3] {
    const { assert!(N >= 1 && N <= 3, "groups have one to three dimensions") };
    [0, 1, 2].map(|dim: usize| (dim + N).checked_sub(3).map_or(with, |dim| numbers[dim]))
}
