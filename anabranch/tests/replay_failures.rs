//! Failures and cancellations of sequences that are replayed.

mod common;

use anabranch::{Cause, DeadlineExceeded, Sequence, SequenceBody, prelude::*};
use common::{THREADS, runtime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

#[test]
fn the_first_failure_ends_the_replays_and_is_the_same_in_every_schedule() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        for _ in 0..20 {
            let rt = runtime(threads);
            let (u, v) = (rt.buffer_from(&[0.0; 8]).unwrap(), rt.buffer_from(&[0.0; 8]).unwrap());
            let runs = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&runs);
            // Of each chunk: the number of replays in which it has begun.
            let replays = Arc::new([const { AtomicU64::new(0) }; 4]);
            let begun = Arc::clone(&replays);
            let sequence = rt
                .record("fails", |body| {
                    // Nothing connects the two tasks, so one may run far ahead of the other.
                    body.task("first").over([8]).update(&u, one_to_one()).chunks(4).kernel(
                        move |tile, _| {
                            count.fetch_add(1, Relaxed);
                            begun[tile.along(0).start / 2].fetch_max(tile.replay() + 1, Relaxed);
                            assert!(!(tile.replay() == 7 && tile.along(0).start == 4), "no luck");
                        },
                    )?;
                    body.task("second").over([8]).update(&v, one_to_one()).chunks(4).kernel(|tile, _| {
                        assert!(tile.replay() < 8, "also no luck");
                    })
                })
                .unwrap();
            let task = sequence.replay(1000).unwrap();
            let error = task.wait().unwrap_err().to_string();
            assert!(
                error.contains("task \"fails\"") && error.contains("in replay 7, task \"first\""),
                "{error}"
            );
            assert!(error.contains("no luck") && error.contains("[4..6]"), "{error}");
            assert!(runs.load(Relaxed) < 1000 * 4, "the replays end");
            let replays: Vec<u64> = replays.iter().map(|replays| replays.load(Relaxed)).collect();
            assert!(
                replays[..3].iter().all(|&count| count >= 8),
                "chunks before the failed one run: {replays:?}"
            );
            assert!(threads > 1 || replays[3] == 7, "a chunk after the failed one has run: {replays:?}");
            let Err(Error::Failed(failures)) = rt.wait() else { panic!("the failure is reported") };
            let causes: Vec<_> = failures.iter().map(|failure| failure.cause.clone()).collect();
            assert!(matches!(&causes[..], [Cause::InReplay { replay: 7, .. }]), "{causes:?}");
            // What it writes is poisoned, and a complete overwrite heals it.
            assert!(rt.fence(&v).unwrap().wait().is_err());
            for buffer in [&u, &v] {
                rt.task("heal")
                    .over([8])
                    .write(buffer, one_to_one())
                    .kernel(|tile, (u,)| {
                        tile.points().for_each(|point| u.set(point, 0.0));
                    })
                    .unwrap();
            }
            sequence.replay(7).unwrap().wait().unwrap();
            rt.wait().unwrap();
        }
    }
}

#[test]
fn an_error_of_a_host_task_is_a_failure() {
    let _deadline = testing::deadline();
    let rt = runtime(2);
    let object = rt.host_object(0);
    let sequence = rt
        .record("counts", |body| {
            body.task("count").once().effect(&object, sequential()).host(|replay, (count,)| {
                *count += 1;
                if replay == 3 { Err("it is enough") } else { Ok(()) }
            })
        })
        .unwrap();
    let error = sequence.replay(10).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("in replay 3, task \"count\"") && error.ends_with("it is enough"), "{error}");
    assert!(rt.wait().is_err());
}

#[test]
fn a_cancelled_group_ends_its_replays() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let group = rt.group("solver");
        let u = rt.buffer_from(&[0_u64; 4]).unwrap();
        let begun = Arc::new(AtomicU64::new(0));
        let sequence = group
            .record("endless", |body| {
                let begun = Arc::clone(&begun);
                body.task("count").over([4]).update(&u, one_to_one()).kernel(move |tile, (u,)| {
                    tile.points().for_each(|point| u[point] += 1);
                    if tile.points().next() == Some([0]) {
                        begun.store(tile.replay() + 1, SeqCst);
                    }
                })
            })
            .unwrap();
        let task = sequence.replay(u64::MAX).unwrap();
        while begun.load(SeqCst) < 10 {
            thread::yield_now();
        }
        group.cancel();
        let before = begun.load(SeqCst);
        assert!(task.wait().is_err());
        // Before each of its replays, the thread with the first chunk looks whether the group is cancelled.
        let after = begun.load(SeqCst) - before;
        assert!(after <= 2, "{after} replays ended after the group was cancelled");
        assert_eq!(task.status(), Status::Cancelled);
        rt.wait().unwrap();
    }
}

/// The deadline that an error reports, as the only failure.
fn exceeded(error: &Error) -> DeadlineExceeded {
    let Error::Failed(failures) = error else { panic!("{error}") };
    assert_eq!(failures.iter().count(), 1, "{error}");
    let Cause::Error(error) = &failures.iter().next().unwrap().cause else { panic!("{error}") };
    *error.downcast_ref().expect("it is a deadline")
}

