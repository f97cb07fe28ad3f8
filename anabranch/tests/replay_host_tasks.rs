//! Host tasks of sequences that are more than one call: with a part for each node, and those that block.

mod common;

use anabranch::{
    ClusterObject,
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use common::{Gate, THREADS, runtime, same_on};
use std::{
    sync::{Arc, Barrier},
    thread,
};
use testing::deadline;

const LEN: usize = 11;
const REPLAYS: u64 = 5;

/// A buffer, and a log of the whole cluster on its home.
type Left = (Vec<u64>, Option<Vec<(u64, usize)>>);

fn left(rt: &Runtime, u: &Buffer<u64, 1>, log: ClusterObject<Vec<(u64, usize)>>) -> Result<Left, Error> {
    let u = rt.fence(u)?.wait()?.into_vec();
    Ok((u, rt.barrier_with(log.capture())?.wait()?))
}

/// A host task over an index space and a collective one, which are submitted in each step.
fn submitted(rt: &Runtime) -> Result<Left, Error> {
    let (u, log) = (rt.buffer_from(&[1_u64; LEN])?, rt.cluster_object(0, Vec::new)?);
    for replay in 0..REPLAYS {
        let task = rt.task("grow").over([LEN]).update(&u, one_to_one()).effect(&log, sequential());
        task.host(move |tile, (u, log)| {
            tile.points().for_each(|[i]| u[[i]] = u[[i]] * 3 + i as u64 + replay);
            log.into_iter().for_each(|log| log.push((replay, tile.global().len())));
        })?;
        let task = rt.task("meet").collective().read(&u, all()).effect(&log, sequential());
        task.host(move |_, (u, log)| log.into_iter().for_each(|log| log.push((u[[LEN - 1]], LEN))))?;
    }
    left(rt, &u, log)
}

/// The same by a sequence.
fn replayed(rt: &Runtime) -> Result<Left, Error> {
    let (u, log) = (rt.buffer_from(&[1_u64; LEN])?, rt.cluster_object(0, Vec::new)?);
    let steps = rt.record("steps", |body| {
        let task = body.task("grow").over([LEN]).update(&u, one_to_one()).effect(&log, sequential());
        task.host(|tile, (u, log)| {
            tile.points().for_each(|[i]| u[[i]] = u[[i]] * 3 + i as u64 + tile.replay());
            log.into_iter().for_each(|log| log.push((tile.replay(), tile.global().len())));
        })?;
        let task = body.task("meet").collective().read(&u, all()).effect(&log, sequential());
        task.host(|_, (u, log)| log.into_iter().for_each(|log| log.push((u[[LEN - 1]], LEN))))
    })?;
    steps.replay(REPLAYS)?;
    drop(steps);
    left(rt, &u, log)
}

#[test]
fn host_tasks_with_parts_have_the_results_of_those_submitted() {
    let _deadline = deadline();
    for rt in THREADS.map(runtime) {
        let expected = submitted(&rt).unwrap();
        assert_eq!(expected.1.as_ref().map(Vec::len), Some(2 * REPLAYS as usize));
        assert_eq!(replayed(&rt).unwrap(), expected);
        rt.wait().unwrap();
    }
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let (submitted, replayed) = (submitted(&rt)?, replayed(&rt)?);
        assert_eq!(replayed, submitted, "node {} of {}", rt.node(), rt.nodes());
        rt.wait()?;
        Ok(replayed.0)
    });
}

#[test]
fn a_collective_task_is_called_on_every_node_with_its_point() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let log = rt.host_object(Vec::new());
        let notes = rt.record("notes", |body| {
            body.task("note").collective().effect(&log, sequential()).host(|tile, (log,)| {
                log.push((tile.range().min()[0], tile.replay()));
            })
        })?;
        notes.replay(3)?;
        let node = usize::from(rt.node());
        assert_eq!(rt.fence(&log)?.wait()?, [(node, 0), (node, 1), (node, 2)]);
        Ok(())
    });
}

/// Each call waits for those of the other nodes, as a call of MPI does.
fn meet(rt: &Runtime, calls: &Arc<Barrier>) -> Result<(), Error> {
    let (communicator, u) = (rt.communicator()?, rt.buffer_from(&[0_u64; LEN])?);
    let steps = rt.record("steps", |body| {
        let count = body.task("count").over([LEN]).update(&u, one_to_one());
        count.kernel(|tile, (u,)| tile.points().for_each(|p| u[p] += 1))?;
        let calls = Arc::clone(calls);
        let meet = body.task("meet").collective().read(&u, all()).effect(&communicator, sequential());
        meet.host(move |tile, (u, mpi)| {
            assert!(mpi.is_none(), "there is no MPI");
            calls.wait();
            assert_eq!(u[[0]], tile.replay() + 1);
        })
    })?;
    steps.replay(4)?;
    rt.wait()
}

