//! Reductions of recorded kernels: the bits of the documented tree on any number of threads and nodes, in any
//! chunks and on a device.

mod common;
#[path = "../../kernel/tests/tree/mod.rs"]
mod tree;

use anabranch::{
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
    recorded::RecordError,
};
use common::{runtime, runtimes, same_on};
use std::{array, sync::Arc};
use testing::deadline;
use tree::Tree;

/// Numbers whose sum depends on the order in which they are added.
fn number(at: usize) -> f32 {
    ((at.wrapping_mul(7919)) % 10_007) as f32 / 7.0 - 700.0
}

/// The number of a point of a space.
fn numbered<const K: usize>(space: [usize; K], point: [usize; K]) -> usize {
    space.iter().zip(point).fold(0, |number, (size, at)| number * size + at)
}

fn padded<const K: usize>(point: [usize; K], with: usize) -> [usize; 3] {
    array::from_fn(|dim| if dim + K < 3 { with } else { point[dim + K - 3] })
}

/// How a task is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    chunks: Option<usize>,
    pieces: usize,
}

const CUTS: [Cut; 4] = [
    Cut { chunks: None, pieces: 1 },
    Cut { chunks: Some(1), pieces: 3 },
    Cut { chunks: Some(3), pieces: 1 },
    Cut { chunks: Some(100), pieces: 7 },
];

/// The results of one task, as bits: two sums of which one goes on from a number, a product, extremes, bits,
/// and an array.
type Results = (Vec<u64>, Vec<u32>);

fn filled<const K: usize>(rt: &Runtime, space: [usize; K]) -> Result<Buffer<f32, K>, Error> {
    let u = rt.buffer::<f32, K>(space);
    rt.task("fill")
        .over(space)
        .write(&u, one_to_one())
        .kernel(move |_, (u,)| u.fill_with(|point| number(numbered(space, point))))?;
    Ok(u)
}

fn reduced<const K: usize>(
    rt: &Runtime,
    space: [usize; K],
    cut: Cut,
    device: Option<&Arc<dyn Device>>,
) -> Result<Results, Error> {
    let (u, squares) = (filled(rt, space)?, rt.buffer::<f32, K>(space));
    let (sum_of_all, from_start) = (rt.buffer::<f32, 0>([]), rt.buffer::<f64, 0>([]));
    let (least, greatest) = (rt.buffer::<f32, 0>([]), rt.buffer::<i64, 0>([]));
    let (count, bits) = (rt.buffer::<u32, 0>([]), rt.buffer::<u64, 0>([]));
    rt.task("start").over([]).write(&from_start, one_to_one()).each(|(start,)| start.set(0.1))?;
    let mut task = rt.task("reduce").over(space).pieces(cut.pieces);
    if let Some(chunks) = cut.chunks {
        task = task.chunks(chunks);
    }
    if let Some(device) = device {
        task = task.on(device);
    }
    task.read(&u, one_to_one())
        .write(&squares, one_to_one())
        .reduce(&sum_of_all, sum())
        .reduce_into(&from_start, sum())
        .reduce(&least, min())
        .reduce(&greatest, max())
        .reduce(&count, sum())
        .reduce(&bits, or())
        .each(|(u, squares, sum_of_all, from_start, least, greatest, count, bits)| {
            let (u, square) = (u.here(), u.here() * u.here());
            squares.set(square);
            sum_of_all.combine(u);
            from_start.combine(square.convert());
            least.combine(u);
            greatest.combine_if(u.lt(500.0), u.convert());
            count.combine_if(u.lt(0.0), 1);
            bits.combine((u * 7.0).abs().convert());
        })?;
    let (sum_of_all, from_start, least, greatest, count, bits) =
        rt.fence((&sum_of_all, &from_start, &least, &greatest, &count, &bits))?.wait()?;
    let numbers = vec![
        u64::from(sum_of_all[[]].to_bits()),
        from_start[[]].to_bits(),
        u64::from(least[[]].to_bits()),
        greatest[[]] as u64,
        u64::from(count[[]]),
        bits[[]],
    ];
    let squares = rt.fence(&squares)?.wait()?;
    Ok((numbers, squares.as_slice().iter().map(|square| square.to_bits()).collect()))
}

