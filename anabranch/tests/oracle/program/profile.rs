//! What a setup does not allow is left out of the program, or replaced.

use super::{Compute, Nodes, ReadPattern, Setup, Step, Subset, WritePattern, pair};

/// The step as this setup allows it, if it does.
pub(super) fn allowed(setup: &Setup, mut step: Step) -> Option<Step> {
    match setup.nodes {
        None => step = on_one_node(step),
        Some(nodes) => step = on_nodes(step, nodes)?,
    }
    if setup.is_calm {
        if matches!(step, Step::Cancel(..) | Step::CancelTask { .. }) {
            return None;
        }
        succeed(&mut step);
    }
    Some(with_devices(step, setup))
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

/// With devices, most kernels between buffers of one rank are recorded ones.
fn with_devices(mut step: Step, setup: &Setup) -> Step {
    match &mut step {
        _ if setup.devices == 0 => {}
        Step::Compute(compute) => be_recorded(compute),
        Step::Replays(replays) if setup.all_succeed() => replays.body.iter_mut().for_each(be_recorded),
        _ => {}
    }
    step
}

/// Makes the kernel a recorded one, unless its place says otherwise: it computes from the element at its
/// point, or from those around it. Those within 2 in two dimensions are too many, and stay a kernel of the
/// host.
fn be_recorded(compute: &mut Compute) {
    if compute.place.is_multiple_of(4) {
        return;
    }
    if (1..=4).contains(&compute.to) {
        compute.from = pair(compute.to);
        let around = ReadPattern::Box(1 + compute.place / 128);
        compute.read_pattern = [ReadPattern::Same, around][compute.place / 64 % 2];
        (compute.write_pattern, compute.fail) = (WritePattern::Same, None);
    }
}

/// No task fails because its function does.
fn succeed(step: &mut Step) {
    match step {
        Step::Replays(replays) => replays.fails = None,
        Step::Compute(compute) => compute.fail = None,
        Step::Reduce(reduction) => reduction.fail = false,
        Step::OnCluster(task) => task.fail = None,
        Step::Host(host) => (host.fail, host.callback_panics) = (None, false),
        _ => {}
    }
}

/// With several nodes, tasks do not submit or wait. Nothing is replayed where tasks fail or are cancelled.
fn on_nodes(mut step: Step, nodes: Nodes) -> Option<Step> {
    match &mut step {
        Step::Nest { .. } | Step::InnerWait { .. } => return None,
        // There a replay is no single task: a failure reaches only what needs its results.
        Step::Replays(_) if nodes.fails || nodes.cancels => return None,
        Step::Cancel(..) | Step::CancelTask { .. } if !nodes.cancels => return None,
        Step::Host(host) if nodes.fails => host.callback_panics = false,
        _ if nodes.fails => {}
        step => succeed(step),
    }
    Some(step)
}
