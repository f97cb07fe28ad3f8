//! Replays that end when a condition holds.

mod common;

use anabranch::{Runtime, Sequence, prelude::*};
use common::{THREADS, block_on, runtime, seeded};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Records two tasks of one sweep, the second of which has the largest value of `u`.
fn record_decay(rt: &Runtime, u: &Buffer<f64, 1>, most: &Buffer<f64, 0>, chunks: usize) -> Sequence {
    let len = u.extent()[0];
    rt.record("decay", |body| {
        body.task("halve").over([len]).update(u, one_to_one()).chunks(chunks).kernel(|tile, (u,)| {
            tile.points().for_each(|p| u[p] *= 0.5);
        })?;
        body.task("most")
            .over([len])
            .read(u, one_to_one())
            .reduce(most, max())
            .chunks(chunks)
            .kernel(|tile, (u, most)| tile.points().for_each(|p| most.combine([], u[p])))
    })
    .unwrap()
}

#[test]
fn a_condition_ends_the_replays() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        for chunks in [1, 2, 8] {
            let rt = runtime(threads);
            let u = rt.buffer_from(&(0..40).map(f64::from).collect::<Vec<_>>()).unwrap();
            let most = rt.buffer([]);
            let decay = record_decay(&rt, &u, &most, chunks);
            let calls = Arc::new(AtomicU64::new(0));
            let below = |limit: f64| {
                let calls = Arc::clone(&calls);
                move |most: &ReadView<f64, 0>| {
                    calls.fetch_add(1, Relaxed);
                    most[[]] < limit
                }
            };
            // 39 to 39/64. The next tasks do not wait for the handle.
            let until = decay.replay_until(1000, &most, below(1.0)).unwrap();
            let after = rt.fence((&u, &most)).unwrap();
            assert_eq!(until.wait().unwrap(), Some(6));
            assert_eq!((until.task().status(), calls.swap(0, Relaxed)), (Status::Done, 6));
            let (u_after, most_after) = after.wait().unwrap();
            assert_eq!((u_after[[39]], most_after[[]]), (39.0 / 64.0, 39.0 / 64.0));
            // The condition is on another buffer, is not met, is met by the last replay that may run, or
            // there is none.
            let [first, none] = [7, 0].map(|most| decay.replay_until(most, &u, |u| u[[39]] < 0.01).unwrap());
            assert_eq!((first.wait().unwrap(), none.wait().unwrap()), (Some(6), None));
            let unmet = decay.replay_until(3, &most, below(0.0)).unwrap();
            assert_eq!((unmet.wait().unwrap(), calls.swap(0, Relaxed)), (None, 3));
            let last = decay.replay_until(1, &most, below(1.0)).unwrap();
            assert_eq!((last.wait().unwrap(), calls.swap(0, Relaxed)), (Some(1), 1));
            // Without a condition, all run.
            decay.replay(2).unwrap();
            let halved = 39.0 / f64::from(1 << 18);
            assert_eq!(rt.fence(&most).unwrap().wait().unwrap()[[]], halved);
            rt.wait().unwrap();
        }
    }
}

#[test]
fn a_condition_sees_each_replay_in_seeded_orders_and_may_be_awaited() {
    let _deadline = testing::deadline();
    for seed in 0..20 {
        let rt = seeded(seed);
        let u = rt.buffer_from(&[64.0, 32.0, 1.0, 0.0, 16.0]).unwrap();
        let most = rt.buffer([]);
        let decay = record_decay(&rt, &u, &most, 3);
        let mut next = 32.0;
        let until = decay.replay_until(100, &u, move |u| {
            assert_eq!(u[[0]], next);
            next *= 0.5;
            u[[0]] < 1.0
        });
        assert_eq!(block_on(until.unwrap()).unwrap(), Some(7));
    }
}

#[test]
fn a_condition_may_fail_and_be_refused() {
    let _deadline = testing::deadline();
    let rt = runtime(2);
    let u = rt.buffer_from(&[1.0, 2.0]).unwrap();
    let most = rt.buffer([]);
    let decay = record_decay(&rt, &u, &most, 2);
    let until =
        decay.replay_until(9, &most, |most| if most[[]] < 0.3 { panic!("no {}", most[[]]) } else { false });
    let error = until.unwrap().wait().unwrap_err().to_string();
    assert!(
        error.contains("in replay 2, task \"condition of decay\"") && error.contains("no 0.25"),
        "{error}"
    );
    assert!(rt.wait().is_err());
    // A buffer that nobody has written, and one of another runtime.
    let unwritten = rt.buffer::<f64, 0>([]).named("unwritten");
    let error = decay.replay_until(9, &unwritten, |_| true).unwrap_err().to_string();
    assert!(error.contains("unwritten"), "{error}");
    let foreign = runtime(1).buffer_from(&[1.0]).unwrap();
    let error = decay.replay_until(9, &foreign, |_| true).unwrap_err();
    assert!(matches!(error, Error::OtherRuntime { .. }), "{error}");
}
