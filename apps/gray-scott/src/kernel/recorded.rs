//! One step as a recorded kernel, for devices.
//!
//! It computes with the constants of the host's kernel, and in the same order. The host rounds a product and
//! the sum after it once; a device may round them once or twice, so the bits differ.

use super::coefficients::Coefficients;
use crate::model::{Edges, Params};
use anabranch::recorded::{Input, Output, Value};

/// One step of the model at one cell.
///
/// ```
/// use anabranch::prelude::*;
/// use gray_scott::{kernel::RecordedStep, model::{Edges, Params}};
///
/// let rt = Runtime::new()?;
/// let step = RecordedStep::new(Params::default(), Edges::Clamped, true);
/// let [u, v, next_u, next_v] = [(); 4].map(|()| rt.buffer::<f32, 2>([20, 30]));
/// rt.task("start").over([20, 30]).write(&u, one_to_one()).write(&v, one_to_one()).each(|(u, v)| {
///     u.set(1.0);
///     v.set(0.0);
/// })?;
/// rt.task("step")
///     .over([20, 30])
///     .read(&u, neighborhood([1, 1]))
///     .read(&v, neighborhood([1, 1]))
///     .write(&next_u, one_to_one())
///     .write(&next_v, one_to_one())
///     .each(move |(u, v, next_u, next_v)| step.record(u, v, next_u, next_v))?;
/// // Without V, and with edges that nothing leaves, the state is at rest.
/// let u = rt.fence(&next_u)?.wait()?;
/// assert_eq!(u.as_slice(), [1.0; 600]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RecordedStep {
    coefficients: Coefficients,
    edges: Edges,
    marks: bool,
}

impl RecordedStep {
    /// A step of this model. If it `marks`, V is not finite after the step where U or V is not: then V alone
    /// tells whether a state is finite.
    pub fn new(params: Params, edges: Edges, marks: bool) -> Self {
        Self { coefficients: Coefficients::new(params), edges, marks }
    }

    /// Records the step: from `u` and `v` around a cell to `next_u` and `next_v` in it.
    pub fn record<'t>(
        &self,
        u: Input<'t, f32, 2>,
        v: Input<'t, f32, 2>,
        next_u: Output<'t, f32, 2>,
        next_v: Output<'t, f32, 2>,
    ) {
        let k = &self.coefficients;
        let (around_u, around_v) = (self.sum(u), self.sum(v));
        let (u, v) = (u.here(), v.here());
        let uv = if k.dt == 1.0 { u * v } else { k.dt * u * v };
        let change = k.u_spread * around_u + (k.feed - k.u_loss * u);
        let kept = k.v_spread * around_v + k.v_keep * v;
        let new_u = u + (change - uv * v);
        let mut new_v = uv * v + kept;
        if self.marks {
            // 0 times infinity is NaN. Compilers of shaders do not know that the literal is 0, so they cannot
            // leave this out.
            new_v += 0.0 * new_u;
        }
        next_u.set(new_u);
        next_v.set(new_v);
    }

    /// The sum over a cell and its neighbours, weighted 1 2 1 in both directions.
    fn sum<'t>(&self, x: Input<'t, f32, 2>) -> Value<'t, f32> {
        let at = |row, col| match self.edges {
            Edges::Absorbing => x.at_or([row, col], 0.0),
            Edges::Periodic => x.at_periodic([row, col]),
            Edges::Clamped => x.at_clamped([row, col]),
        };
        let column = |col| 2.0 * at(0, col) + (at(-1, col) + at(1, col));
        let [left, here, right] = [-1, 0, 1].map(column);
        2.0 * here + (left + right)
    }
}
