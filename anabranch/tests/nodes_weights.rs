//! Weights of the nodes: each node has its share of the rows, the data follows, and no bit of a result
//! changes.

mod common;

use anabranch::{NodeError, local_nodes, prelude::*};
use common::same_on;
use std::{
    mem::swap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
};
use testing::deadline;

const NODES: [u16; 5] = [1, 2, 3, 4, 7];

/// Weights that follow from a seed: one node at least has some, and many have none.
fn weights(nodes: u16, seed: usize) -> Vec<f64> {
    let nodes = usize::from(nodes);
    let weight = |node: usize| match (node * 5 + seed * 3) % 7 {
        _ if node == seed % nodes => 1.5,
        0..3 => 0.0,
        other => other as f64,
    };
    (0..nodes).map(weight).collect()
}

/// Sets weights that follow from a seed.
fn set_weights(rt: &Runtime, seed: usize) -> Result<(), Error> {
    rt.set_weights(&weights(rt.nodes(), seed))
}

fn bits(values: Vec<f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

#[test]
fn a_stencil_in_rows_and_tiles_whose_weights_change() {
    let _deadline = deadline();
    const N: usize = 19;
    same_on(&NODES, &[1, 2, 3], |rt| {
        let mut u = rt.buffer::<f64, 2>([N, N]);
        let mut next = rt.buffer::<f64, 2>([N, N]).with_versions(2);
        rt.task("fill").over([N, N]).write(&u, one_to_one()).kernel(|_, (u,)| {
            u.fill_with(|[y, x]| ((y * 31 + x * 17) % 23) as f64);
        })?;
        let mut frames = Vec::new();
        for step in 0..24 {
            if step % 3 == 0 {
                set_weights(&rt, step)?;
            }
            let task = rt.task("smooth").over([N, N]);
            let task = if step % 2 == 0 { task.tiles(1, 2) } else { task.granularity(1 + step % 4) };
            let task = task.pieces([1, 5, 12][step / 2 % 3]);
            task.read(&u, neighborhood([1, 1])).write(&next, one_to_one()).kernel(|tile, (u, next)| {
                for [y, x] in tile.points() {
                    let (up, down) = (u[[y.max(1) - 1, x]], u[[(y + 1).min(N - 1), x]]);
                    let (left, right) = (u[[y, x.max(1) - 1]], u[[y, (x + 1).min(N - 1)]]);
                    next.set([y, x], 0.2 * (up + down + left + right + u[[y, x]]));
                }
            })?;
            swap(&mut u, &mut next);
            if step % 5 == 0 {
                frames.push(rt.fence(&u)?);
            }
        }
        let mut all = Vec::new();
        for frame in frames {
            all.extend(bits(frame.wait()?.into_vec()));
        }
        all.extend(bits(rt.drain(u.capture())?.into_vec()));
        Ok(all)
    });
}

#[test]
fn all_kinds_of_tasks_with_weights_between_them() {
    let _deadline = deadline();
    const N: usize = 15;
    same_on(&NODES, &[1, 3], |rt| {
        let new = || rt.buffer::<f64, 2>([N, N]);
        let (a, b, c) = (new(), new(), new());
        let column = rt.buffer::<f64, 1>([N]);
        for (buffer, factor) in [(&a, 3), (&b, 5)] {
            rt.task("fill").over([N, N]).write(buffer, one_to_one()).kernel(move |_, (m,)| {
                m.fill_with(|[y, x]| ((y * factor + x) % 11) as f64 * 0.1);
            })?;
        }
        let mut columns = Vec::new();
        for step in 0..8 {
            set_weights(&rt, step)?;
            let task = rt.task("product").over([N, N]).read(&a, slice(1)).read(&b, slice(0));
            task.write(&c, one_to_one()).kernel(|tile, (a, b, c)| {
                for [y, x] in tile.points() {
                    c.set([y, x], (0..N).map(|k| a[[y, k]] * b[[k, x]]).sum());
                }
            })?;
            set_weights(&rt, step * 2 + 5)?;
            let turn = rt.task("turn").over([N, N]).read(&c, transposed()).write(&b, one_to_one());
            turn.kernel(|tile, (c, b)| tile.points().for_each(|[y, x]| b.set([y, x], c[[x, y]] * 0.01)))?;
            // A host task in parts, one on a single node, and one whose rows are not those of the buffer.
            let host = rt.task("scale").over([N, N]).update(&b, one_to_one());
            host.host(|tile, (b,)| tile.points().for_each(|p| b[p] *= 1.0 + p[0] as f64 * 1e-3))?;
            let last = rt.nodes() - 1;
            let one = rt.task("one").over([N, N]).on_node(last)?.update(&b, one_to_one());
            one.kernel(|tile, (b,)| tile.points().for_each(|p| b[p] += 1e-3))?;
            let first = mapper(|chunk, _| GridBox::new([chunk.range.min()[0], 0], [chunk.range.max()[0], 1]));
            rt.task("first").over([N]).read(&b, first).write(&column, one_to_one()).kernel(
                |tile, (b, column)| {
                    tile.points().for_each(|[y]| column.set([y], b[[y, 0]]));
                },
            )?;
            columns.push(rt.fence(&column)?);
        }
        let mut all = Vec::new();
        for column in columns {
            all.extend(bits(column.wait()?.into_vec()));
        }
        let (b, c) = rt.drain((b.capture(), c.capture()))?;
        all.extend(bits(b.into_vec()));
        all.extend(bits(c.into_vec()));
        Ok(all)
    });
}

#[test]
fn reductions_have_the_same_bits_with_all_weights() {
    let _deadline = deadline();
    const N: usize = 300;
    same_on(&NODES, &[1, 2], |rt| {
        let u = rt.buffer::<f64, 1>([N]);
        let (total, mixed) = (rt.buffer::<f64, 0>([]), rt.buffer::<u64, 0>([]));
        // Numbers whose sum depends on the order, and an operator that depends on the shape of the tree.
        let mix = operator(1, |a: u64, b: u64| (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut found = Vec::new();
        for seed in 0..6 {
            let fill = rt.task("fill").over([N]).write(&u, one_to_one());
            fill.kernel(|_, (u,)| u.fill_with(|[i]| (i as f64).sin() * 1e5_f64.powi(i as i32 % 7 - 3)))?;
            if seed > 0 {
                set_weights(&rt, seed)?;
            }
            for chunks in [1, 3, 21, 64] {
                let task = rt.task("reduce").over([N]).chunks(chunks).read(&u, one_to_one());
                task.reduce(&total, sum()).reduce(&mixed, mix).kernel(|tile, (u, total, mixed)| {
                    for [i] in tile.points() {
                        total.combine([], u[[i]]);
                        mixed.combine([], u[[i]].to_bits());
                    }
                })?;
                // Only one node reads the one, and all nodes read the other.
                let out = rt.buffer::<f64, 0>([]);
                let task =
                    rt.task("copy").once().on_node(rt.nodes() - 1)?.read(&total, all()).write(&out, all());
                task.host(|(total, out)| out.set([], total[[]]))?;
                let (out, mixed) = (rt.fence(&out)?, rt.fence(&mixed)?);
                found.push((seed, [out.wait()?[[]].to_bits(), mixed.wait()?[[]]]));
            }
        }
        // The sums of each number of chunks do not depend on the weights.
        for (at, (seed, sums)) in found.iter().enumerate() {
            assert_eq!(*sums, found[at % 4].1, "weights {seed}, sum {at}");
        }
        Ok(found)
    });
}

/// The rows of each node in a host task over `rows` rows.
fn rows_of(nodes: u16, rows: usize, given: &'static [f64]) -> Vec<usize> {
    let results = local_nodes(nodes).threads(1).delays(3, 1).run(move |rt| {
        let count = rt.host_object(0);
        rt.set_weights(given)?;
        let task = rt.task("count").over([rows, 2]).effect(&count, sequential());
        task.host(|tile, (count,)| *count = tile.rows().len())?;
        rt.drain(count.capture())
    });
    results.into_iter().map(Result::unwrap).collect()
}

#[test]
fn each_node_has_the_rows_of_its_weight() {
    let _deadline = deadline();
    assert_eq!(rows_of(3, 60, &[1.0, 2.0, 3.0]), [10, 20, 30]);
    assert_eq!(rows_of(3, 10, &[2.0, 2.0, 2.0]), [4, 3, 3], "equal weights: as without weights");
    assert_eq!(rows_of(4, 7, &[0.0, 1e300, 0.0, 0.0]), [0, 7, 0, 0]);
    assert_eq!(rows_of(3, 1, &[0.1, 0.1, 0.8]), [0, 0, 1]);
    assert_eq!(rows_of(1, 9, &[0.5]), [9]);
}

#[test]
fn a_node_of_tiles_has_the_area_of_its_weight() {
    let _deadline = deadline();
    let results = local_nodes(4).threads(1).run(|rt| {
        let area = rt.host_object(0);
        rt.set_weights(&[3.0, 1.0, 2.0, 2.0])?;
        let task = rt.task("area").over([40, 40]).tiles(1, 1).effect(&area, sequential());
        task.host(|tile, (area,)| *area = tile.points().count())?;
        rt.drain(area.capture())
    });
    assert_eq!(results.into_iter().collect::<Result<Vec<usize>, _>>().unwrap(), [600, 200, 400, 400]);
}

#[test]
fn wrong_weights_are_the_same_error_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    for nodes in [1, 3] {
        let results = local_nodes(nodes).threads(2).delays(3, 5).run(move |rt| {
            let u = rt.buffer::<u64, 1>([30]);
            let wrong = [f64::NAN, -1.0, f64::INFINITY, 0.0].map(|last| {
                let mut given = vec![0.0; nodes.into()];
                *given.last_mut().unwrap() = last;
                given
            });
            let mut messages = Vec::new();
            for given in wrong.iter().chain([&vec![1.0; 2], &vec![]]) {
                messages.push(rt.set_weights(given).unwrap_err().to_string());
                rt.task("fill")
                    .over([30])
                    .write(&u, one_to_one())
                    .kernel(|_, (u,)| u.fill_with(|[i]| i as u64))?;
            }
            Ok((messages, rt.drain(u.capture())?.into_vec()))
        });
        for result in results {
            let (messages, u) = result.unwrap();
            assert_eq!(u, (0..30).collect::<Vec<_>>());
            let with = if nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
            for (message, value) in messages.iter().zip(["NaN]", "-1.0]", "inf]", "0.0]", "[1.0, 1.0]", "[]"])
            {
                let expected = format!("{value}, with {with}; choose one finite number for each node");
                assert!(message.contains(&expected), "{message}");
            }
        }
    }
}

#[test]
fn different_weights_are_different_programs() {
    let _deadline = deadline();
    fn odd(rt: &Runtime, kind: usize) -> Result<(), Error> {
        match kind {
            0 => rt.set_weights(&[1.0, 2.0, 1.1]),
            1 => Ok(()),
            _ => rt.set_weights(&[1.0, 2.0, -1.0]).or(Ok(())),
        }
    }
    for kind in 0..3 {
        for node in 0..3 {
            let results = local_nodes(3).threads(2).delays(3, 5).run(move |rt| {
                let u = rt.buffer_from(&[1_u64; 64])?;
                rt.task("step").over([64]).update(&u, one_to_one()).kernel(|_, _| ())?;
                if rt.node() == node {
                    odd(&rt, kind)?
                } else {
                    rt.set_weights(&[1.0, 2.0, 1.0])?
                }
                // The nodes meet before they need data of each other.
                rt.wait()
            });
            for result in results {
                let error = result.unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, Error::Nodes(_) | Error::Failed(_)), "{kind}: {text}");
                assert!(text.contains("submission 2 of the program is"), "{kind}: {text}");
            }
        }
    }
}

