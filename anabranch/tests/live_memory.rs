//! Programs without an end run in bounded memory, also if their tasks fail or are cancelled, or if nothing looks at the results.
//! These tests count the bytes that the whole process has allocated, so they run one at a time, in a test program of their own.

mod common;

use anabranch::prelude::*;
use common::Gate;
use parking_lot::Mutex;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    panic::resume_unwind,
    sync::atomic::{AtomicIsize, Ordering::*},
};
use testing::deadline;

static ALONE: Mutex<()> = Mutex::new(());
static LIVE: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn runtime() -> Runtime {
    Runtime::builder().threads(2).max_in_flight(64).build().unwrap()
}

/// Calls `round` many times, and checks that the memory in use does not grow by more than 256 KiB after the first third.
fn stays_bounded(rounds: usize, mut settle: impl FnMut(), mut round: impl FnMut(usize)) {
    (0..rounds).for_each(&mut round);
    settle();
    let before = LIVE.load(Relaxed);
    (rounds..3 * rounds).for_each(&mut round);
    settle();
    let after = LIVE.load(Relaxed);
    assert!(after < before + (256 << 10), "{before} bytes grew to {after}");
}

#[test]
fn failing_tasks_with_unordered_effects() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    for relax in [false, true] {
        let rt = runtime();
        let (object, other) = (rt.host_object(0), rt.host_object(0));
        stays_bounded(
            5000,
            || drop(rt.wait()),
            |_| {
                let task = rt.task("fails").once();
                if relax {
                    task.effect(&object, relaxed())
                        .effect(&other, exclusive())
                        .host(|_| Err::<(), _>("no luck"))
                } else {
                    task.effect(&object, exclusive()).host(|_| Err::<(), _>("no luck"))
                }
                .unwrap();
            },
        );
        // The oldest failure is the one that counts.
        let error = rt.fence(&object).unwrap().wait().unwrap_err();
        assert!(error.to_string().contains("no luck"));
    }
}

#[test]
fn payloads_of_panics() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    stays_bounded(
        200,
        || drop(rt.wait()),
        |i| {
            let payload = vec![0_u8; 100_000];
            let task = rt.task("panics");
            match i % 2 {
                0 => task.once().host(move |()| -> () { resume_unwind(Box::new(payload)) }),
                _ => task.over([2]).kernel(move |_, ()| resume_unwind(Box::new(payload.clone()))),
            }
            .unwrap();
        },
    );
}

#[test]
fn cancelled_tasks() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    let (u, object) = (rt.buffer_from(&[0_u8; 64]).unwrap(), rt.host_object(0));
    let cancelled = rt.group("cancelled");
    cancelled.cancel();
    stays_bounded(
        5000,
        || rt.wait().unwrap(),
        |i| {
            let part = fixed(GridBox::new(i % 64, i % 64 + 1));
            let task = cancelled.task("cancelled").once().update(&u, part).effect(&object, relaxed());
            task.host(|_| ()).unwrap();
            rt.task("by its handle").once().effect(&object, exclusive()).host(|_| ()).unwrap().cancel();
        },
    );
}

#[test]
fn fences_and_futures_that_nothing_waits_for() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    let group = rt.group("group");
    let (u, object) = (rt.buffer_from(&[0_u8; 1000]).unwrap(), rt.host_object(vec![0_u8; 1000]));
    stays_bounded(
        2000,
        || rt.wait().unwrap(),
        |_| {
            rt.task("task").over([1000]).update(&u, one_to_one()).kernel(|_, (_u,)| ()).unwrap();
            drop(rt.fence((&u, &object)).unwrap());
            drop(group.fence(&u).unwrap());
            drop(rt.barrier_with(object.capture()).unwrap());
            drop((rt.idle(), group.idle()));
        },
    );
}

#[test]
fn buffers_and_objects_that_come_and_go() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    stays_bounded(
        3000,
        || drop(rt.wait()),
        |i| {
            let u = rt.buffer_from(&[0_u8; 1000]).unwrap().named(format!("u {i}"));
            let object = rt.host_object(vec![0_u8; 1000]);
            let task = rt.task("task").once().update(&u, all()).effect(&object, relaxed());
            task.host(move |_| if i % 3 == 0 { Err("no luck") } else { Ok(()) }).unwrap();
            rt.task("task").over([1000]).update(&u, one_to_one()).kernel(|_, (_u,)| ()).unwrap();
        },
    );
}

/// The tasks behind a task that runs for long are forgotten, with their failures.
#[test]
fn failures_beside_a_slow_task() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    let gate = Gate::default();
    let closed = gate.clone();
    rt.task("slow").once().host(move |()| closed.pass()).unwrap();
    let (u, object) = (rt.buffer_from(&[0_u8; 64]).unwrap(), rt.host_object(0));
    stays_bounded(
        12_000,
        || drop(rt.task("last").once().host(|()| ()).unwrap().wait()),
        |i| {
            let part = fixed(GridBox::new(i % 64, i % 64 + 1));
            let task = rt.task("fails").once().write(&u, part).effect(&object, relaxed());
            task.host(|_| Err::<(), _>("no luck")).unwrap();
        },
    );
    gate.open();
    assert!(rt.wait().is_err());
}

#[test]
fn groups_that_come_and_go() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime();
    let parent = rt.group("parent");
    stays_bounded(
        3000,
        || rt.wait().unwrap(),
        |i| {
            let group = parent.group(format!("group {i}"));
            let inner = group.group("inner");
            inner
                .task("task")
                .once()
                .host(move |()| if i % 3 == 0 { Err("no luck") } else { Ok(()) })
                .unwrap();
            group.task("task").over([2]).kernel(|_, ()| ()).unwrap();
            drop(group.idle());
            if i % 3 == 0 {
                assert!(inner.wait().is_err());
            }
        },
    );
}
