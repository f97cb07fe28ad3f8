//! Communicators for tasks that call MPI: which tasks begin, and in which order.

use anabranch::{LocalNodes, local_nodes, prelude::*};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
    time::Duration,
};
use testing::deadline;

/// Nodes that may make communicators, with delays.
fn nodes(count: u16, seed: u64) -> LocalNodes {
    let builder = Runtime::builder().threads(2).communicators(true);
    local_nodes(count).builder(builder).delays(6, seed)
}

/// Stands for the calls of MPI of one communicator: each waits for all nodes.
#[derive(Clone)]
struct Calls {
    all: Arc<Barrier>,
    /// How many tasks have made their call, on all nodes.
    made: Arc<AtomicUsize>,
}

impl Calls {
    fn of(nodes: u16) -> Self {
        Self { all: Arc::new(Barrier::new(nodes.into())), made: Arc::default() }
    }

    /// The call of the task with this number, among those that run. All nodes are in the same call.
    fn call(&self, nodes: u16) {
        let before = self.made.load(SeqCst) / usize::from(nodes);
        self.all.wait();
        self.made.fetch_add(1, SeqCst);
        self.all.wait();
        assert_eq!(self.made.load(SeqCst), (before + 1) * usize::from(nodes));
        self.all.wait();
    }
}

#[test]
fn a_program_must_ask_for_communicators() {
    let _deadline = deadline();
    for nodes in [1, 3] {
        let results = local_nodes(nodes).threads(1).run(|rt| {
            let error = rt.communicator().unwrap_err().to_string();
            // All nodes have refused it.
            rt.wait()?;
            Ok(error)
        });
        for error in results {
            let error = error.unwrap();
            assert!(
                error.contains("communicators is false") && error.contains("communicators(true)"),
                "{error}"
            );
        }
    }
    let rt = Runtime::new().unwrap();
    assert!(rt.communicator().is_err());
}

#[test]
fn there_are_at_most_as_many_communicators_as_host_lanes() {
    let _deadline = deadline();
    let rt = Runtime::builder().communicators(true).host_lanes(2).build().unwrap();
    let made = [rt.communicator().unwrap(), rt.communicator().unwrap()];
    let error = rt.communicator().unwrap_err().to_string();
    assert!(error.contains("at most `host_lanes`"), "{error}");
    drop(made);
    // They are valid as long as the runtime, so they count as long.
    assert!(rt.communicator().is_err());
}

#[test]
fn tasks_of_a_communicator_run_in_order_on_all_nodes() {
    let _deadline = deadline();
    for count in [1, 2, 3, 4] {
        let calls = [Calls::of(count), Calls::of(count)];
        let results = nodes(count, 7).run(|rt| {
            let comms = [rt.communicator()?.named("first"), rt.communicator()?];
            assert_eq!(format!("{:?}", comms[0]), "host object \"first\"");
            let u = rt.buffer_from(&[0_u64; 12])?;
            let order = [rt.host_object(Vec::new()), rt.host_object(Vec::new())];
            for step in 0..20 {
                let which = usize::from(step % 3 == 0);
                let calls = calls[which].clone();
                rt.task("add").over([12]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                    tile.points().for_each(|i| u[i] += 1);
                })?;
                rt.task("call")
                    .collective()
                    .update(&u, even_split())
                    .effect(&comms[which], sequential())
                    .effect(&order[which], sequential())
                    .host(move |_, (u, comm, order)| {
                        assert_eq!(comm, None, "these nodes have no MPI");
                        calls.call(count);
                        if let Some(part) = u.as_mut_slice() {
                            assert!(part.iter().all(|&value| value == 2 * step + 1));
                            part.iter_mut().for_each(|value| *value += 1);
                        }
                        order.push(step);
                    })?;
            }
            let [first, second] = order;
            rt.drain((first.capture(), second.capture()))
        });
        for result in results {
            let (second, first): (Vec<u64>, Vec<_>) = (0..20).partition(|step| step % 3 == 0);
            assert_eq!(result.unwrap(), (first, second));
        }
    }
}

/// A task that needs what has failed on one node would leave the others in a call of MPI.
#[test]
fn a_task_begins_on_all_nodes_or_on_none() {
    let _deadline = deadline();
    for failing in 0..3 {
        let calls = Calls::of(3);
        let results = nodes(3, u64::from(failing)).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let u = rt.buffer::<f64, 1>([9]);
            rt.task("load").over([9]).write(&u, one_to_one()).host(move |_, (u,)| {
                u.fill(1.0);
                if node == failing { Err("no such file") } else { Ok(()) }
            })?;
            let part = |name, u: &Buffer<f64, 1>| {
                let calls = calls.clone();
                rt.task(name)
                    .collective()
                    .read(u, even_split())
                    .effect(&comm, sequential())
                    .host(move |_, _| calls.call(3))
            };
            let skipped = part("solve", &u)?;
            let error = rt.wait().unwrap_err().to_string();
            assert!(skipped.wait().is_err());
            assert_eq!(calls.made.load(SeqCst), 0);
            // The skipped task has not left the communicator as it should be: so it goes with every object.
            let good = rt.buffer_from(&[0.0; 9])?;
            let later = part("solve again", &good)?;
            assert!(later.wait().is_err());
            assert!(rt.wait().is_err());
            Ok(error)
        });
        for error in results {
            let error = error.unwrap();
            assert!(error.contains(&format!("failed on node {failing}: no such file")), "{error}");
        }
        assert_eq!(calls.made.load(SeqCst), 0);
    }
}

