//! A parallel loop inside a task runs on the runtime's threads and adds no thread.

use anabranch::{par::prelude::*, prelude::*};
use parking_lot::Mutex;
use std::{collections::HashSet, sync::Arc, thread, time::Duration};
use testing::deadline;

type Names = Arc<Mutex<HashSet<String>>>;

fn note(names: &Names) {
    let name = thread::current().name().unwrap_or("?").to_string();
    names.lock().insert(name);
    thread::sleep(Duration::from_micros(50));
}

#[test]
fn a_loop_in_a_host_task_runs_on_the_runtimes_threads() {
    let _deadline = deadline();
    for threads in [1, 2, 3, 4, 8] {
        let rt = Runtime::builder().threads(threads).name("mine-").build().unwrap();
        let names = Names::default();
        let inside = Arc::clone(&names);
        let handle = rt.task("loop").once().host(move |()| {
            let sum: usize = (0..100_usize).par().map(|i| (note(&inside), i).1).sum();
            assert_eq!(sum, 4950);
        });
        handle.unwrap();
        rt.wait().unwrap();
        let names = names.lock();
        // The task runs on a lane, or on this thread, which waits and helps.
        let others = names.iter().filter(|name| !name.starts_with("mine-")).count();
        assert!(others <= 1 && names.len() <= threads + 1, "{names:?}");
    }
}

#[test]
fn a_loop_in_a_kernel_adds_no_thread() {
    let _deadline = deadline();
    for threads in [1, 2, 3, 4, 8] {
        let rt = Runtime::builder().threads(threads).name("mine-").build().unwrap();
        let names = Names::default();
        let inside = Arc::clone(&names);
        let buffer = rt.buffer::<f64, 1>([64]);
        rt.task("kernel")
            .over([64])
            .write(&buffer, one_to_one())
            .kernel(move |tile, (out,)| {
                (0..8).par().for_each(|_| note(&inside));
                for i in tile.along(0) {
                    out.set([i], (0..=i).par().map(|k| k as f64).sum());
                }
            })
            .unwrap();
        let values = rt.fence(&buffer).unwrap().wait().unwrap();
        assert_eq!(values.as_slice()[63], 2016.0);
        let names = names.lock();
        assert!(names.len() <= threads && names.iter().all(|name| name.starts_with("mine-")), "{names:?}");
    }
}
