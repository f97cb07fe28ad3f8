//! A thread that waits runs tasks on its own stack, unless the program turns that off for a runtime or for a
//! task.

mod common;

use anabranch::prelude::*;
use common::{THREADS, block_on};
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread,
    time::Duration,
};
use testing::deadline;

thread_local! {
    /// State of a thread, which the thread has borrowed while it waits.
    static SCRATCH: RefCell<usize> = const { RefCell::new(0) };
}

fn borrow() {
    SCRATCH.with_borrow_mut(|scratch| *scratch += 1);
}

/// A thread that waits for a kernel takes part in it, in the place of another one.
#[test]
fn a_kernel_runs_on_no_more_threads_than_there_are() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Runtime::builder().threads(threads).build().unwrap();
        let u = rt.buffer_from(&[0; 8]).unwrap();
        for _ in 0..20 {
            let [running, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let most_of_kernel = Arc::clone(&most);
            let task = rt.task("kernel").over([8]).chunks(8).update(&u, one_to_one());
            let task = task.kernel(move |_, _| {
                most_of_kernel.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::sleep(Duration::from_micros(100));
                running.fetch_sub(1, SeqCst);
            });
            let task = task.unwrap();
            // Several threads wait for it.
            thread::scope(|scope| {
                scope.spawn(|| task.wait().unwrap());
                scope.spawn(|| task.wait().unwrap());
                rt.wait().unwrap();
            });
            let most = most.load(SeqCst);
            assert!((1..=threads).contains(&most), "{most} on {threads} threads");
        }
    }
}

/// A value that a fence clones.
struct Borrows;

impl Clone for Borrows {
    fn clone(&self) -> Self {
        borrow();
        Self
    }
}

#[test]
fn without_help_a_thread_that_waits_runs_no_code_of_the_program() {
    let _deadline = deadline();
    for threads in THREADS {
        let builder = Runtime::builder().threads(threads).max_in_flight(4);
        let rt = builder.help_while_waiting(false).help_while_submitting(true).build().unwrap();
        let (u, object) = (rt.buffer_from(&[0; 8]).unwrap(), rt.host_object(Borrows));
        SCRATCH.with_borrow_mut(|_| {
            for _ in 0..50 {
                let hosts = [(); 8].map(|()| rt.task("host").once().host(|()| borrow()).unwrap());
                let kernel = rt.task("kernel").over([8]).update(&u, one_to_one()).kernel(|_, _| borrow());
                kernel.unwrap().wait().unwrap();
                rt.fence(&object).unwrap().wait().unwrap_or_else(|e| panic!("{e}"));
                hosts.iter().for_each(|host| host.wait().unwrap());
                rt.task("host").once().host(|()| borrow()).unwrap();
                block_on(rt.barrier()).unwrap();
                rt.task("host").once().host(|()| borrow()).unwrap();
                rt.wait().unwrap();
            }
        });
    }
}

#[test]
fn a_blocking_task_never_runs_on_a_thread_that_waits() {
    let _deadline = deadline();
    for threads in THREADS {
        let builder = Runtime::builder().threads(threads).max_in_flight(4);
        let rt = builder.help_while_submitting(true).build().unwrap();
        SCRATCH.with_borrow_mut(|_| {
            for _ in 0..50 {
                let quick = rt.task("quick").once().blocking().host(|()| borrow()).unwrap();
                quick.wait().unwrap();
                for _ in 0..8 {
                    rt.task("one").once().blocking().host(|()| borrow()).unwrap();
                    rt.task("all").collective().blocking().host(|_, ()| borrow()).unwrap();
                    rt.task("part").over([8]).blocking().host(|_, ()| borrow()).unwrap();
                }
                rt.wait().unwrap();
            }
        });
    }
}

/// The switch is worth a test only if threads help without it.
#[test]
fn by_default_a_thread_that_waits_helps() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).host_lanes(1).build().unwrap();
    let (helped, waits) = (Arc::new(AtomicUsize::new(0)), thread::current().id());
    // The only lane is busy until this thread has helped.
    let seen = Arc::clone(&helped);
    let holds = move |()| {
        while seen.load(Relaxed) == 0 {
            thread::yield_now();
        }
    };
    let holds = rt.task("holds the lane").once().blocking().host(holds).unwrap();
    while holds.status() != Status::Running {
        thread::yield_now();
    }
    let helps = Arc::clone(&helped);
    let quick = rt.task("quick").once().host(move |()| {
        helps.fetch_add(usize::from(thread::current().id() == waits), Relaxed);
    });
    quick.unwrap();
    rt.wait().unwrap();
    assert_eq!(helped.load(Relaxed), 1);
}

/// The only lane is busy until the thread that submits has helped. If it never does, the test does not end.
#[test]
fn a_thread_that_waits_for_room_helps_if_the_program_allows_it() {
    let _deadline = deadline();
    let builder = Runtime::builder().threads(1).host_lanes(1).max_in_flight(4);
    let rt = builder.help_while_submitting(true).build().unwrap();
    let (helped, submits) = (Arc::new(AtomicUsize::new(0)), thread::current().id());
    let seen = Arc::clone(&helped);
    let holds = move |()| {
        while seen.load(Relaxed) < 10 {
            thread::yield_now();
        }
    };
    let holds = rt.task("holds the lane").once().blocking().host(holds).unwrap();
    while holds.status() != Status::Running {
        thread::yield_now();
    }
    for _ in 0..20 {
        let helps = Arc::clone(&helped);
        let quick = rt.task("quick").once().host(move |()| {
            helps.fetch_add(usize::from(thread::current().id() == submits), Relaxed);
        });
        quick.unwrap();
    }
    rt.wait().unwrap();
}

#[test]
fn a_seeded_runtime_needs_the_help_of_threads_that_wait() {
    let _deadline = deadline();
    let rt = Runtime::builder().seeded(1).help_while_waiting(false).build().unwrap();
    let task = rt.task("host").once().blocking().host(|()| borrow()).unwrap();
    task.wait().unwrap();
    rt.wait().unwrap();
}

/// Runs the first test in a child process that has the switch in its environment, and not in its program.
#[test]
fn the_environment_turns_the_help_off() {
    let _deadline = deadline();
    const CHILD: &str = "ANABRANCH_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let rt = Runtime::builder().threads(2).build().unwrap();
        SCRATCH.with_borrow_mut(|_| {
            for _ in 0..500 {
                rt.task("host").once().host(|()| borrow()).unwrap().wait().unwrap();
                rt.task("host").once().host(|()| borrow()).unwrap();
                rt.wait().unwrap();
            }
        });
        return;
    }
    let run = |help: &str| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["the_environment_turns_the_help_off", "--exact"])
            .env(CHILD, "1")
            .env("ANABRANCH_HELP_WHILE_WAITING", help)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(run("0") && run("false"));
}

#[test]
fn a_kernel_that_blocks_is_an_error() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).build().unwrap();
    let error = rt.task("kernel").over([8]).blocking().kernel(|_, ()| ()).unwrap_err().to_string();
    assert!(error.contains("a kernel that blocks; choose `host`"), "{error}");
}