#[test]
fn a_task_that_fails_breaks_the_communicator_on_all_nodes() {
    let _deadline = deadline();
    let calls = Calls::of(3);
    let results = nodes(3, 3).run(|rt| {
        let node = rt.node();
        let comm = rt.communicator()?;
        let other = rt.communicator()?;
        let call = |name, comm, fails: bool| {
            let calls = calls.clone();
            rt.task(name).collective().effect(comm, sequential()).host(move |_, _| {
                calls.call(3);
                if fails { Err("did not converge") } else { Ok(()) }
            })
        };
        call("first", &comm, node == 1)?;
        let second = call("second", &comm, false)?;
        let failures = rt.wait().unwrap_err().to_string();
        assert!(second.wait().is_err());
        call("third", &other, false)?;
        rt.wait()?;
        Ok(failures)
    });
    for failures in results {
        let failures = failures.unwrap();
        assert!(failures.contains("failed on node 1: did not converge"), "{failures}");
    }
    assert_eq!(calls.made.load(SeqCst), 6, "the first and the third");
}

/// A cancellation on one node would leave the others in a call of MPI, too. It breaks nothing.
#[test]
fn a_task_that_one_node_has_cancelled_is_skipped_on_all() {
    let _deadline = deadline();
    for in_group in [false, true] {
        let calls = Calls::of(3);
        let results = nodes(3, 5).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let group = rt.group("calls");
            let (go, wait) = mpsc::channel::<()>();
            let blocked = rt.host_object(wait);
            rt.task("waits")
                .once()
                .on_node(1)?
                .effect(&blocked, sequential())
                .host(|(wait,)| wait.recv().unwrap())?;
            let call = |rt: anabranch::interface::NewTask<'_>| {
                let calls = calls.clone();
                rt.collective()
                    .effect(&blocked, sequential())
                    .effect(&comm, sequential())
                    .host(move |_, _| calls.call(3))
            };
            let cancelled = call(if in_group { group.task("cancelled") } else { rt.task("cancelled") })?;
            let runs = call(rt.task("runs"))?;
            if node == 1 {
                match in_group {
                    true => group.cancel(),
                    false => assert!(cancelled.cancel()),
                }
                go.send(()).unwrap();
            }
            runs.wait()?;
            rt.wait()?;
            let status = cancelled.status();
            assert!(
                matches!((node, &status), (1, Status::Cancelled) | (_, Status::Skipped)),
                "{node}: {status:?}"
            );
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(calls.made.load(SeqCst), 3);
    }
}

/// When all nodes are ready, a task is not cancelled any more, even if its function has not begun on this
/// node.
#[test]
fn a_task_is_not_cancelled_when_all_nodes_are_ready() {
    let _deadline = deadline();
    let calls = Calls::of(2);
    let begun = Barrier::new(2);
    let results = {
        let builder =
            Runtime::builder().threads(1).host_lanes(1).help_while_waiting(false).communicators(true);
        local_nodes(2).builder(builder).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let (go, wait) = mpsc::channel::<()>();
            let (ready, is_ready) = mpsc::channel::<()>();
            // It has the only lane of node 1.
            rt.task("holds the lane").once().on_node(1)?.host(move |()| {
                ready.send(()).unwrap();
                wait.recv().unwrap();
            })?;
            if node == 1 {
                is_ready.recv().unwrap();
            }
            let (began, has_begun) = mpsc::channel();
            let calls = calls.clone();
            let task = rt.task("call").collective().effect(&comm, sequential()).host(move |_, _| {
                began.send(()).unwrap();
                calls.call(2);
            })?;
            if node == 0 {
                has_begun.recv().unwrap();
            }
            begun.wait();
            // Node 0 is in the call.
            assert!(!task.cancel());
            if node == 1 {
                go.send(()).unwrap();
            }
            rt.wait()
        })
    };
    results.into_iter().for_each(|result| result.unwrap());
    assert_eq!(calls.made.load(SeqCst), 2);
}

