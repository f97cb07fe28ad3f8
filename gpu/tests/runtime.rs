//! Programs of the runtime on a GPU: the bits of the host, and failures that name what is wrong.

use anabranch::{device::Device, prelude::*};
use anabranch_gpu::{Settings, open, open_with};
use std::{mem::swap, sync::Arc};
use testing::deadline;

const SHAPE: [usize; 2] = [61, 45];

/// A GPU, or a driver that computes on the processor.
fn gpu() -> Option<Arc<dyn Device>> {
    let device = open(None).or_else(|_| open(Some("llvmpipe")));
    if device.is_err() {
        println!("skipped: programs on a GPU (need the package mesa-vulkan-drivers)");
    }
    device.ok()
}

/// Steps of integers and floats, in which nothing can be contracted. Each third one runs on the host.
fn steps(rt: &Runtime, device: Option<&Arc<dyn Device>>) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let (mut u, mut next) = (rt.buffer::<u32, 2>(SHAPE), rt.buffer::<u32, 2>(SHAPE));
    let total = rt.buffer::<f32, 2>(SHAPE);
    rt.task("start").over(SHAPE).write(&u, one_to_one()).each(|(u,)| u.set(u.index(0) * 31 + u.index(1)))?;
    rt.task("zero").over(SHAPE).write(&total, one_to_one()).each(|(total,)| total.set(0.0))?;
    for step in 0..12 {
        let on = device.filter(|_| step % 3 != 2);
        let task = rt.task("step").over(SHAPE).read(&u, neighborhood([1, 2])).write(&next, one_to_one());
        let task = on.into_iter().fold(task, |task, device| task.on(device));
        task.each(|(u, next)| {
            let around = u.at_clamped([-1, 0]) ^ u.at_or([1, 1], step) ^ u.at_clamped([0, -2]);
            next.set((around * 2_654_435_761) + u.here() % (1 + step));
        })?;
        let task = rt.task("add").over(SHAPE).read(&next, one_to_one()).update(&total, one_to_one());
        let task = on.into_iter().fold(task, |task, device| task.on(device));
        task.each(|(next, total)| {
            let share = (next.here() & 1023).convert::<f32>();
            total.set(total.here().max(share) - 0.25);
        })?;
        swap(&mut u, &mut next);
    }
    let (u, total) = rt.fence((&u, &total))?.wait()?;
    Ok((u.into_vec(), total.as_slice().iter().map(|value| value.to_bits()).collect()))
}

#[test]
fn a_program_on_the_host_and_a_gpu_has_the_bits_of_the_host() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    for threads in [1, 2, 3] {
        let rt = Runtime::builder().threads(threads).build().unwrap();
        assert!(steps(&rt, Some(&gpu)).unwrap() == steps(&rt, None).unwrap());
    }
    gpu.wait().unwrap();
    assert!(gpu.is_idle());
}

#[test]
fn a_replayed_kernel_gets_the_number_of_the_replay() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = Runtime::new().unwrap();
    let values = |device: Option<&Arc<dyn Device>>| {
        let u = rt.buffer_from(&[1_u32; 9])?;
        let sequence = rt.record("sequence", |body| {
            let task = body.task("step").over([9]).update(&u, one_to_one());
            let task = device.into_iter().fold(task, |task, device| task.on(device));
            task.each(|(u,)| u.set(u.here() * 3 + u.replay() * u.index(0)))
        })?;
        sequence.replay(6)?;
        Ok::<_, Error>(rt.fence(&u)?.wait()?.into_vec())
    };
    let expected = (0..9).map(|i| (0..6).fold(1, |u, replay| u * 3 + replay * i)).collect::<Vec<u32>>();
    assert_eq!(values(None).unwrap(), expected);
    assert_eq!(values(Some(&gpu)).unwrap(), expected);
}

#[test]
fn a_budget_is_an_error_with_buffer_bytes_and_device() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let name = gpu.info().name.clone();
    let small = open_with(Some(&name), Settings::default().memory(1000)).unwrap();
    let rt = Runtime::new().unwrap();
    let u = rt.buffer::<f32, 1>([1000]).named("u");
    let task = rt.task("fill").over([1000]).on(&small).write(&u, one_to_one());
    let error = task.each(|(u,)| u.set(1.0)).unwrap().wait().unwrap_err().to_string();
    for part in ["fill", "buffer \"u\"", "4000", "1000", &name] {
        assert!(error.contains(part), "{error}: {part}");
    }
    assert!(rt.wait().is_err());
}
