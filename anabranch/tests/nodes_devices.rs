//! Recorded kernels on devices of several nodes: the same bits as on one node without devices, copies of what
//! crosses the border of a node's part and no others, and failures.

mod common;

use anabranch::{
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use common::{
    Gate,
    devices::{device, same_on_devices, slow},
};
use std::{fmt::Debug, mem::swap, sync::Arc, time::Duration};
use testing::deadline;

const SHAPE: [usize; 2] = [23, 17];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Submits a recorded kernel at the place of this step.
macro_rules! each {
    ($task:expr, $place:expr, $kernel:expr) => {{
        let task = $task;
        match $place {
            Some(device) => task.on(device).each($kernel),
            None => task.on_host().each($kernel),
        }
    }};
}

#[test]
fn a_stencil_with_host_tasks_between() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        let (mut u, mut next) = (
            rt.buffer::<f32, 2>(SHAPE).named("u"),
            rt.buffer::<f32, 2>(SHAPE).named("next").with_versions(2),
        );
        rt.task("start").over(SHAPE).write(&u, one_to_one()).kernel(|_, (u,)| {
            u.fill_with(|[y, x]| ((y * 31 + x * 7) % 97) as f32 / 7.0 - 3.0);
        })?;
        let mut frames = Vec::new();
        for step in 0..14 {
            let task = rt.task("step").over(SHAPE).read(&u, neighborhood([1, 1])).write(&next, one_to_one());
            let task = if step % 5 == 4 { task.pieces(9) } else { task };
            each!(task, places.at(step), |(u, next)| {
                let around = u.at_clamped([-1, 0])
                    + u.at_or([1, 0], 0.5)
                    + u.at_clamped([0, -1])
                    + u.at_or([0, 1], 1.0);
                next.set(around * 0.25 + 0.01 * step as f32);
            })?;
            if step % 3 == 1 {
                // The host changes some rows.
                rt.task("rows").over([4, SHAPE[1]]).update(&next, one_to_one()).kernel(|tile, (next,)| {
                    tile.points().for_each(|p| next[p] += 1.0);
                })?;
            }
            if step % 4 == 2 {
                frames.push(rt.fence(&next)?);
            }
            swap(&mut u, &mut next);
        }
        let mut all = Vec::new();
        for frame in frames {
            all.extend(bits(frame.wait()?.as_slice()));
        }
        all.extend(bits(rt.drain(u.capture())?.as_slice()));
        Ok(all)
    });
}

#[test]
fn transposes_and_reductions_of_what_devices_have_computed() {
    let _deadline = deadline();
    const N: usize = 19;
    same_on_devices(|rt, places| {
        let (a, b) =
            (rt.buffer::<f32, 2>([N, N]), rt.buffer_from(&ndarray::Array2::from_elem((N, N), 0.5_f32))?);
        let (total, sums) = (rt.buffer::<f32, 0>([]), rt.buffer_from(&[1.0_f32; 3])?);
        for round in 0..6 {
            let task = rt.task("next").over([N, N]).read(&b, one_to_one()).write(&a, one_to_one());
            each!(task, places.at(round), |(b, a)| {
                a.set(b.here() * 0.5 + (b.index(0) * 3 + b.index(1)).convert::<f32>());
            })?;
            rt.task("transpose")
                .over([N, N])
                .read(&a, transposed())
                .write(&b, one_to_one())
                .kernel(|tile, (a, b)| tile.points().for_each(|[y, x]| b.set([y, x], a[[x, y]] * 0.9)))?;
            let task = rt.task("double").over([N, N]).update(&a, one_to_one());
            each!(task, places.at(round + 1), |(a,)| a.set(a.here() * 2.0))?;
            rt.task("sum").over([N, N]).read(&a, one_to_one()).reduce(&total, sum()).kernel(
                |tile, (a, total)| {
                    tile.points().for_each(|p| total.combine([], a[p]));
                },
            )?;
            let task = rt.task("more").over([3]).update(&sums, one_to_one());
            each!(task, places.at(round), |(sums,)| sums.set(sums.here() * 0.25))?;
            // The first value of each sum is what a device has computed.
            rt.task("add")
                .over([N, N])
                .read(&a, one_to_one())
                .reduce_into(&sums, sum())
                .kernel(|tile, (a, sums)| tile.points().for_each(|p| sums.combine([p[0] % 3], a[p])))?;
            let task = rt.task("after").over([3]).update(&sums, one_to_one());
            each!(task, places.at(round + 1), |(sums,)| sums.set(sums.here() * 0.001))?;
            rt.task("all")
                .once()
                .read(&total, all())
                .update(&b, fixed(GridBox::new([3, 3], [4, 5])))
                .host(|(total, b)| b[[3, 4]] += total[[]])?;
        }
        let (a, b, sums) = rt.drain((a.capture(), b.capture(), sums.capture()))?;
        Ok([bits(a.as_slice()), bits(b.as_slice()), bits(sums.as_slice())])
    });
}

