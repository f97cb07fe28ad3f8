//! The model's constants in the form that the kernel computes with.

use crate::model::Params;

/// The constants of a step. With S(x) the sum over a cell and its neighbours, weighted by 1 2 1 in both
/// directions (so L = S / 4 - 4 x), a step is
///
/// ```text
/// u' = u + (u_spread S(u) + (feed - u_loss u) - r)        v' = v_spread S(v) + v_keep v + r        r = dt u v²
/// ```
///
/// Constants that are rounded independently would let uniform fields drift: there S(x) = 16 x, and only the
/// sum of the constants counts. So the constants are rounded one after the other, and each absorbs the errors
/// of those before it. At u = 1, v = 0 the change of u is then exactly 0, and the decay of a uniform v is
/// right to about 1e-8 of v in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coefficients {
    pub u_spread: f32,
    pub u_loss: f32,
    pub feed: f32,
    pub v_spread: f32,
    pub v_keep: f32,
    pub dt: f32,
}

impl Coefficients {
    pub fn new(params: Params) -> Self {
        let [du, dv, feed, kill, dt] =
            [params.du, params.dv, params.feed, params.kill, params.dt].map(f64::from);
        // One of the two terms of u_loss is at least half of it, so one of these two differences is exact
        // (Sterbenz's lemma), and then the other is exact too: u_loss = feed_rate + 16 u_spread, without
        // rounding.
        let u_loss = (dt * (feed + 4.0 * du)) as f32;
        let feed_rate = u_loss - (dt * 4.0 * du) as f32;
        let u_spread = (u_loss - feed_rate) / 16.0;
        let v_decay = dt * (feed + kill);
        let v_keep = (1.0 - v_decay - dt * 4.0 * dv) as f32;
        let v_spread = ((1.0 - v_decay - f64::from(v_keep)) / 16.0) as f32;
        Self { u_spread, u_loss, feed: feed_rate, v_spread, v_keep, dt: params.dt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> impl Iterator<Item = Params> {
        let rates = [(0.014, 0.054), (0.0367, 0.0649), (0.062, 0.06093), (0.9, 0.0), (0.0, 0.0)];
        let diffusion = [(0.1, 0.05), (0.2, 0.1), (0.003, 0.0), (0.0, 0.0)];
        let all = rates.into_iter().flat_map(move |rate| diffusion.map(|d| (rate, d)));
        all.flat_map(|((feed, kill), (du, dv))| [1.0, 0.3].map(|dt| Params { du, dv, feed, kill, dt }))
    }

    #[test]
    fn the_state_without_v_is_exactly_at_rest() {
        for k in some().map(Coefficients::new) {
            assert_eq!(k.u_spread * 16.0 + (k.feed - k.u_loss), 0.0, "{k:?}");
        }
    }

    #[test]
    fn the_constants_are_those_of_the_model_up_to_rounding() {
        for p in some() {
            let k = Coefficients::new(p);
            let near = |a: f32, b: f32| assert!((a - b).abs() < 6e-8, "{a} {b} of {p:?}");
            near(k.u_spread * 16.0, p.dt * p.du * 4.0);
            near(k.v_spread * 16.0, p.dt * p.dv * 4.0);
            near(k.feed, p.dt * p.feed);
            near(k.v_spread * 16.0 + k.v_keep, 1.0 - p.dt * (p.feed + p.kill));
        }
    }
}
