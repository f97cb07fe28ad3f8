//! Reductions of recorded kernels on devices of several nodes: the bits of one node and of the host, and
//! failures.

mod common;

use anabranch::{
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use common::devices::{Places, device, same_on_devices, slow};
use std::{fmt::Debug, sync::Arc, time::Duration};
use testing::deadline;

/// Leaves that 1, 2, 3, 4 and 7 nodes share equally, and the points of such a line: the part of a node is
/// that of a kernel without reductions.
const LEAVES: usize = 84;
const LINE: usize = LEAVES * 4096;

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

/// Numbers whose sum depends on the order in which they are added.
fn number(at: usize) -> f32 {
    ((at.wrapping_mul(7919)) % 10_007) as f32 / 7.0 - 700.0
}

fn filled<const K: usize>(rt: &Runtime, space: [usize; K]) -> Result<Buffer<f32, K>, Error> {
    let u = rt.buffer::<f32, K>(space);
    let numbered = move |point: [usize; K]| space.iter().zip(point).fold(0, |n, (size, at)| n * size + at);
    let fill = rt.task("fill").over(space).write(&u, one_to_one());
    fill.kernel(move |_, (u,)| u.fill_with(|point| number(numbered(point))))?;
    Ok(u)
}

/// Reductions of all sorts over a space, of which some go on from what a device or a reduction has left.
/// Returns their bits.
fn reduced<const K: usize>(rt: &Runtime, space: [usize; K], places: &Places) -> Result<Vec<u64>, Error> {
    let (u, squares) = (filled(rt, space)?, rt.buffer::<f32, K>(space));
    let (total, from_start) = (rt.buffer::<f32, 0>([]), rt.buffer::<f64, 0>([]));
    let (least, greatest) = (rt.buffer::<f32, 0>([]), rt.buffer::<i64, 0>([]));
    let (count, bits) = (rt.buffer::<u32, 0>([]), rt.buffer::<u64, 0>([]));
    let start = rt.task("start").over([]).write(&from_start, one_to_one());
    each!(start, places.at(0), |(start,)| start.set(0.1))?;
    for round in 0..3 {
        let task = rt.task("reduce").over(space).pieces(1 + 2 * round).chunks(1 + 4 * round);
        let task = task.read(&u, one_to_one()).write(&squares, one_to_one()).reduce(&total, sum());
        let task = task.reduce_into(&from_start, sum()).reduce(&least, min()).reduce(&greatest, max());
        each!(task.reduce(&count, sum()).reduce(&bits, or()), places.at(round), |(
            u,
            squares,
            total,
            from_start,
            least,
            greatest,
            count,
            bits,
        )| {
            let (u, square) = (u.here(), u.here() * u.here());
            squares.set(square);
            total.combine(u);
            from_start.combine(square.convert());
            least.combine(u);
            greatest.combine_if(u.lt(500.0), u.convert());
            count.combine_if(u.lt(0.0), 1);
            bits.combine((u * 7.0).abs().convert());
        })?;
        // The next round adds to what this one has left, without a reader between or with one on a device.
        if round == 1 {
            let task = rt.task("halve").over([]).read(&total, one_to_one()).update(&from_start, one_to_one());
            each!(task, places.at(round + 1), |(total, from_start)| {
                from_start.set(from_start.here() * 0.5 + total.here().convert());
            })?;
        }
        let task = rt.task("scale").over(space).read(&squares, one_to_one()).update(&u, one_to_one());
        each!(task, places.at(round + 1), |(squares, u)| u.set(u.here() * 0.25 + squares.here() * 1e-3))?;
    }
    let (total, from_start, least, greatest, count, bits) =
        rt.fence((&total, &from_start, &least, &greatest, &count, &bits))?.wait()?;
    let mut all = vec![
        u64::from(total[[]].to_bits()),
        from_start[[]].to_bits(),
        u64::from(least[[]].to_bits()),
        greatest[[]] as u64,
        u64::from(count[[]]),
        bits[[]],
    ];
    all.extend(rt.fence(&squares)?.wait()?.as_slice().iter().map(|square| u64::from(square.to_bits())));
    Ok(all)
}

#[test]
fn lines_have_the_bits_of_one_node() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        // Of no points, of one leaf, which one node has, and of several leaves for each node.
        let spaces = [[0], [1], [63], [4096], [4097], [13_000], [50_001]];
        spaces.into_iter().map(|space| reduced(&rt, space, places)).collect::<Result<Vec<_>, _>>()
    });
}

