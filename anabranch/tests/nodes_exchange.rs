//! Buffers that all nodes read after a task that overwrote all of them: the nodes exchange their parts, or
//! one node broadcasts what it has.

mod common;

use anabranch::{grid::Chunk, local_nodes, prelude::*};
use common::same_on;
use std::mem::swap;
use testing::deadline;

/// From four nodes on, they exchange.
const NODES: [u16; 7] = [1, 3, 4, 5, 7, 8, 16];
const THREADS: [usize; 3] = [1, 2, 3];
const N: usize = 53;

fn mix(seed: u64, values: impl IntoIterator<Item = u64>) -> u64 {
    values
        .into_iter()
        .fold(seed, |sum, value| (sum ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7))
}

#[test]
fn every_point_follows_from_all_points_of_the_step_before() {
    let _deadline = deadline();
    same_on(&NODES, &THREADS, |rt| {
        let mut now = rt.buffer::<u64, 1>([N]).named("now");
        let mut next = rt.buffer::<u64, 1>([N]).named("next");
        rt.task("begin")
            .over([N])
            .write(&now, one_to_one())
            .kernel(|_, (now,)| now.fill_with(|[i]| i as u64))?;
        for step in 0..12 {
            let task = rt.task("step").over([N]).pieces(1 + step as usize % 3);
            task.read(&now, all()).write(&next, one_to_one()).kernel(move |tile, (now, next)| {
                let all = mix(step, (0..N).map(|i| now[[i]]));
                tile.points().for_each(|i| next.set(i, now[i] ^ all));
            })?;
            swap(&mut now, &mut next);
        }
        Ok(rt.fence(&now)?.wait()?.into_vec())
    });
}

#[test]
fn what_one_node_has_written_reaches_all() {
    let _deadline = deadline();
    same_on(&NODES, &THREADS, |rt| {
        let (table, sums) = (rt.buffer::<u64, 1>([N]), rt.buffer::<u64, 1>([N]));
        let mut results = Vec::new();
        for round in 0..9_u64 {
            let root = (round % 3).min(u64::from(rt.nodes()) - 1) as u16;
            let write = rt.task("table").once().on_node(root)?.write(&table, all());
            write.host(move |(table,)| table.fill_with(|[i]| i as u64 * 7 + round))?;
            // One reads it all, one a region, and the fence what is left.
            let part = fixed(GridBox::new(5, 40));
            let task = rt.task("sums").over([N]).write(&sums, one_to_one());
            match round % 3 {
                0 => task.read(&table, all()).kernel(|tile, (sums, table)| {
                    tile.points().for_each(|i| sums.set(i, mix(0, (0..N).map(|j| table[[j]]))));
                })?,
                1 => task.read(&table, part).kernel(|tile, (sums, table)| {
                    tile.points().for_each(|i| sums.set(i, mix(1, (5..40).map(|j| table[[j]]))));
                })?,
                _ => task.kernel(|_, (sums,)| sums.fill(1))?,
            };
            results.push((rt.fence(&table)?.wait()?.into_vec(), rt.fence(&sums)?.wait()?.into_vec()));
        }
        Ok(results)
    });
}

#[test]
fn nodes_without_a_part_get_those_of_the_others() {
    let _deadline = deadline();
    same_on(&NODES, &THREADS, |rt| {
        let nodes = usize::from(rt.nodes());
        let u = rt.buffer::<u64, 1>([N]);
        let mut results = Vec::new();
        for round in 0..6 {
            let weight =
                |node: usize| if (node + round).is_multiple_of(3) { 1.0 + round as f64 } else { 0.0 };
            let weights: Vec<_> = (0..nodes).map(weight).collect();
            if weights.iter().any(|&weight| weight > 0.0) {
                rt.set_weights(&weights)?;
            }
            rt.task("write").over([N]).write(&u, one_to_one()).kernel(move |_, (u,)| {
                u.fill_with(|[i]| (i * 3 + round) as u64);
            })?;
            results.push(rt.fence(&u)?.wait()?.into_vec());
        }
        Ok(results)
    });
}