#[test]
fn captures_discards_and_weights() {
    let _deadline = deadline();
    const N: usize = 61;
    same_on_devices(|rt, places| {
        let (u, v) =
            (rt.buffer_from(&[1.0_f32; N])?.with_versions(3), rt.buffer::<f32, 1>([N]).with_versions(2));
        let mut fences = Vec::new();
        for round in 0..9 {
            let mut weights: Vec<f64> =
                (0..rt.nodes()).map(|node| f64::from((node + round as u16) % 3)).collect();
            weights[0] += 1.0;
            rt.set_weights(&weights)?;
            let task = rt.task("read").over([N]).read(&u, neighborhood([2])).write(&v, one_to_one());
            each!(task.pieces(round), places.at(round), |(u, v)| v
                .set(u.at_clamped([-2]) + u.at_clamped([2])))?;
            u.discard();
            for part in [GridBox::new(0, 20), GridBox::new(20, 21), GridBox::new(21, N)] {
                let task = rt.task("part").over(part).read(&v, one_to_one()).write(&u, one_to_one());
                each!(task, places.at(part.min()[0] + round), |(v, u)| u.set(v.here() * 0.5 + 1.0))?;
            }
            let end = N - 5 * round;
            let window = move |node| Some(GridBox::new(2 * usize::from(node), end));
            let own = rt.fence(&u.parts(window))?;
            fences.push((rt.fence(&u.part(GridBox::new(round, end)))?, own));
        }
        let begin = 2 * usize::from(rt.node());
        let mut all = Vec::new();
        for (fence, own) in fences {
            let (fence, own) = (fence.wait()?, own.wait()?.expect("every node has a part"));
            let first = own.range().min()[0];
            assert_eq!(first, begin);
            all.extend(bits(fence.as_slice()));
            // The last elements are in the parts of all nodes.
            all.extend(bits(&own.as_slice()[14 - first..]));
        }
        all.extend(bits(rt.drain(u.capture())?.as_slice()));
        Ok(all)
    });
}

#[test]
fn a_stencil_copies_only_the_rows_that_cross_a_border() {
    let _deadline = deadline();
    const SHAPE: [usize; 2] = [40, 8];
    const STEPS: u64 = 10;
    let row = 4 * SHAPE[1] as u64;
    for nodes in [2_u16, 4] {
        for pieces in [1, 5 * usize::from(nodes)] {
            let results = local_nodes(nodes).threads(2).delays(3, nodes.into()).run(|rt| {
                let simulated = slow(rt.node().into());
                let on = device(&simulated);
                let (mut u, mut next) = (rt.buffer::<f32, 2>(SHAPE), rt.buffer::<f32, 2>(SHAPE));
                let start = rt.task("start").over(SHAPE).pieces(pieces).on(&on).write(&u, one_to_one());
                start.each(|(u,)| u.set((u.index(0) * 7 + u.index(1)).convert()))?;
                for _ in 0..STEPS {
                    let step = rt.task("step").over(SHAPE).pieces(pieces).on(&on);
                    step.read(&u, neighborhood([1, 1])).write(&next, one_to_one()).each(|(u, next)| {
                        next.set(0.5 * u.here() + 0.25 * (u.at_clamped([-1, 1]) + u.at_clamped([1, 0])));
                    })?;
                    swap(&mut u, &mut next);
                }
                rt.wait()?;
                let steps = simulated.counts();
                rt.fence(&u)?.wait()?;
                // A second reader needs no second copy.
                rt.fence(&u.part(GridBox::new([0, 0], [30, 3])))?.wait()?;
                rt.wait()?;
                Ok((steps, simulated.counts()))
            });
            for (node, result) in results.into_iter().enumerate() {
                let (steps, end) = result.unwrap();
                let neighbours = if node == 0 || node + 1 == usize::from(nodes) { 1 } else { 2 };
                assert_eq!(
                    (steps.bytes_up, steps.bytes_down),
                    ([STEPS * neighbours * row; 2]).into(),
                    "node {node}"
                );
                if pieces == 1 {
                    assert_eq!((steps.uploads, steps.downloads, steps.launches), (STEPS, STEPS, STEPS + 1));
                } else {
                    // The pieces at both borders get a copy each.
                    assert_eq!((steps.uploads, steps.launches), (STEPS * neighbours, 5 * (STEPS + 1)));
                }
                let own = SHAPE[0] as u64 / u64::from(nodes) * row;
                assert_eq!((end.bytes_up, end.bytes_down), (steps.bytes_up, steps.bytes_down + own));
            }
        }
    }
}

