//! Host objects of the whole cluster: one value, and effects that are ordered over all nodes.

mod common;

use anabranch::{LocalNodes, local_nodes, prelude::*};
use common::same_on;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread,
    time::Duration,
};
use testing::deadline;

const NODES: [u16; 5] = [1, 2, 3, 4, 7];

/// Nodes with delays.
fn nodes(count: u16, threads: usize) -> LocalNodes {
    local_nodes(count).threads(threads).delays(threads as u32 * 3, u64::from(count) * 10 + threads as u64)
}

/// The parts of tasks that have ended, on all nodes of this process.
#[derive(Clone)]
struct Watched(Arc<Vec<AtomicUsize>>);

impl Watched {
    fn new(tasks: usize) -> Self {
        Self(Arc::new((0..tasks).map(|_| AtomicUsize::new(0)).collect()))
    }

    /// Runs a part of task number `task`. All parts of the tasks before must have ended, and none of a later
    /// task may have begun.
    fn part(&self, task: usize, parts: &[usize], is_slow: bool) {
        for (before, parts) in parts[..task].iter().enumerate() {
            assert_eq!(self.0[before].load(SeqCst), *parts, "of task {before}, when {task} begins");
        }
        if is_slow {
            thread::sleep(Duration::from_micros(300));
        }
        assert!(self.0[task + 1..].iter().all(|later| later.load(SeqCst) == 0));
        self.0[task].fetch_add(1, SeqCst);
    }
}

/// The kinds of tasks of the program below.
const STEPS: usize = 24;

/// A program of tasks of all kinds with effects on one object. Returns the object, on its home.
fn tasks_of_all_kinds(rt: Runtime, home: u16, watched: &Watched) -> Result<Option<Vec<usize>>, Error> {
    let (node, nodes) = (rt.node(), rt.nodes());
    let made = AtomicUsize::new(0);
    let log = rt.cluster_object(home, || vec![made.fetch_add(1, SeqCst)])?.named("log");
    assert_eq!((log.home(), made.into_inner()), (home, usize::from(node == home)));
    let of = |step: usize| match step * 7 % 6 {
        0 | 1 => 1,
        2 => usize::from(nodes),
        3 => usize::from(nodes.min(20)),
        4 => usize::from(nodes.min(2)),
        _ => 1,
    };
    let parts: Arc<Vec<_>> = Arc::new((0..STEPS).map(of).collect());
    let u = rt.buffer_from(&[0_u64; 20])?;
    for step in 0..STEPS {
        let (watched, parts) = (watched.clone(), Arc::clone(&parts));
        let part = move || watched.part(step, &parts, usize::from(node) == step % usize::from(nodes));
        rt.task("add").over([20]).update(&u, one_to_one()).kernel(|tile, (u,)| {
            tile.points().for_each(|i| u[i] += 1);
        })?;
        match step * 7 % 6 {
            0 | 1 => {
                rt.task("once").once().read(&u, all()).effect(&log, sequential()).host(move |(u, log)| {
                    part();
                    assert_eq!(node, home);
                    assert_eq!(u[[0]], step as u64 + 1);
                    log.push(step);
                })?;
            }
            2 => {
                rt.task("all").collective().effect(&log, sequential()).host(move |_, (log,)| {
                    part();
                    assert_eq!(log.is_some(), node == home);
                    log.into_iter().for_each(|log| log.push(step));
                })?;
            }
            kind @ (3 | 4) => {
                let space = if kind == 3 { 20 } else { 2 };
                let task = rt.task("parts").over([space]).update(&u, one_to_one()).effect(&log, sequential());
                task.host(move |_, (_, log)| {
                    part();
                    log.into_iter().for_each(|log| log.push(step));
                })?;
            }
            _ => {
                let last = nodes - 1;
                let task = rt.task("elsewhere").over([9]).on_node(last)?.effect(&log, sequential());
                task.host(move |_, (log,)| {
                    part();
                    assert_eq!((node, log.is_some()), (last, last == home));
                })?;
            }
        }
        if step % 5 == 0 {
            // A fence has the value on the home, and does not wait for it.
            let fence = rt.fence(&log)?;
            let seen = if step % 2 == 0 { fence.wait()? } else { None };
            assert!(seen.is_none() || node == home);
        }
    }
    rt.drain(log.capture())
}