#[test]
fn planes_and_volumes_have_the_bits_of_one_node() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        // Bands of several rows, and rows of several leaves: a subtree may begin inside of a row.
        let planes = [[0, 5], [5, 0], [37, 29], [1, 9000], [5, 9001], [3, 4096], [200, 130]];
        let mut all =
            planes.into_iter().map(|space| reduced(&rt, space, places)).collect::<Result<Vec<_>, _>>()?;
        for space in [[3, 0, 7], [3, 4, 5], [9, 40, 30], [5, 70, 71]] {
            all.push(reduced(&rt, space, places)?);
        }
        all.push(reduced(&rt, [], places)?);
        Ok(all)
    });
}

#[test]
fn nodes_without_a_part_and_kernels_on_one_node_have_the_bits_of_one_node() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        let mut all = Vec::new();
        for round in 0..6 {
            let weight = |node: u16| f64::from((node + round) % 3);
            let mut weights: Vec<_> = (0..rt.nodes()).map(weight).collect();
            weights[usize::from(round) % usize::from(rt.nodes())] += 1.0;
            rt.set_weights(&weights)?;
            all.push(reduced(&rt, [30_001], places)?);
            let (u, total) = (filled(&rt, [9000])?, rt.buffer_from(&ndarray::arr0(0.3_f32))?);
            for node in [0, rt.nodes() - 1] {
                let task = rt.task("on one").over([9000]).on_node(node)?.read(&u, one_to_one());
                each!(task.reduce_into(&total, sum()), places.at(round.into()), |(u, total)| {
                    total.combine(u.here());
                })?;
            }
            all.push(vec![u64::from(rt.fence(&total)?.wait()?[[]].to_bits())]);
        }
        Ok(all)
    });
}

/// An iteration that needs its own result on the device.
#[test]
fn results_are_there_for_the_next_kernel_of_the_device() {
    let _deadline = deadline();
    same_on_devices(|rt, places| {
        let (u, length) = (filled(&rt, [31_000])?, rt.buffer::<f32, 0>([]));
        let mut lengths = Vec::new();
        for step in 0..8 {
            let task = rt.task("length").over([31_000]).read(&u, one_to_one()).reduce(&length, sum());
            each!(task, places.at(step), |(u, length)| length.combine(u.here() * u.here()))?;
            let task = rt.task("divide").over([31_000]).read(&length, all()).update(&u, one_to_one());
            each!(task, places.at(step), |(length, u)| u.set(u.here() / (length.get([]) * 0.9).sqrt()))?;
            if step % 3 == 0 {
                lengths.push(rt.fence(&length)?);
            }
        }
        let lengths = lengths.into_iter().map(|length| Ok(length.wait()?[[]].to_bits()));
        lengths.collect::<Result<Vec<_>, Error>>()
    });
}

