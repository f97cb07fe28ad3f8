//! Reductions on several nodes: the bits of one node, wherever the partial results are needed.

mod common;

use anabranch::{Element, Operator, local_nodes, prelude::*};
use common::same_on;
use std::{
    fmt::Debug,
    mem::swap,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use testing::deadline;

const NODES: [u16; 6] = [1, 2, 3, 4, 7, 16];

fn same_everywhere<R: PartialEq + Debug + Send + 'static>(
    program: impl Fn(Runtime) -> Result<R, Error> + Send + Sync + 'static,
) {
    same_on(&NODES, &[1, 2, 3], program);
}

/// Numbers whose sum depends on the order in which they are added.
fn number(i: usize) -> f64 {
    (i as f64).sin() * 1e5_f64.powi(i as i32 % 7 - 3)
}

/// Reduces the numbers of a buffer, in chunks that are the leaves of the tree.
fn reduce<T: Element, O: Operator<T>>(
    rt: &Runtime,
    u: &Buffer<f64, 1>,
    chunks: usize,
    operator: O,
    value: impl Fn(f64, usize) -> T + Send + Sync + 'static,
) -> Result<Buffer<T, 0>, Error> {
    let total = rt.buffer::<T, 0>([]);
    rt.task("reduce")
        .over([u.extent()[0]])
        .chunks(chunks)
        .read(u, one_to_one())
        .reduce(&total, operator)
        .kernel(move |tile, (u, total)| {
            tile.points().for_each(|[i]| total.combine([], value(u[[i]], i)));
        })?;
    Ok(total)
}

fn numbers(rt: &Runtime, count: usize) -> Result<Buffer<f64, 1>, Error> {
    let u = rt.buffer::<f64, 1>([count]);
    rt.task("fill").over([count]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill_with(|[i]| number(i)))?;
    Ok(u)
}

#[test]
fn sums_have_the_bits_of_one_tree() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let mut all = Vec::new();
        // Fewer chunks than nodes, as many, and more.
        for (count, chunks) in [(1, 64), (2, 64), (13, 64), (500, 64), (500, 1), (500, 3), (500, 100)] {
            let u = numbers(&rt, count)?;
            let total = reduce(&rt, &u, chunks, sum(), |value, _| value)?;
            all.push(rt.fence(&total)?.wait()?[[]].to_bits());
        }
        Ok(all)
    });
}

#[test]
fn more_than_64_nodes_take_part() {
    let _deadline = deadline();
    let program = |rt: Runtime| {
        let (total, leaves) = (rt.buffer::<u64, 0>([]), Arc::new(AtomicUsize::new(0)));
        let own = Arc::clone(&leaves);
        let mix = operator(0, |a: u64, b| match (a, b) {
            (0, x) | (x, 0) => x,
            _ => (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        });
        rt.task("reduce").over([1 << 22]).reduce(&total, mix).kernel(move |tile, (total,)| {
            own.fetch_add(1, Relaxed);
            total.combine([], tile.range().max()[0] as u64);
        })?;
        let total = rt.drain(total.capture())?[[]];
        Ok((total, leaves.load(Relaxed)))
    };
    let (expected, leaves) = program(Runtime::builder().threads(2).build().unwrap()).unwrap();
    assert_eq!(leaves, 128);
    for (nodes, threads) in
        [(1, 1), (1, 3), (1, 4), (1, 8), (2, 3), (3, 2), (4, 2), (7, 1), (16, 1), (100, 1)]
    {
        let results = local_nodes(nodes).threads(threads).delays(3, 7).run(program);
        let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(results.iter().all(|(total, _)| *total == expected), "{nodes} nodes: {results:?}");
        assert!(results.iter().all(|(_, leaves)| *leaves > 0), "{nodes} nodes: {results:?}");
        assert_eq!(results.iter().map(|(_, leaves)| leaves).sum::<usize>(), 128, "{nodes} nodes");
    }
}

#[test]
fn operators_of_the_program_need_not_commute() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let u = numbers(&rt, 300)?;
        // The first and the last value, and a hash of the tree.
        let ends = operator([u32::MAX; 2], |a: [u32; 2], b| match (a[0], b[0]) {
            (u32::MAX, _) => b,
            (_, u32::MAX) => a,
            _ => [a[0], b[1]],
        });
        let ends = reduce(&rt, &u, 64, ends, |_, i| [i as u32; 2])?;
        let mix = operator(1, |a: u64, b: u64| (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = reduce(&rt, &u, 21, mix, |value, _| value.to_bits())?;
        let least = reduce(&rt, &u, 64, min(), |value, _| value)?;
        let any = reduce(&rt, &u, 5, or(), |value, _| value > 1e10)?;
        let (ends, mixed, least, any) =
            rt.drain((ends.capture(), mixed.capture(), least.capture(), any.capture()))?;
        assert_eq!(ends[[]], [0, 299]);
        Ok((mixed[[]], least[[]].to_bits(), any[[]]))
    });
}