#[test]
fn the_device_of_the_runtimes_runs_recorded_kernels_and_a_node_that_it_refuses_computes_on_the_host() {
    let _deadline = deadline();
    let sums = |rt: Runtime| {
        let u = rt.buffer_from(&[2.0_f64; 50])?;
        for _ in 0..4 {
            rt.task("square").over([50]).update(&u, one_to_one()).each(|(u,)| {
                u.set(u.here() * u.here() + u.index(0).convert::<f64>() * 1e-3);
            })?;
        }
        let u = rt.drain(u.capture())?;
        Ok(u.as_slice().iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    };
    let expected = sums(Runtime::new().unwrap()).unwrap();
    // All nodes of this process share the device.
    let simulated =
        Arc::new(Simulated::builder().refuse_program(2).delays(1, Duration::from_micros(100)).build());
    let builder = Runtime::builder().threads(2).device(&device(&simulated));
    for result in local_nodes(4).builder(builder).run(sums) {
        assert_eq!(result.unwrap(), expected);
    }
    let launches = simulated.counts().launches;
    assert!((12..16).contains(&launches), "{launches}");
}

#[test]
fn a_task_waits_only_for_the_parts_that_it_reads() {
    let _deadline = deadline();
    for result in local_nodes(3).threads(1).delays(3, 1).run(|rt| {
        let on = device(&slow(rt.node().into()));
        let (u, v) = (rt.buffer_from(&[1.0_f32; 8])?, rt.buffer::<f32, 1>([8]));
        let half = rt.buffer::<f32, 1>([4]);
        let double = |from: &Buffer<f32, 1>, to: &Buffer<f32, 1>| {
            let task = rt.task("double").over(to.extent()).on_node(0)?.on(&on).read(from, one_to_one());
            task.write(to, one_to_one()).each(|(from, to)| to.set(from.here() * 2.0))
        };
        double(&u, &v)?;
        let first = rt.task("first").once().update(&u, fixed(GridBox::new(0, 4)));
        first.host(|(u,)| (0..4).for_each(|i| u[[i]] = 3.0))?;
        let gate = Gate::default();
        let (held, second) = (gate.clone(), rt.task("second").once().blocking());
        second.update(&u, fixed(GridBox::new(4, 8))).host(move |(u,)| {
            held.pass();
            (4..8).for_each(|i| u[[i]] = 5.0);
        })?;
        double(&u, &v)?;
        double(&u, &half)?;
        // The other task, whose copies have brought this half to the device, still waits.
        assert_eq!(rt.fence(&half)?.wait()?.as_slice(), [6.0; 4]);
        gate.open();
        assert_eq!(rt.fence(&v)?.wait()?.as_slice()[3..5], [6.0, 10.0]);
        Ok(())
    }) {
        result.unwrap();
    }
}

/// Runs a program that returns the same on all nodes, with a device for each. That of the last node has these
/// settings.
fn with_an_odd_device<R: PartialEq + Debug + Send>(
    odd: impl Fn() -> Simulated + Sync,
    program: impl Fn(&Runtime, &Arc<dyn Device>) -> Result<R, Error> + Sync,
) -> Vec<(u16, R)> {
    let run = |nodes: u16| {
        let results = local_nodes(nodes).threads(2).delays(4, nodes.into()).run(|rt| {
            let is_odd = rt.node() + 1 == rt.nodes();
            let on = if is_odd { Arc::new(odd()) } else { slow(rt.node().into()) };
            program(&rt, &device(&on))
        });
        let mut results: Vec<R> = results.into_iter().map(Result::unwrap).collect();
        assert!(results.iter().all(|result| *result == results[0]), "{nodes} nodes: {results:#?}");
        (nodes, results.remove(0))
    };
    [2, 3, 4, 7].map(run).into()
}

/// Writes a buffer on the host, and adds one to it there.
fn heal(rt: &Runtime, u: &Buffer<f32, 1>) -> Result<(), Error> {
    rt.task("heal").over(u.extent()).write(u, one_to_one()).kernel(|_, (u,)| u.fill(3.0))?;
    assert!(rt.fence(u)?.wait()?.as_slice().iter().all(|value| *value == 3.0));
    rt.wait()
}

#[test]
fn memory_that_one_device_refuses_is_the_same_error_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    let small = || Simulated::builder().named("small").memory(100).build();
    for (nodes, texts) in with_an_odd_device(small, |rt, on| {
        let (u, v) = (rt.buffer_from(&[1.0_f32; 70])?.named("u"), rt.buffer::<f32, 1>([70]).named("v"));
        let mut texts = Vec::new();
        let task = rt.task("copied").over([70]).on(on).update(&u, one_to_one());
        task.each(|(u,)| u.set(u.here() * 2.0))?;
        let next = rt.task("next").over([70]).read(&u, neighborhood([1])).write(&v, one_to_one());
        next.kernel(|tile, (u, v)| tile.points().for_each(|p| v.set(p, u[p])))?;
        texts.push(rt.wait().unwrap_err().to_string());
        texts.push(rt.fence(&v)?.wait().unwrap_err().to_string());
        heal(rt, &u)?;
        rt.task("not copied").over([70]).on(on).write(&v, one_to_one()).each(|(v,)| v.set(1.0))?;
        texts.push(rt.wait().unwrap_err().to_string());
        texts.push(rt.fence(&v)?.wait().unwrap_err().to_string());
        heal(rt, &v)?;
        Ok(texts)
    }) {
        let on_odd = format!("on node {}", nodes - 1);
        for (text, parts) in texts.iter().zip([
            ["copy of buffer \"u\" to small", "no memory for buffer \"u\""],
            ["task \"next\"", "copy of buffer \"u\" to small"],
            ["task \"not copied\"", "no memory for buffer \"v\""],
            ["task \"not copied\"", "280 bytes"],
        ]) {
            assert!(parts.iter().all(|part| text.contains(part)) && text.contains(&on_odd), "{text}");
        }
    }
}

