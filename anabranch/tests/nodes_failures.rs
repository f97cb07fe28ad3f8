//! Failures and cancellations on several nodes: they go where the data would have gone, and every node gets
//! the same error at the same point of the program.

mod common;

use anabranch::{NodeError, local_nodes, prelude::*};
use common::block_on;
use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use testing::deadline;

const NODES: [u16; 5] = [1, 2, 3, 4, 7];

/// Runs a program on these numbers of nodes with 1 to 3 threads and with delays, and returns the results of
/// the nodes of each run.
fn run_on<R: Send>(nodes: &[u16], program: impl Fn(Runtime) -> Result<R, Error> + Sync) -> Vec<Vec<R>> {
    let mut runs = Vec::new();
    for &count in nodes {
        for threads in 1..=3 {
            let seed = u64::from(count) * 10 + threads as u64;
            let local = local_nodes(count).threads(threads).delays(threads as u32 * 3, seed);
            let results = local.run(&program).into_iter().enumerate();
            let result = |(node, result): (usize, Result<R, Error>)| {
                result.unwrap_or_else(|error| panic!("node {node} of {count}: {error}"))
            };
            runs.push(results.map(result).collect());
        }
    }
    runs
}

/// Runs a program that returns the same on every node, and returns the result of each run.
fn same_on<R: Send + PartialEq + Debug>(
    nodes: &[u16],
    program: impl Fn(Runtime) -> Result<R, Error> + Sync,
) -> Vec<R> {
    let mut runs = run_on(nodes, program);
    for results in &runs {
        assert!(results.iter().all(|result| *result == results[0]), "{results:#?}");
    }
    runs.iter_mut().map(|results| results.remove(0)).collect()
}

fn text(result: Result<(), Error>) -> String {
    result.expect_err("a task has failed").to_string()
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Panics,
    LeavesItsRegion,
    ReturnsAnError,
}

/// Writes u, but for the part of node `odd`.
fn fill(rt: &Runtime, u: &Buffer<u64, 1>, way: Way, odd: u16) -> Result<TaskHandle, Error> {
    let fails = rt.node() == odd;
    let task = rt.task("fill").over(u.extent()).write(u, one_to_one());
    match way {
        Way::ReturnsAnError => task.host(move |tile, (u,)| {
            tile.points().for_each(|i| u.set(i, 1));
            if fails { Err("no luck") } else { Ok(()) }
        }),
        _ => task.kernel(move |tile, (u,)| {
            if fails && matches!(way, Way::Panics) {
                panic!("no luck");
            }
            let far = if fails { 1_000 } else { 0 };
            tile.points().for_each(|[i]| u.set([i + far], 1));
        }),
    }
}

#[test]
fn a_failure_on_one_node_is_the_same_error_on_all_and_the_program_goes_on() {
    let _deadline = deadline();
    for (way, why) in [
        (Way::Panics, "it panicked in chunk "),
        (Way::LeavesItsRegion, "but declared "),
        (Way::ReturnsAnError, ": no luck"),
    ] {
        for odd in [0, 1, 6] {
            let texts = same_on(&NODES, |rt| {
                let (u, v) = (rt.buffer::<u64, 1>([70]).named("u"), rt.buffer::<u64, 1>([70]).named("v"));
                let other = rt.buffer_from(&[5_u64; 70])?;
                let odd = odd.min(rt.nodes() - 1);
                let failed = fill(&rt, &u, way, odd)?;
                let add = rt.task("add").over([70]).read(&u, one_to_one()).write(&v, one_to_one());
                let needs = add.kernel(|tile, (u, v)| tile.points().for_each(|i| v.set(i, u[i] + 1)))?;
                rt.task("other").over([70]).update(&other, one_to_one()).kernel(|tile, (other,)| {
                    tile.points().for_each(|i| other[i] += 1);
                })?;
                let text = text(rt.wait());
                let is_odd = rt.node() == odd;
                let statuses =
                    if is_odd { (Status::Failed, Status::Skipped) } else { (Status::Done, Status::Done) };
                assert_eq!((failed.status(), needs.status()), statuses);
                // It is reported once, and what does not need it has run.
                rt.wait()?;
                assert_eq!(rt.fence(&other)?.wait()?.into_vec(), [6; 70]);
                // Others have got what has been written, and all know what has not.
                let fence = rt.fence(&v)?.wait().unwrap_err().to_string();
                // A complete overwrite heals.
                rt.task("heal").over([70]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(3))?;
                rt.task("add")
                    .over([70])
                    .read(&u, one_to_one())
                    .write(&v, one_to_one())
                    .kernel(|tile, (u, v)| tile.points().for_each(|i| v.set(i, u[i] + 1)))?;
                assert_eq!(rt.drain(v.capture())?.into_vec(), [4; 70]);
                Ok((text, fence))
            });
            for (at, (wait, fence)) in texts.iter().enumerate() {
                let nodes = NODES[at / 3];
                assert!(wait.starts_with("task \"fill\" (") && wait.contains(why), "{wait}");
                assert!(wait.contains(&format!("failed on node {}: ", odd.min(nodes - 1))), "{wait}");
                assert!(
                    wait.ends_with("(1 part of a task that depends on a failed task was skipped)"),
                    "{wait}"
                );
                assert!(fence.contains("task \"add\"") && fence.contains(why), "{fence}");
            }
        }
    }
}