#[test]
fn effects_are_in_the_order_of_the_program_over_all_nodes() {
    let _deadline = deadline();
    for count in NODES {
        for threads in 1..=3 {
            for home in [0, count / 2, count - 1] {
                let watched = Watched::new(STEPS);
                let logs = nodes(count, threads).run(|rt| tasks_of_all_kinds(rt, home, &watched));
                for (node, log) in logs.into_iter().enumerate() {
                    let log = log.unwrap();
                    assert_eq!(log.is_some(), node == usize::from(home), "{count} nodes");
                    let Some(log) = log else { continue };
                    // Tasks that have no part on the home do not reach the value.
                    let has_part = |step: &usize| match step * 7 % 6 {
                        4 => home < 2,
                        5 => false,
                        _ => true,
                    };
                    let expected: Vec<_> = [0].into_iter().chain((0..STEPS).filter(has_part)).collect();
                    assert_eq!(log, expected, "{count} nodes");
                }
            }
        }
    }
}

#[test]
fn one_log_for_all_nodes_is_that_of_one_node() {
    let _deadline = deadline();
    same_on(&NODES, &[1, 2, 3], |rt| {
        let mut u = rt.buffer_from(&(0..30_u64).collect::<Vec<_>>())?;
        let mut u2 = rt.buffer::<u64, 1>([30]);
        let log = rt.cluster_object(rt.nodes() - 1, Vec::new)?;
        let copy = rt.buffer::<u64, 1>([10]);
        for step in 0..10 {
            rt.task("step").over([30]).read(&u, neighborhood([1])).write(&u2, one_to_one()).kernel(
                |tile, (u, u2)| {
                    tile.points().for_each(|[i]| u2.set([i], 3 * u[[i.max(1) - 1]] + u[[(i + 1).min(29)]]))
                },
            )?;
            std::mem::swap(&mut u, &mut u2);
            rt.task("note").once().read(&u, all()).effect(&log, sequential()).host(move |(u, log)| {
                log.push((step, u.as_slice().unwrap().iter().sum::<u64>()));
            })?;
        }
        // The value reaches the other nodes through a buffer.
        rt.task("copy").once().write(&copy, all()).effect(&log, relaxed()).host(|(copy, log)| {
            copy.fill_with(|[i]| log[i].0 ^ log[i].1);
        })?;
        let (copy, u) = rt.drain((copy.capture(), u.capture()))?;
        Ok((copy.into_vec(), u.into_vec()))
    });
}

#[test]
fn exclusive_and_relaxed_effects_of_once_tasks_are_those_of_any_object() {
    let _deadline = deadline();
    for count in NODES {
        let results = nodes(count, 3).run(|rt| {
            let (sum, node) = (rt.cluster_object(0, || 0_u64)?, rt.node());
            let busy = Arc::new(AtomicUsize::new(0));
            for round in 1..=4 {
                for i in 0..10 {
                    let busy = Arc::clone(&busy);
                    rt.task("add").once().effect(&sum, exclusive()).host(move |(sum,)| {
                        assert_eq!(busy.fetch_add(1, SeqCst), 0);
                        *sum += i;
                        busy.fetch_sub(1, SeqCst);
                    })?;
                    rt.task("look").once().effect(&sum, relaxed()).host(|(sum,)| assert!(*sum < 10_000))?;
                }
                let expected = (0..round).fold(0, |sum: u64, _| 2 * (sum + 45));
                rt.task("double").collective().effect(&sum, sequential()).host(move |_, (sum,)| {
                    let Some(sum) = sum else { return };
                    *sum *= 2;
                    assert_eq!((*sum, node), (expected, 0));
                })?;
            }
            rt.drain(sum.capture())
        });
        let expected = (0..4).fold(0, |sum: u64, _| 2 * (sum + 45));
        for (node, result) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap(), (node == 0).then_some(expected));
        }
    }
}

