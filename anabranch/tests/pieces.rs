//! Kernels in pieces: the same results as without pieces, but a piece begins as soon as its own inputs are
//! there.

mod common;

use anabranch::{interface::TaskBuilder, local_nodes, prelude::*};
use common::{Gate, THREADS, block_on, runtime, runtimes, same_on};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::{
    mem::swap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
};
use testing::deadline;

const ROWS: usize = 37;

/// Some steps of a stencil in this many pieces and chunks.
fn stencil(rt: &Runtime, pieces: usize, chunks: Option<usize>) -> Result<Vec<u64>, Error> {
    let start: Vec<f64> = (0..ROWS).map(|i| (i * i % 11) as f64 / 3.0).collect();
    let (mut u, mut v) = (rt.buffer_from(&start)?, rt.buffer::<f64, 1>([ROWS]));
    for step in 0..12 {
        let mut task = rt.task("step").over([ROWS]).pieces(pieces);
        if let Some(chunks) = chunks {
            task = task.chunks(chunks);
        }
        task.read(&u, neighborhood([1])).write(&v, one_to_one()).kernel(move |tile, (u, v)| {
            for [i] in tile.points() {
                let around = u[[i.saturating_sub(1)]] + u[[(i + 1).min(ROWS - 1)]];
                v.set([i], 0.3 * around + 0.4 * u[[i]] + f64::from(step) * 0.01);
            }
        })?;
        swap(&mut u, &mut v);
    }
    Ok(rt.fence(&u)?.wait()?.as_slice().iter().map(|value| value.to_bits()).collect())
}

#[test]
fn the_results_do_not_depend_on_the_pieces() {
    let _deadline = deadline();
    let expected = stencil(&runtime(1), 1, None).unwrap();
    for rt in runtimes() {
        for (pieces, chunks) in [(2, None), (3, Some(7)), (5, None), (8, Some(8)), (100, None)] {
            assert_eq!(stencil(&rt, pieces, chunks).unwrap(), expected, "{rt:?}, {pieces} pieces");
        }
    }
}

#[test]
fn the_results_do_not_depend_on_the_nodes() {
    let _deadline = deadline();
    for pieces in [2, 5, 12] {
        same_on(&[1, 2, 3, 4, 7], &[1, 2, 3], move |rt| stencil(&rt, pieces, None));
    }
}

/// A kernel of a random program: a stencil from one buffer to another, or an update in place.
#[derive(Clone, Debug)]
struct Step {
    from: usize,
    to: usize,
    radius: usize,
    periodic: bool,
    pieces: usize,
    /// Whether it is a batch instead: a host task for each point.
    batch: bool,
    chunks: Option<usize>,
    granularity: usize,
    /// Whether a fence follows.
    fence: bool,
}

const BUFFERS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let buffers = (0..BUFFERS, 0..BUFFERS, 0_usize..5, any::<bool>());
    let split = (1_usize..9, proptest::option::of(1_usize..12), 1_usize..4);
    let step = (buffers, split, any::<bool>(), any::<bool>()).prop_map(|(buffers, split, batch, fence)| {
        let ((from, to, radius, periodic), (pieces, chunks, granularity)) = (buffers, split);
        Step { from, to, radius, periodic, pieces, batch, chunks, granularity, fence }
    });
    proptest::collection::vec(step, 1..24)
}

/// The neighbours of a point.
fn around(i: usize, step: &Step) -> impl Iterator<Item = usize> {
    let (radius, periodic) = (step.radius as isize, step.periodic);
    let rows = ROWS as isize;
    let near = (i as isize - radius..=i as isize + radius).filter(move |j| periodic || (0..rows).contains(j));
    near.map(move |j| j.rem_euclid(rows) as usize)
}

fn sequential_program(steps: &[Step]) -> Vec<Vec<u64>> {
    let mut buffers: [Vec<u64>; BUFFERS] = [0, 1, 2].map(|b| (0..ROWS as u64).map(|i| i * 7 + b).collect());
    let mut fences = Vec::new();
    for step in steps {
        let from = buffers[step.from].clone();
        for (i, value) in buffers[step.to].iter_mut().enumerate() {
            *value = match step.from == step.to {
                true => value.wrapping_mul(3),
                false => around(i, step).fold(1, |all: u64, j| all.wrapping_mul(31).wrapping_add(from[j])),
            };
        }
        fences.extend(step.fence.then(|| buffers[step.to].clone()));
    }
    fences.extend(buffers);
    fences
}

