//! Sequences on several nodes and on devices, where each replay submits the tasks.

mod common;

use anabranch::{
    Runtime, Sequence,
    device::Device,
    interface::{Over, SequenceTask},
    local_nodes,
    prelude::*,
};
use common::{
    devices::{device, same_on_devices, slow},
    runtime, same_on,
};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use testing::deadline;

const NODES: &[u16] = &[1, 2, 3, 4, 7];
const THREADS: &[usize] = &[1, 2, 3];
const LEN: usize = 37;

/// Records a smoothing step from `u` to `v` and back with the largest value, which a host task of some node
/// adds to `u`.
fn record_steps(rt: &Runtime, u: &Buffer<f64, 1>, v: &Buffer<f64, 1>) -> Result<Sequence, Error> {
    let most = rt.buffer::<f64, 0>([]);
    let last = rt.nodes() - 1;
    rt.record("steps", |body| {
        for (from, to) in [(u, v), (v, u)] {
            body.task("smooth")
                .over([LEN])
                .read(from, neighborhood([2]))
                .write(to, one_to_one())
                .chunks(5)
                .kernel(|tile, (from, to)| {
                for [i] in tile.points() {
                    let (left, right) = (from[[i.saturating_sub(2)]], from[[(i + 2).min(LEN - 1)]]);
                    to.set([i], 0.5 * from[[i]] + 0.3 * left - 0.2 * right + tile.replay() as f64);
                }
            })?;
        }
        let task = body.task("most").over([LEN]).read(u, one_to_one()).reduce(&most, max());
        task.kernel(|tile, (u, most)| tile.points().for_each(|p| most.combine([], u[p])))?;
        let corner = fixed(GridBox::new([3], [5]));
        body.task("add").once().on_node(last)?.read(&most, all()).update(u, corner).host(
            |replay, (most, u)| {
                u[[4]] += most[[]] * replay as f64;
            },
        )
    })
}

fn initial() -> Vec<f64> {
    (0..LEN).map(|i| (i * i % 11) as f64 - 4.5).collect()
}

#[test]
fn replays_have_the_bits_of_one_node() {
    let _deadline = deadline();
    same_on(NODES, THREADS, |rt| {
        let (u, v) = (rt.buffer_from(&initial())?, rt.buffer([LEN]));
        let steps = record_steps(&rt, &u, &v)?;
        let mut seen = Vec::new();
        for replays in [1, 0, 4, 11] {
            let handle = steps.replay(replays)?;
            rt.task("between").over([LEN]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                tile.points().for_each(|p| u[p] *= 0.75);
            })?;
            seen.push(rt.fence(&u)?.wait()?.as_slice().iter().map(|u| u.to_bits()).collect::<Vec<_>>());
            handle.wait()?;
            assert_eq!(handle.status(), Status::Done);
        }
        rt.wait()?;
        Ok(seen)
    });
}

#[test]
fn a_condition_ends_the_replays_of_all_nodes() {
    let _deadline = deadline();
    same_on(NODES, THREADS, |rt| {
        let u = rt.buffer_from(&[64.0_f64, 3.0, 5.0, 7.0, 9.0])?;
        let halve = rt.record("halve", |body| {
            body.task("halve").over([5]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                tile.points().for_each(|p| u[p] *= 0.5);
            })
        })?;
        let below = |limit: f64| move |u: &ReadView<f64, 1>| u[[0]] < limit;
        let met = halve.replay_until(100, &u, below(5.0))?.wait()?;
        let unmet = halve.replay_until(3, &u, below(0.0))?.wait()?;
        let none = halve.replay_until(0, &u, below(9.0))?;
        assert_eq!((met, unmet, none.wait()?, none.task().status()), (Some(4), None, None, Status::Done));
        // The condition of one node alone does not end the replays: all nodes decide alike.
        let node = rt.node();
        let mut calls = 0;
        let parted = halve.replay_until(10, &u, move |_| {
            calls += 1;
            calls > node
        })?;
        let last = rt.nodes();
        assert_eq!(parted.wait()?, Some(last.into()));
        let left = f64::from(1 << (4 + 3 + last)) * rt.fence(&u)?.wait()?[[1]];
        rt.wait()?;
        Ok(left)
    });
}

