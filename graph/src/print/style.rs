//! Colours, the same in every format: light fills with dark text. The kinds of edges differ in tone as well
//! as in hue.

use super::element::{EdgeKind, NodeKind, State};

pub(super) const INK: &str = "#1f2933";
pub(super) const MUTED: &str = "#52606d";
pub(super) const PAPER: &str = "#fcfcfb";
pub(super) const FRAME: &str = "#cbd2d9";
pub(super) const LANE: &str = "#f1f3f5";

/// How a node looks.
pub(super) struct NodeStyle {
    pub fill: &'static str,
    pub line: &'static str,
    pub text: &'static str,
    /// Epochs and horizons are bars across the graph, not work.
    pub round: bool,
}

pub(super) fn node(kind: NodeKind) -> NodeStyle {
    let box_of = |fill, line| NodeStyle { fill, line, text: INK, round: false };
    match kind {
        NodeKind::Kernel => box_of("#dbeafe", "#3b6fb6"),
        NodeKind::HostTask => box_of("#fdecc8", "#b7791f"),
        NodeKind::Fence => box_of("#ede4fb", "#7c4dbd"),
        NodeKind::Execution => box_of("#dbeafe", "#3b6fb6"),
        NodeKind::Push => box_of("#d3f3e8", "#12805c"),
        NodeKind::AwaitPush => box_of("#eefaf5", "#12805c"),
        NodeKind::Reduction => box_of("#fde0e6", "#b83a5a"),
        NodeKind::Epoch => NodeStyle { fill: "#3e4c59", line: "#1f2933", text: "#ffffff", round: true },
        NodeKind::Horizon => NodeStyle { fill: "#e4e7eb", line: "#7b8794", text: INK, round: true },
    }
}

/// The outline that shows a state; a node that is done has none of its own.
pub(super) fn state(state: Option<State>) -> Option<&'static str> {
    match state {
        Some(State::Failed) => Some("#d11a2a"),
        Some(State::Skipped) => Some("#9aa5b1"),
        Some(State::Done) | None => None,
    }
}

pub(super) fn edge(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::True => "#1f2933",
        EdgeKind::Anti => "#c2650a",
        EdgeKind::Output => "#2563c9",
        EdgeKind::Serial => "#8a5fbf",
        EdgeKind::Message => "#12805c",
        EdgeKind::Conflict => "#d11a2a",
    }
}
