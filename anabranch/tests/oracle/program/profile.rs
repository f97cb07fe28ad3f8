//! What a setup does not allow is left out of the program, or replaced.

use super::{Setup, Step};

/// The step as this setup allows it, if it does.
pub(super) fn allowed(setup: &Setup, step: Step) -> Option<Step> {
    match setup.nodes {
        None => Some(step),
        Some(nodes) => on_nodes(step, nodes.fails),
    }
}

/// With several nodes, tasks do not submit or wait.
fn on_nodes(mut step: Step, fails: bool) -> Option<Step> {
    match &mut step {
        Step::Nest { .. } | Step::InnerWait { .. } | Step::Cancel(_) | Step::CancelTask { .. } => {
            return None;
        }
        Step::Host(host) if fails => host.callback_panics = false,
        _ if fails => {}
        Step::Compute(compute) => compute.fail = None,
        Step::Reduce(reduction) => reduction.fail = false,
        Step::Host(host) => (host.fail, host.callback_panics) = (None, false),
        _ => {}
    }
    Some(step)
}