#[test]
fn a_poisoned_border_reaches_only_the_neighbours_that_read_it() {
    let _deadline = deadline();
    for results in run_on(&[7], |rt| {
        let buffers = [(); 4].map(|()| rt.buffer::<u64, 1>([70]));
        fill(&rt, &buffers[0], Way::Panics, 3)?;
        let mut steps = Vec::new();
        for pair in buffers.windows(2) {
            let step =
                rt.task("step").over([70]).read(&pair[0], neighborhood([1])).write(&pair[1], one_to_one());
            steps.push(step.kernel(|tile, (_, next)| tile.points().for_each(|i| next.set(i, 1)))?);
        }
        let error = text(rt.wait());
        assert!(
            error.contains("on node 3")
                && error.ends_with("(15 parts of tasks that depend on failed tasks were skipped)"),
            "{error}"
        );
        Ok(steps.iter().map(|step| step.status() == Status::Skipped).collect::<Vec<_>>())
    }) {
        for (node, skipped) in results.iter().enumerate() {
            let distance = node.abs_diff(3);
            assert_eq!(*skipped, [distance <= 1, distance <= 2, distance <= 3], "node {node}");
        }
    }
}

#[test]
fn a_chain_of_causes_over_several_nodes_names_every_task_and_node() {
    let _deadline = deadline();
    let texts = same_on(&[3, 4, 7], |rt| {
        let [a, b, c] = [(); 3].map(|()| rt.buffer::<u64, 1>([10]));
        rt.task("load").once().on_node(2)?.write(&a, all()).host(|(_a,)| Err("no such file"))?;
        rt.task("convert").once().on_node(0)?.read(&a, all()).write(&b, all()).host(|(_, _)| ())?;
        rt.task("use").once().on_node(1)?.read(&b, all()).write(&c, all()).host(|(_, _)| ())?;
        let Err(Error::Failed(failures)) = rt.fence(&c)?.wait() else { panic!("the fence is poisoned") };
        let chain: Vec<_> = failures.iter().next().unwrap().chain().collect();
        let names: Vec<_> =
            chain.iter().map(|failure| (failure.task.name().to_owned(), failure.node())).collect();
        assert!(rt.wait().unwrap_err().to_string().contains("no such file"));
        Ok((names, failures.to_string()))
    });
    for (names, text) in texts {
        let expected =
            [("use", 1), ("convert", 0), ("load", 2)].map(|(name, node)| (name.to_owned(), Some(node)));
        assert_eq!(names, expected);
        assert!(text.contains("failed on node 2: no such file"), "{text}");
        assert!(text.contains("tests/nodes_failures.rs:") || text.contains("nodes_failures.rs:"), "{text}");
    }
}