#[test]
fn only_the_submitting_thread_sets_weights_outside_of_tasks_and_mappers() {
    let _deadline = deadline();
    let results = local_nodes(2).threads(2).run(|rt| {
        let rt = Arc::new(rt);
        let u = rt.buffer_from(&[1_u64; 64])?;
        rt.set_weights(&[1.0, 2.0])?;
        let set = |rt: &Arc<Runtime>| {
            let rt = Arc::clone(rt);
            move || rt.set_weights(&[2.0, 1.0]).unwrap_err().to_string()
        };
        let elsewhere = thread::spawn(set(&rt)).join().unwrap();
        assert!(elsewhere.contains("Runtime::set_weights was called on another thread"), "{elsewhere}");
        let (send, inside) = (channel(), set(&rt));
        let sender = send.0;
        rt.task("inside").collective().host(move |_, ()| sender.send(inside()).unwrap())?.wait()?;
        let inside = send.1.recv().unwrap();
        assert!(inside.contains("Runtime::set_weights was called inside a task"), "{inside}");
        // A mapper that changes the shares of the task that it belongs to.
        let setting = Arc::clone(&rt);
        let sets = mapper(move |chunk: &anabranch::grid::Chunk<1>, _: anabranch::grid::Extent<1>| {
            let _ = setting.set_weights(&[3.0, 1.0]);
            chunk.range
        });
        let refused = rt.task("task").over([64]).update(&u, sets).kernel(|_, _| ()).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("Runtime::set_weights was called inside a range mapper"), "{refused}");
        rt.task("step").over([64]).update(&u, one_to_one()).kernel(|_, (u,)| u.fill(7))?;
        Ok(rt.fence(&u)?.wait()?.into_vec())
    });
    results.into_iter().for_each(|result| assert_eq!(result.unwrap(), [7; 64]));
}