#[test]
fn a_failure_names_its_task_and_replay() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let (u, v) = (rt.buffer_from(&[1.0_f64; 12])?, rt.buffer_from(&[1.0_f64; 12])?);
            let fails = rt.record("fragile", |body| {
                body.task("breaks").over([12]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                    for [i] in tile.points() {
                        assert!(i != 11 || tile.replay() != 3, "no luck");
                        u[[i]] += 1.0;
                    }
                })?;
                body.task("after").over([12]).read(&u, all()).update(&v, one_to_one()).kernel(
                    |tile, (u, v)| {
                        tile.points().for_each(|p| v[p] += u[[11]]);
                    },
                )
            })?;
            let handle = fails.replay(6)?;
            // Only the last node has the element, and all nodes need it.
            let error = rt.agree_result(handle.wait()).unwrap_err().to_string();
            assert!(error.contains("breaks in replay 3 of fragile") && error.contains("no luck"), "{error}");
            assert!(rt.fence(&v)?.wait().is_err());
            assert!(rt.wait().is_err());
            // What they wrote is poisoned, so the condition is not called.
            let until = fails.replay_until(10, &v, |_| unreachable!())?;
            assert!(until.wait().is_err());
            assert!(rt.wait().is_err());
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn a_condition_that_panics_on_one_node_ends_the_replays_of_all() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(2).run(|rt| {
        let u = rt.buffer_from(&[1.0_f64; 6])?;
        let add = rt.record("add", |body| {
            body.task("add").over([6]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                tile.points().for_each(|p| u[p] += 1.0);
            })
        })?;
        let node = rt.node();
        let until = add.replay_until(10, &u, move |u| {
            assert!(node != 1 || u[[0]] < 4.0, "not here");
            false
        })?;
        let result = until.wait();
        assert_eq!(result.is_err(), node == 1);
        assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [4.0; 6]);
        let _ = rt.wait();
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// Replays a sequence whose second task reads what was never written. The first one runs where `place` says.
fn nothing_of_a_refused_replay_runs(
    rt: &Runtime,
    place: impl Fn(SequenceTask<'_, 1, Over, ()>) -> SequenceTask<'_, 1, Over, ()>,
) -> Result<(), Error> {
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8])?, rt.buffer::<f32, 1>([8]).named("v"));
    let sequence = rt.record("halfway", |body| {
        place(body.task("double").over([8])).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))?;
        body.task("read").over([8]).read(&v, one_to_one()).update(&u, one_to_one()).kernel(|_, _| ())
    })?;
    let never_written = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("buffer \"v\"") && text.contains("never written"), "{text}");
    };
    never_written(sequence.replay(2).unwrap_err());
    never_written(sequence.replay_until(2, &u, |_| true).unwrap_err());
    let double = rt.record("double", |body| {
        place(body.task("double").over([8])).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))
    })?;
    never_written(double.replay_until(2, &v, |_| true).unwrap_err());
    assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [1.0; 8]);
    Ok(())
}