#[test]
fn old_failures_are_found_behind_many_tasks() {
    let _deadline = deadline();
    for (fence, half, object) in same_on(&[1, 2, 3], |rt| {
        let (u, other) = (rt.buffer::<u64, 1>([60]), rt.buffer_from(&[0_u64; 60])?);
        let log = rt.host_object(0);
        let last = rt.nodes() - 1;
        fill(&rt, &u, Way::Panics, last)?;
        rt.task("log").collective().effect(&log, sequential()).host(|_, (_,)| Err("no log"))?;
        // Horizons stand for the tasks before.
        for _ in 0..400 {
            rt.task("other").over([60]).update(&other, one_to_one()).kernel(|tile, (other,)| {
                tile.points().for_each(|i| other[i] += 1);
            })?;
        }
        let late = rt.task("late log").collective().effect(&log, exclusive()).host(|_, (log,)| *log += 1)?;
        late.wait().unwrap_err();
        let half = rt.fence(&u.part(GridBox::new(0, 20)))?.wait().map(Snapshot::into_vec);
        let fence = rt.fence(&u)?.wait().unwrap_err().to_string();
        assert!(rt.wait().is_err());
        assert_eq!(rt.drain(other.capture())?.into_vec(), [400; 60]);
        Ok((fence, half.map_err(|error| error.to_string()), log.into_inner().unwrap_or(-1)))
    }) {
        assert!(fence.contains("task \"fill\"") && fence.contains("no luck"), "{fence}");
        assert!(half == Ok(vec![1; 20]) || half.is_err_and(|error| error == fence));
        assert_eq!(object, 0);
    }
}

#[test]
fn a_reduction_with_a_failed_leaf_is_poisoned_everywhere() {
    let _deadline = deadline();
    for odd in [0, 1, 6] {
        let texts = same_on(&NODES, |rt| {
            let total = rt.buffer::<u64, 1>([3]);
            let copy = rt.buffer::<u64, 1>([3]);
            let odd = odd.min(rt.nodes() - 1);
            let sum = |fails: bool| {
                rt.task("sum").over([50]).reduce(&total, sum()).kernel(move |tile, (total,)| {
                    assert!(!fails, "no luck");
                    tile.points().for_each(|[i]| total.combine([i % 3], 1));
                })
            };
            let copies = |node: u16| {
                let task = rt.task("copy").once().on_node(node)?.read(&total, all()).write(&copy, all());
                task.host(|(total, copy)| copy.fill_with(|i| total[i]))
            };
            // All read it; then one does.
            sum(rt.node() == odd)?;
            let fence = rt.fence(&total)?.wait().unwrap_err().to_string();
            sum(rt.node() == odd)?;
            copies(rt.nodes() - 1)?;
            let read = rt.fence(&copy)?.wait().unwrap_err().to_string();
            let wait = text(rt.wait());
            sum(false)?;
            copies(0)?;
            let (total, copy) = rt.drain((total.capture(), copy.capture()))?;
            assert_eq!((total.into_vec(), copy.into_vec()), (vec![17, 17, 16], vec![17, 17, 16]));
            Ok((fence, read, wait))
        });
        for (fence, read, wait) in texts {
            assert!(fence.starts_with("task \"sum\"") && fence.contains("no luck"), "{fence}");
            assert!(read.starts_with("task \"copy\"") && read.contains("because task \"sum\""), "{read}");
            assert_eq!(wait.matches("task \"sum\"").count(), 2, "{wait}");
        }
    }
}

#[test]
fn of_large_boxes_the_good_parts_arrive() {
    let _deadline = deadline();
    const N: usize = 280;
    for results in run_on(&[2, 4, 7], |rt| {
        let (u, v) = (rt.buffer::<u32, 2>([N, N]), rt.buffer::<u32, 2>([N, N]));
        let fails = rt.node() == 1;
        rt.task("fill").over([N, N]).write(&u, one_to_one()).kernel(move |_, (u,)| {
            assert!(!fails, "no luck");
            u.fill_with(|[y, x]| (y * N + x) as u32);
        })?;
        // Every node needs columns of all nodes.
        let turn = rt.task("turn").over([N, N]).read(&u, transposed()).write(&v, one_to_one());
        let turn = turn.kernel(|tile, (u, v)| tile.points().for_each(|[y, x]| v.set([y, x], u[[x, y]])))?;
        rt.wait().unwrap_err();
        assert_eq!(turn.status(), Status::Skipped);
        // The rows of the first node are good, wherever they are by now.
        let rows = N / usize::from(rt.nodes());
        let good = rt.fence(&u.part(GridBox::new([0, 0], [rows, N])))?.wait()?.into_vec();
        assert_eq!(good, (0..(rows * N) as u32).collect::<Vec<_>>());
        let part = GridBox::new([0, 0], [N, 1]);
        Ok(rt.fence(&u.part(part))?.wait().unwrap_err().to_string())
    }) {
        assert!(results.iter().all(|text| *text == results[0] && text.contains("on node 1")), "{results:?}");
    }
}

