//! Shaders that a program writes itself, in WGSL: the checks of their text, the functions that are generated for them, and what a launch
//! gives them. This is text only: a device compiles it.
//!
//! # How it works
//! 1. [`Shader::new`] checks the text: it has its function, declares no name that WGSL or a generated function has, and
//!    is not nested too deeply for the stack of a compiler.
//! 2. [`Shader::print`] adds the generated functions *behind* the text, so that the lines of the text keep their numbers.
//! 3. [`Printed::dispatches`] gives each launch its block: the points, the extents and declared boxes of the operands, and the parameters.
//! 4. A generated function that is asked for an element outside of the declared boxes notes the operand and the index in the *status*, a small
//!    buffer that is zero before the launch. [`Outside::of`] reads it.
//!
//! # The text
//! It has a function `each`, with one `u32` for each dimension of the index space, which is called for each point. Or it has groups of
//! invocations, and a function `group(id: vec3u, local: vec3u, index: u32)`, which each invocation of each group calls: the arguments are the
//! `workgroup_id`, `local_invocation_id` and `local_invocation_index` of WGSL. As there, `x` is the last dimension.
//!
//! For an operand `u` of two dimensions, the text may call `u_get(y, x)`, `u_set(y, x, value)` and `u_extent() -> vec2u`; for a parameter
//! `dt`, `dt()`; and for the index space `first_point()` and `end_point()`, which are `vec2u` too. All indices are `u32`.

mod builtin;
mod depth;
mod error;
mod launch;
mod names;
mod print;
mod scan;

pub use error::ShaderError;
pub use launch::{Outside, ShaderLaunch};
pub use print::Printed;

use crate::number::Kind;
use std::sync::Arc;

/// The type of an element of an operand: a number, or an array of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// The type of the numbers.
    pub kind: Kind,
    /// The length of the array; `None` for a number.
    pub length: Option<u32>,
}

impl ElementType {
    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        crate::wgsl::block::width(self.kind) as u64 * u64::from(self.length.unwrap_or(1))
    }
}

/// An operand of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The name, which the names of the generated functions begin with.
    pub name: Arc<str>,
    /// The type of its elements.
    pub element: ElementType,
    /// The number of its dimensions, up to 3.
    pub dimensions: usize,
    /// Whether the shader may get elements.
    pub is_read: bool,
    /// Whether the shader may set elements.
    pub is_written: bool,
}

/// What a shader is, apart from what differs between launches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShaderSource {
    /// The text of the program.
    pub text: Arc<str>,
    /// The operands, in the order of their declaration.
    pub operands: Vec<Operand>,
    /// The names and types of the parameters.
    pub parameters: Vec<(Arc<str>, Kind)>,
    /// The number of dimensions of the index space, up to 3.
    pub dimensions: usize,
    /// The invocations of a group along each dimension, padded with ones at the front; `None` if each point has one invocation.
    pub group: Option<[u32; 3]>,
}

/// A shader whose text has passed the checks that need no compiler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shader(ShaderSource);

impl Shader {
    /// Checks a shader.
    ///
    /// # Errors
    /// [`ShaderError`] names what is wrong, and the line.
    pub fn new(source: ShaderSource) -> Result<Self, ShaderError> {
        names::check(&source)?;
        Ok(Self(source))
    }

    /// What the shader is.
    pub fn source(&self) -> &ShaderSource {
        &self.0
    }

    /// The shader with its generated functions, for a device that takes up to `immediates` bytes of immediate data with each dispatch. With
    /// `several_boxes` the declared region of an operand may have more than one box; then each access is looked for in all of them.
    pub fn print(&self, immediates: usize, several_boxes: bool) -> Printed {
        print::print(&self.0, immediates, several_boxes)
    }
}

impl ShaderSource {
    /// The function that the text must have.
    pub(crate) fn function(&self) -> &'static str {
        if self.group.is_some() { "group" } else { "each" }
    }

    /// The first line of that function.
    pub(crate) fn signature(&self) -> String {
        match self.group {
            Some(_) => "fn group(id: vec3u, local: vec3u, index: u32)".to_string(),
            None => {
                let parameters = coordinates(self.dimensions).map(|at| format!("{at}: u32"));
                format!("fn each({})", parameters.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The names of the coordinates in this many dimensions.
fn coordinates(dimensions: usize) -> impl Iterator<Item = &'static str> + Clone {
    ["z", "y", "x"].into_iter().skip(3 - dimensions)
}
