//! Sequences: recorded once, and replayed with the results of the same tasks, submitted again and again.

mod common;

use anabranch::{Runtime, Sequence, prelude::*};
use common::{THREADS, runtime};

/// Records a sweep from `u` to `v` and back, of this many chunks.
fn record_sweep(rt: &Runtime, u: &Buffer<f64, 1>, v: &Buffer<f64, 1>, chunks: usize) -> Sequence {
    let len = u.extent()[0];
    rt.record("sweep", |body| {
        for (from, to) in [(u, v), (v, u)] {
            body.task("smooth")
                .over([len])
                .read(from, neighborhood([1]))
                .write(to, one_to_one())
                .chunks(chunks)
                .kernel(move |tile, (from, to)| {
                    for [i] in tile.points() {
                        let (left, right) = (from[[i.saturating_sub(1)]], from[[(i + 1).min(len - 1)]]);
                        to.set([i], 0.25 * left + 0.5 * from[[i]] + 0.25 * right + tile.replay() as f64);
                    }
                })?;
        }
        Ok(())
    })
    .unwrap()
}

/// The same in a plain loop.
fn sweep(u: &mut Vec<f64>, replays: u64) {
    for replay in 0..replays {
        for _ in 0..2 {
            let smooth = |i: usize| {
                let (left, right) = (u[i.saturating_sub(1)], u[(i + 1).min(u.len() - 1)]);
                0.25 * left + 0.5 * u[i] + 0.25 * right + replay as f64
            };
            *u = (0..u.len()).map(smooth).collect();
        }
    }
}

#[test]
fn a_stencil_has_the_bits_of_a_loop() {
    let _deadline = testing::deadline();
    let initial: Vec<f64> = (0..103).map(|i| f64::from(i * i % 17)).collect();
    for threads in THREADS {
        for chunks in [1, 2, 3, 8, 103] {
            let rt = runtime(threads);
            let (u, v) = (rt.buffer_from(&initial).unwrap(), rt.buffer([103]));
            let sequence = record_sweep(&rt, &u, &v, chunks);
            let mut expected = initial.clone();
            for replays in [1, 2, 7, 0, 300] {
                sequence.replay(replays).unwrap();
                sweep(&mut expected, replays);
                assert_eq!(
                    rt.fence(&u).unwrap().wait().unwrap().as_slice(),
                    expected,
                    "{threads} threads, {chunks} chunks"
                );
            }
            rt.wait().unwrap();
        }
    }
}

#[test]
fn a_replay_is_one_task_among_others() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, v) = (rt.buffer_from(&[1.0, 2.0, 3.0, 4.0]).unwrap(), rt.buffer([4]));
        let sequence = record_sweep(&rt, &u, &v, 2);
        let mut expected = vec![1.0, 2.0, 3.0, 4.0];
        let mut fences = Vec::new();
        for _ in 0..20 {
            sequence.replay(3).unwrap();
            sweep(&mut expected, 3);
            fences.push((rt.fence(&u).unwrap(), expected.clone()));
            rt.task("add")
                .over([4])
                .update(&u, one_to_one())
                .kernel(|tile, (u,)| {
                    tile.points().for_each(|[i]| u[[i]] += 1.0);
                })
                .unwrap();
            expected.iter_mut().for_each(|u| *u += 1.0);
        }
        for (fence, expected) in fences {
            assert_eq!(fence.wait().unwrap().as_slice(), expected);
        }
        let last = sequence.replay(1).unwrap();
        last.wait().unwrap();
        assert_eq!(last.status(), Status::Done);
        rt.wait().unwrap();
    }
}

