//! Batches in sequences: a host task for each point of an index space, recorded once and replayed.

mod common;

use anabranch::{
    Cause, Mistake,
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use common::{Gate, THREADS, runtime, runtimes, same_on};
use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::*},
    },
};
use testing::deadline;

const LEN: usize = 13;
const REPLAYS: u64 = 6;

/// What a point of the first batch computes from the elements around it.
fn around(u: &ReadView<u64, 1>, i: usize, replay: u64) -> u64 {
    let near = [i.saturating_sub(2), i, (i + 2).min(LEN - 1)].map(|j| u[[j]]);
    near.into_iter().fold(replay, |sum, u| sum.wrapping_mul(31).wrapping_add(u))
}

/// What the program leaves: a buffer, and on each node the points that its batches have noted.
type Left = (Vec<u64>, Vec<(u64, usize)>);

/// The buffers and the log of the program.
type Data = (Buffer<u64, 1>, Buffer<u64, 1>, HostObject<Vec<(u64, usize)>>);

fn data(rt: &Runtime) -> Result<Data, Error> {
    let initial: Vec<u64> = (0..LEN as u64).map(|i| i * i % 7).collect();
    Ok((rt.buffer_from(&initial)?, rt.buffer([LEN]), rt.host_object(Vec::new())))
}

fn left(rt: &Runtime, (u, _, log): &Data) -> Result<Left, Error> {
    Ok((rt.fence(u)?.wait()?.into_vec(), rt.fence(log)?.wait()?))
}

/// Two batches and a kernel, which are submitted in each step.
fn submitted(rt: &Runtime) -> Result<Left, Error> {
    let data = data(rt)?;
    let (u, v, log) = &data;
    for replay in 0..REPLAYS {
        let tasks = rt.tasks("around").each([LEN]).read(u, neighborhood([2])).write(v, one_to_one());
        tasks.host(move |[i], (u, v)| v.set([i], around(u, i, replay)))?;
        rt.task("add").over([LEN]).read(v, one_to_one()).update(u, one_to_one()).kernel(|tile, (v, u)| {
            tile.points().for_each(|p| u[p] = u[p].wrapping_add(v[p]));
        })?;
        let tasks = rt.tasks("note").each(3..9).update(u, one_to_one()).effect(log, sequential());
        tasks.host(move |[i], (u, log)| {
            u[[i]] ^= replay;
            log.push((replay, i));
        })?;
    }
    left(rt, &data)
}

/// The same by a sequence.
fn replayed(rt: &Runtime) -> Result<Left, Error> {
    let data = data(rt)?;
    let (u, v, log) = &data;
    let steps = rt.record("steps", |body| {
        let tasks = body.tasks("around").each([LEN]).read(u, neighborhood([2])).write(v, one_to_one());
        tasks.host(|replay, [i], (u, v)| v.set([i], around(u, i, replay)))?;
        let task = body.task("add").over([LEN]).read(v, one_to_one()).update(u, one_to_one());
        task.kernel(|tile, (v, u)| tile.points().for_each(|p| u[p] = u[p].wrapping_add(v[p])))?;
        let tasks = body.tasks("note").each(3..9).update(u, one_to_one()).effect(log, sequential());
        tasks.host(|replay, [i], (u, log)| {
            u[[i]] ^= replay;
            log.push((replay, i));
        })
    })?;
    steps.replay(REPLAYS)?;
    left(rt, &data)
}

#[test]
fn a_replayed_batch_has_the_results_of_the_batch_submitted() {
    let _deadline = deadline();
    for rt in runtimes() {
        let expected = submitted(&rt).unwrap();
        assert_eq!(expected.1.len(), 6 * REPLAYS as usize);
        for _ in 0..5 {
            assert_eq!(replayed(&rt).unwrap(), expected, "{rt:?}");
        }
        rt.wait().unwrap();
    }
}

#[test]
fn a_replayed_batch_has_the_results_of_the_batch_submitted_on_several_nodes() {
    let _deadline = deadline();
    same_on(&[1, 2, 3, 4], &[1, 2], |rt| {
        let (submitted, replayed) = (submitted(&rt)?, replayed(&rt)?);
        assert_eq!(replayed, submitted, "node {} of {}", rt.node(), rt.nodes());
        rt.wait()?;
        // Each node has noted its own points.
        Ok(replayed.0)
    });
}

#[test]
fn the_function_gets_each_point_once_in_each_replay() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let space = GridBox::new([2, 1], [5, 4]);
        let counts = rt.buffer_from(&[0_u64; 20]).unwrap();
        let row = mapper(|chunk: &anabranch::grid::Chunk<2>, _| {
            let [i, j] = chunk.range.min().0;
            let [_, end] = chunk.range.max().0;
            match chunk.range == chunk.global {
                true => GridBox::new(0, 20),
                false => GridBox::new(4 * i + j - 1, 4 * i + end - 1),
            }
        });
        let sequence = rt
            .record("count", |body| {
                body.tasks("count").each(space).update(&counts, row).host(|replay, [i, j], (counts,)| {
                    counts[[4 * i + j - 1]] += 1 << (8 * replay);
                })
            })
            .unwrap();
        sequence.replay(3).unwrap();
        let counts = rt.fence(&counts).unwrap().wait().unwrap();
        let is_a_point = |at: &usize| space.contains_point([at / 4, at % 4 + 1]);
        let expected = (0..20).map(|at| if is_a_point(&at) { 0x01_01_01 } else { 0 });
        assert_eq!(counts.as_slice(), expected.collect::<Vec<_>>());
    }
}

