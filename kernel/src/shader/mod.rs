//! Shaders that a program writes itself, in WGSL: the checks of their text, the functions that are generated
//! for them, and what a launch gives them. This is text only: a device compiles it.
//!
//! # How it works
//! 1. [`Shader::new`] checks the text: it has its function, declares no name that WGSL or a generated
//!    function has, and is not nested too deeply for the stack of a compiler.
//! 2. [`Shader::print`] adds the generated functions *behind* the text, so that the lines of the text keep
//!    their numbers.
//! 3. [`Printed::dispatches`] gives each launch its block: the points, the extents and declared boxes of the
//!    operands, and the parameters.
//! 4. A generated function that is asked for an element outside of the declared boxes notes the operand and
//!    the index in the *status*, a small buffer that is zero before the launch. [`Outside::of`] reads it.
//!
//! # The text
//! It has a function `each`, with one `u32` for each dimension of the index space, which is called for each
//! point. Or it has groups of invocations, and a function `group(id: vec3u, local: vec3u, index: u32)`, which
//! each invocation of each group calls: the arguments are the `workgroup_id`, `local_invocation_id` and
//! `local_invocation_index` of WGSL. As there, `x` is the last dimension.
//!
//! For an operand `u` of two dimensions, the text may call `u_get(y, x)`, `u_set(y, x, value)` and
//! `u_extent() -> vec2u`; for a parameter `dt`, `dt()`; and for the index space `first_point()` and
//! `end_point()`, which are `vec2u` too. All indices are `u32`.

mod builtin;
mod depth;
mod error;
mod launch;
mod names;
mod print;
mod scan;
mod source;

pub use error::ShaderError;
pub use launch::{Outside, ShaderLaunch};
pub use print::Printed;
pub use source::{ElementType, Operand, ShaderSource};

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

    /// The shader with its generated functions, for a device that takes up to `immediates` bytes of immediate
    /// data with each dispatch. With `several_boxes` the declared region of an operand may have more than one
    /// box; then each access is looked for in all of them.
    pub fn print(&self, immediates: usize, several_boxes: bool) -> Printed {
        print::print(&self.0, immediates, several_boxes)
    }
}