#[test]
fn a_node_copies_the_results_of_its_leaves_and_nothing_else() {
    let _deadline = deadline();
    const ROUNDS: u64 = 5;
    for nodes in [2, 3, 4, 7] {
        let results = local_nodes(nodes).threads(2).delays(3, nodes.into()).run(|rt| {
            let simulated = slow(rt.node().into());
            let on = device(&simulated);
            let (u, total) = (rt.buffer::<f32, 1>([LINE]), rt.buffer::<f64, 0>([]));
            rt.task("fill").over([LINE]).on(&on).write(&u, one_to_one()).each(|(u,)| u.set(0.1))?;
            for _ in 0..ROUNDS {
                let task = rt.task("sum").over([LINE]).on(&on).read(&u, one_to_one());
                task.reduce(&total, sum()).each(|(u, total)| total.combine(u.here().convert()))?;
            }
            let total = rt.fence(&total)?.wait()?[[]];
            rt.wait()?;
            Ok::<_, Error>((total.to_bits(), simulated.counts()))
        });
        let results = results.into_iter().map(Result::unwrap).collect::<Vec<_>>();
        for (node, (total, counts)) in results.iter().enumerate() {
            assert_eq!(*total, results[0].0);
            assert_eq!((counts.launches, counts.uploads), (ROUNDS + 1, 0), "node {node} of {nodes}");
            let bytes = ROUNDS * 8 * (LEAVES / usize::from(nodes)) as u64;
            assert_eq!((counts.downloads, counts.bytes_down), (ROUNDS, bytes), "node {node} of {nodes}");
            // The memory of the results is gone, and that of the buffer is left.
            assert_eq!((counts.allocations, counts.failed), (1, 0));
        }
    }
}

#[test]
fn a_node_whose_device_cannot_reduce_computes_on_the_host() {
    let _deadline = deadline();
    let sums = |rt: Runtime| {
        let (u, total) = (filled(&rt, [50_001])?, rt.buffer::<f64, 0>([]));
        let task = rt.task("sum").over([50_001]).read(&u, one_to_one()).reduce(&total, sum());
        task.each(|(u, total)| total.combine(u.here().convert::<f64>() * 0.1))?;
        Ok(rt.drain(total.capture())?[[]].to_bits())
    };
    let expected = sums(Runtime::new().unwrap()).unwrap();
    // All nodes of this process share the device, which refuses the kernel of one of them.
    let simulated =
        Arc::new(Simulated::builder().refuse_program(2).delays(1, Duration::from_micros(100)).build());
    let builder = Runtime::builder().threads(2).device(&device(&simulated));
    for result in local_nodes(4).builder(builder).run(sums) {
        assert_eq!(result.unwrap(), expected);
    }
    assert_eq!(simulated.counts().launches, 3);
}

/// Runs a program that returns the same on all nodes, with a device for each. That of the odd node, the first
/// or the last one, has these settings.
fn with_an_odd_device<R: PartialEq + Debug + Send>(
    odd: impl Fn() -> Simulated + Sync,
    program: impl Fn(&Runtime, &Arc<dyn Device>) -> Result<R, Error> + Sync,
) -> Vec<(u16, R)> {
    let run = |(nodes, is_first): (u16, bool)| {
        let odd_node = if is_first { 0 } else { nodes - 1 };
        let results = local_nodes(nodes).threads(2).delays(4, nodes.into()).run(|rt| {
            let on = if rt.node() == odd_node { Arc::new(odd()) } else { slow(rt.node().into()) };
            program(&rt, &device(&on))
        });
        let mut results: Vec<R> = results.into_iter().map(Result::unwrap).collect();
        assert!(results.iter().all(|result| *result == results[0]), "{nodes} nodes: {results:#?}");
        (odd_node, results.remove(0))
    };
    [(1, true), (2, true), (2, false), (3, false), (4, true), (7, false)].map(run).into()
}

/// The sum of the ones of a line, and two.
const HEALED: &str = "344066";

/// Sums up a buffer of ones on the device, after the number that is there. Returns the error of `wait` and
/// that of the sum, or the sum.
fn sum_up(
    rt: &Runtime,
    on: &Arc<dyn Device>,
    u: &Buffer<f32, 1>,
    total: &Buffer<f32, 0>,
) -> Result<[String; 2], Error> {
    let task = rt.task("sum").over(u.extent()).on(on).read(u, one_to_one());
    task.reduce_into(total, sum()).each(|(u, total)| total.combine(u.here()))?;
    let waited = rt.wait().map_or_else(|error| error.to_string(), |()| String::new());
    let result = rt.fence(total)?.wait();
    Ok([waited, result.map_or_else(|error| error.to_string(), |total| total[[]].to_string())])
}

