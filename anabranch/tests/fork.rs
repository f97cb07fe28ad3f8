//! A forked child has none of its parent's threads. Where it would need them, it gets an error and does not
//! wait for ever. It can start a runtime of its own. This program does not use the test harness, so that at
//! each fork only threads exist that the test has started.

#[cfg(unix)]
fn main() {
    forks::all();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod forks {
    use anabranch::{
        Runtime,
        device::{Device, Simulated},
        prelude::*,
    };
    use std::{
        future::Future,
        panic::{AssertUnwindSafe, catch_unwind},
        pin::pin,
        sync::{
            Arc,
            mpsc::{Sender, channel},
        },
        task::{Context, Poll, Waker},
    };
    use testing::fork::in_child;

    pub(super) fn all() {
        let tests: [(&str, fn()); 3] = [
            ("every_use_of_the_runtime_of_the_parent_is_an_error", every_use_is_an_error),
            ("a_child_may_drop_everything_of_its_parent", a_child_may_drop_everything),
            ("a_child_may_start_a_runtime_of_its_own", a_child_may_start_a_runtime),
        ];
        for (name, test) in tests {
            let _deadline = testing::deadline();
            test();
            println!("test {name} ... ok");
        }
        println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", tests.len());
    }

    /// Runtimes with a task in flight, which lasts until its sender is dropped.
    fn busy_runtimes() -> impl Iterator<Item = (Runtime, TaskHandle, Sender<()>)> {
        [1, 2, 3, 4, 8].into_iter().map(|threads| {
            let rt = Runtime::builder().threads(threads).build().unwrap();
            let (sender, receiver) = channel();
            let task = rt
                .task("waits")
                .once()
                .blocking()
                .host(move |()| {
                    let _ = receiver.recv();
                })
                .unwrap();
            (rt, task, sender)
        })
    }

    fn is_forked<T>(result: Result<T, Error>) -> bool {
        matches!(result, Err(Error::Forked { .. }))
    }

    /// The result of a future that is ready at once.
    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn is_poll_forked<T>(future: impl Future<Output = Result<T, Error>>) -> bool {
        matches!(poll(future), Poll::Ready(Err(Error::Forked { .. })))
    }

    /// Calls `f`, which must panic with the message of the error.
    fn panics(f: impl FnOnce()) -> bool {
        let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
        panic
            .downcast::<String>()
            .is_ok_and(|message| message.contains("forked after the runtime had started"))
    }

    fn every_use_is_an_error() {
        for (rt, task, end) in busy_runtimes() {
            let group = rt.group("group");
            let u = rt.buffer_from(&[1, 2, 3]).unwrap();
            let device: Arc<dyn Device> = Arc::new(Simulated::new());
            let sequence = |device: Option<&Arc<dyn Device>>| {
                rt.record("sequence", |body| {
                    let task = body.task("add").over([3]).update(&u, one_to_one());
                    let task = device.into_iter().fold(task, |task, device| task.on(device));
                    task.each(|(u,)| u.set(u.here() + 1))
                })
            };
            let sequences = [sequence(None).unwrap(), sequence(Some(&device)).unwrap()];
            let object = rt.host_object(1);
            let fences = [rt.fence(&u).unwrap(), rt.fence(&u).unwrap()];
            let barriers = [rt.barrier(), rt.barrier()];
            let mut all = Some((fences, barriers, task, rt));
            in_child(|| {
                std::panic::set_hook(Box::new(|_| ()));
                let ([fence, polled_fence], [barrier, polled_barrier], task, rt) = all.take().unwrap();
                assert!(is_forked(rt.task("more").once().host(|()| ())));
                assert!(is_forked(rt.task("more").once().effect(&object, sequential()).host(|_| ())));
                assert!(is_forked(rt.task("more").over([3]).write(&u, one_to_one()).kernel(|_, _| ())));
                assert!(is_forked(group.task("more").once().host(|()| ())));
                for sequence in &sequences {
                    assert!(is_forked(sequence.replay(0)) && is_forked(sequence.replay(2)));
                    assert!(is_forked(sequence.replay_until(2, &u, |_| true)));
                }
                assert!(is_forked(rt.fence(&u)) && is_forked(rt.barrier_with(u.capture())));
                assert!(panics(|| drop(rt.barrier())) && panics(|| drop(group.barrier())));
                assert!(panics(|| drop(rt.buffer::<u8, 1>([1]))) && panics(|| drop(rt.host_object(1))));
                assert!(is_forked(rt.wait()) && is_forked(group.wait()) && is_forked(task.wait()));
                assert!(is_forked(fence.wait()) && is_forked(barrier.wait()));
                assert!(is_poll_forked(polled_fence) && is_poll_forked(polled_barrier));
                assert!(is_poll_forked(rt.idle()) && is_poll_forked(group.idle()));
                assert!(is_poll_forked(task));
                assert!(is_forked(rt.drain(u.capture())));
            });
            drop(end);
            let ([fence, _], [barrier, _], _, rt) = all.take().unwrap();
            assert_eq!(fence.wait().unwrap().as_slice(), [1, 2, 3]);
            barrier.wait().unwrap();
            rt.wait().unwrap();
        }
    }

    fn a_child_may_drop_everything() {
        for (rt, task, end) in busy_runtimes() {
            let (u, object, group) = (rt.buffer::<u8, 1>([1]), rt.host_object(1), rt.group("group"));
            group.task("fails").once().host(|()| Err::<(), _>("no luck")).unwrap().wait().unwrap_err();
            let mut all = Some((rt, task, u, object, group));
            in_child(|| {
                let (rt, task, u, object, group) = all.take().unwrap();
                u.discard();
                drop((u.with_versions(2), object, group, task, rt));
            });
            drop(end);
            let (rt, ..) = all.take().unwrap();
            rt.wait().unwrap();
        }
    }

    fn a_child_may_start_a_runtime() {
        for (rt, _, end) in busy_runtimes() {
            in_child(|| {
                let rt = Runtime::builder().threads(2).build().unwrap();
                let u = rt.buffer::<u64, 1>([100]);
                rt.task("fill")
                    .over([100])
                    .write(&u, one_to_one())
                    .kernel(|_, (u,)| u.fill_with(|[i]| i as u64))
                    .unwrap();
                assert_eq!(rt.drain(u.capture()).unwrap()[[99]], 99);
            });
            drop(end);
            rt.wait().unwrap();
        }
    }
}
