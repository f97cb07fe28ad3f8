//! The Gray-Scott model: its equations, its edges, its initial state, and presets of its rates.
//!
//! Two species U and V react and diffuse on a grid of unit spacing, in explicit Euler steps of length dt:
//!
//! ```text
//! u' = u + dt (Du L(u) - u v² + F (1 - u))
//! v' = v + dt (Dv L(v) + u v² - (F + k) v)
//! ```
//!
//! L is the Oono-Puri 9-point Laplacian: corners 1/4, edges 1/2, centre -3. [`Params`] holds the constants,
//! [`Edges`] the values outside the grid, [`initial`] the state to start from, and [`presets`] rates with
//! names. [`reference`](mod@reference) is the model in `f64`, slow and plain; the fast
//! [`kernel`](crate::kernel) is tested against it.

mod edges;
mod initial;
pub mod presets;
pub mod reference;

pub use edges::{Edges, ParseEdgesError};
pub use initial::{NOISE_AMPLITUDE, initial, initial_rows};

/// The constants of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Diffusion coefficient of U.
    pub du: f32,
    /// Diffusion coefficient of V.
    pub dv: f32,
    /// Feed rate F.
    pub feed: f32,
    /// Kill rate k.
    pub kill: f32,
    /// Length of a time step.
    pub dt: f32,
}

impl Default for Params {
    /// Moving spots: Du = 0.1, Dv = 0.05, F = 0.014, k = 0.054, dt = 1.
    fn default() -> Self {
        Self { du: 0.1, dv: 0.05, feed: 0.014, kill: 0.054, dt: 1.0 }
    }
}