/// A buffer of ones, one of a number, and the device which has both.
fn ones(rt: &Runtime) -> Result<(Buffer<f32, 1>, Buffer<f32, 0>), Error> {
    let (u, total) = (rt.buffer::<f32, 1>([LINE]).named("u"), rt.buffer::<f32, 0>([]).named("total"));
    rt.task("ones").over([LINE]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
    rt.task("zero").over([]).write(&total, one_to_one()).kernel(|_, (total,)| total.fill(0.0))?;
    Ok((u, total))
}

/// Writes the number again, and sums up.
fn heal(rt: &Runtime, u: &Buffer<f32, 1>, total: &Buffer<f32, 0>) -> Result<String, Error> {
    rt.task("zero").over([]).write(total, one_to_one()).kernel(|_, (total,)| total.fill(2.0))?;
    let task = rt.task("heal").over(u.extent()).on_host().read(u, one_to_one());
    task.reduce_into(total, sum()).each(|(u, total)| total.combine(u.here()))?;
    rt.wait()?;
    Ok(rt.fence(total)?.wait()?[[]].to_string())
}

/// Checks what [`sum_up`] and [`heal`] have returned, where the odd node has failed.
fn check_failed([waited, result, healed]: &[String; 3], odd_node: u16, parts: &[&str]) {
    let on_odd = format!("on node {odd_node}");
    for text in [waited, result] {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.contains(&on_odd) || odd_node == 0 && !text.contains("on node"), "{text}");
    }
    assert_eq!(healed, HEALED);
}

#[test]
fn memory_for_results_that_one_device_refuses_is_the_same_error_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    // The buffer has memory before, and the results get none.
    let small = || Simulated::builder().named("small").refuse_allocation(2).build();
    for (odd_node, (failed, again)) in with_an_odd_device(small, |rt, on| {
        let (u, total) = ones(rt)?;
        let [waited, result] = sum_up(rt, on, &u, &total)?;
        let healed = heal(rt, &u, &total)?;
        Ok(([waited, result, healed], sum_up(rt, on, &u, &total)?))
    }) {
        check_failed(&failed, odd_node, &["task \"sum\"", "no memory for buffer \"total\"", "small"]);
        assert_eq!(again, ["", "688130"], "the device has memory again");
    }
}

#[test]
fn a_launch_that_fails_on_one_node_is_the_same_error_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    // The copy to the device is the first batch.
    let fails = || Simulated::builder().named("odd").fail_batch(2).build();
    for (odd_node, (failed, again)) in with_an_odd_device(fails, |rt, on| {
        let (u, total) = ones(rt)?;
        let [waited, result] = sum_up(rt, on, &u, &total)?;
        let healed = heal(rt, &u, &total)?;
        Ok(([waited, result, healed], sum_up(rt, on, &u, &total)?))
    }) {
        check_failed(&failed, odd_node, &["task \"sum\"", "batch 2 is to fail"]);
        assert_eq!(again, ["", "688130"]);
    }
}

#[test]
fn a_lost_device_fails_the_reductions_of_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    for after in [0, 1, 2] {
        let lost = move || Simulated::builder().named("odd").lose_after(after).build();
        for (odd_node, (failed, again)) in with_an_odd_device(lost, |rt, on| {
            let (u, total) = ones(rt)?;
            let [waited, result] = sum_up(rt, on, &u, &total)?;
            let healed = heal(rt, &u, &total)?;
            if after < 2 {
                return Ok((Some([waited, result, healed]), None));
            }
            assert_eq!([waited, result], ["", "344064"]);
            let [waited, result] = sum_up(rt, on, &u, &total)?;
            Ok((None, Some([waited, result, heal(rt, &u, &total)?])))
        }) {
            let texts = failed.or(again).expect("one of them has failed");
            check_failed(&texts, odd_node, &["the device odd is lost"]);
        }
    }
}