/// The points are units of their own: a later task does not wait for all of them.
#[test]
fn a_point_of_a_replay_waits_only_for_what_it_needs() {
    let _deadline = deadline();
    for threads in THREADS.into_iter().filter(|&threads| threads >= 2) {
        let rt = runtime(threads);
        let u = rt.buffer_from(&[0_usize; 4]).unwrap();
        let gate = Gate::default();
        let sequence = rt
            .record("apart", |body| {
                let closed = gate.clone();
                body.tasks("first").each([4]).update(&u, one_to_one()).host(move |_, [i], (u,)| {
                    if i == 3 {
                        closed.pass();
                    }
                    u[[i]] += 1;
                })?;
                let gate = gate.clone();
                body.tasks("second").each([4]).update(&u, one_to_one()).host(move |_, [i], (u,)| {
                    if i == 0 {
                        gate.open();
                    }
                    u[[i]] *= 10;
                })
            })
            .unwrap();
        sequence.replay(2).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [110; 4]);
    }
}

#[test]
fn a_failing_point_ends_the_replays_and_names_task_and_replay() {
    let _deadline = deadline();
    for threads in THREADS {
        for panics in [false, true] {
            let rt = runtime(threads);
            let u = rt.buffer_from(&[0_u64; 8]).unwrap();
            let calls = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&calls);
            let fails = rt
                .record("fragile", |body| {
                    body.tasks("odd").each([8]).update(&u, one_to_one()).host(move |replay, [i], (u,)| {
                        count.fetch_add(1, Relaxed);
                        u[[i]] += 1;
                        // In a program without threads, the fifth point fails first.
                        if replay == 3 && (i == 5 || i == 7) {
                            assert!(!panics, "no luck at {i}");
                            return Err(format!("no luck at {i}"));
                        }
                        Ok(())
                    })
                })
                .unwrap();
            let error = fails.replay(1000).unwrap().wait().unwrap_err().to_string();
            assert!(
                error.contains("task \"fragile\"") && error.contains("in replay 3, task \"odd\""),
                "{error}"
            );
            assert!(error.contains("no luck at 5") && error.contains("[5..6]") == panics, "{error}");
            assert!(calls.load(Relaxed) < 8 * 1000, "the replays end");
            let Err(Error::Failed(failures)) = rt.wait() else { panic!("the failure is reported") };
            let causes: Vec<_> = failures.iter().map(|failure| failure.cause.clone()).collect();
            assert!(matches!(&causes[..], [Cause::InReplay { replay: 3, .. }]), "{causes:?}");
            assert!(rt.fence(&u).unwrap().wait().is_err(), "the buffer is poisoned");
        }
    }
}

#[test]
fn a_failing_point_names_task_and_replay_on_several_nodes() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let (u, v) = (rt.buffer_from(&[1_u64; 12])?, rt.buffer_from(&[1_u64; 12])?);
            let fails = rt.record("fragile", |body| {
                body.tasks("breaks").each([12]).update(&u, one_to_one()).host(|replay, [i], (u,)| {
                    assert!(i != 11 || replay != 3, "no luck");
                    u[[i]] += 1;
                })?;
                body.tasks("after")
                    .each([12])
                    .read(&u, all())
                    .update(&v, one_to_one())
                    .host(|_, [i], (u, v)| v[[i]] += u[[11]])
            })?;
            let handle = fails.replay(6)?;
            // Only the last node has the point, and all nodes need its element.
            let error = rt.agree_result(handle.wait()).unwrap_err().to_string();
            assert!(error.contains("breaks in replay 3 of fragile") && error.contains("no luck"), "{error}");
            assert!(error.contains("[11..12]"), "{error}");
            assert!(rt.fence(&v)?.wait().is_err());
            assert!(rt.wait().is_err());
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn a_sequence_may_have_batches_and_tasks_on_a_device() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let device: Arc<dyn Device> = Arc::new(Simulated::new());
        let (u, log) = (rt.buffer_from(&[1.0_f32, 2.0, 3.0]).unwrap(), rt.host_object(Vec::new()));
        let sequence = rt
            .record("on both", |body| {
                let task = body.task("double").over([3]).on(&device).update(&u, one_to_one());
                task.each(|(u,)| u.set(u.here() * 2.0))?;
                let tasks = body.tasks("add").each([3]).update(&u, one_to_one()).effect(&log, sequential());
                tasks.host(|replay, [i], (u, log)| {
                    u[[i]] += replay as f32;
                    log.push((replay, i));
                })
            })
            .unwrap();
        sequence.replay(3).unwrap();
        let (u, log) = rt.fence((&u, &log)).unwrap().wait().unwrap();
        assert_eq!(u.as_slice(), [12.0, 20.0, 28.0]);
        assert_eq!(log, (0..3).flat_map(|replay| (0..3).map(move |i| (replay, i))).collect::<Vec<_>>());
        rt.wait().unwrap();
    }
}

