//! Layout: where nodes and edges go in a layered drawing, from top to bottom.
//!
//! The layout has four steps, each in a module of its own (the framework of [Sugiyama, Tagawa and Toda][1]):
//!
//! 1. `rank` gives every node a rank below all nodes that it depends on.
//! 2. `order` orders the nodes within the ranks so that few edges cross.
//! 3. `place` places the nodes near their neighbours.
//! 4. `route` routes the edges.
//!
//! The graph between the steps is in `layered`. An edge across several ranks passes through a slot of its own
//! in each of them, so no edge runs through a node. The nodes of one cluster share a *lane*, a column of its
//! own; ranks go across all lanes.
//!
//! [1]: https://doi.org/10.1109/TSMC.1981.4308636

mod layered;
mod order;
mod place;
mod rank;
mod route;

pub(super) use layered::{Item, Link};
pub(super) use route::{Layout, Route};

use layered::Layered;

/// The distance between the contents of two lanes: their margins and the gap between their frames.
const LANE_GAP: f64 = 52.0;

/// Lays out `items` in the lanes `0..lane_widths.len()`. Each lane is at least as wide as `lane_widths` says.
pub(super) fn lay_out(items: &[Item], links: &[Link], lane_widths: &[f64], framed: bool) -> Layout {
    let ranks = rank::ranks(items, links);
    let layered = Layered::new(items, links, &ranks);
    let order = order::ordered(&layered);
    let places = place::places(&layered, &order, lane_widths, if framed { LANE_GAP } else { 0.0 });
    route::routed(items, links, &layered, &order, places, framed)
}

#[cfg(test)]
mod tests;