#[test]
fn wrong_sequences_are_refused_on_all_nodes() {
    let _deadline = deadline();
    for nodes in [1, 2, 3] {
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let u = rt.buffer::<f64, 1>([4]).named("u");
            let refused = rt.record("wrong", |body| {
                body.task("beyond").over([5]).write(&u, one_to_one()).kernel(|_, _| ())
            });
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("task \"beyond\"") && error.contains("buffer \"u\""), "{error}");
            let refused = rt.record("wrong", |body| {
                let task = body.task("in place").over([4]).read(&u, neighborhood([1]));
                task.write(&u, one_to_one()).kernel(|_, _| ())
            });
            assert!(refused.unwrap_err().to_string().contains("task \"in place\""));
            let reads = rt.record("reads", |body| {
                body.task("reads").over([4]).update(&u, one_to_one()).kernel(|_, _| ())
            })?;
            let error = reads.replay(2).unwrap_err().to_string();
            assert!(error.contains("buffer \"u\""), "{error}");
            assert!(reads.replay_until(2, &u, |_| true).is_err());
            nothing_of_a_refused_replay_runs(&rt, |task| task)?;
            rt.record("empty", |_| Ok(()))?.replay(5)?.wait()?;
            rt.wait()
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn recorded_kernels_are_replayed_on_devices() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        let (u, v) = (rt.buffer_from(&initial())?, rt.buffer::<f64, 1>([LEN]));
        let total = rt.buffer::<f64, 0>([]);
        let steps = rt.record("steps", |body| {
            for (at, (from, to)) in [(&u, &v), (&v, &u)].into_iter().enumerate() {
                let task =
                    body.task("smooth").over([LEN]).read(from, neighborhood([1])).write(to, one_to_one());
                let task = match places.at(at) {
                    Some(device) => task.on(device).precise(),
                    None => task.on_host(),
                };
                task.each(|(from, to)| {
                    let near = from.at_clamped([-1]) + from.at_clamped([1]);
                    to.set(from.here() * 0.5 + near * 0.25 + to.replay().convert::<f64>() * 0.125)
                })?;
            }
            body.task("host").over([LEN]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                tile.points().for_each(|p| u[p] += tile.replay() as f64);
            })?;
            let sum = body.task("sum").over([LEN]).read(&u, one_to_one()).reduce(&total, sum());
            let sum = match places.at(1) {
                Some(device) => sum.on(device),
                None => sum.on_host(),
            };
            sum.each(|(u, total)| total.combine(u.here()))
        })?;
        steps.replay(5)?;
        let met = steps.replay_until(20, &total, |total| total[[]] > 500.0)?.wait()?;
        let (u, total) = rt.fence((&u, &total))?.wait()?;
        rt.wait()?;
        Ok((met, u.as_slice().iter().map(|u| u.to_bits()).collect::<Vec<_>>(), total[[]].to_bits()))
    });
}

#[test]
fn the_device_of_the_runtime_runs_recorded_kernels() {
    let _deadline = deadline();
    let simulated = slow(3);
    let device: Arc<dyn Device> = device(&simulated);
    let rt = Runtime::builder().threads(2).device(&device).build().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let double = rt
        .record("double", |body| {
            body.task("double").over([8]).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))
        })
        .unwrap();
    let launches = || simulated.counts().launches;
    let before = launches();
    double.replay(7).unwrap().wait().unwrap();
    assert_eq!(launches() - before, 7);
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [128.0; 8]);
    // Inside a task, a call that waits is an error, and nothing is submitted.
    let (sequence, of_task) = (double.clone(), u.clone());
    rt.task("inside")
        .once()
        .host(move |()| {
            let refused = sequence.replay_until(1, &of_task, |_| true);
            assert!(matches!(refused, Err(Error::WaitInsideTask { .. })));
        })
        .unwrap();
    rt.wait().unwrap();
    assert_eq!(launches() - before, 7);
}

#[test]
fn a_deadline_ends_replays_on_a_device_after_a_whole_one_and_is_refused_on_nodes() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(5));
    let rt = runtime(2);
    let u = rt.buffer_from(&[0_u32; 4]).unwrap();
    let record = |rt: &Runtime, device: Option<&Arc<dyn Device>>, u: &Buffer<u32, 1>| {
        rt.record("count", |body| {
            for _ in 0..2 {
                let task = body.task("add").over([4]).update(u, one_to_one());
                let task = device.into_iter().fold(task, |task, device| task.on(device));
                task.each(|(u,)| u.set(u.here() + 1))?;
            }
            Ok::<_, Error>(())
        })
    };
    let sequence = record(&rt, Some(&device), &u).unwrap();
    let late = sequence.clone().deadline(Instant::now());
    let error = late.replay(10).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("task \"end of count\"") && error.contains("before replay 0"), "{error}");
    assert!(late.replay_until(10, &u, |_| false).unwrap().wait().is_err());
    assert!(rt.wait().is_err());
    let soon = sequence.deadline(Instant::now() + Duration::from_millis(5));
    assert!(soon.replay(u64::MAX).unwrap().wait().is_err());
    assert!(rt.wait().is_err());
    let count = rt.fence(&u).unwrap().wait().unwrap()[[0]];
    assert_eq!(count % 2, 0, "each replay adds twice, and none is cut");
    let refused = local_nodes(2).run(move |rt| {
        let u = rt.buffer_from(&[0_u32; 4])?;
        let sequence = record(&rt, None, &u)?.deadline(Instant::now() + Duration::from_secs(3600));
        let errors = [sequence.replay(1).unwrap_err(), sequence.replay_until(1, &u, |_| true).unwrap_err()];
        rt.wait()?;
        Ok::<_, Error>(errors.map(|error| error.to_string()))
    });
    for errors in refused {
        for error in errors.unwrap() {
            assert!(error.contains("`deadline`") && error.contains("\"count\""), "{error}");
        }
    }
}