#[test]
fn reductions_have_the_bits_of_submitted_tasks() {
    let _deadline = testing::deadline();
    let initial: Vec<f64> = (0..500).map(|i| 1.0 / f64::from(i + 1)).collect();
    let mut seen: Option<Vec<f64>> = None;
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&initial).unwrap(), rt.buffer::<f64, 0>([]));
        let sums = rt.host_object(Vec::new());
        let sequence = rt
            .record("sums", |body| {
                body.task("sum").over([500]).read(&u, one_to_one()).reduce(&total, sum()).kernel(
                    |tile, (u, total)| {
                        tile.points().for_each(|[i]| total.combine([], u[[i]]));
                    },
                )?;
                body.task("scale").over([500]).read(&total, all()).update(&u, one_to_one()).kernel(
                    |tile, (total, u)| {
                        tile.points().for_each(|[i]| u[[i]] = u[[i]] * 0.5 + total[[]] * 1e-3);
                    },
                )?;
                body.task("note").once().read(&total, all()).effect(&sums, sequential()).host(
                    |replay, (total, sums)| {
                        assert_eq!(sums.len() as u64, replay);
                        sums.push(total[[]]);
                    },
                )
            })
            .unwrap();
        sequence.replay(50).unwrap();
        let replayed = rt.fence(&sums).unwrap().wait().unwrap();
        assert_eq!(*seen.get_or_insert_with(|| replayed.clone()), replayed);

        // The same tasks, submitted.
        let (u, total) = (rt.buffer_from(&initial).unwrap(), rt.buffer::<f64, 0>([]));
        let submitted = rt.host_object(Vec::new());
        for _ in 0..50 {
            rt.task("sum")
                .over([500])
                .read(&u, one_to_one())
                .reduce(&total, sum())
                .kernel(|tile, (u, total)| {
                    tile.points().for_each(|[i]| total.combine([], u[[i]]));
                })
                .unwrap();
            rt.task("scale")
                .over([500])
                .read(&total, all())
                .update(&u, one_to_one())
                .kernel(|tile, (total, u)| {
                    tile.points().for_each(|[i]| u[[i]] = u[[i]] * 0.5 + total[[]] * 1e-3);
                })
                .unwrap();
            let note = rt.task("note").once().read(&total, all()).effect(&submitted, sequential());
            note.host(|(total, sums)| sums.push(total[[]])).unwrap();
        }
        assert_eq!(rt.fence(&submitted).unwrap().wait().unwrap(), replayed);
    }
}

#[test]
fn a_reduction_may_include_what_is_there() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&[1_u64, 2, 3, 4, 5]).unwrap(), rt.buffer_from(&[100_u64]).unwrap());
        let sequence = rt
            .record("count", |body| {
                let task = body.task("sum").over([5]).read(&u, one_to_one()).chunks(3);
                task.reduce_into(&total, sum()).kernel(|tile, (u, total)| {
                    tile.points().for_each(|[i]| total.combine([0], u[[i]]));
                })
            })
            .unwrap();
        sequence.replay(10).unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap().as_slice(), [250]);
    }
}

/// A kernel that reduces to a buffer may also declare a part of that buffer, as long as the part is empty.
#[test]
fn a_reduction_has_its_result_beside_an_empty_access() {
    let _deadline = testing::deadline();
    let nothing = || fixed(GridBox::new([0], [0]));
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer_from(&[1_u64, 2, 3, 4]).unwrap();
        let [total, sum_of_all] = [(); 2].map(|()| rt.buffer_from(&[100_u64]).unwrap());
        let sums = rt.record("sums", |body| {
            let task = || body.task("sum").over([4]).read(&u, one_to_one());
            task().read(&total, nothing()).reduce(&total, sum()).kernel(|tile, (u, _, total)| {
                tile.points().for_each(|[i]| total.combine([0], u[[i]]));
            })?;
            task().write(&sum_of_all, nothing()).reduce_into(&sum_of_all, sum()).kernel(
                |tile, (u, _, all)| {
                    tile.points().for_each(|[i]| all.combine([0], u[[i]]));
                },
            )
        });
        sums.unwrap().replay(3).unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap().as_slice(), [10]);
        assert_eq!(rt.fence(&sum_of_all).unwrap().wait().unwrap().as_slice(), [130]);
    }
}