#[test]
fn several_reductions_of_one_task_to_arrays() {
    let _deadline = deadline();
    const N: [usize; 3] = [19, 4, 5];
    same_everywhere(|rt| {
        let u = rt.buffer::<f64, 3>(N);
        let (planes, columns) = (rt.buffer::<f64, 1>([19]), rt.buffer::<[f32; 2], 2>([4, 5]));
        let (total, copy) = (rt.buffer::<f64, 0>([]), rt.buffer::<f64, 3>(N));
        rt.task("fill").over(N).write(&u, one_to_one()).kernel(|_, (u,)| {
            u.fill_with(|[z, y, x]| number(z * 20 + y * 5 + x));
        })?;
        rt.task("one").over([4, 5]).write(&columns, one_to_one()).kernel(|_, (columns,)| {
            columns.fill_with(|[y, x]| [0.1 * y as f32, 0.1 * x as f32]);
        })?;
        rt.task("sums")
            .over(N)
            .granularity(2)
            .read(&u, one_to_one())
            .reduce(&planes, sum())
            .reduce_into(&columns, sum())
            .reduce(&total, sum())
            .write(&copy, one_to_one())
            .kernel(|tile, (u, planes, columns, total, copy)| {
                for [z, y, x] in tile.points() {
                    let value = u[[z, y, x]];
                    planes.combine([z], value);
                    columns.combine([y, x], [value as f32, 1.0]);
                    total.combine([], value);
                    copy.set([z, y, x], value);
                }
            })?;
        let (planes, columns) = rt.fence((&planes, &columns))?.wait()?;
        let (total, copy) = rt.drain((total.capture(), copy.capture()))?;
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let columns: Vec<_> = columns.into_vec().iter().map(|pair| pair.map(f32::to_bits)).collect();
        Ok((bits(planes.into_vec()), columns, total[[]].to_bits(), bits(copy.into_vec())))
    });
}

#[test]
fn current_contents_are_included_once() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let u = numbers(&rt, 100)?;
        let sum_of = rt.buffer_from(&ndarray::arr0(0.1))?;
        let mut all = Vec::new();
        // Each reduction reads the one before it, on one node; some are also read by the program.
        for round in 0..7 {
            rt.task("more").over([100]).read(&u, one_to_one()).reduce_into(&sum_of, sum()).kernel(
                move |tile, (u, total)| {
                    tile.points().for_each(|[i]| total.combine([], u[[i]] + round as f64));
                },
            )?;
            if round % 3 == 1 {
                all.push(rt.fence(&sum_of)?.wait()?[[]].to_bits());
            }
        }
        all.push(rt.drain(sum_of.capture())?[[]].to_bits());
        Ok(all)
    });
}

#[test]
fn the_result_goes_where_it_is_read() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let u = numbers(&rt, 90)?;
        let scaled = rt.buffer::<f64, 1>([90]);
        let last = rt.nodes() - 1;
        let seen = rt.buffer::<f64, 1>([4]);
        for (at, on) in [(0, 0), (1, last), (2, last / 2)] {
            // One node reads a sum of all, and all nodes read a sum of one.
            let total = reduce(&rt, &u, 64, sum(), |value, _| value)?;
            rt.task("read")
                .once()
                .on_node(on)?
                .read(&total, all())
                .write(&seen, fixed(GridBox::new(at, at + 1)))
                .host(move |(total, seen)| seen.set([at], total[[]] + at as f64))?;
            let here = rt.buffer::<f64, 0>([]);
            rt.task("on one node")
                .over([90])
                .on_node(on)?
                .read(&u, one_to_one())
                .reduce(&here, sum())
                .kernel(|tile, (u, here)| tile.points().for_each(|[i]| here.combine([], u[[i]] * 0.3)))?;
            rt.task("scale")
                .over([90])
                .read(&u, one_to_one())
                .read(&here, all())
                .write(&scaled, one_to_one())
                .kernel(|tile, (u, here, scaled)| {
                    tile.points().for_each(|[i]| scaled.set([i], u[[i]] / here[[]]))
                })?;
            // A kernel over few points: some nodes read the sum, and send it to the others later.
            let few = reduce(&rt, &u, 64, max(), |value, _| value)?;
            let two = rt.buffer::<f64, 1>([2]);
            rt.task("few").over([2]).read(&few, all()).write(&two, one_to_one()).kernel(
                |tile, (few, two)| {
                    tile.points().for_each(|[i]| two.set([i], few[[]] + i as f64));
                },
            )?;
            rt.task("later")
                .over([90])
                .update(&scaled, one_to_one())
                .read(&few, all())
                .read(&two, all())
                .kernel(|tile, (scaled, few, two)| {
                    tile.points().for_each(|i| scaled[i] += few[[]] + two[[0]] * two[[1]]);
                })?;
            rt.task("swap")
                .over([90])
                .read(&scaled, one_to_one())
                .write(&u, one_to_one())
                .kernel(|tile, (scaled, u)| tile.points().for_each(|i| u.set(i, scaled[i])))?;
        }
        rt.task("fourth")
            .once()
            .write(&seen, fixed(GridBox::new(3, 4)))
            .host(|(seen,)| seen.set([3], 4.0))?;
        let (u, seen) = rt.drain((u.capture(), seen.capture()))?;
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        Ok((bits(u.into_vec()), bits(seen.into_vec())))
    });
}

