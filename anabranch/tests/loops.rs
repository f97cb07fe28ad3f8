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

#[test]
fn a_kernel_of_one_chunk_is_like_one_of_many() {
    let _deadline = deadline();
    let half = |x: f64| std::hint::black_box(x) * std::hint::black_box(0.5);
    for threads in [1, 2, 3, 4, 8] {
        let rt = Runtime::builder().threads(threads).name("mine-").build().unwrap();
        for chunks in [1, 2] {
            let seen: Arc<Mutex<Vec<_>>> = Arc::default();
            let inside = Arc::clone(&seen);
            let kernel = rt.task("kernel").over([2]).chunks(chunks).flush_denormals();
            let kernel = kernel.kernel(move |tile, ()| {
                let sum: usize = (0..1000_usize).par().sum();
                inside.lock().push((participant(), sum, half(f64::MIN_POSITIVE)));
                assert_eq!(tile.range(), GridBox::new([1], [2]), "stop");
            });
            let error = kernel.unwrap().wait().unwrap_err().to_string();
            let chunk = if chunks == 1 { "[0..2]" } else { "[0..1]" };
            assert!(error.contains("stop") && error.contains(chunk), "{error}");
            assert!(rt.wait().is_err());
            for (me, sum, flushed) in seen.lock().drain(..) {
                let me = me.expect("a kernel has a place among the threads");
                assert!(me.index() < threads && me.count() == threads, "{me:?}");
                assert_eq!(sum, 499_500);
                if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
                    assert_eq!(flushed, 0.0);
                }
            }
        }
    }
}
