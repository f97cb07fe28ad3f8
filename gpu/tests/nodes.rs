//! Shaders and reductions on several nodes: each node launches them for its points, and all of them together
//! give the bits of one node.

mod support;

use anabranch::{device::Wgsl, local_nodes, prelude::*};
use std::mem::swap;
use support::gpu;
use testing::deadline;

/// One step of a smoothing, point by point.
const SMOOTH: &str = "
fn each(y: u32, x: u32) {
    let last = u_extent() - 1u;
    let across = u_get(y, max(x, 1u) - 1u) + u_get(y, min(x + 1u, last.x));
    let along = u_get(max(y, 1u) - 1u, x) + u_get(min(y + 1u, last.y), x);
    next_set(y, x, u_get(y, x) + 0.125 * (across + along - 4.0 * u_get(y, x)));
}
";

/// Each tile gets the sums of its rows, from the memory of its group.
const TILES: &str = "
var<workgroup> block: array<f32, 32>;
fn group(id: vec3u, local: vec3u, index: u32) {
    let place = first_point() + id.xy * vec2u(8u, 4u) + local.xy;
    let is_inside = all(place < end_point());
    if is_inside {
        block[index] = u_get(place.y, place.x);
    }
    workgroupBarrier();
    if is_inside {
        next_set(place.y, place.x, block[index] * 2.0 + f32(place.x % 3u));
    }
}
";

/// The steps of a program on one of several nodes, or on the only one.
fn steps(rt: Runtime, shape: [usize; 2]) -> Result<Vec<f32>, Error> {
    let (mut u, mut next) = (rt.buffer::<f32, 2>(shape), rt.buffer::<f32, 2>(shape));
    rt.task("start").over(shape).write(&u, one_to_one()).kernel(|_, (u,)| {
        u.fill_with(|[y, x]| ((y * 31 + x * 7) % 64) as f32);
    })?;
    for step in 0..7 {
        let task = rt.task("smooth").over(shape).read(&u, neighborhood([1, 1])).write(&next, one_to_one());
        let task = if step % 3 == 1 { task.pieces(5) } else { task };
        task.shader(Wgsl::new(SMOOTH).names(["u", "next"])).submit()?;
        swap(&mut u, &mut next);
        let task = rt.task("tiles").over(shape).read(&u, one_to_one()).write(&next, one_to_one());
        task.shader(Wgsl::new(TILES).names(["u", "next"]).tiles([4, 8], [4, 8])).submit()?;
        swap(&mut u, &mut next);
        // The host reads and changes what the devices have.
        rt.task("host").over(shape).update(&u, one_to_one()).kernel(|tile, (u,)| {
            tile.points().for_each(|p| u[p] *= 0.5);
        })?;
    }
    Ok(rt.drain(u.capture())?.as_slice().to_vec())
}

#[test]
fn all_nodes_together_compute_what_one_computes() {
    let _deadline = deadline();
    let Some(device) = gpu() else { return };
    for shape in [[1, 1], [23, 17], [40, 9]] {
        let one = Runtime::builder().threads(2).device(&device).build().unwrap();
        let expected = steps(one, shape).unwrap();
        for (nodes, threads) in [(1, 2), (2, 1), (3, 2), (4, 1)] {
            // All of them may have the same device: each node has memory of its own there.
            let builder = Runtime::builder().threads(threads).device(&device);
            let results = local_nodes(nodes).builder(builder).run(move |rt| steps(rt, shape));
            for (node, result) in results.into_iter().enumerate() {
                assert_eq!(result.unwrap(), expected, "{shape:?}, node {node} of {nodes}");
            }
        }
    }
}

#[test]
fn a_number_of_groups_for_one_node_is_an_error_or_the_host_computes() {
    let _deadline = deadline();
    let Some(device) = gpu() else { return };
    let builder = Runtime::builder().threads(1).device(&device);
    let results = local_nodes(2).builder(builder).run(|rt| {
        let (u, next) = (rt.buffer_from(&ndarray_of(3.0))?, rt.buffer::<f32, 2>([8, 8]));
        let task = || rt.task("groups").over([8, 8]).read(&u, one_to_one()).write(&next, one_to_one());
        let shader = Wgsl::new(TILES).names(["u", "next"]).groups([4, 8], [2, 1]);
        let error = task().on(&device).shader(shader.clone()).submit().unwrap_err();
        assert!(matches!(error, Error::OneNodeOnly { .. }), "{error}");
        assert!(error.to_string().contains("`tiles`"), "{error}");
        task().shader(shader).kernel(|tile, (u, next)| {
            tile.points().for_each(|p| next.set(p, u[p] + 1.0));
        })?;
        Ok::<_, Error>(rt.drain(next.capture())?.as_slice().to_vec())
    });
    for result in results {
        assert_eq!(result.unwrap(), [4.0; 64]);
    }
}

