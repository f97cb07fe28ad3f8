//! Tasks with a recorded kernel for devices and another kernel for the host.

mod common;

use anabranch::{device::Simulated, local_nodes, prelude::*};
use common::devices::{device, slow};
use std::sync::Arc;
use testing::deadline;

#[test]
fn a_device_runs_the_recorded_kernel_and_the_host_the_other_one() {
    let _deadline = deadline();
    let on = device(&slow(6));
    for threads in [1, 2, 3] {
        let host = Runtime::builder().threads(threads).build().unwrap();
        let with_device = Runtime::builder().threads(threads).device(&on).build().unwrap();
        for (rt, expected) in [(&host, 2), (&with_device, 3)] {
            let (u, total) = (rt.buffer::<u64, 1>([100]), rt.buffer::<u64, 0>([]));
            let task =
                rt.task("fill").over([100]).write(&u, one_to_one()).each_on_device(|(u,)| u.set(3)).unwrap();
            task.kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2))).unwrap();
            let task = rt.task("sum").over([100]).read(&u, one_to_one()).reduce(&total, sum());
            let task = task.each_on_device(|(u, total)| total.combine(u.here() * 10)).unwrap();
            task.kernel(|tile, (u, total)| tile.points().for_each(|at| total.combine([], u[at]))).unwrap();
            let factor = if expected == 3 { 10 } else { 1 };
            assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 100 * expected * factor);
        }
    }
    // Where the host runs the task, a mistake of the recording is an error all the same.
    let rt = Runtime::new().unwrap();
    let u = rt.buffer::<u64, 1>([3]);
    let wrong = rt.task("wrong").over([3]).write(&u, one_to_one()).each_on_device(|(_,)| ());
    assert!(matches!(wrong.unwrap_err(), Error::Record { .. }));
    let v = rt.buffer_from(&[1_u64; 3]).unwrap();
    let task = rt.task("wrong").over([3]).read(&v, one_to_one()).write(&u, one_to_one());
    let task = task.each_on_device(|(v, u)| u.set(v.at([1]))).unwrap();
    let error = task.kernel(|_, (_, u)| u.fill(1)).unwrap_err().to_string();
    assert!(error.contains("\"wrong\"") && error.contains("tests/each_on_device.rs"), "{error}");
    // A device that has to run the task and is lost does not leave it to the host.
    let lost = device(&Arc::new(Simulated::builder().lose_after(0).build()));
    let task =
        rt.task("lost").over([3]).on(&lost).write(&u, one_to_one()).each_on_device(|(u,)| u.set(1)).unwrap();
    let result = task.kernel(|_, _| panic!("the host does not run it")).and_then(|task| task.wait());
    assert!(result.is_err());
    let _ = rt.wait();
}

#[test]
fn nodes_with_devices_and_without_compute_one_task_and_refuse_such_a_reduction() {
    let _deadline = deadline();
    for result in local_nodes(3).threads(2).run(|rt| {
        let (u, total) = (rt.buffer::<u64, 1>([100]), rt.buffer::<u64, 0>([]));
        let on = (rt.node() == 1).then(|| device(&slow(7)));
        let task = rt.task("fill").over([100]).write(&u, one_to_one());
        let task = on.iter().fold(task, |task, device| task.on(device));
        task.each_on_device(|(u,)| u.set(3))?
            .kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2)))?;
        let task = rt.task("sum").over([100]).read(&u, one_to_one()).reduce(&total, sum());
        let refused = task.each_on_device(|(u, total)| total.combine(u.here())).unwrap_err().to_string();
        assert!(refused.contains("\"sum\"") && refused.contains("`each_on_device`"), "{refused}");
        let u = rt.fence(&u)?.wait()?;
        rt.wait()?;
        Ok::<_, Error>(u.into_vec())
    }) {
        let values = result.unwrap();
        let of_device = values.iter().filter(|&&value| value == 3).count();
        assert!(
            values.iter().all(|value| [2, 3].contains(value)) && (20..50).contains(&of_device),
            "{values:?}"
        );
    }
}

