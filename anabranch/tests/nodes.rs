//! Programs on several nodes in one process: the same bits as on one node.

mod common;

use anabranch::{LocalNodes, local_nodes, prelude::*};
use common::{Gate, same_on};
use std::{
    mem::swap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use testing::deadline;

const NODES: [u16; 5] = [1, 2, 3, 4, 7];

/// Runs a program on one runtime, and on several nodes with delays, and compares the results of all.
fn same_everywhere<R: PartialEq + std::fmt::Debug + Send + 'static>(
    program: impl Fn(Runtime) -> Result<R, Error> + Send + Sync + 'static,
) {
    same_on(&NODES, &[1, 2, 3], program);
}

fn bits(values: Vec<f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

#[test]
fn wave_sim() {
    let _deadline = deadline();
    const N: usize = 23;
    same_everywhere(|rt| {
        let mut u = rt.buffer::<f64, 2>([N, N]).named("u");
        let mut before = rt.buffer::<f64, 2>([N, N]).named("before");
        for buffer in [&u, &before] {
            rt.task("hill").over([N, N]).write(buffer, one_to_one()).kernel(|_, (u,)| {
                u.fill_with(|[y, x]| (-0.1 * ((y as f64 - 9.0).powi(2) + (x as f64 - 7.0).powi(2))).exp());
            })?;
        }
        let mut frames = Vec::new();
        for step in 0..12 {
            rt.task("wave")
                .over([N, N])
                .read(&u, neighborhood([1, 1]))
                .update(&before, one_to_one())
                .kernel(|tile, (u, next)| {
                    for [y, x] in tile.points() {
                        let (up, down) = (y.max(1) - 1, (y + 1).min(N - 1));
                        let (left, right) = (x.max(1) - 1, (x + 1).min(N - 1));
                        let around = u[[up, x]] + u[[down, x]] + u[[y, left]] + u[[y, right]];
                        next[[y, x]] = 2.0 * u[[y, x]] - next[[y, x]] + 0.1 * (around - 4.0 * u[[y, x]]);
                    }
                })?;
            swap(&mut u, &mut before);
            if step % 4 == 0 {
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
fn jacobi_with_tiles_and_a_host_task_that_decides() {
    let _deadline = deadline();
    const N: usize = 17;
    same_everywhere(|rt| {
        let mut u = rt.buffer_from(&ndarray::Array2::from_shape_fn((N, N), |(y, x)| (y * x % 7) as f64))?;
        let mut u2 = rt.buffer::<f64, 2>([N, N]);
        let change = rt.buffer::<f64, 1>([1]);
        for step in 0..30 {
            rt.task("jacobi")
                .over([N, N])
                .tiles(2, 3)
                .read(&u, neighborhood([1, 1]))
                .write(&u2, one_to_one())
                .kernel(|tile, (u, u2)| {
                    for [y, x] in tile.points() {
                        let inside = y > 0 && x > 0 && y < N - 1 && x < N - 1;
                        let mean = || 0.25 * (u[[y - 1, x]] + u[[y + 1, x]] + u[[y, x - 1]] + u[[y, x + 1]]);
                        u2.set([y, x], if inside { mean() } else { u[[y, x]] });
                    }
                })?;
            swap(&mut u, &mut u2);
            if step % 5 == 4 {
                rt.task("change").once().read(&u, all()).read(&u2, all()).write(&change, all()).host(
                    |(u, u2, change)| {
                        let both = u.as_array();
                        let sum = both.iter().zip(u2.as_array()).map(|(a, b)| (a - b).abs()).sum();
                        change.set([0], sum);
                    },
                )?;
                // The same value on all nodes, so that all decide the same.
                if rt.fence(&change)?.wait()?[[0]] < 1.0 {
                    break;
                }
            }
        }
        Ok(bits(rt.drain(u.capture())?.into_vec()))
    });
}

#[test]
fn matrix_product() {
    let _deadline = deadline();
    const N: usize = 19;
    same_everywhere(|rt| {
        let new = || rt.buffer::<f64, 2>([N, N]);
        let (a, b, c) = (new(), new(), new());
        for (buffer, factor) in [(&a, 3), (&b, 5)] {
            rt.task("fill").over([N, N]).write(buffer, one_to_one()).kernel(move |_, (m,)| {
                m.fill_with(|[y, x]| ((y * factor + x) % 11) as f64 * 0.1);
            })?;
        }
        for _ in 0..3 {
            rt.task("product")
                .over([N, N])
                .read(&a, slice(1))
                .read(&b, slice(0))
                .write(&c, one_to_one())
                .kernel(|tile, (a, b, c)| {
                    for [y, x] in tile.points() {
                        c.set([y, x], (0..N).map(|k| a[[y, k]] * b[[k, x]]).sum());
                    }
                })?;
            rt.task("transpose")
                .over([N, N])
                .read(&c, transposed())
                .write(&b, one_to_one())
                .kernel(|tile, (c, b)| tile.points().for_each(|[y, x]| b.set([y, x], c[[x, y]] * 0.01)))?;
        }
        rt.wait()?;
        let (b, c) = rt.drain((b.capture(), c.capture()))?;
        Ok((bits(b.into_vec()), bits(c.into_vec())))
    });
}

#[test]
fn a_tree_of_halves() {
    let _deadline = deadline();
    const N: usize = 64;
    same_everywhere(|rt| {
        let mut level = rt.buffer_from(&(0..N as u64).map(|i| i * i + 1).collect::<Vec<_>>())?;
        let mut n = N;
        while n > 1 {
            n /= 2;
            let next = rt.buffer::<u64, 1>([n]);
            let halves = mapper(|chunk, _| GridBox::new(2 * chunk.range.min()[0], 2 * chunk.range.max()[0]));
            rt.task("halve").over([n]).read(&level, halves).write(&next, one_to_one()).kernel(
                |tile, (level, next)| {
                    let join = |i: usize| level[[2 * i]].wrapping_mul(31) ^ level[[2 * i + 1]];
                    tile.points().for_each(|[i]| next.set([i], join(i)));
                },
            )?;
            level = next;
        }
        Ok(rt.fence(&level)?.wait()?[[0]])
    });
}

#[test]
fn large_boxes_and_narrow_columns() {
    let _deadline = deadline();
    const N: usize = 300;
    same_everywhere(|rt| {
        let (u, v) = (rt.buffer::<u32, 2>([N, N]), rt.buffer::<u32, 2>([N, N]));
        rt.task("fill").over([N, N]).write(&u, one_to_one()).kernel(|_, (u,)| {
            u.fill_with(|[y, x]| (y * N + x) as u32);
        })?;
        // Each node needs all columns of the others.
        rt.task("turn").over([N, N]).read(&u, transposed()).write(&v, one_to_one()).kernel(
            |tile, (u, v)| {
                tile.points().for_each(|[y, x]| v.set([y, x], u[[x, y]]));
            },
        )?;
        let column = v.part(GridBox::new([0, 7], [N, 8]));
        let column = rt.fence(&column)?.wait()?.into_vec();
        Ok((column, rt.drain(v.capture())?.into_vec()))
    });
}

#[test]
fn host_tasks_run_on_their_nodes() {
    let _deadline = deadline();
    for nodes in NODES {
        let runs = Arc::new(AtomicUsize::new(0));
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let log = rt.host_object(Vec::new());
            let last = rt.nodes() - 1;
            let (count, node) = (Arc::clone(&runs), rt.node());
            rt.task("once").once().on_node(last)?.effect(&log, sequential()).host(move |(log,)| {
                count.fetch_add(1, Relaxed);
                assert_eq!(node, last);
                log.push(vec![100]);
            })?;
            let part = rt.task("part").over([20]).effect(&log, sequential()).host(|tile, (log,)| {
                log.push(tile.along(0).collect());
            })?;
            part.wait()?;
            rt.task("every").collective().effect(&log, sequential()).host(|tile, (log,)| {
                log.push(tile.along(0).collect::<Vec<usize>>());
            })?;
            let node = usize::from(rt.node());
            let log = rt.drain(log.capture())?;
            assert_eq!(log.last(), Some(&vec![node]));
            Ok(log)
        });
        let logs: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(runs.load(Relaxed), 1);
        let parts = logs.iter().flat_map(|log| log[log.len() - 2].clone());
        assert_eq!(parts.collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert_eq!(logs.last().unwrap()[0], [100]);
    }
}

#[test]
fn effects_keep_their_orders_on_each_node() {
    let _deadline = deadline();
    for result in local_nodes(3).threads(3).run(|rt| {
        let sum = rt.host_object(0_u64);
        for i in 0..40 {
            rt.task("add").collective().effect(&sum, exclusive()).host(move |_, (sum,)| *sum += i)?;
        }
        rt.barrier().wait()?;
        rt.task("double").collective().effect(&sum, sequential()).host(|_, (sum,)| *sum *= 2)?;
        rt.drain(sum.capture())
    }) {
        assert_eq!(result.unwrap(), 2 * (0..40).sum::<u64>());
    }
}

#[test]
fn a_long_program_with_few_waits() {
    let _deadline = deadline();
    // More submissions than a node may be ahead of its neighbours.
    same_on(&[1, 3], &[2], |rt| {
        let mut u = rt.buffer_from(&(0..40_u64).collect::<Vec<_>>())?;
        let mut u2 = rt.buffer::<u64, 1>([40]);
        for _ in 0..700 {
            rt.task("step").over([40]).read(&u, neighborhood([1])).write(&u2, one_to_one()).kernel(
                |tile, (u, u2)| {
                    let next = |i: usize| u[[i.max(1) - 1]].wrapping_mul(3) ^ u[[(i + 1).min(39)]];
                    tile.points().for_each(|[i]| u2.set([i], next(i)));
                },
            )?;
            swap(&mut u, &mut u2);
        }
        rt.wait()?;
        Ok(rt.drain(u.capture())?.into_vec())
    });
}

fn nodes(count: u16) -> LocalNodes {
    local_nodes(count).threads(2).delays(3, 5)
}

#[test]
fn callbacks_of_barriers_and_fences_get_the_last_status() {
    let _deadline = deadline();
    let results = nodes(3).run(|rt| {
        let u = rt.buffer_from(&[1_u64; 9])?;
        let (send, statuses) = channel();
        let called = || {
            let send = send.clone();
            move |status| send.send(status).unwrap()
        };
        rt.task("task").over([9]).update(&u, one_to_one()).kernel(|_, _| ())?;
        rt.fence(&u)?.on_done(called());
        rt.barrier_with(u.capture())?.on_done(called());
        rt.barrier().on_done(called());
        rt.wait()?;
        Ok([(); 3].map(|()| statuses.recv().unwrap()))
    });
    results.into_iter().for_each(|result| assert_eq!(result.unwrap(), [Status::Done; 3]));
}

#[test]
fn an_overwrite_does_not_wait_for_slow_readers_of_another_version() {
    let _deadline = deadline();
    const N: usize = 64;
    for nodes in NODES {
        for by_parts in [false, true] {
            let seen = local_nodes(nodes).threads(2).delays(3, nodes.into()).run(|rt| {
                let u = rt.buffer::<u64, 1>([N]).named("u").with_versions(2);
                let fill = |value: u64| -> Result<(), Error> {
                    let parts = if by_parts { 2 } else { 1 };
                    u.discard();
                    for part in 0..parts {
                        let range = GridBox::new([part * N / parts], [(part + 1) * N / parts]);
                        let task = rt.task("fill").over(range).write(&u, one_to_one());
                        task.kernel(move |_, (u,)| u.fill_with(|[i]| value * i as u64))?;
                    }
                    Ok(())
                };
                let (open, gate) = channel::<()>();
                let seen = rt.host_object(Vec::new());
                fill(1)?;
                let slow = rt.task("slow").collective().read(&u, all()).effect(&seen, sequential());
                slow.blocking().host(move |_, (u, seen)| {
                    gate.recv().map_err(std::io::Error::other)?;
                    seen.extend_from_slice(u.as_slice().expect("all of it"));
                    Ok::<_, std::io::Error>(())
                })?;
                fill(2)?;
                let overwritten = rt.fence(&u)?.wait()?;
                open.send(()).expect("the slow task waits");
                let seen = rt.drain(seen.capture())?;
                Ok((seen, overwritten.into_vec()))
            });
            let times = |factor: u64| (0..N as u64).map(|i| factor * i).collect::<Vec<_>>();
            for seen in seen {
                assert_eq!(seen.unwrap(), (times(1), times(2)), "{nodes} nodes, by parts: {by_parts}");
            }
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn a_buffer_may_be_larger_than_the_memory_of_a_node() {
    let _deadline = deadline();
    const BYTES: usize = 1 << 38;
    let parts = [0, BYTES / 2, BYTES - 1000].map(|begin| GridBox::new([begin], [begin + 1000]));
    let sums = local_nodes(3).threads(1).run(|rt| {
        let u = rt.buffer::<u8, 1>([BYTES]).named("u");
        for (node, part) in parts.iter().enumerate() {
            let task = rt.task("fill").over(*part).on_node(node as u16)?.write(&u, one_to_one());
            task.kernel(move |_, (u,)| u.fill(node as u8 + 1))?;
        }
        let mut sums = Vec::new();
        for part in parts {
            let part = rt.fence(&u.part(part))?.wait()?;
            sums.push(part.as_slice().iter().map(|&byte| u64::from(byte)).sum::<u64>());
        }
        Ok(sums)
    });
    sums.into_iter().for_each(|sums| assert_eq!(sums.unwrap(), [1000, 2000, 3000]));
}

#[test]
fn a_host_task_over_an_empty_index_space_does_nothing() {
    let _deadline = deadline();
    same_everywhere(|rt| {
        let (called, u) = (rt.host_object(0), rt.buffer::<u8, 1>([3]).named("u"));
        let task = rt.task("nothing").over([0]).effect(&called, sequential()).write(&u, all());
        let handle = task.host(|_, (called, u)| {
            *called += 1;
            u.fill(1);
        })?;
        handle.wait()?;
        // Nothing was written.
        let error = rt.fence(&u).unwrap_err().to_string();
        Ok((rt.fence(&called)?.wait()?, error.contains("never written") || error.contains("was written")))
    });
}

/// Node 0 submits slowly, and transfers are under way all the time.
#[test]
fn a_node_that_submits_slowly_does_not_run_away_from_one_that_submits_nothing() {
    let _deadline = deadline();
    const TASKS: usize = 1200;
    let (submitted, gate) = (AtomicUsize::new(0), Gate::default());
    let results = local_nodes(2).threads(1).run(|rt| {
        let u = rt.buffer::<u64, 1>([1]);
        let (node, waits) = (rt.node(), gate.clone());
        let task = rt.task("late").over([1]).on_node(1)?.write(&u, all());
        task.kernel(move |_, (u,)| {
            waits.pass();
            u.fill(1);
        })?;
        rt.task("read").over([1]).on_node(0)?.read(&u, all()).kernel(|_, _| ())?;
        if node == 1 {
            // Until node 0 waits.
            let mut last = 0;
            loop {
                thread::sleep(Duration::from_millis(300));
                let now = submitted.load(Relaxed);
                if now == last && now > 0 {
                    assert!(now < 700, "node 0 is {now} submissions ahead");
                    break;
                }
                last = now;
            }
        }
        for _ in 0..TASKS {
            rt.task("small").once().host(|_| ())?;
            if node == 0 {
                submitted.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        }
        gate.open();
        rt.wait()
    });
    results.into_iter().for_each(Result::unwrap);
}

/// The only worker of node 0 goes on with a kernel that lasts until node 1 has all buffers.
#[test]
fn all_transfers_of_a_task_begin_before_the_kernel_that_follows() {
    let _deadline = deadline();
    for follows_first in [true, false] {
        let (submitted, arrived) = (Gate::default(), Gate::default());
        let results = local_nodes(2).threads(1).run(|rt| {
            let [u, v, w] = [(); 3].map(|()| rt.buffer::<u32, 1>([6000]));
            let [local, remote] = [(); 2].map(|()| rt.buffer::<u32, 1>([1]));
            let waits = submitted.clone();
            let task = rt.task("write").over([1]).on_node(0)?;
            let task = task.write(&u, all()).write(&v, all()).write(&w, all());
            task.kernel(move |_, (u, v, w)| {
                waits.pass();
                (1..).zip([u, v, w]).for_each(|(i, buffer)| buffer.fill(i));
            })?;
            let follow = || {
                let waits = arrived.clone();
                let task = rt.task("follow").over([1]).on_node(0)?.read(&u, all()).write(&local, all());
                task.kernel(move |_, (u, local)| {
                    waits.pass();
                    local.fill(u[[5]]);
                })
            };
            let arrive = || {
                let opens = arrived.clone();
                let task = rt.task("arrive").over([1]).on_node(1)?.read(&u, all()).read(&v, all());
                task.read(&w, all()).write(&remote, all()).kernel(move |_, (u, v, w, remote)| {
                    remote.fill(u[[7]] + v[[7]] + w[[7]]);
                    opens.open();
                })
            };
            match follows_first {
                true => (follow()?, arrive()?),
                false => (arrive()?, follow()?),
            };
            if rt.node() == 0 {
                submitted.open();
            }
            let values = [&local, &remote].map(|buffer| Ok(rt.fence(buffer)?.wait()?[[0]]));
            values.into_iter().collect::<Result<Vec<_>, Error>>()
        });
        results.into_iter().for_each(|result| assert_eq!(result.unwrap(), [1, 6]));
    }
}

/// On three nodes, two tasks read the same box of `u` on one node: its own elements and some of a neighbour. The
/// node then overwrites its own in the middle of the box, and receives those of the neighbour anew: it must
/// wait for both tasks, also if all of these launches were seen before.
#[test]
fn what_a_node_receives_anew_waits_for_all_tasks_that_read_it() {
    let _deadline = deadline();
    const LEN: usize = 16;
    fn sum(u: &ReadView<u64, 1>, i: usize) -> u64 {
        (i.saturating_sub(2)..(i + 3).min(LEN))
            .fold(0, |sum, near| sum.wrapping_mul(31).wrapping_add(u[[near]]))
    }
    same_everywhere(|rt| {
        let initial: Vec<u64> = (0..LEN as u64).collect();
        let [u, v, w] = [(); 3].map(|()| rt.buffer_from(&initial[..]));
        let (u, v, w, total) = (u?, v?, w?, rt.buffer::<u64, 0>([]));
        for step in 0..30 {
            let mix =
                rt.task("mix").over([LEN]).chunks(1).read(&u, neighborhood([2])).write(&v, one_to_one());
            mix.kernel(|tile, (u, v)| tile.points().for_each(|[i]| v.set([i], sum(u, i))))?;
            let back = rt.task("back").over([LEN]).read(&v, one_to_one()).write(&u, one_to_one());
            back.kernel(move |tile, (v, u)| tile.points().for_each(|p| u.set(p, v[p] ^ step)))?;
            for chunks in [2, 3] {
                let add = rt.task("sum").over([LEN]).chunks(chunks).read(&u, one_to_one());
                add.reduce(&total, operator(0_u64, u64::wrapping_add))
                    .kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))?;
                let spread = rt.task("spread").over([LEN]).chunks(chunks).read(&total, all());
                spread
                    .update(&w, one_to_one())
                    .kernel(|tile, (total, w)| tile.points().for_each(|p| w[p] ^= total[[]]))?;
            }
            let end =
                rt.task("end").over([LEN]).chunks(1).read(&u, neighborhood([2])).update(&w, one_to_one());
            end.kernel(|tile, (u, w)| tile.points().for_each(|[i]| w[[i]] ^= sum(u, i)))?;
        }
        let ends = [&u, &v, &w].map(|buffer| Ok(rt.fence(buffer)?.wait()?.into_vec()));
        ends.into_iter().collect::<Result<Vec<_>, Error>>()
    });
}