#[test]
fn recorded_kernels_are_replayed() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&[1.0_f32; 9]).unwrap(), rt.buffer::<f32, 0>([]));
        let sequence = rt
            .record("grow", |body| {
                body.task("double")
                    .over([9])
                    .update(&u, one_to_one())
                    .each(|(u,)| u.set(u.here() * 2.0 + u.replay().convert::<f32>()))?;
                body.task("sum")
                    .over([9])
                    .read(&u, one_to_one())
                    .reduce(&total, sum())
                    .each(|(u, total)| total.combine(u.here()))
            })
            .unwrap();
        sequence.replay(5).unwrap();
        let expected = (0..5).fold(1.0, |u, replay| u * 2.0 + replay as f32);
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 9.0 * expected);
    }
}

#[test]
fn a_sequence_may_access_nothing_of_a_buffer() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let nothing = rt.buffer_from(&[] as &[u64]).unwrap();
        let counts = rt.buffer_from(&[1_u64, 2]).unwrap().with_versions(3);
        let sequence = rt
            .record("count", |body| {
                let task = body.task("add").over([2]).read(&nothing, all()).update(&counts, one_to_one());
                task.kernel(|tile, (nothing, counts)| {
                    assert!(nothing.region().is_empty());
                    tile.points().for_each(|point| counts[point] += 1);
                })
            })
            .unwrap();
        for added in 1..4 {
            sequence.replay(5).unwrap();
            assert_eq!(rt.fence(&counts).unwrap().wait().unwrap().as_slice(), [1 + 5 * added, 2 + 5 * added]);
            // Writes to another version than the replays.
            let write = rt.task("again").over([2]).write(&counts, one_to_one());
            let again = move |i: usize| 1 + i as u64 + 5 * added;
            write
                .kernel(move |tile, (counts,)| tile.points().for_each(|[i]| counts.set([i], again(i))))
                .unwrap();
        }
        rt.wait().unwrap();
    }
}

#[test]
fn wrong_sequences_are_refused() {
    let _deadline = testing::deadline();
    let rt = runtime(2);
    let (u, v) = (rt.buffer::<f64, 1>([4]).named("u"), rt.buffer::<f64, 1>([4]).named("v"));
    // A task that contradicts itself is refused when it is recorded.
    let refused = rt.record("wrong", |body| {
        let task = body.task("in place").over([4]).chunks(1).read(&u, neighborhood([1]));
        task.write(&u, one_to_one()).kernel(|_, _| ())
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("task \"in place\"") && error.contains("buffer \"u\""), "{error}");
    let refused =
        rt.record("wrong", |body| body.task("beyond").over([5]).write(&u, one_to_one()).kernel(|_, _| ()));
    assert!(refused.unwrap_err().to_string().contains("task \"beyond\""));
    // What the sequence reads must be there when it is replayed.
    let sequence = record_sweep(&rt, &u, &v, 2);
    let error = sequence.replay(1).unwrap_err().to_string();
    assert!(error.contains("task \"sweep\"") && error.contains("buffer \"u\""), "{error}");
    rt.wait().unwrap();
    // Of another runtime.
    let other = runtime(1);
    let refused = other
        .record("foreign", |body| body.task("foreign").over([4]).write(&u, one_to_one()).kernel(|_, _| ()));
    assert!(matches!(refused, Err(Error::OtherRuntime { .. })));
    // Nothing to do.
    rt.record("empty", |_| Ok(())).unwrap().replay(5).unwrap().wait().unwrap();
}

#[test]
fn a_checked_runtime_checks_replays() {
    let _deadline = testing::deadline();
    let rt = Runtime::builder().threads(2).checked(true).build().unwrap();
    let u = rt.buffer::<f64, 1>([4]).named("u");
    let sequence = rt
        .record("writes", |body| {
            body.task("forgets").over([4]).write(&u, one_to_one()).chunks(2).kernel(|tile, (u,)| {
                let forgets = tile.replay() == 5;
                tile.points().filter(|&[i]| !(forgets && i == 3)).for_each(|point| u.set(point, 1.0));
            })
        })
        .unwrap();
    let error = sequence.replay(10).unwrap().wait().unwrap_err().to_string();
    assert!(
        error.contains("in replay 5") && error.contains("unwritten") && error.contains("[2..4]"),
        "{error}"
    );
    assert!(rt.wait().is_err());
}