/// Submits a step as a host task for each point.
fn submit_batch(rt: &Runtime, buffers: &[Buffer<u64, 1>; BUFFERS], step: &Step) -> Result<(), Error> {
    let (from, to, step) = (&buffers[step.from], &buffers[step.to], step.clone());
    let tasks = rt.tasks("point").each([ROWS]);
    if step.from == step.to {
        tasks.update(to, one_to_one()).host(|[i], (to,)| to[[i]] = to[[i]].wrapping_mul(3))?;
        return Ok(());
    }
    let near = neighborhood([step.radius]);
    let near = if step.periodic { near.periodic() } else { near.any_boxes() };
    tasks.read(from, near).write(to, one_to_one()).host(move |[i], (from, to)| {
        to.set([i], around(i, &step).fold(1, |all: u64, j| all.wrapping_mul(31).wrapping_add(from[[j]])));
    })?;
    Ok(())
}

fn run_program(rt: &Runtime, steps: &[Step], versions: usize) -> Result<Vec<Vec<u64>>, Error> {
    let start = |b: u64| {
        let values: Vec<u64> = (0..ROWS as u64).map(|i| i * 7 + b).collect();
        Ok::<_, Error>(rt.buffer_from(&values)?.with_versions(versions))
    };
    let buffers: [Buffer<u64, 1>; BUFFERS] = [start(0)?, start(1)?, start(2)?];
    let mut fences = Vec::new();
    for step in steps {
        if step.batch {
            submit_batch(rt, &buffers, step)?;
            fences.extend(step.fence.then(|| rt.fence(&buffers[step.to])).transpose()?);
            continue;
        }
        let task = rt.task("step").over([ROWS]).pieces(step.pieces).granularity(step.granularity);
        let task = step.chunks.into_iter().fold(task, TaskBuilder::chunks);
        let (from, to, step) = (&buffers[step.from], &buffers[step.to], step.clone());
        let fence = step.fence.then_some(to);
        if step.from == step.to {
            task.update(to, one_to_one())
                .kernel(|tile, (to,)| tile.points().for_each(|p| to[p] = to[p].wrapping_mul(3)))?;
        } else {
            let near = neighborhood([step.radius]);
            let near = if step.periodic { near.periodic() } else { near.any_boxes() };
            task.read(from, near).write(to, one_to_one()).kernel(move |tile, (from, to)| {
                for [i] in tile.points() {
                    let all = around(i, &step);
                    to.set([i], all.fold(1, |all: u64, j| all.wrapping_mul(31).wrapping_add(from[[j]])));
                }
            })?;
        }
        fences.extend(fence.map(|to| rt.fence(to)).transpose()?);
    }
    for buffer in &buffers {
        fences.push(rt.fence(buffer)?);
    }
    fences.into_iter().map(|fence| Ok(fence.wait()?.into_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(4), ..ProptestConfig::default() })]

    #[test]
    fn random_programs_have_the_results_of_a_sequential_one(
        steps in steps(),
        versions in 1_usize..4,
        threads in 1_usize..9,
        seed in proptest::option::of(any::<u64>()),
    ) {
        let _deadline = deadline();
        let expected = sequential_program(&steps);
        let rt = Runtime::builder().threads(threads);
        let rt = seed.into_iter().fold(rt, |rt, seed| rt.seeded(seed)).build().unwrap();
        prop_assert_eq!(run_program(&rt, &steps, versions).unwrap(), expected);
    }

    #[test]
    fn random_programs_on_nodes_have_the_results_of_a_sequential_one(
        steps in steps(),
        versions in 1_usize..4,
        nodes in 1_u16..8,
        threads in 1_usize..4,
        seed in any::<u64>(),
    ) {
        let _deadline = deadline();
        let expected = sequential_program(&steps);
        let local = local_nodes(nodes).threads(threads).delays(4, seed);
        for result in local.run(|rt| run_program(&rt, &steps, versions)) {
            prop_assert_eq!(result.unwrap(), expected.clone());
        }
    }
}