#[test]
fn a_result_that_is_overwritten_in_part_or_never_read() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let total = rt.buffer::<f64, 2>([6, 5]);
        let reduce = |factor: f64| {
            rt.task("reduce").over([40]).reduce(&total, sum()).kernel(move |tile, (total,)| {
                tile.points().for_each(|[i]| total.combine([i % 6, i % 5], number(i) * factor));
            })
        };
        let mut all = Vec::new();
        for round in 0..3 {
            // Overwritten before it is read.
            reduce(2.0)?;
            reduce(3.0 + f64::from(round))?;
            let box_of = GridBox::new([1, 2], [4, 4]);
            rt.task("part").once().write(&total, fixed(box_of)).host(|(part,)| part.fill(0.5))?;
            all.extend(rt.fence(&total)?.wait()?.into_vec().into_iter().map(f64::to_bits));
        }
        // Dropped while the partial results wait.
        for _ in 0..10 {
            let lost = rt.buffer::<f64, 0>([]);
            rt.task("lost").over([9]).reduce(&lost, sum()).kernel(|_, (lost,)| lost.combine([], 1.0))?;
        }
        reduce(1.0)?;
        rt.wait()?;
        Ok(all)
    });
}

#[test]
fn empty_index_spaces_and_buffers() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let (a, b) = (rt.buffer_from(&[7, 7])?, rt.buffer_from(&[7, 7])?);
        let reduce_b = |rows: usize| {
            rt.task("some").over([rows]).reduce_into(&b, sum()).kernel(|tile, (b,)| {
                tile.points().for_each(|[i]| b.combine([i % 2], i as i32));
            })
        };
        reduce_b(9)?;
        // Nothing is combined, and what is pending stays.
        reduce_b(0)?;
        rt.task("none").over([0]).reduce(&a, product()).kernel(|_, _| unreachable!("there is no chunk"))?;
        let empty = rt.buffer::<i32, 2>([0, 3]);
        rt.task("into nothing").over([5]).reduce(&empty, sum()).kernel(|_, _| ())?;
        let one = rt.buffer::<i32, 0>([]);
        rt.task("one").over([]).reduce(&one, sum()).kernel(|_, (one,)| one.combine([], 5))?;
        let (a, b, empty, one) = rt.fence((&a, &b, &empty, &one))?.wait()?;
        assert_eq!((a.as_slice(), b.as_slice(), one[[]]), (&[1, 1][..], &[27, 23][..], 5));
        assert!(empty.as_slice().is_empty());
        Ok(())
    });
}

#[test]
fn denormal_numbers_are_flushed_on_every_node_or_on_none() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let u = rt.buffer_from(&[f64::MIN_POSITIVE / 2.0; 40])?;
        let (kept, flushed) = (rt.buffer::<f64, 0>([]), rt.buffer::<f64, 0>([]));
        let add = |total: &mut anabranch::Reduction<f64, 0, _>, value| total.combine([], value);
        rt.task("kept").over([40]).read(&u, one_to_one()).reduce(&kept, sum()).kernel(
            move |tile, (u, t)| {
                tile.points().for_each(|i| add(t, u[i]));
            },
        )?;
        rt.task("flushed")
            .over([40])
            .flush_denormals()
            .read(&u, one_to_one())
            .reduce(&flushed, operator(0.0, |a: f64, b: f64| (a + b).max(f64::MIN_POSITIVE / 4.0)))
            .kernel(|tile, (u, total)| tile.points().for_each(|i| total.combine([], u[i])))?;
        let (kept, flushed) = rt.fence((&kept, &flushed))?.wait()?;
        Ok((kept[[]].to_bits(), flushed[[]].to_bits()))
    });
}

