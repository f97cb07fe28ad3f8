//! An endless stream of tasks runs in bounded memory. These tests measure the whole process, so they run one
//! at a time, in a test program of their own.
#![cfg(target_os = "linux")]

mod common;

use anabranch::prelude::*;
use common::runtime;
use parking_lot::Mutex;
use std::sync::mpsc;
use testing::deadline;

static ALONE: Mutex<()> = Mutex::new(());

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_million_tasks_need_bounded_memory() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime(2);
    let u = rt.buffer_from(&[0_u64; 8]).unwrap();
    let read_only = rt.buffer_from(&[1_u64; 8]).unwrap();
    let count = |n: usize| {
        for i in 0..n {
            let element = fixed(GridBox::new(i % 8, i % 8 + 1));
            rt.task("count")
                .once()
                .read(&read_only, all())
                .update(&u, element)
                .host(move |(one, u)| u[[i % 8]] += one[[i % 8]])
                .unwrap();
        }
    };
    count(20_000);
    let before = resident_kib();
    let mut most = 0;
    for _ in 0..98 {
        count(10_000);
        most = most.max(resident_kib());
    }
    assert!(most < before + 32 * 1024, "{before} KiB grew to {most} KiB");
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [125_000; 8]);
}

/// The runtime forgets tasks that have ended, even while an older task is still running.
#[test]
fn a_sleeping_task_does_not_make_memory_grow() {
    let _deadline = deadline();
    let _alone = ALONE.lock();
    let rt = runtime(2);
    let (sender, receiver) = mpsc::channel::<()>();
    rt.task("sleeps").once().host(move |()| receiver.recv().unwrap()).unwrap();
    let submit = |n| (0..n).for_each(|_| drop(rt.task("kernel").over([1]).kernel(|_, ()| ()).unwrap()));
    submit(20_000);
    let before = resident_kib();
    submit(100_000);
    let after = resident_kib();
    sender.send(()).unwrap();
    rt.wait().unwrap();
    assert!(after < before + 12 * 1024, "{before} KiB grew to {after} KiB");
}