#[test]
fn several_failures_are_one_report_on_all_nodes() {
    let _deadline = deadline();
    for text in same_on(&[1, 2, 4, 7], |rt| {
        for task in 0..3 {
            let node = rt.node();
            rt.task(format!("task {task}"))
                .collective()
                .host(move |_, ()| if u64::from(node) % 2 == task % 2 { Err("no luck") } else { Ok(()) })?;
        }
        let text = text(rt.wait());
        rt.wait()?;
        Ok(text)
    }) {
        let mut numbers: Vec<_> = text.split("; ").map(|part| part.split('"').nth(1).unwrap()).collect();
        assert!(numbers.is_sorted(), "{text}");
        numbers.dedup();
        assert!(numbers.len() >= 2, "{text}");
    }
}

#[test]
fn a_question_mark_parts_no_nodes() {
    let _deadline = deadline();
    for count in NODES {
        let after = AtomicUsize::new(0);
        let results = local_nodes(count).threads(2).delays(3, 5).run(|rt| {
            let u = rt.buffer::<u64, 1>([64]);
            fill(&rt, &u, Way::ReturnsAnError, rt.nodes() - 1)?;
            rt.wait()?;
            after.fetch_add(1, Relaxed);
            rt.drain(u.capture()).map(drop)
        });
        let texts: Vec<_> = results.into_iter().map(text).collect();
        assert!(texts.iter().all(|text| *text == texts[0] && text.contains("no luck")), "{texts:?}");
        assert_eq!(after.load(Relaxed), 0);
    }
}

#[test]
fn a_check_finds_a_failure_of_another_node_at_the_same_step() {
    let _deadline = deadline();
    for (step, text) in same_on(&NODES, |rt| {
        let odd = rt.node() == rt.nodes() / 2;
        for step in 0.. {
            rt.task("step")
                .collective()
                .host(move |_, ()| if odd && step == 5 { Err("no luck") } else { Ok(()) })?;
            if let Err(error) = rt.check() {
                rt.wait()?;
                return Ok((step, error.to_string()));
            }
        }
        unreachable!()
    }) {
        assert!(step >= 5 && text.contains("no luck"), "{step}: {text}");
    }
}

#[test]
fn futures_give_the_same_errors() {
    let _deadline = deadline();
    for texts in same_on(&[1, 2, 4], |rt| {
        let u = rt.buffer::<u64, 1>([64]);
        let odd = rt.nodes() - 1;
        let group = rt.group("group");
        block_on(async {
            let mut texts = Vec::new();
            fill(&rt, &u, Way::Panics, odd)?;
            texts.push(text(rt.idle().await));
            fill(&rt, &u, Way::ReturnsAnError, 0)?;
            texts.push(text(rt.barrier().await));
            let node = rt.node();
            group
                .task("task")
                .collective()
                .host(move |_, ()| if node == odd { Err("no luck") } else { Ok(()) })?;
            texts.push(text(group.idle().await));
            rt.idle().await?;
            // A future that is dropped before its end holds up no node.
            fill(&rt, &u, Way::Panics, odd)?;
            drop(rt.idle());
            if rt.node() == 0 {
                std::future::poll_fn(|context| {
                    let _ = std::pin::pin!(rt.idle()).poll(context);
                    std::task::Poll::Ready(())
                })
                .await;
            } else {
                let _ = rt.idle().await;
            }
            rt.task("heal").over([64]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(3))?;
            let _ = rt.wait();
            assert_eq!(rt.drain_async(u.capture()).await?.into_vec(), [3; 64]);
            Ok(texts)
        })
    }) {
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|text| text.contains("no luck")), "{texts:?}");
    }
}