#[test]
fn a_condition_comes_after_all_points() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let u = rt.buffer_from(&[1_u64, 2, 3, 4, 5])?;
        let double = rt.record("double", |body| {
            body.tasks("double").each([5]).update(&u, one_to_one()).host(|_, [i], (u,)| u[[i]] *= 2)
        })?;
        let met = double.replay_until(100, &u, |u| (0..5).map(|i| u[[i]]).sum::<u64>() >= 100)?.wait()?;
        let left = rt.fence(&u)?.wait()?.into_vec();
        rt.wait()?;
        assert_eq!((met, &left[..]), (Some(3), &[8, 16, 24, 32, 40][..]));
        Ok(left)
    });
}

fn mistake<T: Debug>(result: Result<T, Error>) -> Mistake {
    match result.unwrap_err() {
        Error::Declaration(error) => error.mistake,
        other => panic!("{other}"),
    }
}

/// The function of a batch that must not be called.
fn never(_: u64, point: [usize; 1]) {
    panic!("the batch is called for {point:?}");
}

#[test]
fn a_wrong_batch_is_refused_when_it_is_recorded() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let (u, v) = (rt.buffer_from(&[1; 10])?, rt.buffer::<i32, 1>([10]).named("v"));
        let two = mistake(rt.record("wrong", |body| {
            let tasks = body.tasks("two write one element").each([10]).write(&u, neighborhood([1]));
            tasks.host(move |replay, point, _| never(replay, point))
        }));
        assert!(matches!(two, Mistake::OverlappingWrites { .. }), "{two:?}");
        let around = mistake(rt.record("wrong", |body| {
            let tasks = body.tasks("reads what another writes").each([10]).read(&u, neighborhood([1]));
            tasks.update(&u, one_to_one()).host(move |replay, point, _| never(replay, point))
        }));
        assert!(matches!(around, Mistake::OverlappingAccesses { .. }), "{around:?}");
        let outside = rt.record("wrong", |body| {
            let tasks = body.tasks("outside").each([11]).read(&u, one_to_one());
            tasks.host(move |replay, point, _| never(replay, point))
        });
        assert!(outside.unwrap_err().to_string().contains("task \"outside\""));
        // What it reads must be there when it is replayed.
        let reads = rt.record("reads", |body| {
            let tasks = body.tasks("reads").each([10]).read(&v, one_to_one());
            tasks.host(move |replay, point, _| never(replay, point))
        })?;
        let error = mistake(reads.replay(2));
        assert!(matches!(error, Mistake::NeverWritten { .. }), "{error:?}");
        assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [1; 10]);
        rt.wait()
    });
}

#[test]
fn a_batch_without_points_calls_nothing() {
    let _deadline = deadline();
    same_on(&[1, 2, 3], &[1, 2], |rt| {
        let (u, log) = (rt.buffer_from(&[1; 3])?, rt.host_object(0));
        let sequence = rt.record("none", |body| {
            let tasks = body.tasks("none").each(3..3).update(&u, all()).effect(&log, sequential());
            tasks.host(|replay, point, _| never(replay, point))?;
            body.tasks("one").each([1]).update(&u, all()).host(|_, [i], (u,)| u[[i]] += 1)
        })?;
        sequence.replay(4)?.wait()?;
        rt.wait()?;
        Ok((rt.fence(&u)?.wait()?.into_vec(), rt.fence(&log)?.wait()?))
    });
}

#[test]
fn the_checked_mode_names_the_point_that_writes_nothing() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Runtime::builder().threads(threads).checked(true).build().unwrap();
        let u = rt.buffer::<f64, 1>([8]);
        let sequence = rt
            .record("writes", |body| {
                body.tasks("write").each([8]).write(&u, one_to_one()).host(|replay, [i], (u,)| {
                    if (replay, i) != (2, 6) {
                        u.set([i], 1.0);
                    }
                })
            })
            .unwrap();
        let error = sequence.replay(4).unwrap().wait().unwrap_err().to_string();
        assert!(error.contains("in replay 2") && error.contains("unwritten in chunk [6..7]"), "{error}");
        assert!(rt.wait().is_err());
    }
}

#[test]
fn a_cancelled_group_ends_the_replays_of_its_batch() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let group = rt.group("solver");
        let u = rt.buffer_from(&[0_u64; 6]).unwrap();
        let begun = Gate::default();
        let sequence = group
            .record("endless", |body| {
                let begun = begun.clone();
                body.tasks("count").each([6]).update(&u, one_to_one()).host(move |_, [i], (u,)| {
                    u[[i]] += 1;
                    begun.open();
                })
            })
            .unwrap();
        let task = sequence.replay(u64::MAX).unwrap();
        begun.pass();
        group.cancel();
        assert!(task.wait().is_err());
        assert_eq!(task.status(), Status::Cancelled);
        rt.wait().unwrap();
    }
}
