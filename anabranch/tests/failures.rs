//! A failed task is reported with its cause, tasks that depend on it are skipped, and all other tasks run.

mod common;

use anabranch::{Cause, Error, prelude::*};
use common::{THREADS, runtime};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use testing::deadline;

#[test]
fn an_access_outside_the_declared_region_fails_the_task() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer_from(&vec![1.0_f32; 100]).unwrap().named("u");
        let u2 = rt.buffer::<f32, 1>([100]).named("u2");
        rt.task("lazy stencil")
            .over([100])
            .chunks(4)
            .read(&u, one_to_one())
            .write(&u2, one_to_one())
            .kernel(|tile, (u, u2)| {
                for [i] in tile.points() {
                    u2.set([i], u[[i]] + u[[i + 1]]);
                }
            })
            .unwrap();
        let line = line!() - 11;
        assert_eq!(
            rt.wait().unwrap_err().to_string(),
            format!(
                "task \"lazy stencil\" ({}:{line}) failed: it accessed [25] of buffer \"u\" in chunk [0..25], but \
                 declared [0..25]: declare a larger region, or access only declared elements",
                file!()
            )
        );
    }
}

#[test]
fn accesses_by_rows_slices_and_arrays_are_checked() {
    let _deadline = deadline();
    type Attempt = (&'static str, fn(&ReadView<u8, 2, AnyBoxes<2>>) -> usize);
    let attempts: [Attempt; 4] = [
        ("row [4]", |u| u.row(4).len()),
        ("[1, 5]", |u| u.run([1, 5]).len()),
        ("[0, 0]", |u| usize::from(u[[0, 0]])),
        ("an array of all points", |u| u.as_array().len()),
    ];
    let rt = runtime(2);
    let u = rt.buffer_from(&ndarray::Array2::<u8>::zeros((6, 6))).unwrap().named("u");
    let hook = Region::from_boxes([GridBox::new([1, 1], [4, 4]), GridBox::new([1, 4], [2, 5])]);
    for (asked, attempt) in attempts {
        rt.task("look")
            .once()
            .read(&u, fixed(hook.clone()))
            .host(move |(u,)| assert!(attempt(u) < 100))
            .unwrap();
        let error = rt.wait().unwrap_err();
        let Error::Failed(failures) = &error else { panic!("{error}") };
        assert!(matches!(failures.iter().next().unwrap().cause, Cause::OutsideDeclared { .. }));
        assert!(error.to_string().contains(&format!("accessed {asked}")), "{error}");
    }
}

#[test]
fn a_panic_in_a_kernel_fails_the_task() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer::<u32, 1>([40]).named("u");
        rt.task("explode")
            .over([40])
            .chunks(4)
            .write(&u, one_to_one())
            .kernel(|tile, (u,)| {
                u.fill(1);
                assert!(tile.along(0).start < 20, "no more than 20, please");
            })
            .unwrap();
        let line = line!() - 9;
        let expected = format!(
            "task \"explode\" ({}:{line}) failed: it panicked in chunk [20..30]: no more than 20, please",
            file!()
        );
        assert_eq!(rt.wait().unwrap_err().to_string(), expected);
        // The failure is reported once. The buffer stays poisoned until a task overwrites all of it.
        rt.wait().unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap_err().to_string(), expected);
        rt.task("heal").over([40]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(7)).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [7; 40]);
        rt.wait().unwrap();
    }
}

#[derive(Debug)]
struct DiskFull;

impl std::fmt::Display for DiskFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the disk is full")
    }
}

impl std::error::Error for DiskFull {}

#[test]
fn a_host_task_that_returns_an_error_fails() {
    let _deadline = deadline();
    let rt = runtime(2);
    rt.task("save").once().host(|()| Err(DiskFull)).unwrap();
    let line = line!() - 1;
    let error = rt.wait().unwrap_err();
    let expected = format!("task \"save\" ({}:{line}) failed: the disk is full", file!());
    assert_eq!(error.to_string(), expected);
    // The task's own error is the cause of the failure.
    let Error::Failed(failures) = &error else { panic!() };
    let Cause::Error(source) = &failures.iter().next().unwrap().cause else { panic!() };
    assert!(source.downcast_ref::<DiskFull>().is_some());
}