/// Each node decides for itself in which order tasks with exclusive effects run. With two communicators, one
/// node could be in the call of one task, and another node in that of the other.
#[test]
fn effects_without_an_order_are_refused() {
    let _deadline = deadline();
    for nodes in [1, 3] {
        let builder = Runtime::builder().threads(1).communicators(true);
        let results = local_nodes(nodes).builder(builder).run(|rt| {
            let (comm, object) = (rt.communicator()?, rt.host_object(0));
            let task = || rt.task("call").collective().effect(&comm, sequential());
            let errors = [
                task().effect(&object, exclusive()).host(|_, _| ()).unwrap_err(),
                task().effect(&object, relaxed()).host(|_, _| ()).unwrap_err(),
            ];
            task().effect(&object, sequential()).host(|_, (_, object)| *object += 1)?;
            assert_eq!(rt.drain(object.capture())?, 1);
            Ok(errors.map(|error| error.to_string()))
        });
        for error in results.into_iter().flat_map(|errors| errors.unwrap()) {
            assert!(error.contains("communicator") && error.contains("`sequential()`"), "{error}");
        }
    }
}

#[test]
fn a_task_may_have_several_communicators_and_an_object_of_the_whole_cluster() {
    let _deadline = deadline();
    let calls = Calls::of(3);
    let results = nodes(3, 11).run(|rt| {
        let comms = [rt.communicator()?, rt.communicator()?];
        let log = rt.cluster_object(2, Vec::new)?;
        for step in 0..10 {
            let calls = calls.clone();
            let task = rt.task("call").collective().effect(&comms[0], sequential());
            let task = task.effect(&comms[1], sequential()).effect(&log, sequential());
            task.host(move |_, (_, _, log)| {
                calls.call(3);
                log.into_iter().for_each(|log| log.push(step));
            })?;
        }
        rt.drain(log.capture())
    });
    let logs: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(logs, [None, None, Some((0..10).collect())]);
    assert_eq!(calls.made.load(SeqCst), 30);
}

/// One node has cancelled the task, and another one cannot run it.
#[test]
fn a_failure_on_one_node_and_a_cancellation_on_another_skip_the_task_on_all() {
    let _deadline = deadline();
    let calls = Calls::of(3);
    let results = nodes(3, 2).run(|rt| {
        let (node, comm) = (rt.node(), rt.communicator()?);
        let (go, wait) = mpsc::channel::<()>();
        let u = rt.buffer::<u8, 1>([3]);
        rt.task("fails").over([3]).write(&u, one_to_one()).host(move |_, (u,)| {
            u.fill(1);
            wait.recv().unwrap();
            if node == 0 { Err("no such file") } else { Ok(()) }
        })?;
        let call = |name, u: &Buffer<u8, 1>| {
            let (calls, task) = (calls.clone(), rt.task(name).collective().read(u, one_to_one()));
            task.effect(&comm, sequential()).host(move |_, _| calls.call(3))
        };
        let task = call("call", &u)?;
        if node == 1 {
            assert!(task.cancel());
        }
        go.send(()).unwrap();
        let error = rt.wait().unwrap_err().to_string();
        // Node 0 has left the communicator as it should not be.
        let good = rt.buffer_from(&[0; 3])?;
        call("next", &good)?;
        assert!(rt.wait().is_err());
        Ok((task.status(), error))
    });
    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    let states: Vec<_> = results.iter().map(|(status, _)| *status).collect();
    assert_eq!(states, [Status::Skipped, Status::Cancelled, Status::Skipped]);
    assert!(results.iter().all(|(_, error)| error.contains("failed on node 0: no such file")), "{results:?}");
    assert_eq!(calls.made.load(SeqCst), 0);
}

/// When the run ends after all nodes were ready, and before one of them has begun its part, the others are in
/// the call.
#[test]
fn a_task_runs_on_all_nodes_although_the_run_ends() {
    let _deadline = deadline();
    let calls = Calls::of(2);
    let builder = Runtime::builder().threads(1).host_lanes(1).help_while_waiting(false).communicators(true);
    let results = local_nodes(2).builder(builder).run(|rt| {
        let (node, comm) = (rt.node(), rt.communicator()?);
        let (go, wait) = mpsc::channel::<()>();
        let (ready, is_ready) = mpsc::channel::<()>();
        // It has the only lane of node 1.
        rt.task("holds the lane").once().on_node(1)?.host(move |()| {
            ready.send(()).unwrap();
            wait.recv().unwrap();
        })?;
        if node == 1 {
            is_ready.recv().unwrap();
        }
        let calls = calls.clone();
        let (began, has_begun) = mpsc::channel();
        rt.task("call").collective().effect(&comm, sequential()).host(move |_, _| {
            began.send(()).unwrap();
            calls.call(2);
        })?;
        if node == 0 {
            has_begun.recv().unwrap();
        } else {
            // Node 0 is in the call, and so this node has heard, or will hear at once, that all are ready.
            thread::sleep(Duration::from_millis(200));
            // Another thread must not create a buffer: the run ends.
            thread::scope(|scope| scope.spawn(|| drop(rt.buffer::<u8, 1>([1]))).join().unwrap());
            go.send(()).unwrap();
        }
        Ok(rt.wait().unwrap_err().to_string())
    });
    for error in results {
        let error = error.unwrap();
        assert!(error.contains("the run has ended") || error.contains("one thread"), "{error}");
    }
    assert_eq!(calls.made.load(SeqCst), 2);
}