#[test]
fn a_deadline_ends_replays_and_is_reported() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer::<u64, 1>([4]);
        let fill = || rt.task("fill").over([4]).write(&u, one_to_one()).each(|(u,)| u.set(0)).unwrap();
        fill();
        let sequence = rt
            .record("count", |body| {
                body.task("add").over([4]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                    tile.points().for_each(|point| u[point] += 1);
                })
            })
            .unwrap();
        let ends = |sequence: &Sequence, with_condition: bool| match with_condition {
            false => sequence.replay(u64::MAX).unwrap().wait().unwrap_err(),
            true => sequence.replay_until(u64::MAX, &u, |_| false).unwrap().wait().unwrap_err(),
        };
        for with_condition in [false, true] {
            let late = sequence.clone().deadline(Instant::now());
            assert_eq!(exceeded(&ends(&late, with_condition)), DeadlineExceeded { replay: 0 });
            assert_eq!(exceeded(&rt.wait().unwrap_err()).replay, 0);
            assert!(rt.fence(&u).unwrap().wait().is_err(), "the buffer is poisoned");
            fill();
            let soon = sequence.clone().deadline(Instant::now() + Duration::from_millis(3));
            exceeded(&ends(&soon, with_condition));
            exceeded(&rt.wait().unwrap_err());
            fill();
        }
        // The first handle has no deadline, and a late one changes nothing.
        sequence.replay(3).unwrap();
        sequence.clone().deadline(Instant::now() + Duration::from_secs(3600)).replay(4).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [7; 4]);
        rt.wait().unwrap();
    }
}

#[test]
fn replays_that_are_cancelled_after_they_have_begun_leave_no_object_that_counts_as_good() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let group = rt.group("solver");
        let (count, begun) = (rt.host_object(0_u64), Arc::new(AtomicU64::new(0)));
        let sees = Arc::clone(&begun);
        let sequence = group
            .record("endless", |body| {
                body.task("count").once().effect(&count, sequential()).host(move |_, (count,)| {
                    *count += 1;
                    sees.fetch_add(1, Relaxed);
                })
            })
            .unwrap();
        let task = sequence.replay(u64::MAX).unwrap();
        while begun.load(Relaxed) == 0 {
            thread::yield_now();
        }
        group.cancel();
        let error = task.wait().unwrap_err();
        assert_eq!(task.status(), Status::Cancelled);
        let Error::Failed(failures) = &error else { panic!("{error}") };
        assert!(matches!(failures.iter().next().unwrap().cause, Cause::ReplaysCancelled), "{error}");
        let after = rt.task("after").once().effect(&count, sequential()).host(|_| ()).unwrap();
        let error = after.wait().unwrap_err().to_string();
        assert!(error.contains("task \"endless\"") && error.contains("cancelled in its replays"), "{error}");
        assert_eq!(after.status(), Status::Skipped);
        // As the program wished.
        rt.wait().unwrap();
        // What was cancelled before it began has touched nothing.
        let (later, fresh) = (rt.group("later"), rt.host_object(7_u64));
        let record = |body: &SequenceBody<'_>| {
            body.task("count").once().effect(&fresh, sequential()).host(|_, (fresh,)| *fresh += 1)
        };
        let sequence = later.record("never", record).unwrap();
        later.cancel();
        assert!(sequence.replay(3).unwrap().wait().is_err());
        assert_eq!(rt.fence(&fresh).unwrap().wait().unwrap(), 7);
    }
}

#[test]
fn a_task_that_needs_cancelled_replays_and_an_older_cancelled_task_leaves_the_object_of_the_replays_poisoned()
{
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let group = rt.group("solver");
        let (b, count, begun) =
            (rt.buffer::<u64, 1>([1]), rt.host_object(0_u64), Arc::new(AtomicU64::new(0)));
        // This task waits until the group is cancelled, so that the next one cannot begin.
        let sees = Arc::clone(&begun);
        let gate = rt.task("gate").once().blocking().write(&b, all());
        let waits = move |(b,): (&mut WriteView<'_, u64, 1>,)| {
            b.fill(0);
            while sees.load(Relaxed) < 2 {
                thread::yield_now();
            }
        };
        gate.host(waits).unwrap();
        let older = group.task("older").once().update(&b, all()).host(|_| ()).unwrap();
        let sees = Arc::clone(&begun);
        let sequence = group.record("endless", |body| {
            body.task("count").once().effect(&count, sequential()).host(move |_, (count,)| {
                *count += 1;
                _ = sees.compare_exchange(0, 1, Relaxed, Relaxed);
            })
        });
        let replays = sequence.unwrap().replay(u64::MAX).unwrap();
        while begun.load(Relaxed) == 0 {
            thread::yield_now();
        }
        group.cancel();
        begun.store(2, Relaxed);
        assert!(replays.wait().is_err() && older.wait().is_err());
        let needs_both = rt.task("needs both").once().read(&b, all()).effect(&count, sequential());
        assert!(needs_both.host(|_| ()).unwrap().wait().is_err());
        let error = rt.fence(&count).unwrap().wait().unwrap_err().to_string();
        assert!(error.contains("cancelled in its replays"), "{error}");
        rt.wait().unwrap();
    }
}