/// All nodes have the same error, which has all of these parts.
fn same_error(results: Vec<Result<String, Error>>, parts: &[&str]) {
    let errors: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    for error in &errors {
        assert_eq!(*error, errors[0]);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_failure_on_the_home_skips_the_parts_on_all_nodes() {
    let _deadline = deadline();
    for count in [2, 3, 7] {
        for home in [0, count - 1] {
            let ran = AtomicUsize::new(0);
            let ran = &Arc::new(ran);
            let results = nodes(count, 2).run(|rt| {
                let log = rt.cluster_object(home, || vec![0])?;
                let other = rt.cluster_object(home, || 1)?;
                rt.task("break").once().effect(&log, sequential()).host(|(log,)| {
                    log.push(1);
                    Err("the disk is full")
                })?;
                let count = Arc::clone(ran);
                rt.task("use").collective().effect(&log, sequential()).host(move |_, (_,)| {
                    count.fetch_add(1, SeqCst);
                })?;
                rt.task("use again")
                    .over([1])
                    .effect(&log, sequential())
                    .host(|_, (_,)| -> Result<(), Error> { panic!("it ran") })?;
                let fine = rt.task("fine").collective().effect(&other, sequential()).host(|_, (_,)| ())?;
                fine.wait()?;
                // The same error on all nodes, so that a `?` does not part them.
                let fence = rt.fence(&log)?.wait().unwrap_err().to_string();
                let error = rt.wait().unwrap_err().to_string();
                rt.wait()?;
                assert_eq!(rt.fence(&other)?.wait()?.is_some(), rt.node() == home);
                let log = log.into_inner().expect("no task uses it");
                assert_eq!(log, (rt.node() == home).then(|| vec![0, 1]));
                Ok(format!("{fence}\n{error}"))
            });
            same_error(
                results,
                &["task \"break\" (", "task \"use again\"", "the disk is full", &format!("on node {home}")],
            );
            assert_eq!(ran.load(SeqCst), 0);
        }
    }
}

#[test]
fn a_failed_part_on_any_node_breaks_the_object_for_all() {
    let _deadline = deadline();
    for count in [2, 3, 7] {
        for odd in [0, count / 2, count - 1] {
            let results = nodes(count, 2).run(|rt| {
                let (log, node) = (rt.cluster_object(0, Vec::new)?, rt.node());
                rt.task("write")
                    .collective()
                    .effect(&log, sequential())
                    .host(move |_, (_,)| if node == odd { Err("no such file") } else { Ok(()) })?;
                let count = rt.task("count").once().effect(&log, sequential());
                count.host(|(log,)| log.push(1))?;
                // No node has a handle when the failure passes.
                rt.task("last")
                    .over([1])
                    .on_node(rt.nodes() - 1)?
                    .effect(&log, sequential())
                    .host(|_, (_,)| ())?;
                let capture = rt.barrier_with(log.capture())?;
                drop(log);
                let error = rt.wait().unwrap_err().to_string();
                let captured = capture.wait().unwrap_err().to_string();
                Ok(format!("{error}\n{captured}"))
            });
            same_error(
                results,
                &["task \"write\"", &format!("on node {odd}"), "no such file", "2 parts", "task \"last\""],
            );
        }
    }
}

#[test]
fn the_oldest_of_several_failures_counts_on_all_nodes() {
    let _deadline = deadline();
    let results = nodes(7, 2).run(|rt| {
        let (log, node) = (rt.cluster_object(3, Vec::<u8>::new)?, rt.node());
        rt.task("write")
            .collective()
            .effect(&log, sequential())
            .host(move |_, (_,)| if node >= 2 { Err(format!("no disk at {node}")) } else { Ok(()) })?;
        let fence = rt.fence(&log)?.wait().unwrap_err().to_string();
        rt.wait().unwrap_err();
        Ok(fence)
    });
    same_error(results, &["failed on node 2: no disk at 2"]);
}

#[test]
fn a_cancelled_task_leaves_the_object_as_it_is() {
    let _deadline = deadline();
    for count in NODES {
        let results = nodes(count, 2).run(|rt| {
            let log = rt.cluster_object(0, || vec![7])?;
            let group = rt.group("group");
            group.cancel();
            group.task("cancelled").collective().effect(&log, sequential()).host(|_, (log,)| {
                log.into_iter().for_each(|log| log.push(1));
            })?;
            group.task("cancelled").once().effect(&log, sequential()).host(|(log,)| log.push(2))?;
            rt.task("after").collective().effect(&log, sequential()).host(|_, (log,)| {
                log.into_iter().for_each(|log| log.push(3));
            })?;
            rt.drain(log.capture())
        });
        for (node, log) in results.into_iter().enumerate() {
            assert_eq!(log.unwrap(), (node == 0).then(|| vec![7, 3]));
        }
    }
}

#[test]
fn a_task_in_another_place_than_the_home_is_refused() {
    let _deadline = deadline();
    for result in nodes(3, 1).run(|rt| {
        let no_node = rt.cluster_object(3, || ()).unwrap_err().to_string();
        assert_eq!(no_node, "the home of a host object is 3; choose an existing node: the first is 0");
        let (one, two) = (rt.cluster_object(1, || 1)?, rt.cluster_object(2, || 2)?);
        let elsewhere = rt.task("elsewhere").once().on_node(0)?.effect(&one, exclusive()).host(|(_,)| ());
        let text = elsewhere.unwrap_err().to_string();
        assert!(text.contains("is 0, but the home of its host object is node 1"), "{text}");
        let both =
            rt.task("both").once().effect(&one, sequential()).effect(&two, relaxed()).host(|(_, _)| ());
        let text = both.unwrap_err().to_string();
        assert!(text.contains("1 and 2, the homes of two of its host objects"), "{text}");
        // With parts, a task may have effects on several.
        let node = rt.node();
        rt.task("parts").collective().effect(&one, sequential()).effect(&two, sequential()).host(
            move |_, (one, two)| assert_eq!([one, two].map(|value| value.is_some()), [node == 1, node == 2]),
        )?;
        rt.task("here").once().on_node(2)?.effect(&two, sequential()).host(|(two,)| *two += 1)?;
        rt.drain((one.capture(), two.capture()))
    }) {
        assert!(matches!(result.unwrap(), (None, None) | (Some(1), None) | (None, Some(3))));
    }
}

#[test]
fn nodes_with_another_home_run_another_program() {
    let _deadline = deadline();
    for result in nodes(3, 1).run(|rt| {
        let log = rt.cluster_object(u16::from(rt.node() == 1), || ())?;
        rt.task("parts").collective().effect(&log, sequential()).host(|_, (_,)| ())?;
        rt.wait()
    }) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("submission 1 of the program is task"), "{error}");
    }
}

