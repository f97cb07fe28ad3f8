//! Which cells the steps of a model read.

use crate::model::Edges;
use anabranch::{
    grid::{AnyBoxes, Neighborhood},
    prelude::*,
};

/// What is read as far as `reach` around each cell.
pub(super) fn around(edges: Edges, reach: [usize; 2]) -> Neighborhood<2, AnyBoxes<2>> {
    match edges {
        Edges::Periodic => neighborhood(reach).periodic(),
        Edges::Absorbing | Edges::Clamped => neighborhood(reach).any_boxes(),
    }
}