/// The first piece of the second step runs while the last piece of the first step is still running.
#[test]
fn a_piece_waits_only_for_the_pieces_that_it_needs() {
    let _deadline = deadline();
    for threads in [2, 3, 4, 8] {
        let rt = runtime(threads);
        let (u, v) = (rt.buffer::<u32, 1>([40]), rt.buffer::<u32, 1>([40]));
        let gate = Gate::default();
        let closed = gate.clone();
        rt.task("first")
            .over([40])
            .pieces(4)
            .write(&u, one_to_one())
            .kernel(move |tile, (u,)| {
                if tile.range().min()[0] == 30 {
                    closed.pass();
                }
                u.fill(1);
            })
            .unwrap();
        let second = rt
            .task("second")
            .over([40])
            .pieces(4)
            .read(&u, neighborhood([1]))
            .write(&v, one_to_one())
            .kernel(move |tile, (u, v)| {
                if tile.range().min()[0] == 0 {
                    gate.open();
                }
                tile.points().for_each(|[i]| v.set([i], u[[i]] + 1));
            })
            .unwrap();
        block_on(second).unwrap();
        assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [2; 40]);
    }
}

/// A kernel of which one piece fails, as its function says.
fn fails(rt: &Runtime, u: &Buffer<u32, 1>, ran: &Arc<AtomicUsize>) -> TaskHandle {
    let ran = Arc::clone(ran);
    let task = rt.task("fails").over([40]).pieces(4).chunks(4).write(u, one_to_one());
    let kernel = move |tile: &Tile<1>, (u,): (&mut WriteView<'_, u32, 1>,)| {
        ran.fetch_add(1, Relaxed);
        assert!(tile.range().min()[0] != 20, "no luck");
        u.fill(1);
    };
    task.kernel(kernel).unwrap()
}

#[test]
fn only_what_needs_a_failed_piece_is_skipped() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, v) = (rt.buffer::<u32, 1>([40]), rt.buffer::<u32, 1>([40]));
        let ran = Arc::new(AtomicUsize::new(0));
        let first = fails(&rt, &u, &ran);
        let calls = Arc::new(Mutex::new(Vec::new()));
        let called = Arc::clone(&calls);
        first.on_done(move |status| called.lock().push(status));
        let ends = Arc::new(AtomicUsize::new(0));
        let end = Arc::clone(&ends);
        let second = rt
            .task("second")
            .over([40])
            .pieces(4)
            .chunks(4)
            .read(&u, one_to_one())
            .write(&v, one_to_one())
            .kernel(move |_, (u, v)| {
                end.fetch_add(1, Relaxed);
                v.fill_with(|at| u[at] + 1);
            })
            .unwrap();
        let error = first.wait().unwrap_err().to_string();
        assert!(
            error.contains("\"fails\"") && error.contains("no luck") && error.contains("20..30"),
            "{error}"
        );
        let skipped = second.wait().unwrap_err().to_string();
        assert!(skipped.contains("skipped") && skipped.contains("\"second\""), "{skipped}");
        assert_eq!((first.status(), second.status()), (Status::Failed, Status::Skipped));
        let report = rt.wait().unwrap_err().to_string();
        assert!(report.contains("1 task that depends on a failed task was skipped"), "{report}");
        assert_eq!((ran.load(Relaxed), ends.load(Relaxed)), (4, 3));
        assert_eq!(*calls.lock(), [Status::Failed]);
        let good = rt.fence(&v.part(GridBox::new(0, 20))).unwrap().wait().unwrap();
        assert_eq!(good.as_slice(), [2; 20]);
        rt.fence(&v).unwrap().wait().unwrap_err();
    }
}

