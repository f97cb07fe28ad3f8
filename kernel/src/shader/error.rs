//! What is wrong with a shader.

/// Why a shader is refused, or cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShaderError {
    /// An operand or parameter has a name that WGSL does not permit.
    #[error(
        "`{name}` cannot name {what} of a shader: take a letter, and behind it letters, digits and single `_`"
    )]
    Name {
        /// The name.
        name: String,
        /// What has the name.
        what: &'static str,
    },
    /// Two functions would be generated with one name.
    #[error("two operands or parameters of the shader lead to the name `{name}`: give them other names")]
    Twice {
        /// The name.
        name: String,
    },
    /// The numbers of names and of accesses differ.
    #[error(
        "the shader names {names} operands, and the task declares {accesses} accesses: name all of them, in their order"
    )]
    Operands {
        /// The number of names.
        names: usize,
        /// The number of accesses.
        accesses: usize,
    },
    /// The text declares a name that is taken.
    #[error(
        "line {line} of the shader declares `{name}`, which is the name of {what}: take another one\n{line:>5} | {text}"
    )]
    Taken {
        /// The line, from 1.
        line: u32,
        /// The text of the line.
        text: String,
        /// The name.
        name: String,
        /// What has the name.
        what: String,
    },
    /// The text has something that only the generated part may have.
    #[error("line {line} of the shader has {what}\n{line:>5} | {text}")]
    Forbidden {
        /// The line, from 1.
        line: u32,
        /// The text of the line.
        text: String,
        /// What it has, and what to do.
        what: String,
    },
    /// A bracket or comment has no end, or no beginning.
    #[error("line {line} of the shader has {what}\n{line:>5} | {text}")]
    Unbalanced {
        /// The line, from 1.
        line: u32,
        /// The text of the line.
        text: String,
        /// The bracket.
        what: String,
    },
    /// The text is nested too deeply, or has too many declarations: a compiler may lack the stack for it.
    #[error("line {line} of the shader has {what}\n{line:>5} | {text}")]
    TooLarge {
        /// The line, from 1.
        line: u32,
        /// The text of the line.
        text: String,
        /// What it has, and what to do.
        what: String,
    },
    /// The text lacks its function.
    #[error("the shader has no function `{signature}`")]
    NoFunction {
        /// The first line of the function.
        signature: String,
    },
    /// A group has no invocations, or too many for a number of 32 bits.
    #[error(
        "the shader has groups of {size:?} invocations: each number must be 1 or more, and their product below 4294967296"
    )]
    Group {
        /// The invocations along each dimension.
        size: [u32; 3],
    },
    /// There are more groups than one launch may have.
    #[error("the shader has {groups:?} groups: their product must be below 2147483648")]
    TooManyGroups {
        /// The groups along each dimension.
        groups: [usize; 3],
    },
    /// An array without elements is no element.
    #[error("the elements of operand `{name}` are arrays of no numbers")]
    EmptyElement {
        /// The name of the operand.
        name: String,
    },
    /// A buffer has more elements than indices of 32 bits reach.
    #[error("operand `{name}` has the extent {extent:?}: a shader reaches 4294967295 elements")]
    TooManyElements {
        /// The name of the operand.
        name: String,
        /// The extent of its buffer.
        extent: [usize; 3],
    },
    /// The points have coordinates of 2³² or more.
    #[error("a shader has no points up to {end:?}: each coordinate must be below 4294967296")]
    TooManyPoints {
        /// The point behind the last one.
        end: [usize; 3],
    },
    /// The operands, parameters or boxes of a launch are not those of the shader.
    #[error("the shader has {expected}, and the launch has {found}")]
    Mismatch {
        /// What the shader has.
        expected: String,
        /// What the launch has.
        found: String,
    },
}