/// The same by plain loops.
fn plain<const K: usize>(space: [usize; K]) -> Results {
    let points = [[0; 3], padded(space, 1)];
    let value = |[z, y, x]: [usize; 3]| number((z * points[1][1] + y) * points[1][2] + x);
    let add = Tree::<f32> { identity: -0.0, combine: |a, b| a + b };
    let add_wide = Tree::<f64> { identity: -0.0, combine: |a, b| a + b };
    let squares = |point| f64::from(value(point) * value(point));
    let mut from_start = add_wide.leaves(K, points, squares);
    let from_start = match from_start.first_mut() {
        Some(first) => {
            *first += 0.1;
            add_wide.of_leaves(&from_start)
        }
        None => 0.1,
    };
    let all = (0..space.iter().product()).map(number);
    let least = all.clone().fold(f32::INFINITY, f32::min);
    let greatest = all.clone().filter(|&u| u < 500.0).map(|u| u as i64).fold(i64::MIN, i64::max);
    let count = all.clone().filter(|&u| u < 0.0).count();
    let bits = all.clone().fold(0, |bits, u| bits | (u * 7.0).abs() as u64);
    let numbers = vec![
        u64::from(add.total(K, points, value).unwrap_or(-0.0).to_bits()),
        from_start.to_bits(),
        u64::from(least.to_bits()),
        greatest as u64,
        count as u64,
        bits,
    ];
    (numbers, all.map(|u| (u * u).to_bits()).collect())
}

/// Calls a function for spaces of each rank: of no points, one, some, as many as a leaf, and of short and
/// long rows.
macro_rules! for_spaces {
    (|$space:ident| $body:expr) => {{
        for $space in [[0], [1], [63], [4096], [4097], [50_001]] {
            $body
        }
        for $space in [[0, 5], [5, 0], [37, 29], [1, 9000], [3, 4096], [200, 130]] {
            $body
        }
        for $space in [[3, 0, 7], [3, 4, 5], [9, 40, 30], [2, 70, 70]] {
            $body
        }
        let $space: [usize; 0] = [];
        $body
    }};
}

#[test]
fn reductions_have_the_bits_of_the_tree_on_any_number_of_threads_and_in_any_chunks() {
    let _deadline = deadline();
    for rt in runtimes() {
        for_spaces!(|space| {
            for cut in CUTS {
                assert_eq!(
                    reduced(&rt, space, cut, None).unwrap(),
                    plain(space),
                    "{rt:?}, {space:?}, {cut:?}"
                );
            }
        });
    }
}

#[test]
fn reductions_have_the_bits_of_the_tree_on_several_nodes() {
    let _deadline = deadline();
    for cut in [CUTS[0], CUTS[3]] {
        same_on(&[1, 2, 3, 4, 7], &[1, 2, 3], move |rt| {
            let mut all = Vec::new();
            for_spaces!(|space| {
                let results = reduced(&rt, space, cut, None)?;
                assert_eq!(results, plain(space), "{space:?}");
                all.push(results);
            });
            Ok(all)
        });
    }
}

#[test]
fn nodes_with_weights_have_the_same_bits() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(2).run(|rt| {
        let mut all = Vec::new();
        for weights in [[1.0, 5.0, 2.0], [0.0, 1.0, 0.3], [3.0, 0.0, 0.0]] {
            rt.set_weights(&weights)?;
            assert_eq!(reduced(&rt, [50_001], CUTS[0], None)?, plain([50_001]), "{weights:?}");
            all.push(reduced(&rt, [40, 5000], CUTS[2], None)?);
        }
        Ok::<_, Error>(all)
    });
    for result in results {
        assert!(result.unwrap().into_iter().all(|result| result == plain([40, 5000])));
    }
}

#[test]
fn a_device_has_the_bits_of_the_host() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    for threads in [1, 3] {
        let rt = runtime(threads);
        for_spaces!(|space| {
            assert_eq!(reduced(&rt, space, CUTS[0], Some(&device)).unwrap(), plain(space), "{space:?}");
        });
    }
}