#[test]
fn a_failed_piece_travels_to_the_nodes_that_need_it() {
    let _deadline = deadline();
    for nodes in [1, 2, 3, 4, 7] {
        let local = local_nodes(nodes).threads(2).delays(3, u64::from(nodes));
        let results = local.run(|rt| {
            let (u, v) = (rt.buffer::<u32, 1>([40]), rt.buffer::<u32, 1>([40]));
            let ran = Arc::new(AtomicUsize::new(0));
            rt.task("fails")
                .over([40])
                .pieces(8)
                .write(&u, one_to_one())
                .kernel(|tile, (u,)| {
                    assert!(tile.points().all(|[i]| i != 20), "no luck");
                    u.fill(1);
                })
                .unwrap();
            let count = Arc::clone(&ran);
            rt.task("mirror")
                .over([40])
                .pieces(8)
                .read(
                    &u,
                    mapper(|chunk, _| GridBox::new(40 - chunk.range.max()[0], 40 - chunk.range.min()[0])),
                )
                .write(&v, one_to_one())
                .kernel(move |tile, (u, v)| {
                    count.fetch_add(tile.range().len(), Relaxed);
                    v.fill_with(|[i]| u[[39 - i]] + 1);
                })
                .unwrap();
            let error = rt.wait().unwrap_err().to_string();
            let good = rt.fence(&v.part(GridBox::new(25, 40)))?.wait()?;
            assert_eq!(good.as_slice(), [2; 15]);
            Ok::<_, Error>((error, ran.load(Relaxed)))
        });
        let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(results.iter().all(|(error, _)| *error == results[0].0), "{results:#?}");
        assert!(results[0].0.contains("no luck"), "{results:#?}");
        let points: usize = results.iter().map(|(_, points)| points).sum();
        assert!((25..40).contains(&points), "{points} points on {nodes} nodes");
    }
}

/// The node in the middle lacks a border of either neighbour. Its pieces need one each.
#[test]
fn a_piece_needs_the_border_of_one_neighbour_only() {
    let _deadline = deadline();
    for threads in THREADS {
        // The neighbour that is late, and the first row of the piece that does not need it.
        for (late, first) in [(0, 15), (2, 10)] {
            let gate = Gate::default();
            let results = local_nodes(3).threads(threads).delays(5, threads as u64).run(|rt| {
                let (u, v) = (rt.buffer::<usize, 1>([30]), rt.buffer::<usize, 1>([30]));
                let (opens, waits) = (gate.clone(), gate.clone());
                let node = rt.node();
                rt.task("write").over([30]).write(&u, one_to_one()).host(move |_, (u,)| {
                    if node == late {
                        waits.pass();
                    }
                    u.fill_with(|[i]| i);
                })?;
                let task = rt.task("sum").over([30]).pieces(6);
                task.read(&u, neighborhood([1])).write(&v, one_to_one()).kernel(move |tile, (u, v)| {
                    v.fill_with(|[i]| u[[i.max(1) - 1]] + u[[i]] + u[[(i + 1).min(29)]]);
                    if tile.range().min()[0] == first {
                        opens.open();
                    }
                })?;
                Ok::<_, Error>(rt.fence(&v)?.wait()?.into_vec())
            });
            let expected: Vec<_> = (0..30).map(|i: usize| i.max(1) - 1 + i + (i + 1).min(29)).collect();
            results.into_iter().for_each(|result| assert_eq!(result.unwrap(), expected));
        }
    }
}

#[test]
fn a_cancelled_kernel_ends_once() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, ran) = (rt.buffer::<u32, 1>([40]), Arc::new(AtomicUsize::new(0)));
        let gate = Gate::default();
        let closed = gate.clone();
        rt.task("gate")
            .once()
            .write(&u, all())
            .host(move |(u,)| {
                closed.pass();
                u.fill(0);
            })
            .unwrap();
        let task = fails(&rt, &u, &ran);
        assert_eq!(task.status(), Status::Waiting);
        assert!(task.cancel());
        assert_eq!(task.status(), Status::Cancelled);
        let calls = Arc::new(AtomicUsize::new(0));
        let called = Arc::clone(&calls);
        task.on_done(move |status| {
            assert_eq!(status, Status::Cancelled);
            called.fetch_add(1, Relaxed);
        });
        gate.open();
        task.wait().unwrap_err();
        rt.wait().unwrap();
        assert_eq!((ran.load(Relaxed), calls.load(Relaxed)), (0, 1));
        assert!(!task.cancel());
    }
}