#[test]
fn one_node_ignores_weights() {
    let _deadline = deadline();
    for threads in [1, 4] {
        let rt = Runtime::builder().threads(threads).build().unwrap();
        let u = rt.buffer::<u64, 1>([64]);
        rt.set_weights(&[0.1]).unwrap();
        rt.task("fill").over([64]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
        assert_eq!(rt.drain(u.capture()).unwrap().into_vec(), [1; 64]);
    }
    // In a dry run there may be a weight for each of its nodes, or for the one that there is.
    let messages = |given: Option<&[f64]>| {
        let rt = Runtime::builder().threads(1).dry_run(3).build().unwrap();
        given.into_iter().for_each(|given| rt.set_weights(given).unwrap());
        let u = rt.buffer::<u64, 1>([60]);
        for _ in 0..2 {
            rt.task("fill").over([60]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
        }
        drop(rt.fence(&u).unwrap());
        assert!(rt.set_weights(&[1.0, 1.0]).is_err());
        rt.dry_run_summary().unwrap()
    };
    assert_eq!(messages(Some(&[5.0])), messages(None));
    assert_ne!(messages(Some(&[5.0, 0.0, 0.0])), messages(None));
}

#[test]
fn different_weights_name_the_call() {
    let _deadline = deadline();
    let results = local_nodes(2).threads(1).run(|rt| {
        rt.wait()?;
        rt.set_weights(&[1.0, f64::from(rt.node()) + 1.0])?;
        rt.wait()
    });
    for result in results {
        let Error::Nodes(why) = result.unwrap_err() else { panic!("the run has ended") };
        let text = why.to_string();
        assert!(matches!(*why, NodeError::Different { number: 2, .. } | NodeError::Other { .. }), "{text}");
        assert!(
            text.contains("submission 2 of the program is the call of Runtime::set_weights on node"),
            "{text}"
        );
    }
}

#[test]
fn nodes_without_a_share_get_no_turn_of_an_object_of_the_whole_cluster() {
    let _deadline = deadline();
    for nodes in NODES {
        let parts = Arc::new(AtomicUsize::new(0));
        let results = local_nodes(nodes).threads(2).delays(3, nodes.into()).run(|rt| {
            let log = rt.cluster_object(nodes - 1, Vec::new)?;
            let (mut sum, mut expected) = (0, Vec::new());
            for step in 0..12 {
                set_weights(&rt, step)?;
                sum += weights(nodes, step).iter().filter(|weight| **weight > 0.0).count();
                expected.push(sum);
                let [count, seen] = [Arc::clone(&parts), Arc::clone(&parts)];
                let task = rt.task("parts").over([1000]).effect(&log, sequential());
                task.host(move |_, (_,)| {
                    count.fetch_add(1, SeqCst);
                })?;
                let task = rt.task("note").once().effect(&log, sequential());
                task.host(move |(log,)| log.push(seen.load(SeqCst)))?;
            }
            Ok((rt.drain(log.capture())?, expected))
        });
        for (node, result) in (0..).zip(results) {
            let (log, expected) = result.unwrap();
            assert_eq!(log, (node == nodes - 1).then_some(expected), "node {node} of {nodes}");
        }
    }
}