#[cfg(feature = "print")]
#[test]
fn a_dry_run_prints_the_commands_of_the_real_run() {
    let _deadline = deadline();
    use anabranch::graph::print::{Node, NodeKind};
    let graph = |rt: Runtime| -> Result<Vec<Node>, Error> {
        let log = rt.cluster_object(1, Vec::new)?.named("log");
        for step in 0..3 {
            rt.task("write").collective().effect(&log, sequential()).host(|_, (_,)| ())?;
            rt.task("note").once().effect(&log, sequential()).host(move |(log,)| log.push(step))?;
            rt.task("look").over([2]).effect(&log, sequential()).host(|_, (_,)| ())?;
        }
        rt.fence(&log)?.wait()?;
        Ok(rt.command_graph().unwrap().nodes().to_vec())
    };
    let dry = graph(Runtime::builder().threads(1).dry_run(4).build().unwrap()).unwrap();
    let passes = dry.iter().filter(|node| node.kind == NodeKind::Push);
    assert!(
        passes.count() > 10
            && dry.iter().any(|node| node.details.contains(&"turn of host object \"log\"".into()))
    );
    let recorded = local_nodes(4).builder(Runtime::builder().threads(1).record_graphs(true));
    for (node, real) in recorded.run(graph).into_iter().enumerate() {
        let real = real.unwrap();
        let of_node = format!("node {node}");
        let dry: Vec<_> = dry.iter().filter(|command| command.cluster.as_ref() == Some(&of_node)).collect();
        assert_eq!(real.iter().collect::<Vec<_>>(), dry, "{of_node}");
    }
}
