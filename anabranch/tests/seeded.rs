//! Every task of a seeded runtime runs in the end, whichever threads wait for it, and also if no thread does.

mod common;

use anabranch::prelude::*;
use common::{Gate, block_on, seeded};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};
use testing::deadline;

/// A future waits for a task that becomes ready on another thread. That thread has what it waited for and
/// leaves the task.
#[test]
fn a_future_is_woken_for_a_task_that_another_thread_makes_ready() {
    let _deadline = deadline();
    struct Send(mpsc::Sender<()>);
    impl Wake for Send {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    for seed in 0..20 {
        let rt = Arc::new(seeded(seed));
        let (begun, gate, object) = (Gate::default(), Gate::default(), rt.host_object(()));
        let (begins, held) = (begun.clone(), gate.clone());
        let other = Arc::clone(&rt);
        let submitted = Gate::default();
        let submits = submitted.clone();
        let order = object.clone();
        let thread = thread::spawn(move || {
            // The task may run at its submission, or when this thread waits.
            let first = other.task("first").once().effect(&order, sequential()).host(move |_| {
                begins.open();
                held.pass();
            });
            submits.open();
            first.unwrap().wait().unwrap();
        });
        begun.pass();
        let mut second = rt.task("second").once().effect(&object, sequential()).host(|_| ()).unwrap();
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Send(sender)));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut second).poll(&mut context).is_pending());
        gate.open();
        woken.recv().expect("the future is woken");
        submitted.pass();
        block_on(second).unwrap();
        thread.join().unwrap();
    }
}

#[test]
fn futures_and_threads_may_wait_for_a_seeded_runtime_at_the_same_time() {
    let _deadline = deadline();
    for seed in 0..20 {
        let rt = Arc::new(seeded(seed));
        let object = rt.host_object(0);
        let count = |_| {
            let rt = Arc::clone(&rt);
            let object = object.clone();
            move || {
                for i in 0..20 {
                    let slow = |(count,): (&mut i32,)| {
                        *count += 1;
                        thread::yield_now();
                    };
                    let task = rt.task("slow").once().effect(&object, sequential()).host(slow).unwrap();
                    match i % 4 {
                        0 => block_on(task).unwrap(),
                        1 => rt.wait().unwrap(),
                        2 => block_on(rt.idle()).unwrap(),
                        _ => block_on(rt.barrier()).unwrap(),
                    }
                }
            }
        };
        let threads: Vec<_> = (0..3).map(count).map(thread::spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(rt.fence(&object).unwrap().wait().unwrap(), 60);
    }
}

#[test]
fn tasks_that_keep_their_runtime_alive_run() {
    let _deadline = deadline();
    let ran = Arc::new(AtomicUsize::new(0));
    for seed in 0..20 {
        let rt = Arc::new(seeded(seed));
        for _ in 0..10 {
            let (keeps, ran) = (Arc::clone(&rt), Arc::clone(&ran));
            let task = rt.task("keeps the runtime alive").once().host(move |()| {
                drop(keeps);
                ran.fetch_add(1, Relaxed);
            });
            task.unwrap();
        }
    }
    while ran.load(Relaxed) < 200 {
        thread::sleep(Duration::from_millis(1));
    }
}
