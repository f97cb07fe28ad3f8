//! What a setup does not allow is left out of the program, or replaced.

use super::{Nodes, ReadPattern, Setup, Step, Subset, WritePattern};

/// The step as this setup allows it, if it does.
pub(super) fn allowed(setup: &Setup, step: Step) -> Option<Step> {
    match setup.nodes {
        None => Some(with_devices(on_one_node(step), setup.devices)),
        Some(nodes) => on_nodes(step, nodes).map(|step| with_devices(step, setup.devices)),
    }
}

fn on_one_node(mut step: Step) -> Step {
    if let Step::Compute(compute) = &mut step {
        // A kernel in pieces fails, is skipped or is cancelled piece by piece. On one node the model says
        // exactly how each task ends, and which tasks are reported as skipped because of it. But a program
        // sees one status of all pieces, and so cannot tell the model which pieces a cancellation has
        // reached. On nodes the model has bounds, which leave that open: one of the numbers of nodes is 1.
        compute.split.pieces = 1;
    }
    if let Step::Cancel(_, on) | Step::CancelTask { on, .. } = &mut step {
        *on = Subset::ALL;
    }
    step
}

/// With devices, most kernels between buffers of one rank compute from the element at their point, as
/// recorded kernels.
fn with_devices(mut step: Step, devices: usize) -> Step {
    if let Step::Compute(compute) = &mut step
        && devices > 0
        && !compute.place.is_multiple_of(4)
    {
        // The slots of these ranks are pairs.
        let pair = |slot: usize| if slot % 2 == 1 { slot + 1 } else { slot - 1 };
        if (1..=4).contains(&compute.to) {
            compute.from = pair(compute.to);
            (compute.read_pattern, compute.write_pattern) = (ReadPattern::Same, WritePattern::Same);
            compute.fail = None;
        }
    }
    step
}

/// With several nodes, tasks do not submit or wait. Nothing is replayed where tasks fail or are cancelled.
fn on_nodes(mut step: Step, nodes: Nodes) -> Option<Step> {
    match &mut step {
        Step::Nest { .. } | Step::InnerWait { .. } => return None,
        // There a replay is no single task: a failure reaches only what needs its results.
        Step::Replays(_) if nodes.fails || nodes.cancels => return None,
        Step::Replays(replays) => replays.fails = None,
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