#[test]
fn groups_report_their_own_failures_on_all_nodes() {
    let _deadline = deadline();
    for texts in same_on(&NODES, |rt| {
        let [solver, output] = ["solver", "output"].map(|name| rt.group(name));
        let odd = rt.node() == rt.nodes() - 1;
        let calls = Arc::new(AtomicUsize::new(0));
        for group in [&solver, &output] {
            let fails = odd && group.name() == "output";
            group.task("task").collective().host(move |_, ()| if fails { Err("no disk") } else { Ok(()) })?;
            let calls = Arc::clone(&calls);
            group.on_done(move |status| {
                assert_eq!(status == Status::Failed, fails);
                calls.fetch_add(1, Relaxed);
            });
        }
        solver.wait()?;
        rt.wait()?;
        assert_eq!(calls.load(Relaxed), 2);
        let texts = [text(output.wait()), format!("{:?}", output.check().is_ok())];
        Ok(texts)
    }) {
        assert!(texts[0].contains("no disk") && texts[1] == "true", "{texts:?}");
    }
}

#[test]
fn a_cancellation_of_one_node_goes_with_the_data() {
    let _deadline = deadline();
    for odd in [0, 1, 6] {
        for results in run_on(&NODES, |rt| {
            let (u, v) = (rt.buffer::<u64, 1>([70]), rt.buffer::<u64, 1>([70]));
            let log = rt.host_object(0);
            let (group, odd) = (rt.group("group"), odd.min(rt.nodes() - 1));
            if rt.node() == odd {
                group.cancel();
            }
            let task = group.task("fill").over([70]).write(&u, one_to_one()).effect(&log, sequential());
            let task = task.host(|_, (u, log)| {
                u.fill(1);
                *log += 1;
            })?;
            let next = rt.task("next").over([70]).read(&u, one_to_one()).write(&v, one_to_one());
            let next = next.kernel(|tile, (u, v)| tile.points().for_each(|i| v.set(i, u[i])))?;
            rt.task("log").collective().effect(&log, sequential()).host(|_, (log,)| *log += 10)?;
            // The program has asked for it: no wait reports it.
            group.wait()?;
            rt.wait()?;
            let is_odd = rt.node() == odd;
            let statuses =
                if is_odd { (Status::Cancelled, Status::Skipped) } else { (Status::Done, Status::Done) };
            assert_eq!((task.status(), next.status()), statuses);
            let fence = rt.fence(&v)?.wait().unwrap_err().to_string();
            assert!(fence.contains("task \"fill\"") && fence.contains("it was cancelled"), "{fence}");
            assert!(fence.contains(&format!("failed on node {odd}: it was cancelled")), "{fence}");
            assert_eq!(rt.drain(log.capture())?, if is_odd { 10 } else { 11 });
            Ok(fence)
        }) {
            assert!(results.iter().all(|text| *text == results[0]), "{results:?}");
        }
    }
}

#[test]
fn one_task_can_be_cancelled_on_all_nodes() {
    let _deadline = deadline();
    same_on(&NODES, |rt| {
        let u = rt.buffer::<u64, 1>([70]);
        let gate = common::Gate::default();
        let open = gate.clone();
        rt.task("first").over([70]).write(&u, one_to_one()).host(move |_, (u,)| {
            gate.pass();
            u.fill(1);
        })?;
        let task = rt.task("task").over([70]).update(&u, one_to_one()).kernel(|_, (_u,)| ())?;
        let cancelled = task.cancel();
        open.open();
        rt.wait()?;
        assert!(cancelled && task.status() == Status::Cancelled);
        let error = rt.fence(&u)?.wait().unwrap_err().to_string();
        assert!(error.contains("it was cancelled"), "{error}");
        Ok(error)
    });
}