/// All pieces go to another version of the buffer while its contents are still being read.
#[test]
fn pieces_overwrite_a_buffer_that_is_being_read() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer::<u32, 1>([40]).with_versions(2);
        let fill = |value: u32| {
            let task = rt.task("fill").over([40]).pieces(4).write(&u, one_to_one());
            task.kernel(move |_, (u,)| u.fill(value)).unwrap()
        };
        fill(1);
        let (gate, seen) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
        let (closed, values) = (gate.clone(), Arc::clone(&seen));
        rt.task("reads")
            .once()
            .read(&u, all())
            .host(move |(u,)| {
                closed.pass();
                values.lock().extend_from_slice(u.as_slice().unwrap());
            })
            .unwrap();
        // This would wait for the gate without another version.
        block_on(fill(2)).unwrap();
        gate.open();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [2; 40]);
        rt.wait().unwrap();
        assert_eq!(*seen.lock(), [1; 40]);
    }
}

/// Other threads see all pieces of a kernel or none.
#[test]
fn threads_that_submit_see_whole_kernels() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = &runtime(threads);
        let u = &rt.buffer_from(&[0_u32; 64]).unwrap();
        thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for round in 0..30 {
                        let task = rt.task("fill").over([64]).pieces(8).write(u, one_to_one());
                        task.kernel(move |_, (u,)| u.fill(thread * 100 + round)).unwrap();
                        let contents = rt.fence(u).unwrap().wait().unwrap();
                        let first = contents.as_slice()[0];
                        assert!(contents.as_slice().iter().all(|value| *value == first), "{contents:?}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_kernel_that_is_refused_leaves_nothing_behind() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, v) = (rt.buffer::<u32, 1>([40]), rt.buffer_from(&[7_u32; 40]).unwrap());
        rt.task("half").over([20]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
        let task = rt.task("refused").over([40]).pieces(4);
        let task = task.read(&u, one_to_one()).write(&v, one_to_one());
        let error = task.kernel(|_, (_, v)| v.fill(0)).unwrap_err().to_string();
        assert!(error.contains("\"refused\"") && error.contains("[20..40]"), "{error}");
        assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [7; 40]);
    }
}

/// Notes whether another thread than this one drops it.
struct Noted(Arc<AtomicBool>, thread::ThreadId);
impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(thread::current().id() != self.1, Release);
    }
}

/// What the function of a kernel holds is dropped as a part of the last piece, and not by a thread that waits
/// or submits.
#[test]
fn the_last_piece_drops_the_function() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Runtime::builder().threads(threads).help_while_waiting(false).build().unwrap();
        let (u, elsewhere) = (rt.buffer::<u32, 1>([40]), Arc::new(AtomicBool::new(false)));
        let noted = Noted(Arc::clone(&elsewhere), thread::current().id());
        let task = rt.task("task").over([40]).pieces(4).write(&u, one_to_one());
        let task = task
            .kernel(move |_, (u,)| {
                let _held = &noted;
                u.fill(1);
            })
            .unwrap();
        block_on(task).unwrap();
        assert!(elsewhere.load(Acquire), "{threads} threads");
    }
}

#[test]
fn a_kernel_without_points_is_done_at_once() {
    let _deadline = deadline();
    for rt in runtimes() {
        let u = rt.buffer::<u32, 1>([0]);
        let task = rt.task("nothing").over([0]).pieces(4).write(&u, one_to_one());
        let task = task.kernel(|_, _| unreachable!("there is no chunk")).unwrap();
        task.wait().unwrap();
        assert_eq!(task.status(), Status::Done);
        assert!(!task.cancel());
        // As for any other task, whatever its schedule was.
        let inside = rt.task("inside").once().host(move |()| task.wait()).unwrap();
        let error = inside.wait().unwrap_err().to_string();
        assert!(error.contains("TaskHandle::wait"), "{error}");
        rt.wait().unwrap_err();
    }
}
