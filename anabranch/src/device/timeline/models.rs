//! Models of timelines. Loom checks every interleaving, up to a bound on preemptions:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --profile loom -p anabranch --lib --target-dir target/loom timeline::models
//! ```
//!
//! What a batch writes is a relaxed atomic: loom gives a thread an old value unless the timeline says that
//! the batch is done. A wake-up that is lost is a deadlock, which loom reports.

use super::{DeviceError, Timeline};
use crate::sync::thread::current;
use loom::{
    sync::atomic::{AtomicUsize, Ordering::*},
    thread,
};
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

fn timeline(batches: u64) -> Arc<Timeline> {
    let timeline = Arc::new(Timeline::new("model"));
    (0..batches).for_each(|_| _ = timeline.begin());
    timeline
}

fn number() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

/// A device on a thread of its own, which does one batch after the other. Each adds one to `contents`.
fn device(timeline: &Arc<Timeline>, contents: &Arc<AtomicUsize>, batches: u64) -> thread::JoinHandle<()> {
    let (timeline, contents) = (Arc::clone(timeline), Arc::clone(contents));
    thread::spawn(move || {
        for value in 1..=batches {
            contents.fetch_add(1, Relaxed);
            timeline.advance(value);
        }
    })
}

/// A batch is done while a thread waits for it. The thread wakes up, and sees what the batch has written.
#[test]
fn a_thread_that_waits_is_woken() {
    model(|| {
        let (timeline, contents) = (timeline(1), number());
        let device = device(&timeline, &contents, 1);
        assert_eq!(timeline.wait(1, || ()), Ok(()));
        assert_eq!(contents.load(Relaxed), 1);
        device.join().unwrap();
    });
}

/// Two threads wait for different batches.
#[test]
fn each_thread_that_waits_is_woken() {
    model(|| {
        let (timeline, contents) = (timeline(2), number());
        let device = device(&timeline, &contents, 2);
        let other = {
            let timeline = Arc::clone(&timeline);
            thread::spawn(move || timeline.wait(1, || ()))
        };
        assert_eq!(timeline.wait_for_all(|| ()), Ok(()));
        assert!(timeline.is_idle());
        assert_eq!(contents.load(Relaxed), 2);
        assert_eq!(other.join().unwrap(), Ok(()));
        device.join().unwrap();
    });
}

/// A program that finds the device idle sees what the batch has written.
#[test]
fn an_idle_device_has_written_all() {
    model(|| {
        let (timeline, contents) = (timeline(1), number());
        let device = device(&timeline, &contents, 1);
        if timeline.is_idle() {
            assert_eq!(contents.load(Relaxed), 1);
        }
        device.join().unwrap();
        assert!(timeline.is_idle());
    });
}

/// A future is polled while the batch ends. If it is pending, its waker is called.
#[test]
fn a_future_is_woken() {
    struct Unpark(crate::sync::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    model(|| {
        let (timeline, contents) = (timeline(1), number());
        let device = device(&timeline, &contents, 1);
        let waker = Waker::from(Arc::new(Unpark(current())));
        let mut done = pin!(timeline.done(1));
        while let Poll::Pending = done.as_mut().poll(&mut Context::from_waker(&waker)) {
            thread::park();
        }
        assert_eq!(contents.load(Relaxed), 1);
        device.join().unwrap();
    });
}

/// A future is polled and dropped while the batch ends.
#[test]
fn a_future_that_is_dropped_is_forgotten() {
    model(|| {
        let (timeline, contents) = (timeline(1), number());
        let device = device(&timeline, &contents, 1);
        {
            let mut done = pin!(timeline.done(1));
            let _ = done.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        assert!(timeline.state.lock().waiters.is_empty());
        device.join().unwrap();
    });
}

/// A callback is registered while its batch ends. It is called once, by either thread, and sees what the
/// batch has written.
#[test]
fn a_callback_is_called_once() {
    model(|| {
        let (timeline, contents, calls) = (timeline(1), number(), number());
        let device = device(&timeline, &contents, 1);
        let called = Arc::clone(&calls);
        timeline.on_complete(1, move |result| {
            assert_eq!((result, contents.load(Relaxed)), (Ok(()), 1));
            called.fetch_add(1, Relaxed);
        });
        device.join().unwrap();
        assert_eq!(calls.load(Relaxed), 1);
    });
}

/// Two threads say how far the device has come, in either order. The callbacks, which were there before, are
/// called once, in the order of their values.
#[test]
fn callbacks_are_called_in_the_order_of_values() {
    model(|| {
        let (timeline, calls) = (timeline(2), number());
        for value in [2, 1] {
            let calls = Arc::clone(&calls);
            timeline.on_complete(value, move |_| {
                // A load and a store, not an addition: the calls are ordered by the timeline.
                let before = calls.load(Relaxed);
                assert_eq!(before as u64 + 1, value);
                calls.store(before + 1, Relaxed);
            });
        }
        let advance = |to| {
            let timeline = Arc::clone(&timeline);
            thread::spawn(move || timeline.advance(to))
        };
        let threads = [advance(1), advance(2)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(calls.load(Relaxed), 2);
        assert_eq!(timeline.completed(), 2);
    });
}

/// A batch has failed before it is done: a thread that sees it done sees its error.
#[test]
fn an_error_is_there_when_its_batch_is_done() {
    model(|| {
        let timeline = timeline(1);
        let error = DeviceError::Failed { device: "model".into(), why: "it is broken".into() };
        let device = {
            let (timeline, error) = (Arc::clone(&timeline), error.clone());
            thread::spawn(move || {
                timeline.fail(1, error);
                timeline.advance(1);
            })
        };
        if timeline.is_done(1) {
            assert_eq!(timeline.wait_for_all(|| ()), Err(error));
        } else {
            assert_eq!(timeline.wait(1, || ()), Err(error));
        }
        device.join().unwrap();
    });
}

/// The device is lost while a batch is submitted and a callback is registered. The callback is called once,
/// with the error, and a thread that waits gets it, too.
#[test]
fn a_lost_device_fails_the_batch_that_is_being_submitted() {
    model(|| {
        let (timeline, calls) = (timeline(0), number());
        let device = {
            let timeline = Arc::clone(&timeline);
            thread::spawn(move || timeline.lose("it is unplugged"))
        };
        let value = timeline.begin();
        let called = Arc::clone(&calls);
        timeline.on_complete(value, move |result| {
            assert!(matches!(result, Err(DeviceError::Lost { .. })));
            called.fetch_add(1, Relaxed);
        });
        assert!(matches!(timeline.wait(value, || ()), Err(DeviceError::Lost { .. })));
        device.join().unwrap();
        assert_eq!(calls.load(Relaxed), 1);
        assert_eq!((timeline.submitted(), timeline.is_idle()), (1, true));
    });
}

/// The device is lost while a batch ends. The batch is done, with the error or without one, as the thread
/// that waits finds it.
#[test]
fn a_batch_ends_or_is_lost() {
    model(|| {
        let (timeline, contents) = (timeline(1), number());
        let device = device(&timeline, &contents, 1);
        let other = {
            let timeline = Arc::clone(&timeline);
            thread::spawn(move || timeline.lose("it is unplugged"))
        };
        let result = timeline.wait(1, || ());
        if result.is_ok() {
            assert_eq!(contents.load(Relaxed), 1);
        }
        device.join().unwrap();
        other.join().unwrap();
        assert!(timeline.is_lost().is_some());
        assert_eq!(timeline.wait(1, || ()), result);
    });
}