/// The parts have some 400 KiB on 4 nodes, and 100 KiB on 16.
#[test]
fn large_parts_reach_all_nodes() {
    let _deadline = deadline();
    const LEN: usize = 200_000;
    same_on(&[4, 16], &[2], |rt| {
        let (u, sum) = (rt.buffer::<u64, 1>([LEN]), rt.buffer::<u64, 1>([16]));
        let mut results = Vec::new();
        for round in 0..3 {
            rt.task("write").over([LEN]).write(&u, one_to_one()).kernel(move |_, (u,)| {
                u.fill_with(|[i]| mix(round, [i as u64]));
            })?;
            rt.task("sum").over([16]).read(&u, all()).write(&sum, one_to_one()).kernel(|_, (u, sum)| {
                sum.fill_with(|[i]| mix(i as u64, (0..LEN).map(|j| u[[j]])));
            })?;
            results.push(rt.fence(&sum)?.wait()?.into_vec());
        }
        Ok(results)
    });
}

/// Writes u in pieces, on one node or on all. The pieces with these points fail.
fn write_but(rt: &Runtime, u: &Buffer<u64, 1>, node: Option<u16>, bad: &[usize]) -> Result<(), Error> {
    let bad = bad.to_vec();
    // Four for each node.
    let pieces = 4 * usize::from(rt.nodes());
    let task = rt.task("write").over([N]).pieces(pieces).write(u, one_to_one());
    let task = match node {
        Some(node) => task.on_node(node)?,
        None => task,
    };
    task.kernel(move |tile, (u,)| {
        let fails = bad.iter().any(|&i| tile.range().contains_point([i]));
        assert!(!fails, "no luck");
        u.fill_with(|[i]| i as u64);
    })?;
    Ok(())
}

/// The value of each point of u after all nodes have exchanged u. Each node reads u in reverse order. `None`
/// if a part of a task that should have written the point has failed.
fn after_exchange(rt: Runtime, node: Option<u16>, bad: &[usize]) -> Result<Vec<Option<u64>>, Error> {
    let (u, v) = (rt.buffer::<u64, 1>([N]), rt.buffer::<u64, 1>([N]));
    write_but(&rt, &u, node, bad)?;
    let task = rt.task("all").over([N]).read(&u, all()).write(&v, one_to_one());
    task.kernel(|tile, (_, v)| tile.points().for_each(|i| v.set(i, 1)))?;
    assert_eq!(rt.wait().is_err(), !bad.is_empty());
    // No node needs a message for this.
    let behind = mapper(|chunk: &Chunk<1>, extent: Extent<1>| {
        Region::from_boxes(chunk.range.points().map(|Point([i])| {
            let i = extent[0] - 1 - i;
            GridBox::new(i, i + 1)
        }))
    });
    let task = rt.task("behind").over([N]).pieces(N).read(&u, behind).write(&v, one_to_one());
    task.kernel(|tile, (u, v)| tile.points().for_each(|[i]| v.set([i], u[[N - 1 - i]])))?;
    let _ = rt.wait();
    let point = |i| {
        let fence = rt.fence(&v.part(GridBox::new(N - 1 - i, N - i)))?;
        Ok(fence.wait().ok().map(|value| value.into_vec()[0]))
    };
    let points = (0..N).map(point).collect();
    // A complete overwrite heals, and is exchanged in the same way.
    write_but(&rt, &u, node, &[])?;
    assert!(rt.fence(&u)?.wait()?.into_vec().into_iter().eq(0..N as u64));
    let _ = rt.wait();
    points
}

#[test]
fn a_part_that_failed_in_places_is_exchanged_with_its_failures() {
    let _deadline = deadline();
    for nodes in [4, 5, 8] {
        for threads in THREADS {
            for node in [None, Some(0), Some(2)] {
                for bad in [&[][..], &[11], &[0, N / 2, N - 1], &(0..N).collect::<Vec<_>>()] {
                    let local = local_nodes(nodes).threads(threads).delays(6, u64::from(nodes));
                    let results = local.run(|rt| after_exchange(rt, node, bad));
                    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
                    let seen = &results[0];
                    assert!(results.iter().all(|result| result == seen), "{results:?}");
                    assert!(bad.iter().all(|&i| seen[i].is_none()), "{seen:?}");
                    let good = seen.iter().enumerate().filter_map(|(i, value)| value.map(|value| (i, value)));
                    assert!(good.clone().all(|(i, value)| value == i as u64), "{seen:?}");
                    // A piece has at most this many points.
                    let lost = bad.len()
                        * if node.is_some() { N.div_ceil(4) } else { N.div_ceil(nodes.into()).div_ceil(4) };
                    assert!(good.count() >= N.saturating_sub(lost), "{seen:?}");
                }
            }
        }
    }
}
