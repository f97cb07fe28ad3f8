//! Programs without an end run in bounded memory, also if their tasks fail or are cancelled, or if nothing
//! looks at the results. These tests count the bytes that the whole process has allocated, so they run one at
//! a time, in a test program of their own.

mod common;

use anabranch::{local_nodes, prelude::*};
use common::Gate;
use parking_lot::Mutex;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write as _,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicIsize, AtomicUsize, Ordering::*},
    },
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

/// Calls `round` many times, and checks that the memory in use does not grow by more than 256 KiB after the
/// first third.
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

/// Node 0 only sends, as fast as it can. Node 1 only receives, and is slow: it sleeps now and then. Each
/// round has two tasks.
fn send_fast_and_receive_slowly(rounds: usize) {
    let _alone = ALONE.lock();
    /// Tasks in flight on a node.
    const IN_FLIGHT: usize = 64;
    /// Submissions, of which each round has two, by which a node may be ahead of another: 512, and those of a
    /// post.
    const AHEAD: usize = 512 + 64;
    /// The rounds whose data may be under way.
    const UNDER_WAY: usize = (AHEAD + 2 * IN_FLIGHT) / 2 + 1;
    const BYTES: usize = 8192;
    let sent = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicIsize::new(0));
    let nodes = local_nodes(2).builder(Runtime::builder().threads(1).max_in_flight(IN_FLIGHT).checked(false));
    let results = nodes.run(|rt| {
        let begin = LIVE.load(Relaxed);
        for round in 0..rounds {
            let u = rt.buffer::<u8, 1>([BYTES]);
            let sends = Arc::clone(&sent);
            let fast = rt.task("send").once().write(&u, all());
            fast.host(move |(u,)| {
                u.fill(round as u8);
                sends.fetch_add(1, Relaxed);
            })?;
            let (sent, most) = (Arc::clone(&sent), Arc::clone(&most));
            let slow = rt.task("receive").once().on_node(1)?.read(&u, all());
            slow.host(move |(u,)| {
                assert_eq!(u.as_slice().expect("all of it")[BYTES - 1], round as u8);
                if round % 1000 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                let ahead = sent.load(Relaxed).saturating_sub(round);
                assert!(ahead <= UNDER_WAY, "the sender is {ahead} rounds ahead");
                most.fetch_max(LIVE.load(Relaxed) - begin, Relaxed);
            })?;
        }
        rt.wait()
    });
    results.into_iter().for_each(|result| result.unwrap());
    let most = most.load(Relaxed) as usize;
    // Each buffer is there twice, and its data perhaps in a message; tasks need some kilobytes.
    let bound = UNDER_WAY * 3 * (BYTES + 8192);
    assert!(most < bound, "{most} bytes");
    assert!(bound < rounds * BYTES / 4, "the bound shows something");
    // Not `eprintln!`, which the test harness may capture.
    let _ = writeln!(std::io::stderr(), "tasks from a fast sender: {} ({most} bytes at most)", 2 * rounds);
}

#[test]
fn a_fast_sender_does_not_fill_the_memory_of_a_slow_receiver() {
    let _deadline = deadline();
    send_fast_and_receive_slowly(12_000);
}

#[test]
#[ignore = "takes minutes: `./check --deep` runs it"]
fn a_million_tasks_of_a_fast_sender_do_not_fill_the_memory_of_a_slow_receiver() {
    let _deadline = deadline();
    send_fast_and_receive_slowly(500_000);
}