#[test]
fn a_copy_to_the_host_that_fails_is_the_failure_of_what_would_have_been_sent() {
    let _deadline = deadline();
    // The launch is the first batch, and the copy for the push the second.
    let fails = || Simulated::builder().named("odd").fail_batch(2).build();
    for (nodes, [at_wait, all]) in with_an_odd_device(fails, |rt, on| {
        let u = rt.buffer::<f32, 1>([70]).named("u");
        rt.task("fill").over([70]).on(on).write(&u, one_to_one()).each(|(u,)| u.set(u.index(0).convert()))?;
        rt.task("read").once().read(&u, all()).host(|(u,)| assert_eq!(u[[69]], 69.0))?;
        let text = rt.wait().unwrap_err().to_string();
        // On all nodes the same part is lost, and the rest is there.
        let all = rt.fence(&u)?.wait().unwrap_err().to_string();
        assert_eq!(rt.fence(&u.part(GridBox::new(0, 7)))?.wait()?.as_slice()[6], 6.0);
        let double = rt.task("double").over([70]).on(on).update(&u, one_to_one());
        double.each(|(u,)| u.set(u.here() * 2.0))?;
        assert!(rt.fence(&u)?.wait().is_err());
        assert_eq!(rt.fence(&u.part(GridBox::new(0, 7)))?.wait()?.as_slice()[6], 12.0);
        let _ = rt.wait();
        heal(rt, &u)?;
        Ok([text, all])
    }) {
        for text in [&at_wait, &all] {
            let odd = format!("on node {}", nodes - 1);
            let parts = ["copy of buffer \"u\" to the host", "batch 2 is to fail", &odd];
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}

#[test]
fn a_lost_device_of_one_node_is_the_same_error_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    for after in [0, 1, 4, 9] {
        let lost = move || Simulated::builder().named("odd").lose_after(after).build();
        for (nodes, texts) in with_an_odd_device(lost, |rt, on| {
            let (mut u, mut v) = (rt.buffer_from(&[1.0_f32; 70])?, rt.buffer::<f32, 1>([70]));
            for _ in 0..6 {
                let task =
                    rt.task("step").over([70]).on(on).read(&u, neighborhood([1])).write(&v, one_to_one());
                task.each(|(u, v)| v.set(u.at_clamped([1]) + u.at_clamped([-1])))?;
                swap(&mut u, &mut v);
            }
            let mut texts = vec![rt.wait().unwrap_err().to_string()];
            texts.push(rt.fence(&u)?.wait().unwrap_err().to_string());
            heal(rt, &u)?;
            // A kernel that the lost device does not know yet.
            rt.task("other").over([70]).on(on).update(&u, one_to_one()).each(|(u,)| u.set(u.here() - 1.0))?;
            texts.push(rt.wait().unwrap_err().to_string());
            assert!(rt.fence(&u)?.wait().is_err());
            heal(rt, &u)?;
            Ok(texts)
        }) {
            for text in &texts {
                let odd = format!("on node {}", nodes - 1);
                assert!(text.contains("the device odd is lost") && text.contains(&odd), "{text}");
            }
        }
    }
}

#[test]
fn a_failure_on_the_host_of_one_node_skips_what_a_device_would_have_done_with_it() {
    let _deadline = deadline();
    for (nodes, text) in with_an_odd_device(Simulated::new, |rt, on| {
        let (u, v) = (rt.buffer::<f32, 1>([70]), rt.buffer::<f32, 1>([70]));
        let is_odd = rt.node() + 1 == rt.nodes();
        rt.task("fill").over([70]).write(&u, one_to_one()).kernel(move |_, (u,)| {
            if is_odd {
                std::panic::resume_unwind(Box::new("as the test says"));
            }
            u.fill(1.0);
        })?;
        let task = rt.task("needs it").over([70]).on(on).read(&u, neighborhood([1])).write(&v, one_to_one());
        let task = task.each(|(u, v)| v.set(u.at_clamped([1])))?;
        let text = rt.wait().unwrap_err().to_string();
        let skipped = rt.node() + 2 >= rt.nodes();
        assert_eq!(task.status(), if skipped { Status::Skipped } else { Status::Done });
        heal(rt, &v)?;
        Ok(text)
    }) {
        assert!(
            text.contains("task \"fill\" (") && text.contains(&format!("on node {}", nodes - 1)),
            "{text}"
        );
        assert!(text.ends_with("(2 parts of tasks that depend on failed tasks were skipped)"), "{text}");
    }
}

#[test]
fn a_kernel_that_the_devices_of_all_nodes_refuse_is_an_error_and_the_program_goes_on() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(1).run(|rt| {
        let on = device(&Arc::new(Simulated::builder().refuse_program(1).build()));
        let u = rt.buffer_from(&[1.0_f32; 10])?;
        let double = || rt.task("double").over([10]).update(&u, one_to_one());
        let error = double().on(&on).each(|(u,)| u.set(u.here() * 2.0)).unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
        double().on_host().each(|(u,)| u.set(u.here() * 2.0))?;
        let error = double().on(&on).kernel(|_, (_,)| ()).unwrap_err().to_string();
        assert!(error.contains("each"), "{error}");
        Ok(rt.drain(u.capture())?.as_slice()[9])
    });
    assert!(results.into_iter().all(|result| result.unwrap() == 2.0));
}

