//! Several steps in one launch of a shader, for devices that take shaders.
//!
//! The memory of a GPU is the limit of a single step, which reads and writes both fields once. Here each
//! group of invocations goes down a tile of the grid and makes up to [`SeveralSteps::MOST`] steps on the way,
//! with the rows between them in its registers and its own memory. It computes the cells around the tile as
//! its neighbours do: a third more cells than without them, or half on small grids.
//!
//! The shader computes in the order of the [recorded step](super::RecordedStep).

use super::coefficients::Coefficients;
use crate::model::{Edges, Params};
use anabranch::device::Wgsl;
use std::sync::{Arc, OnceLock};

/// The invocations of a group. Each has a column of a tile, or one of as many columns as there are steps on
/// each side of it.
const LANES: usize = 128;

/// The rows of a tile, if the grid has enough cells for many groups.
const HIGH: usize = 64;

/// The rows of a tile in a smaller grid, which has more groups then.
const LOW: usize = 32;

/// The groups that keep a GPU busy: several for each of its processors.
const MANY: usize = 1024;

/// The shader for several steps of a model.
#[derive(Clone, Copy, Debug)]
pub struct SeveralSteps {
    coefficients: Coefficients,
    edges: Edges,
    /// The rows of a tile.
    height: usize,
}

impl SeveralSteps {
    /// The most steps of one launch, which reads the cells up to as many away as it has steps.
    pub const MOST: usize = 4;

    /// The steps of this model, on a device that computes this many cells.
    pub fn new(params: Params, edges: Edges, cells: u64) -> Self {
        let tile = HIGH * (LANES - 2 * Self::MOST);
        let height = if cells >= (MANY * tile) as u64 { HIGH } else { LOW };
        Self { coefficients: Coefficients::new(params), edges, height }
    }

    /// The shader of a task that declares reads of U and V, up to as many cells around each as there are
    /// steps, and writes of both. If it `marks`, V is not finite after the last step where U or V is not.
    ///
    /// # Panics
    /// If there is no step, or there are more than [`MOST`](Self::MOST).
    pub fn shader(&self, steps: usize, marks: bool) -> Wgsl {
        assert!((1..=Self::MOST).contains(&steps), "{steps} steps in one launch");
        let Coefficients { u_spread, u_loss, feed, v_spread, v_keep, dt } = self.coefficients;
        let edges: u32 = match self.edges {
            Edges::Absorbing => 0,
            Edges::Periodic => 1,
            Edges::Clamped => 2,
        };
        Wgsl::new(text(steps))
            .names(["u", "v", "next_u", "next_v"])
            .parameter("u_spread", u_spread)
            .parameter("u_loss", u_loss)
            .parameter("feed", feed)
            .parameter("v_spread", v_spread)
            .parameter("v_keep", v_keep)
            .parameter("dt", dt)
            .parameter("zero", 0.0_f32)
            .parameter("edges", edges)
            .parameter("height", self.height as u32)
            .parameter("marks", u32::from(marks))
            .tiles([1, LANES as u32], [self.height, LANES - 2 * steps])
            .uninitialized_workgroup()
    }
}

/// The text of the shader for this many steps.
fn text(steps: usize) -> Arc<str> {
    static TEXTS: [OnceLock<Arc<str>>; SeveralSteps::MOST] = [const { OnceLock::new() }; SeveralSteps::MOST];
    let new = || {
        let constants = format!("const STEPS = {steps};\nconst LANES = {LANES};\n");
        (constants + &for_each_step(include_str!("several_steps.wgsl"), steps)).into()
    };
    Arc::clone(TEXTS[steps - 1].get_or_init(new))
}

/// Replaces what is between lines `// for each step` and `// end` by a copy for each step, in which `#` is
/// the number of the step.
fn for_each_step(text: &str, steps: usize) -> String {
    let (mut result, mut copied) = (String::new(), None);
    for line in text.lines() {
        let line = format!("{line}\n");
        match (line.trim().strip_prefix("// "), &mut copied) {
            (Some("for each step"), None) => copied = Some(String::new()),
            (Some("end"), Some(lines)) => {
                (0..steps).for_each(|step| result += &lines.replace('#', &step.to_string()));
                copied = None;
            }
            (_, Some(lines)) => *lines += &line,
            (_, None) => result += &line,
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    #[test]
    fn lines_for_each_step_are_repeated() {
        let _deadline = deadline();
        let text = "// `for each step`\n  // for each step\nb #\n  // end\nc\n// for each step\nd # #\n// end\n// end\n";
        assert_eq!(for_each_step(text, 2), "// `for each step`\nb 0\nb 1\nc\nd 0 0\nd 1 1\n// end\n");
        assert!((1..=SeveralSteps::MOST).all(|steps| !super::text(steps).contains('#')));
    }

    #[test]
    fn small_grids_have_low_tiles() {
        let _deadline = deadline();
        let height =
            |rows: u64, cols| SeveralSteps::new(Params::default(), Edges::Clamped, rows * cols).height;
        assert_eq!([height(1080, 1920), height(4096, 4096)], [LOW, HIGH]);
    }
}