#[test]
fn a_refused_task_is_an_error_and_the_program_goes_on() {
    let _deadline = deadline();
    same_on(&NODES, |rt| {
        let u = rt.buffer::<u64, 1>([70]).named("u");
        let mut texts = Vec::new();
        for _ in 0..2 {
            // Refused by the declaration, by the task graph, and by the command graph if there are several
            // nodes.
            let refused = [
                rt.task("outside").over([71]).write(&u, one_to_one()).kernel(|_, _| ()),
                rt.task("never written").over([70]).read(&u, one_to_one()).kernel(|_, _| ()),
                rt.task("all write all").over([70]).chunks(7).write(&u, all()).kernel(|_, _| ()),
            ];
            texts.extend(
                refused.map(|result| result.unwrap_err().to_string().split(':').next().unwrap().to_owned()),
            );
        }
        rt.task("fill").over([70]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(7))?;
        assert_eq!(rt.drain(u.capture())?.into_vec(), [7; 70]);
        Ok(texts)
    });
}

#[test]
fn thousands_of_refused_tasks_in_a_row_end_nothing() {
    let _deadline = deadline();
    same_on(&NODES, |rt| {
        let u = rt.buffer::<u64, 1>([70]).named("u");
        for _ in 0..3000 {
            rt.task("never written").over([70]).read(&u, one_to_one()).kernel(|_, _| ()).unwrap_err();
        }
        rt.wait()
    });
}

#[test]
fn a_task_that_one_node_alone_refuses_ends_the_run() {
    let _deadline = deadline();
    for count in [2, 3, 7] {
        let results = local_nodes(count).threads(2).delays(3, 5).run(|rt| {
            let space = if rt.node() == 1 { 71 } else { 70 };
            let u = rt.buffer_from(&[0_u64; 70])?.named("u");
            rt.wait()?;
            rt.task("outside").over([space]).update(&u, one_to_one()).kernel(|_, _| ())?;
            rt.wait()
        });
        for (node, result) in results.into_iter().enumerate() {
            let error = result.unwrap_err();
            match node {
                1 => assert!(matches!(error, Error::Declaration(_)), "{error}"),
                _ => {
                    assert!(matches!(error, Error::Nodes(_)), "{error}");
                    assert!(error.to_string().contains("submission 2 of the program is"), "{error}");
                    assert!(error.to_string().contains("\"outside\""), "{error}");
                }
            }
        }
    }
}

#[test]
fn nodes_agree_on_values_and_results() {
    let _deadline = deadline();
    for ((own, stop, large), count) in same_on(&NODES, |rt| {
        let own = rt.agree([u32::from(rt.node()), 7])?;
        let stop = rt.agree(rt.node() + 1 == rt.nodes())?;
        let large = rt.agree([u64::from(rt.node()) + 1; 4_096])?;
        let node = rt.node();
        assert_eq!(rt.agree_result(Ok::<_, &str>(node))?, node);
        for odd in 0..rt.nodes() {
            let result = if rt.node() >= odd { Err(format!("node {node} has no file")) } else { Ok(()) };
            let error = rt.agree_result(result).unwrap_err();
            assert!(error.to_string().starts_with(&format!("node {odd} has no file")), "{error}");
            assert!(matches!(error, Error::Agreed { node, .. } if node == (rt.nodes() > 1).then_some(odd)));
        }
        // What concerns one node only becomes one decision.
        let task = rt.task("task").once().on_node(rt.nodes() - 1)?.host(|()| Err("no luck"))?;
        let error = rt.agree_result(task.wait()).unwrap_err().to_string();
        assert!(error.contains("no luck"), "{error}");
        assert!(rt.wait().is_err());
        Ok((own, stop, large))
    })
    .into_iter()
    .zip(NODES.iter().flat_map(|&count| [count; 3]))
    {
        assert!(own.iter().copied().eq((0..u32::from(count)).map(|node| [node, 7])));
        assert_eq!(stop.iter().position(|stop| *stop), Some(usize::from(count) - 1));
        assert!(large.iter().zip(1..).all(|(large, node)| *large == [node; 4_096]));
    }
}

#[test]
fn nodes_that_agree_at_different_points_are_noticed() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(1).run(|rt| {
        if rt.node() == 2 {
            rt.wait()?;
        }
        rt.agree(1_u8).map(drop)
    });
    for result in results {
        let Err(Error::Nodes(why)) = result else { panic!("the programs differ") };
        assert!(matches!(*why, NodeError::Different { number: 1, .. } | NodeError::Other { .. }), "{why}");
    }
}