/// Jacobi's method until the largest change is small: every node decides by the fence of a reduction.
#[test]
fn jacobi_until_it_has_converged() {
    let _deadline = deadline();
    const N: usize = 18;
    same_everywhere(|rt| {
        let mut u = rt.buffer_from(&ndarray::Array2::from_shape_fn((N, N), |(y, x)| (y * x % 7) as f64))?;
        let mut u2 = rt.buffer::<f64, 2>([N, N]);
        let (change, energy) = (rt.buffer::<f64, 0>([]), rt.buffer::<f64, 0>([]));
        for step in 0.. {
            rt.task("jacobi")
                .over([N, N])
                .read(&u, neighborhood([1, 1]))
                .write(&u2, one_to_one())
                .reduce(&change, max())
                .reduce(&energy, sum())
                .kernel(|tile, (u, u2, change, energy)| {
                    for [y, x] in tile.points() {
                        let inside = y > 0 && x > 0 && y < N - 1 && x < N - 1;
                        let mean = || 0.25 * (u[[y - 1, x]] + u[[y + 1, x]] + u[[y, x - 1]] + u[[y, x + 1]]);
                        let new = if inside { mean() } else { u[[y, x]] };
                        u2.set([y, x], new);
                        change.combine([], (new - u[[y, x]]).abs());
                        energy.combine([], new * new);
                    }
                })?;
            swap(&mut u, &mut u2);
            if rt.fence(&change)?.wait()?[[]] < 0.25 {
                assert!(step > 3);
                let (u, energy) = rt.drain((u.capture(), energy.capture()))?;
                let bits: Vec<_> = u.into_vec().into_iter().map(f64::to_bits).collect();
                return Ok((step, energy[[]].to_bits(), bits));
            }
        }
        unreachable!()
    });
}

/// A sum whose operator panics: in a chunk of node `odd`, or on each node when partial results are combined.
fn panics_on(rt: &Runtime, odd: u16, in_chunk: bool) -> Result<(), Error> {
    let total = rt.buffer::<u64, 0>([]);
    let here = rt.node() == odd;
    let picky = operator(0, move |a: u64, b: u64| {
        // Values in chunks are 1; sums of several chunks are combined later.
        if here && in_chunk || !in_chunk && a > 1 && b > 1 {
            resume_unwind(Box::new("too much"));
        }
        a + b
    });
    rt.task("count")
        .over([64])
        .chunks(32)
        .reduce(&total, picky)
        .kernel(|tile, (total,)| tile.points().for_each(|_| total.combine([], 1)))?;
    let fence = rt.fence(&total)?;
    fence.wait()?;
    rt.wait()
}

#[test]
fn an_operator_that_panics_is_an_error_on_all_nodes() {
    let _deadline = deadline();
    for nodes in [2, 3, 7] {
        for (odd, in_chunk) in (0..nodes).flat_map(|odd| [(odd, true), (odd, false)]) {
            let results = local_nodes(nodes).threads(2).delays(3, 5).run(|rt| {
                let first = panics_on(&rt, odd, in_chunk).unwrap_err();
                assert!(rt.wait().is_err());
                Err::<(), _>(first)
            });
            for (node, result) in results.into_iter().enumerate() {
                let text = result.unwrap_err().to_string();
                assert!(text.contains("task \"count\"") && text.contains("too much"), "{node}: {text}");
            }
        }
    }
}

#[test]
fn a_host_task_cannot_reduce() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).build().unwrap();
    let total = rt.buffer::<u64, 0>([]);
    let error = rt.task("host").over([4]).reduce(&total, sum()).host(|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("a host task with a reduction") && error.contains("`kernel`"), "{error}");
}

#[test]
fn many_reductions_without_a_wait() {
    let _deadline = deadline();
    same_on(&[1, 3, 16], &[2], |rt| {
        let u = numbers(&rt, 64)?;
        let total = rt.buffer::<f64, 0>([]);
        for _ in 0..70 {
            rt.task("norm")
                .over([64])
                .read(&u, one_to_one())
                .reduce(&total, sum())
                .kernel(|tile, (u, total)| tile.points().for_each(|i| total.combine([], u[i] * u[i])))?;
            rt.task("scale").over([64]).read(&total, all()).update(&u, one_to_one()).kernel(
                |tile, (total, u)| {
                    tile.points().for_each(|i| u[i] = u[i] / total[[]].sqrt() + 0.1 * i[0] as f64);
                },
            )?;
        }
        rt.wait()?;
        Ok(rt.drain(u.capture())?.into_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>())
    });
}
