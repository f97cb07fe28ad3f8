//! The step as a recorded kernel, for devices.
//!
//! It computes what [`Stepper`](super::Stepper) computes, but for the last bits: devices contract and round in their own ways, and the
//! dynamics amplify that.

use super::coefficients::Coefficients;
use crate::model::{Edges, Params};
use anabranch::{
    device::Device,
    prelude::*,
    recorded::{Input, Value},
};
use std::sync::Arc;

/// A step on a device.
pub struct DeviceStepper {
    device: Arc<dyn Device>,
    coefficients: Coefficients,
    edges: Edges,
}

impl DeviceStepper {
    /// Steps with these constants and edges.
    pub fn new(device: &Arc<dyn Device>, params: Params, edges: Edges) -> Self {
        Self { device: Arc::clone(device), coefficients: Coefficients::new(params), edges }
    }

    /// Submits one step, from U and V to the buffers of the next state. All have one extent.
    ///
    /// # Errors
    /// If the device cannot run the step: it is lost, for example.
    pub fn submit(
        &self,
        rt: &Runtime,
        [u, v]: [&Buffer<f32, 2>; 2],
        [next_u, next_v]: [&Buffer<f32, 2>; 2],
    ) -> Result<TaskHandle, anabranch::Error> {
        let Self { device, coefficients: k, edges } = self;
        let around = match edges {
            Edges::Periodic => neighborhood([1, 1]).periodic(),
            Edges::Absorbing | Edges::Clamped => neighborhood([1, 1]),
        };
        let task = rt.task("step").over(u.extent()).on(device).read(u, around).read(v, around);
        task.write(next_u, one_to_one()).write(next_v, one_to_one()).each(|(u, v, next_u, next_v)| {
            let (u_sum, v_sum) = (weighted_sum(&u, *edges), weighted_sum(&v, *edges));
            let (u, v) = (u.here(), v.here());
            let reaction = u * k.dt * v * v;
            next_u.set(u + (u_sum * k.u_spread + (k.feed - u * k.u_loss - reaction)));
            next_v.set(v_sum * k.v_spread + v * k.v_keep + reaction);
        })
    }
}

/// The sum over a cell and its neighbours, weighted by 1 2 1 in both directions.
fn weighted_sum<'t>(field: &Input<'t, f32, 2>, edges: Edges) -> Value<'t, f32> {
    let at = |row, col| match edges {
        Edges::Absorbing => field.at_or([row, col], 0.0),
        Edges::Periodic => field.at_periodic([row, col]),
        Edges::Clamped => field.at_clamped([row, col]),
    };
    let across = |row| (at(row, -1) + at(row, 1)) + at(row, 0) * 2.0;
    (across(-1) + across(1)) + across(0) * 2.0
}
