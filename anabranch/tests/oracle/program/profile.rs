//! What a setup does not allow is left out of the program, or replaced.

use super::{Nodes, Setup, Step, Subset};

/// The step as this setup allows it, if it does.
pub(super) fn allowed(setup: &Setup, step: Step) -> Option<Step> {
    match setup.nodes {
        None => Some(on_one_node(step)),
        Some(nodes) => on_nodes(step, nodes),
    }
}

fn on_one_node(mut step: Step) -> Step {
    in_one_piece(&mut step);
    if let Step::Cancel(_, on) | Step::CancelTask { on, .. } = &mut step {
        *on = Subset::ALL;
    }
    step
}

/// A kernel in pieces fails or is skipped piece by piece, and the model knows whole tasks.
fn in_one_piece(step: &mut Step) {
    if let Step::Compute(compute) = step {
        compute.split.pieces = 1;
    }
}

/// With several nodes, tasks do not submit or wait.
fn on_nodes(mut step: Step, nodes: Nodes) -> Option<Step> {
    if nodes.fails || nodes.cancels {
        in_one_piece(&mut step);
    }
    match &mut step {
        Step::Nest { .. } | Step::InnerWait { .. } => return None,
        Step::Cancel(..) | Step::CancelTask { .. } if !nodes.cancels => return None,
        Step::Host(host) if nodes.fails => host.callback_panics = false,
        _ if nodes.fails => {}
        Step::Compute(compute) => compute.fail = None,
        Step::Reduce(reduction) => reduction.fail = false,
        Step::OnCluster(task) => task.fail = None,
        Step::Host(host) => (host.fail, host.callback_panics) = (None, false),
        _ => {}
    }
    Some(step)
}