#[test]
fn an_access_outside_the_part_of_a_node_fails_that_part() {
    let _deadline = deadline();
    let Some(device) = gpu() else { return };
    let builder = Runtime::builder().threads(2).device(&device);
    let results = local_nodes(2).builder(builder).run(|rt| {
        let (u, next) = (rt.buffer_from(&ndarray_of(1.0))?, rt.buffer::<f32, 2>([8, 8]));
        // Row 3 belongs to the first node, row 4 to the second one.
        let text = "fn each(y: u32, x: u32) { next_set(y, x, u_get(select(y, 3u, y == 4u), x)); }";
        let task = rt.task("outside").over([8, 8]).read(&u, one_to_one()).write(&next, one_to_one());
        let handle = task.shader(Wgsl::new(text).names(["u", "next"])).submit()?;
        let failed = handle.wait().is_err();
        let error = rt.fence(&next)?.wait().unwrap_err();
        Ok::<_, Error>((failed, error.to_string()))
    });
    for (node, result) in results.into_iter().enumerate() {
        let (failed, error) = result.unwrap();
        assert_eq!(failed, node == 1, "the part of node {node}: {error}");
        assert!(error.contains("outside") && error.contains("[3, "), "{error}");
    }
}

/// What a program on nodes reduces to, as bits: sums that depend on the order, extremes, and a number that
/// goes on from launch to launch.
fn reduced<const K: usize>(rt: &Runtime, space: [usize; K]) -> Result<Vec<u32>, Error> {
    let (u, scaled) = (rt.buffer::<f32, K>(space), rt.buffer::<f32, K>(space));
    let (total, sum_of_all) = (rt.buffer::<f32, 0>([]), rt.buffer::<f32, 0>([]));
    let (least, count) = (rt.buffer::<f32, 0>([]), rt.buffer::<u32, 0>([]));
    rt.task("fill").over(space).write(&u, one_to_one()).kernel(move |_, (u,)| {
        u.fill_with(|point| {
            let at = space.iter().zip(point).fold(0, |at, (size, along)| at * size + along);
            ((at.wrapping_mul(7919)) % 10_007) as f32 / 8.0 - 600.0
        });
    })?;
    rt.task("start").over([]).write(&sum_of_all, one_to_one()).each(|(sum,)| sum.set(0.1))?;
    for round in 0..3 {
        let task = rt.task("reduce").over(space).read(&u, one_to_one()).write(&scaled, one_to_one());
        let task = task.reduce(&total, sum()).reduce_into(&sum_of_all, sum()).reduce(&least, min());
        task.reduce(&count, sum()).each(|(u, scaled, total, sum_of_all, least, count)| {
            let u = u.here();
            scaled.set(u * 0.5);
            // A driver would like to contract it.
            total.combine(u * 0.001);
            sum_of_all.combine(u);
            least.combine(u);
            count.combine_if(u.lt(0.0), 1);
        })?;
        // The next kernel of the device needs a result.
        let task = rt.task("shift").over(space).read(&total, all()).read(&scaled, one_to_one());
        task.write(&u, one_to_one()).each(|(total, scaled, u)| {
            u.set(scaled.here() + (total.get([]) + round as f32).min(100.0));
        })?;
    }
    let (total, sum_of_all, least, count) = rt.fence((&total, &sum_of_all, &least, &count))?.wait()?;
    let u = rt.fence(&u)?.wait()?;
    let numbers = [total[[]].to_bits(), sum_of_all[[]].to_bits(), least[[]].to_bits(), count[[]]];
    Ok(numbers.into_iter().chain(u.as_slice().iter().map(|u| u.to_bits())).collect())
}

/// Reductions over spaces of no points, of fewer leaves than nodes, and of long and short rows.
fn all_reduced(rt: Runtime) -> Result<Vec<Vec<u32>>, Error> {
    let mut all = Vec::new();
    for space in [[0], [1], [4097], [50_001]] {
        all.push(reduced(&rt, space)?);
    }
    for space in [[37, 29], [200, 130], [5, 9001]] {
        all.push(reduced(&rt, space)?);
    }
    all.push(reduced(&rt, [9, 40, 30])?);
    Ok(all)
}

#[test]
fn reductions_have_the_bits_of_one_node_and_of_the_host() {
    let _deadline = deadline();
    let Some(device) = gpu() else { return };
    let one = Runtime::builder().threads(2).device(&device).build().unwrap();
    let expected = all_reduced(one).unwrap();
    assert_eq!(expected, all_reduced(Runtime::builder().threads(2).build().unwrap()).unwrap(), "the host");
    for (nodes, threads) in [(2, 2), (3, 1), (4, 1)] {
        let builder = Runtime::builder().threads(threads).device(&device);
        let results = local_nodes(nodes).builder(builder).run(all_reduced);
        for (node, result) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap(), expected, "node {node} of {nodes}");
        }
    }
}

fn ndarray_of(value: f32) -> anabranch::ndarray::Array2<f32> {
    anabranch::ndarray::Array2::from_elem((8, 8), value)
}