#[test]
fn collective_tasks_of_a_communicator_run_in_order_on_all_nodes() {
    let _deadline = deadline();
    let builder = |threads| Runtime::builder().threads(threads).communicators(true);
    for threads in THREADS {
        meet(&builder(threads).build().unwrap(), &Arc::new(Barrier::new(1))).unwrap();
    }
    for nodes in [1, 2, 3] {
        let calls = Arc::new(Barrier::new(nodes.into()));
        let local = local_nodes(nodes).builder(builder(2)).delays(6, u64::from(nodes));
        local.run(|rt| meet(&rt, &calls)).into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn a_failing_part_names_task_and_replay() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let u = rt.buffer_from(&[0_u64; LEN])?;
        let fails = rt.record("fragile", |body| {
            body.task("part").over([LEN]).update(&u, one_to_one()).host(|tile, _| {
                let fails = tile.replay() == 2 && tile.range().contains_point([LEN - 1]);
                if fails { Err("no luck") } else { Ok(()) }
            })
        })?;
        let error = rt.agree_result(fails.replay(4)?.wait()).unwrap_err().to_string();
        // A replay that submits its tasks gives them names.
        let named = ["in replay 2, task \"part\"", "part in replay 2 of fragile"];
        assert!(named.iter().any(|named| error.contains(named)) && error.contains("no luck"), "{error}");
        assert!(rt.wait().is_err());
        Ok(())
    });
}

#[test]
fn a_host_task_over_no_points_calls_nothing() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let u = rt.buffer_from(&[7_u64; 3])?;
        let none = rt.record("none", |body| {
            let task = body.task("none").over(2..2).update(&u, one_to_one());
            task.host(|tile, _| assert!(!tile.range().is_empty(), "there is no point"))
        })?;
        none.replay(3)?.wait()?;
        rt.wait()?;
        Ok(rt.fence(&u)?.wait()?.into_vec())
    });
}

#[test]
fn a_host_task_has_no_reduction_and_no_device() {
    let _deadline = deadline();
    let rt = runtime(2);
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let (u, total) = (rt.buffer_from(&[1_u64; 3]).unwrap(), rt.buffer::<u64, 0>([]));
    let reduces = rt.record("wrong", |body| {
        body.task("reduces").over([3]).read(&u, one_to_one()).reduce(&total, sum()).host(|_, _| ())
    });
    assert!(reduces.unwrap_err().to_string().contains("task \"reduces\""));
    let placed = rt.record("wrong", |body| {
        body.task("placed").over([3]).on(&device).update(&u, one_to_one()).host(|_, _| ())
    });
    assert!(matches!(placed, Err(Error::TaskSetting { .. })));
    rt.wait().unwrap();
}

/// The thread that waits for the replay holds what the task waits for.
#[test]
fn a_task_that_blocks_is_not_run_by_a_thread_that_waits() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, waiting) = (rt.buffer_from(&[0_u64; 4]).unwrap(), thread::current().id());
        let sequence = rt
            .record("asks", |body| {
                body.task("ask").once().blocking().update(&u, all()).host(move |replay, (u,)| {
                    assert_ne!(thread::current().id(), waiting);
                    u[[0]] = u[[0]] * 2 + replay;
                })?;
                body.tasks("ask for each").each([4]).blocking().update(&u, one_to_one()).host(
                    move |_, [i], (u,)| {
                        assert_ne!(thread::current().id(), waiting);
                        u[[i]] += 1;
                    },
                )?;
                body.task("double").over([4]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                    tile.points().for_each(|p| u[p] *= 2);
                })
            })
            .unwrap();
        sequence.replay(3).unwrap().wait().unwrap();
        let expected =
            |first: bool| (0..3).fold(0, |u, replay| 2 * (1 + if first { u * 2 + replay } else { u }));
        let left = rt.fence(&u).unwrap().wait().unwrap();
        assert_eq!(left.as_slice(), [true, false, false, false].map(expected));
        rt.wait().unwrap();
    }
}

/// All points of a batch that blocks wait at once, on threads that the runtime has for that.
#[test]
fn the_points_of_a_batch_that_blocks_may_wait_for_each_other() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (all, gate) = (Arc::new(Barrier::new(4)), Gate::default());
        let sequence = rt
            .record("meets", |body| {
                let (all, closed) = (Arc::clone(&all), gate.clone());
                body.tasks("meet").each([4]).blocking().host(move |_, _, ()| {
                    closed.pass();
                    all.wait();
                })
            })
            .unwrap();
        let replays = sequence.replay(1).unwrap();
        gate.open();
        replays.wait().unwrap();
        sequence.replay(1).unwrap();
        rt.wait().unwrap();
    }
}

#[test]
fn a_task_that_blocks_names_its_replay_when_it_fails() {
    let _deadline = deadline();
    let rt = runtime(2);
    let sequence = rt.record("fragile", |body| {
        let task = body.task("asks").once().blocking();
        task.host(|replay, ()| if replay == 2 { Err("no answer") } else { Ok(()) })
    });
    let error = sequence.unwrap().replay(4).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("asks in replay 2 of fragile") && error.contains("no answer"), "{error}");
    assert!(rt.wait().is_err());
}
