//! Which element a load takes: the text of its coordinates.
//!
//! Coordinates are `u32`, whose sums wrap around. The launch is refused if the sum of what a load adds to its
//! offset does not fit. An offset is a constant of the shader, which may be larger than any coordinate.

use crate::{
    fold::Fold,
    operation::{Along, Edge, Load},
};

/// A coordinate, and when it is inside of the buffer; always, if that is `None`.
pub(super) struct Coordinate {
    pub(super) text: String,
    pub(super) inside: Option<String>,
}

const DIMS: [&str; 3] = ["z", "y", "x"];

/// Clamps a coordinate that was moved up.
pub(super) const CLAMPED_UP: &str = "
fn clamped_up(at: u32, offset: u32, size: u32) -> u32 {
    return select(min(at + offset, size - 1u), size - 1u, at + offset < at);
}
";

/// Clamps a coordinate that was moved down.
pub(super) const CLAMPED_DOWN: &str = "
fn clamped_down(at: u32, offset: u32, size: u32) -> u32 {
    return select(min(at - offset, size - 1u), 0u, at < offset);
}
";

/// Moves a coordinate by less than the size, around the edge.
pub(super) const PERIODIC: &str = "
fn periodic(at: u32, shift: u32, size: u32) -> u32 {
    var inside = at;
    if inside >= size {
        inside = inside % size;
    }
    return select(inside + shift, inside - (size - shift), inside >= size - shift);
}
";

/// The coordinate of a load along a dimension. `number` is that of the load.
pub(super) fn coordinate(load: &Load, number: usize, dim: usize, folds: &[Fold]) -> Coordinate {
    let (at, offset) = (sum(load.along[dim], folds), load.along[dim].offset);
    let size = format!("launch.extent{}_{}", load.operand, DIMS[dim]);
    let magnitude = u32::try_from(offset.unsigned_abs());
    let always = |text: String| Coordinate { text, inside: None };
    if load.along[dim] == Along::default() {
        // A dimension that the operand does not have.
        return always(at);
    }
    match (load.edge, magnitude) {
        (Edge::Inside, _) if offset == 0 => always(at),
        // Of a sum that is right only the lower bits matter.
        (Edge::Inside, _) => always(format!("({at} + {}u)", offset as u32)),
        (Edge::Clamped, Err(_)) if offset < 0 => always("0u".to_string()),
        (Edge::Clamped, Err(_)) => always(format!("({size} - 1u)")),
        (Edge::Clamped, Ok(0)) => always(format!("min({at}, {size} - 1u)")),
        (Edge::Clamped, Ok(by)) => {
            always(format!("clamped_{}({at}, {by}u, {size})", if offset < 0 { "down" } else { "up" }))
        }
        (Edge::Periodic, _) => always(format!("periodic({at}, launch.shift{number}_{}, {size})", DIMS[dim])),
        (Edge::Parameter(_), Err(_)) => {
            Coordinate { text: "0u".to_string(), inside: Some("false".to_string()) }
        }
        (Edge::Parameter(_), Ok(0)) => {
            let inside = format!("{at} < {size}");
            Coordinate { text: at, inside: Some(inside) }
        }
        (Edge::Parameter(_), Ok(by)) if offset < 0 => {
            let inside = format!("{at} >= {by}u && {at} - {by}u < {size}");
            Coordinate { text: format!("({at} - {by}u)"), inside: Some(inside) }
        }
        (Edge::Parameter(_), Ok(by)) => {
            let inside = format!("{at} + {by}u >= {at} && {at} + {by}u < {size}");
            Coordinate { text: format!("({at} + {by}u)"), inside: Some(inside) }
        }
    }
}

/// What is added to the offset.
fn sum(along: Along, folds: &[Fold]) -> String {
    let point = along.point.map(|dim| DIMS[usize::from(dim)].to_string());
    let number = along.number.map(|number| format!("launch.literal{number}"));
    let counter = along.counter.map(|fold| format!("v{}", folds[fold as usize].begin));
    let parts: Vec<_> = [point, number, counter].into_iter().flatten().collect();
    match &parts[..] {
        [] => "0u".to_string(),
        [only] => only.clone(),
        parts => format!("({})", parts.join(" + ")),
    }
}