/// An iteration that needs its own result: each step divides a vector by its length.
#[test]
fn results_are_there_for_the_next_task() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, total) = (filled(&rt, [10_000]).unwrap(), rt.buffer::<f32, 0>([]));
        let mut sums = Vec::new();
        for _ in 0..3 {
            rt.task("length")
                .over([10_000])
                .read(&u, one_to_one())
                .reduce(&total, sum())
                .each(|(u, total)| total.combine(u.here() * u.here()))
                .unwrap();
            let length = rt.fence(&total).unwrap().wait().unwrap()[[]].sqrt();
            rt.task("divide")
                .over([10_000])
                .update(&u, one_to_one())
                .each(|(u,)| u.set(u.here() / length))
                .unwrap();
            sums.push(length);
        }
        assert!((sums[1] - 1.0).abs() < 1e-5 && (sums[2] - 1.0).abs() < 1e-5, "{sums:?}");
    }
}

#[test]
fn a_failed_input_poisons_the_result_until_it_is_overwritten() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    for on in [None, Some(&device)] {
        for rt in runtimes() {
            let (u, total) = (rt.buffer::<i32, 1>([100]), rt.buffer::<i32, 0>([]));
            let reduce = || {
                let task = rt.task("sum").over([100]).read(&u, one_to_one());
                let task = on.into_iter().fold(task, |task, device| task.on(device));
                task.reduce(&total, sum()).each(|(u, total)| total.combine(u.here())).unwrap()
            };
            rt.task("bad")
                .over([100])
                .write(&u, one_to_one())
                .kernel(|_, (_,)| panic!("no numbers"))
                .unwrap();
            let sum = reduce();
            let error = rt.fence(&total).unwrap().wait().unwrap_err().to_string();
            assert!(error.contains("no numbers"), "{error}");
            assert!(sum.wait().is_err());
            assert!(rt.wait().is_err());
            rt.task("good").over([100]).write(&u, one_to_one()).each(|(u,)| u.set(2)).unwrap();
            reduce();
            assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 200);
        }
    }
}

#[test]
fn a_failure_on_one_node_poisons_the_result_on_all() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let (u, total) = (rt.buffer::<i32, 1>([20_000]), rt.buffer::<i32, 0>([]));
            rt.task("bad").over([20_000]).write(&u, one_to_one()).kernel(|tile, (u,)| {
                assert!(tile.range().max()[0] < 20_000, "the last is missing");
                u.fill_with(|_| 1);
            })?;
            let task = rt.task("sum").over([20_000]).read(&u, one_to_one()).reduce(&total, sum());
            task.each(|(u, total)| total.combine(u.here()))?;
            let error = rt.fence(&total)?.wait().expect_err("an input is missing").to_string();
            let _reported = rt.wait();
            Ok::<_, Error>(error)
        });
        for (node, result) in results.into_iter().enumerate() {
            let error = result.unwrap_or_else(|error| error.to_string());
            assert!(error.contains("the last is missing"), "node {node}: {error}");
        }
    }
}

#[test]
fn what_is_never_combined_or_twice_is_refused_with_the_line() {
    let _deadline = deadline();
    let rt = runtime(2);
    let total = rt.buffer::<f32, 0>([]);
    let task = || rt.task("sum").over([10]).reduce(&total, sum());
    let Err(Error::Record { error, .. }) = task().each(|_| ()) else { panic!("nothing is combined") };
    assert_eq!(*error, RecordError::NeverCombined { operand: 0 });
    let twice = task().each(|(total,)| {
        total.combine(1.0);
        total.combine(2.0);
    });
    let message = twice.unwrap_err().to_string();
    assert!(message.contains("task \"sum\"") && message.contains("recorded_reductions.rs"), "{message}");
    task().each(|(total,)| total.combine(0.5)).unwrap();
    assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 5.0);
}

#[test]
fn an_index_space_without_end_is_refused() {
    let _deadline = deadline();
    let rt = runtime(1);
    let total = rt.buffer::<u32, 0>([]);
    let error = rt.task("endless").over([1 << 50]).reduce(&total, sum()).each(|(total,)| total.combine(1));
    let message = error.unwrap_err().to_string();
    assert!(message.contains("2^32 leaves"), "{message}");
}
