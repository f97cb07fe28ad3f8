//! What a program says about its shader: the text, the operands and the parameters.

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
        crate::wgsl::layout::width(self.kind) as u64 * u64::from(self.length.unwrap_or(1))
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
    /// The invocations of a group along each dimension, padded with ones at the front; `None` if each point
    /// has one invocation.
    pub group: Option<[u32; 3]>,
    /// Whether the variables that the invocations of a group share are zeros when it begins.
    pub zeroes_workgroup: bool,
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
pub(super) fn coordinates(dimensions: usize) -> impl Iterator<Item = &'static str> + Clone {
    ["z", "y", "x"].into_iter().skip(3 - dimensions)
}