#[test]
fn a_kernel_that_the_device_of_one_node_refuses_ends_the_run() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(1).run(|rt| {
        let builder = Simulated::builder();
        let builder = if rt.node() == 1 { builder.refuse_program(1) } else { builder };
        let on = device(&Arc::new(builder.build()));
        let u = rt.buffer_from(&[1.0_f32; 10])?;
        rt.task("double").over([10]).on(&on).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))?;
        rt.wait()
    });
    for (node, result) in results.into_iter().enumerate() {
        let error = result.unwrap_err();
        match node {
            1 => assert!(matches!(error, Error::Device { .. }), "{error}"),
            _ => assert!(matches!(error, Error::Nodes(_)), "{error}"),
        }
    }
}

#[test]
fn memory_of_devices_is_freed_with_the_buffers_of_each_node() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(2).run(|rt| {
        let simulated = slow(rt.node().into());
        let on = device(&simulated);
        for _ in 0..3 {
            let (u, v) = (rt.buffer_from(&[1.0_f64; 100])?, rt.buffer::<f64, 1>([100]));
            for _ in 0..2 {
                let task =
                    rt.task("add").over([100]).on(&on).read(&u, neighborhood([1])).write(&v, one_to_one());
                task.each(|(u, v)| v.set(u.at_clamped([1]) + 1.0))?;
                let task = rt.task("back").over([100]).on(&on).read(&v, one_to_one()).write(&u, one_to_one());
                task.each(|(v, u)| u.set(v.here()))?;
            }
            assert_eq!(rt.fence(&u)?.wait()?.as_slice()[50], 3.0);
            assert_eq!(simulated.counts().allocations, 2);
            drop((u, v));
            rt.wait()?;
            assert_eq!(simulated.counts().allocations, 0);
        }
        Ok::<_, Error>(())
    });
    results.into_iter().for_each(Result::unwrap);
}
