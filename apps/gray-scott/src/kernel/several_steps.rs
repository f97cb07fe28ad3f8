//! Several steps in one launch of a shader, for devices that take shaders.
//!
//! The memory of a GPU is the limit of a single step, which reads and writes both fields once. Here each group of invocations reads a tile and the
//! cells around it, makes up to [`SeveralSteps::MOST`] steps in its own memory, and writes the tile. It computes the cells around the tile as
//! its neighbours do, 20% more than without them.
//!
//! The shader computes in the order of the [recorded step](super::RecordedStep).

use super::coefficients::Coefficients;
use crate::model::{Edges, Params};
use anabranch::device::Wgsl;
use std::sync::OnceLock;

/// The cells of a tile along each dimension.
const TILE: usize = 32;

/// The shader for several steps of a model.
#[derive(Clone, Copy, Debug)]
pub struct SeveralSteps {
    coefficients: Coefficients,
    edges: Edges,
}

impl SeveralSteps {
    /// The most steps of one launch. The launch reads the cells up to this distance.
    pub const MOST: usize = 4;

    /// The steps of this model.
    pub fn new(params: Params, edges: Edges) -> Self {
        Self { coefficients: Coefficients::new(params), edges }
    }

    /// The shader of a task that declares reads of U and V, up to [`MOST`](Self::MOST) cells around each, and writes of both, for this
    /// number of steps. If it `marks`, V is not finite after the last step where U or V is not.
    ///
    /// # Panics
    /// If there are more steps than [`MOST`](Self::MOST).
    pub fn shader(&self, steps: usize, marks: bool) -> Wgsl {
        assert!(steps <= Self::MOST, "{steps} steps in one launch");
        let Coefficients { u_spread, u_loss, feed, v_spread, v_keep, dt } = self.coefficients;
        let edges: u32 = match self.edges {
            Edges::Absorbing => 0,
            Edges::Periodic => 1,
            Edges::Clamped => 2,
        };
        Wgsl::new(text())
            .names(["u", "v", "next_u", "next_v"])
            .parameter("u_spread", u_spread)
            .parameter("u_loss", u_loss)
            .parameter("feed", feed)
            .parameter("v_spread", v_spread)
            .parameter("v_keep", v_keep)
            .parameter("dt", dt)
            .parameter("zero", 0.0_f32)
            .parameter("edges", edges)
            .parameter("steps", steps as u32)
            .parameter("marks", u32::from(marks))
            .tiles([16, 16], [TILE, TILE])
            .uninitialized_workgroup()
    }
}

/// The text of the shader, with copies of what it repeats.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| repeated(include_str!("several_steps.wgsl")))
}

/// Replaces what is between lines `// repeat N` and `// end` by `N` copies, in which `#` is the number of the copy.
fn repeated(text: &str) -> String {
    let (mut result, mut copied, mut count) = (String::new(), String::new(), None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("// "), count) {
            (Some("end"), Some(copies)) => {
                (0..copies).for_each(|at: usize| result += &copied.replace('#', &at.to_string()));
                (copied, count) = (String::new(), None);
            }
            (Some(comment), None) if comment.starts_with("repeat ") => {
                count = comment["repeat ".len()..].parse().ok();
            }
            (_, Some(_)) => copied += &format!("{line}\n"),
            (_, None) => result += &format!("{line}\n"),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    #[test]
    fn lines_are_repeated() {
        let _deadline = deadline();
        let text = "// of `repeat N`\n  // repeat 2\nb #\n  // end\nc\n// repeat 1\nd # #\n// end\n// end\n";
        assert_eq!(repeated(text), "// of `repeat N`\nb 0\nb 1\nc\nd 0 0\n// end\n");
        assert!(!super::text().contains('#'));
    }
}