#[test]
fn dependents_are_skipped_and_independent_work_goes_on() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (a, b, c) = (rt.buffer::<u32, 1>([8]), rt.buffer::<u32, 1>([8]), rt.buffer::<u32, 1>([8]));
        let ran = Arc::new(AtomicUsize::new(0));
        rt.task("bad").over([8]).write(&a, one_to_one()).kernel(|_, (_a,)| panic!("bad")).unwrap();
        for _ in 0..3 {
            let ran = Arc::clone(&ran);
            rt.task("needs a")
                .over([8])
                .read(&a, one_to_one())
                .write(&b, one_to_one())
                .kernel(move |_, (_a, b)| {
                    b.fill(1);
                    ran.fetch_add(1, Relaxed);
                })
                .unwrap();
        }
        rt.task("independent").over([8]).write(&c, one_to_one()).kernel(|_, (c,)| c.fill(3)).unwrap();
        let error = rt.wait().unwrap_err();
        let Error::Failed(failures) = &error else { panic!("{error}") };
        assert_eq!((failures.iter().count(), failures.skipped()), (1, 3));
        assert!(error.to_string().contains("(3 tasks that depend on failed tasks were skipped)"));
        assert_eq!(ran.load(Relaxed), 0);
        assert_eq!(rt.fence(&c).unwrap().wait().unwrap().as_slice(), [3; 8]);
        // A later task that reads the poisoned data is skipped too, and the failure is reported again.
        let later = Arc::clone(&ran);
        rt.task("later")
            .once()
            .read(&b, all())
            .host(move |(_b,)| {
                later.fetch_add(1, Relaxed);
            })
            .unwrap();
        assert!(rt.wait().unwrap_err().to_string().contains("task \"bad\""));
        assert_eq!(ran.load(Relaxed), 0);
    }
}

#[test]
fn a_failed_effect_poisons_the_object() {
    let _deadline = deadline();
    let rt = runtime(2);
    let log = rt.host_object(Vec::new());
    rt.task("one").once().effect(&log, sequential()).host(|(log,)| log.push(1)).unwrap();
    rt.task("two")
        .once()
        .effect(&log, sequential())
        .host(|(_log,)| -> Result<(), DiskFull> { Err(DiskFull) })
        .unwrap();
    rt.task("three").once().effect(&log, sequential()).host(|(log,)| log.push(3)).unwrap();
    let error = rt.drain(log.capture()).unwrap_err();
    assert!(
        error.to_string().contains("the disk is full (1 task that depends on a failed task was skipped)"),
        "{error}"
    );
    // The value is not lost: the handle still has it.
    assert_eq!(log.into_inner().unwrap(), [1]);
}

/// `drain` does not return an object that a panicking task has half changed, even after the failure was
/// reported.
#[test]
fn drain_does_not_return_a_poisoned_object() {
    let _deadline = deadline();
    let rt = runtime(2);
    let log = rt.host_object(vec![1]);
    rt.task("half")
        .once()
        .effect(&log, sequential())
        .host(|(log,)| {
            log.push(2);
            assert!(log.is_empty(), "before it pushed 3");
        })
        .unwrap();
    assert!(rt.wait().is_err());
    assert!(rt.fence(&log).unwrap().wait().is_err());
    assert!(rt.drain(log.capture()).unwrap_err().to_string().contains("before it pushed 3"));
    assert_eq!(log.into_inner().unwrap(), [1, 2]);
}

/// The destructors of a closure's captured values belong to the task.
#[test]
fn a_destructor_that_panics_fails_the_task() {
    let _deadline = deadline();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("in the destructor");
            }
        }
    }
    for threads in THREADS {
        let rt = runtime(threads);
        let bomb = Bomb;
        rt.task("kernel")
            .over([8])
            .kernel(move |_, ()| {
                let _ = &bomb;
            })
            .unwrap();
        let bomb = Bomb;
        rt.task("host")
            .once()
            .host(move |()| {
                let _bomb = &bomb;
            })
            .unwrap();
        rt.task("payload").once().host(|()| -> () { std::panic::panic_any(Bomb) }).unwrap();
        let error = rt.wait().unwrap_err().to_string();
        assert!(error.contains("task \"kernel\"") && error.contains("task \"host\""), "{error}");
        assert!(error.contains("in the destructor") && error.contains("task \"payload\""), "{error}");
        rt.task("after").once().host(|()| ()).unwrap();
        rt.wait().unwrap();
    }
}