/// The number that a reduction begins with is on a device that fails to give it.
#[test]
fn a_first_number_that_is_lost_fails_the_sum_on_all_nodes() {
    let _deadline = deadline();
    // The batches of the first node: the number, a copy of the ones, and a launch that reads them; then the
    // copy of the number.
    let fails = || Simulated::builder().named("odd").fail_batch(4).build();
    for (odd_node, ([waited, result, healed], nodes)) in with_an_odd_device(fails, |rt, on| {
        let (u, total) = ones(rt)?;
        let v = rt.buffer::<f32, 1>([LINE]);
        rt.task("three").over([]).on(on).write(&total, one_to_one()).each(|(total,)| total.set(3.0))?;
        rt.wait()?;
        let copy = rt.task("copy").over([LINE]).on(on).read(&u, one_to_one()).write(&v, one_to_one());
        copy.each(|(u, v)| v.set(u.here()))?;
        rt.wait()?;
        let [waited, result] = sum_up(rt, on, &u, &total)?;
        Ok(([waited, result, heal(rt, &u, &total)?], rt.nodes()))
    }) {
        // Only the first node has the number.
        if odd_node == 0 {
            let copied = "copy of buffer \"total\" to the host";
            assert!(
                waited.contains("batch 4 is to fail") && result.contains("batch 4 is to fail"),
                "{waited}"
            );
            assert!(nodes == 1 || waited.contains(copied) && result.contains(copied), "{waited}");
        } else {
            assert_eq!([waited, result], ["", "344067"]);
        }
        assert_eq!(healed, HEALED);
    }
}

#[test]
fn a_failed_input_of_one_node_poisons_the_sum_of_all_and_no_device_computes_it() {
    let _deadline = deadline();
    for (odd_node, text) in with_an_odd_device(Simulated::new, |rt, on| {
        let (u, total) = (rt.buffer::<f32, 1>([LINE]), rt.buffer::<f32, 0>([]));
        let bad = rt.task("bad").over([LINE]).write(&u, one_to_one());
        bad.kernel(|tile, (u,)| {
            assert!(tile.range().max()[0] < LINE, "the last is missing");
            u.fill(1.0);
        })?;
        let task = rt.task("sum").over([LINE]).on(on).read(&u, one_to_one()).reduce(&total, sum());
        let task = task.each(|(u, total)| total.combine(u.here()))?;
        let text = rt.fence(&total)?.wait().expect_err("an input is missing").to_string();
        let _reported = rt.wait();
        let is_last = rt.node() + 1 == rt.nodes();
        assert_eq!(task.status(), if is_last { Status::Skipped } else { Status::Done });
        Ok(text)
    }) {
        assert!(text.contains("the last is missing"), "{odd_node}: {text}");
    }
}

#[test]
fn a_cancelled_reduction_of_one_node_is_cancelled_on_all() {
    let _deadline = deadline();
    for result in local_nodes(3).threads(2).run(|rt| {
        let on = device(&slow(rt.node().into()));
        let (u, total) = ones(&rt)?;
        let group = rt.group("cancelled");
        if rt.node() == 1 {
            group.cancel();
        }
        let task = group.task("sum").over([LINE]).on(&on).read(&u, one_to_one());
        task.reduce(&total, sum()).each(|(u, total)| total.combine(u.here()))?;
        let text = rt.fence(&total)?.wait().expect_err("a part is cancelled").to_string();
        drop(group);
        let _reported = rt.wait();
        assert_eq!(heal(&rt, &u, &total)?, HEALED);
        Ok::<_, Error>(text)
    }) {
        let text = result.unwrap();
        assert!(text.contains("cancelled"), "{text}");
    }
}