#[test]
fn in_a_sequence_a_device_runs_the_recorded_kernel_and_the_host_the_other_one() {
    let _deadline = deadline();
    let on = device(&slow(8));
    for threads in [1, 2, 3] {
        let host = Runtime::builder().threads(threads).build().unwrap();
        let with_device = Runtime::builder().threads(threads).device(&on).build().unwrap();
        for (rt, added, factor) in [(&host, 2, 1), (&with_device, 3, 10)] {
            let (u, total) = (rt.buffer_from(&[0_u64; 100]).unwrap(), rt.buffer::<u64, 0>([]));
            let sequence = rt.record("adds and sums", |body| {
                let task = body.task("add").over([100]).update(&u, one_to_one());
                let task = task.each_on_device(|(u,)| u.set(u.here() + 3))?;
                task.kernel(|tile, (u,)| tile.points().for_each(|at| u[at] += 2))?;
                let task = body.task("sum").over([100]).read(&u, one_to_one()).reduce(&total, sum());
                let task = task.each_on_device(|(u, total)| total.combine(u.here() * 10))?;
                task.kernel(|tile, (u, total)| tile.points().for_each(|at| total.combine([], u[at])))
            });
            sequence.unwrap().replay(4).unwrap().wait().unwrap();
            assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 100 * 4 * added * factor);
        }
    }
}

#[test]
fn mistakes_of_such_a_task_are_found_when_a_sequence_is_recorded() {
    let _deadline = deadline();
    let rt = Runtime::new().unwrap();
    let (u, v) = (rt.buffer::<u64, 1>([3]), rt.buffer_from(&[1_u64; 3]).unwrap());
    let nothing = rt.record("wrong", |body| {
        let task = body.task("wrong").over([3]).write(&u, one_to_one());
        task.each_on_device(|(_,)| ())?.kernel(|_, _| ())
    });
    assert!(matches!(nothing.unwrap_err(), Error::Record { .. }));
    // Where the host runs the task, too.
    let outside = rt.record("wrong", |body| {
        let task = body.task("outside").over([3]).read(&v, one_to_one()).write(&u, one_to_one());
        task.each_on_device(|(v, u)| u.set(v.at([1])))?.kernel(|_, (_, u)| u.fill(1))
    });
    let error = outside.unwrap_err().to_string();
    assert!(error.contains("\"outside\"") && error.contains("tests/each_on_device.rs"), "{error}");
    // A device that has to run the task and is lost does not leave it to the host.
    let lost = device(&Arc::new(Simulated::builder().lose_after(0).build()));
    let sequence = rt.record("lost", |body| {
        let task = body.task("lost").over([3]).on(&lost).write(&u, one_to_one());
        task.each_on_device(|(u,)| u.set(1))?.kernel(|_, _| panic!("the host does not run it"))
    });
    let error = sequence.and_then(|sequence| sequence.replay(2)?.wait()).unwrap_err().to_string();
    assert!(error.contains("lost") && !error.contains("the host does not run it"), "{error}");
    let _ = rt.wait();
    // The places cut a reduction in other ways.
    for result in local_nodes(2).threads(1).run(|rt| {
        let (u, total) = (rt.buffer_from(&[1_u64; 100])?, rt.buffer::<u64, 0>([]));
        let sequence = rt.record("sums", |body| {
            let task = body.task("sum").over([100]).read(&u, one_to_one()).reduce(&total, sum());
            task.each_on_device(|(u, total)| total.combine(u.here()))?.kernel(|_, _| ())
        });
        Ok::<_, Error>(sequence.unwrap_err().to_string())
    }) {
        let refused = result.unwrap();
        assert!(refused.contains("\"sum\"") && refused.contains("`each_on_device`"), "{refused}");
    }
}