#[test]
fn skipped_tasks_do_not_count_as_omitted_failures() {
    let _deadline = deadline();
    let rt = runtime(2);
    let bad = rt.buffer::<u8, 1>([1]);
    rt.task("bad").once().write(&bad, all()).host(|(_bad,)| Err::<(), _>("first")).unwrap();
    for i in 0..64 {
        rt.task("more").once().host(move |()| Err::<(), _>(format!("error {i}"))).unwrap();
    }
    for _ in 0..1000 {
        rt.task("skipped").once().read(&bad, all()).host(|(_bad,)| ()).unwrap();
    }
    let Error::Failed(failures) = rt.wait().unwrap_err() else { panic!() };
    assert_eq!((failures.iter().count(), failures.omitted(), failures.skipped()), (64, 1, 1000));
}

/// An error may own any value of the program, even a handle of a buffer. The runtime drops the handle with
/// the error.
#[test]
fn errors_that_own_buffers_are_dropped_safely() {
    let _deadline = deadline();
    #[derive(Debug)]
    struct Holds(#[allow(dead_code)] Buffer<u8, 1>);
    impl std::fmt::Display for Holds {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("holds a buffer")
        }
    }
    impl std::error::Error for Holds {}
    let rt = runtime(2);
    for _ in 0..3000 {
        let held = rt.buffer_from(&[0_u8; 4]).unwrap();
        rt.task("fails").once().host(move |()| Err::<(), _>(Holds(held))).unwrap();
    }
    assert!(rt.wait().is_err());
    rt.task("after").once().host(|()| ()).unwrap();
    rt.wait().unwrap();
}

#[test]
fn a_report_has_the_oldest_failures_first_and_is_bounded() {
    let _deadline = deadline();
    let rt = runtime(3);
    for i in 0..200 {
        rt.task(format!("task {i}")).once().host(move |()| Err::<(), _>(format!("error {i}"))).unwrap();
    }
    let Error::Failed(failures) = rt.wait().unwrap_err() else { panic!() };
    let reported: Vec<_> = failures.iter().map(|f| f.task.name().to_string()).collect();
    let expected: Vec<_> = (0..64).map(|i| format!("task {i}")).collect();
    assert_eq!((reported, failures.omitted()), (expected, 136));
    rt.wait().unwrap();
}

#[test]
fn waiting_inside_a_task_is_an_error() {
    let _deadline = deadline();
    let rt = Arc::new(runtime(2));
    let inside = Arc::clone(&rt);
    let u = rt.buffer_from(&[1]).unwrap();
    rt.task("waits")
        .once()
        .host(move |()| {
            assert!(matches!(inside.wait(), Err(Error::WaitInsideTask { call: "Runtime::wait" })));
            let fence = inside.fence(&u)?;
            assert!(matches!(fence.wait(), Err(Error::WaitInsideTask { call: "Fence::wait" })));
            Ok::<_, Error>(())
        })
        .unwrap();
    rt.wait().unwrap();
    // Waiting inside a kernel is an error, too, on every participant.
    let inside = Arc::clone(&rt);
    rt.task("waits too")
        .over([16])
        .kernel(move |_, ()| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(inside.wait().is_err());
        })
        .unwrap();
    rt.wait().unwrap();
}

/// If any task has failed, related or not, `drain` moves no object out.
#[test]
fn drain_moves_no_object_out_after_a_failure() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).build().unwrap();
    let log = rt.host_object(String::from("precious"));
    let u = rt.buffer::<f32, 1>([4]);
    rt.task("fails").over([4]).write(&u, one_to_one()).kernel(|_, _| panic!("on purpose")).unwrap();
    rt.task("writes").once().effect(&log, sequential()).host(|(log,)| log.push('!')).unwrap();
    assert!(rt.drain(log.capture()).unwrap_err().to_string().contains("on purpose"));
    assert_eq!(log.into_inner().unwrap(), "precious!");
}

/// If one of several captures is refused, `drain` moves no object out.
#[test]
fn drain_moves_no_object_out_if_one_capture_is_refused() {
    let _deadline = deadline();
    let (rt, other) = (Runtime::new().unwrap(), Runtime::new().unwrap());
    let (here, elsewhere) = (rt.host_object(1), other.host_object(2));
    assert!(rt.drain((here.capture(), elsewhere.capture())).is_err());
    assert_eq!(here.into_inner().unwrap(), 1);
}