#[test]
fn a_cancelled_group_ends_replays_on_a_device() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(4));
    let rt = runtime(2);
    let u = rt.buffer_from(&[0.0_f32; 8]).unwrap();
    let group = rt.group("some");
    let add = group
        .record("add", |body| {
            body.task("add").over([8]).on(&device).update(&u, one_to_one()).each(|(u,)| u.set(u.here() + 1.0))
        })
        .unwrap();
    let canceller = group.clone();
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        canceller.cancel();
    });
    // It submits until the group is cancelled.
    let handle = add.replay(u64::MAX).unwrap();
    thread.join().unwrap();
    assert!(handle.wait().is_err());
    assert_eq!(handle.status(), Status::Cancelled);
    rt.wait().unwrap();
}

/// Records a task that adds 1 on a device.
fn record_add(rt: &Runtime, u: &Buffer<f32, 1>, device: &Arc<dyn Device>) -> Sequence {
    rt.record("add", |body| {
        body.task("add").over([8]).on(device).update(u, one_to_one()).each(|(u,)| u.set(u.here() + 1.0))
    })
    .unwrap()
}

#[test]
fn tasks_conditions_and_callbacks_may_replay_while_the_program_does() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(5));
    let rt = runtime(2);
    let u = rt.buffer_from(&[0.0_f32; 8]).unwrap();
    let add = record_add(&rt, &u, &device);
    // A condition.
    let again = add.clone();
    let until = add.replay_until(3, &u, move |_| {
        again.replay(1).unwrap();
        false
    });
    assert_eq!(until.unwrap().wait().unwrap(), None);
    // A host task that the condition waits for.
    let again = add.clone();
    rt.task("replays").once().update(&u, all()).host(move |_| again.replay(1).map(drop)).unwrap();
    assert_eq!(add.replay_until(2, &u, |_| true).unwrap().wait().unwrap(), Some(1));
    // A callback, while two threads replay.
    let again = add.clone();
    add.replay(1).unwrap().on_done(move |_| drop(again.replay(1).unwrap()));
    let other = add.clone();
    let thread = thread::spawn(move || other.replay(50).unwrap().wait().unwrap());
    add.replay(50).unwrap().wait().unwrap();
    thread.join().unwrap();
    rt.wait().unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap()[[0]], 3.0 + 3.0 + 1.0 + 1.0 + 1.0 + 1.0 + 100.0);
}

#[test]
fn the_handle_has_the_first_failure_of_many_replays() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(6));
    let rt = runtime(2);
    let (u, v) = (rt.buffer_from(&[0.0_f32; 8]).unwrap(), rt.buffer_from(&[0_u64; 2]).unwrap());
    let fails = rt
        .record("fragile", |body| {
            body.task("add")
                .over([8])
                .on(&device)
                .update(&u, one_to_one())
                .each(|(u,)| u.set(u.here() + 1.0))?;
            body.task("count").once().update(&v, all()).host(|replay, (v,)| {
                assert!(replay != 7, "no luck");
                v[[0]] += 1;
            })
        })
        .unwrap();
    let handle = fails.replay(2000).unwrap();
    let error = handle.wait().unwrap_err().to_string();
    assert!(error.contains("count in replay 7 of fragile"), "{error}");
    assert_eq!(handle.status(), Status::Failed);
    assert!(rt.wait().is_err());
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap()[[3]], 2000.0, "the other task runs to the end");
}

#[test]
fn nothing_of_a_replay_on_a_device_runs_that_is_refused() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(8));
    let rt = runtime(2);
    nothing_of_a_refused_replay_runs(&rt, |task| task.on(&device)).unwrap();
    rt.wait().unwrap();
}

#[test]
fn only_recorded_kernels_run_on_devices() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = device(&slow(7));
    let rt = runtime(1);
    let u = rt.buffer_from(&[0.0_f32; 8]).unwrap();
    let refused = rt.record("wrong", |body| {
        body.task("compiled").over([8]).on(&device).update(&u, one_to_one()).kernel(|_, _| ())
    });
    assert!(matches!(refused, Err(Error::TaskSetting { .. })));
}
