//! Sequences: recorded once, and replayed with the results of the same tasks, submitted again and again.

mod common;

use anabranch::{ClusterObject, Runtime, Sequence, local_nodes, prelude::*};
use common::{THREADS, runtime};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use std::sync::{Arc, Mutex};

/// Records a sweep from `u` to `v` and back, of this many chunks.
fn record_sweep(rt: &Runtime, u: &Buffer<f64, 1>, v: &Buffer<f64, 1>, chunks: usize) -> Sequence {
    let len = u.extent()[0];
    rt.record("sweep", |body| {
        for (from, to) in [(u, v), (v, u)] {
            body.task("smooth")
                .over([len])
                .read(from, neighborhood([1]))
                .write(to, one_to_one())
                .chunks(chunks)
                .kernel(move |tile, (from, to)| {
                    for [i] in tile.points() {
                        let (left, right) = (from[[i.saturating_sub(1)]], from[[(i + 1).min(len - 1)]]);
                        to.set([i], 0.25 * left + 0.5 * from[[i]] + 0.25 * right + tile.replay() as f64);
                    }
                })?;
        }
        Ok(())
    })
    .unwrap()
}

/// The same in a plain loop.
fn sweep(u: &mut Vec<f64>, replays: u64) {
    for replay in 0..replays {
        for _ in 0..2 {
            let smooth = |i: usize| {
                let (left, right) = (u[i.saturating_sub(1)], u[(i + 1).min(u.len() - 1)]);
                0.25 * left + 0.5 * u[i] + 0.25 * right + replay as f64
            };
            *u = (0..u.len()).map(smooth).collect();
        }
    }
}

#[test]
fn a_stencil_has_the_bits_of_a_loop() {
    let _deadline = testing::deadline();
    let initial: Vec<f64> = (0..103).map(|i| f64::from(i * i % 17)).collect();
    for threads in THREADS {
        for chunks in [1, 2, 3, 8, 103] {
            let rt = runtime(threads);
            let (u, v) = (rt.buffer_from(&initial).unwrap(), rt.buffer([103]));
            let sequence = record_sweep(&rt, &u, &v, chunks);
            let mut expected = initial.clone();
            for replays in [1, 2, 7, 0, 300] {
                sequence.replay(replays).unwrap();
                sweep(&mut expected, replays);
                assert_eq!(
                    rt.fence(&u).unwrap().wait().unwrap().as_slice(),
                    expected,
                    "{threads} threads, {chunks} chunks"
                );
            }
            rt.wait().unwrap();
        }
    }
}

#[test]
fn a_replay_is_one_task_among_others() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, v) = (rt.buffer_from(&[1.0, 2.0, 3.0, 4.0]).unwrap(), rt.buffer([4]));
        let sequence = record_sweep(&rt, &u, &v, 2);
        let mut expected = vec![1.0, 2.0, 3.0, 4.0];
        let mut fences = Vec::new();
        for _ in 0..20 {
            sequence.replay(3).unwrap();
            sweep(&mut expected, 3);
            fences.push((rt.fence(&u).unwrap(), expected.clone()));
            rt.task("add")
                .over([4])
                .update(&u, one_to_one())
                .kernel(|tile, (u,)| {
                    tile.points().for_each(|[i]| u[[i]] += 1.0);
                })
                .unwrap();
            expected.iter_mut().for_each(|u| *u += 1.0);
        }
        for (fence, expected) in fences {
            assert_eq!(fence.wait().unwrap().as_slice(), expected);
        }
        let last = sequence.replay(1).unwrap();
        last.wait().unwrap();
        assert_eq!(last.status(), Status::Done);
        rt.wait().unwrap();
    }
}

#[test]
fn reductions_have_the_bits_of_submitted_tasks() {
    let _deadline = testing::deadline();
    let initial: Vec<f64> = (0..500).map(|i| 1.0 / f64::from(i + 1)).collect();
    let mut seen: Option<Vec<f64>> = None;
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&initial).unwrap(), rt.buffer::<f64, 0>([]));
        let sums = rt.host_object(Vec::new());
        let sequence = rt
            .record("sums", |body| {
                body.task("sum").over([500]).read(&u, one_to_one()).reduce(&total, sum()).kernel(
                    |tile, (u, total)| {
                        tile.points().for_each(|[i]| total.combine([], u[[i]]));
                    },
                )?;
                body.task("scale").over([500]).read(&total, all()).update(&u, one_to_one()).kernel(
                    |tile, (total, u)| {
                        tile.points().for_each(|[i]| u[[i]] = u[[i]] * 0.5 + total[[]] * 1e-3);
                    },
                )?;
                body.task("note").once().read(&total, all()).effect(&sums, sequential()).host(
                    |replay, (total, sums)| {
                        assert_eq!(sums.len() as u64, replay);
                        sums.push(total[[]]);
                    },
                )
            })
            .unwrap();
        sequence.replay(50).unwrap();
        let replayed = rt.fence(&sums).unwrap().wait().unwrap();
        assert_eq!(*seen.get_or_insert_with(|| replayed.clone()), replayed);

        // The same tasks, submitted.
        let (u, total) = (rt.buffer_from(&initial).unwrap(), rt.buffer::<f64, 0>([]));
        let submitted = rt.host_object(Vec::new());
        for _ in 0..50 {
            rt.task("sum")
                .over([500])
                .read(&u, one_to_one())
                .reduce(&total, sum())
                .kernel(|tile, (u, total)| {
                    tile.points().for_each(|[i]| total.combine([], u[[i]]));
                })
                .unwrap();
            rt.task("scale")
                .over([500])
                .read(&total, all())
                .update(&u, one_to_one())
                .kernel(|tile, (total, u)| {
                    tile.points().for_each(|[i]| u[[i]] = u[[i]] * 0.5 + total[[]] * 1e-3);
                })
                .unwrap();
            let note = rt.task("note").once().read(&total, all()).effect(&submitted, sequential());
            note.host(|(total, sums)| sums.push(total[[]])).unwrap();
        }
        assert_eq!(rt.fence(&submitted).unwrap().wait().unwrap(), replayed);
    }
}

#[test]
fn a_reduction_may_include_what_is_there() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&[1_u64, 2, 3, 4, 5]).unwrap(), rt.buffer_from(&[100_u64]).unwrap());
        let sequence = rt
            .record("count", |body| {
                let task = body.task("sum").over([5]).read(&u, one_to_one()).chunks(3);
                task.reduce_into(&total, sum()).kernel(|tile, (u, total)| {
                    tile.points().for_each(|[i]| total.combine([0], u[[i]]));
                })
            })
            .unwrap();
        sequence.replay(10).unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap().as_slice(), [250]);
    }
}

#[test]
fn recorded_kernels_are_replayed() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (u, total) = (rt.buffer_from(&[1.0_f32; 9]).unwrap(), rt.buffer::<f32, 0>([]));
        let sequence = rt
            .record("grow", |body| {
                body.task("double")
                    .over([9])
                    .update(&u, one_to_one())
                    .each(|(u,)| u.set(u.here() * 2.0 + u.replay().convert::<f32>()))?;
                body.task("sum")
                    .over([9])
                    .read(&u, one_to_one())
                    .reduce(&total, sum())
                    .each(|(u, total)| total.combine(u.here()))
            })
            .unwrap();
        sequence.replay(5).unwrap();
        let expected = (0..5).fold(1.0, |u, replay| u * 2.0 + replay as f32);
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 9.0 * expected);
    }
}

#[test]
fn a_sequence_may_access_nothing_of_a_buffer() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let nothing = rt.buffer_from(&[] as &[u64]).unwrap();
        let counts = rt.buffer_from(&[1_u64, 2]).unwrap().with_versions(3);
        let sequence = rt
            .record("count", |body| {
                let task = body.task("add").over([2]).read(&nothing, all()).update(&counts, one_to_one());
                task.kernel(|tile, (nothing, counts)| {
                    assert!(nothing.region().is_empty());
                    tile.points().for_each(|point| counts[point] += 1);
                })
            })
            .unwrap();
        for added in 1..4 {
            sequence.replay(5).unwrap();
            assert_eq!(rt.fence(&counts).unwrap().wait().unwrap().as_slice(), [1 + 5 * added, 2 + 5 * added]);
            // Writes to another version than the replays.
            let write = rt.task("again").over([2]).write(&counts, one_to_one());
            let again = move |i: usize| 1 + i as u64 + 5 * added;
            write
                .kernel(move |tile, (counts,)| tile.points().for_each(|[i]| counts.set([i], again(i))))
                .unwrap();
        }
        rt.wait().unwrap();
    }
}

#[test]
fn wrong_sequences_are_refused() {
    let _deadline = testing::deadline();
    let rt = runtime(2);
    let (u, v) = (rt.buffer::<f64, 1>([4]).named("u"), rt.buffer::<f64, 1>([4]).named("v"));
    // A task that contradicts itself is refused when it is recorded.
    let refused = rt.record("wrong", |body| {
        let task = body.task("in place").over([4]).chunks(1).read(&u, neighborhood([1]));
        task.write(&u, one_to_one()).kernel(|_, _| ())
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("task \"in place\"") && error.contains("buffer \"u\""), "{error}");
    let refused =
        rt.record("wrong", |body| body.task("beyond").over([5]).write(&u, one_to_one()).kernel(|_, _| ()));
    assert!(refused.unwrap_err().to_string().contains("task \"beyond\""));
    // What the sequence reads must be there when it is replayed.
    let sequence = record_sweep(&rt, &u, &v, 2);
    let error = sequence.replay(1).unwrap_err().to_string();
    assert!(error.contains("task \"sweep\"") && error.contains("buffer \"u\""), "{error}");
    rt.wait().unwrap();
    // Of another runtime.
    let other = runtime(1);
    let refused = other
        .record("foreign", |body| body.task("foreign").over([4]).write(&u, one_to_one()).kernel(|_, _| ()));
    assert!(matches!(refused, Err(Error::OtherRuntime { .. })));
    // Nothing to do.
    rt.record("empty", |_| Ok(())).unwrap().replay(5).unwrap().wait().unwrap();
}

#[test]
fn a_checked_runtime_checks_replays() {
    let _deadline = testing::deadline();
    let rt = Runtime::builder().threads(2).checked(true).build().unwrap();
    let u = rt.buffer::<f64, 1>([4]).named("u");
    let sequence = rt
        .record("writes", |body| {
            body.task("forgets").over([4]).write(&u, one_to_one()).chunks(2).kernel(|tile, (u,)| {
                let forgets = tile.replay() == 5;
                tile.points().filter(|&[i]| !(forgets && i == 3)).for_each(|point| u.set(point, 1.0));
            })
        })
        .unwrap();
    let error = sequence.replay(10).unwrap().wait().unwrap_err().to_string();
    assert!(
        error.contains("in replay 5") && error.contains("unwritten") && error.contains("[2..4]"),
        "{error}"
    );
    assert!(rt.wait().is_err());
}

/// The task of a random sequence.
#[derive(Clone, Debug)]
enum Work {
    /// Adds the neighbours of one buffer, `reach` away, to another one, in some chunks.
    Mix { from: usize, to: usize, reach: usize, chunks: usize, updates: bool },
    /// Adds elements of one buffer, `reach` away, and the number of the replay for another one: a recorded
    /// kernel.
    Each { from: usize, to: usize, reach: usize },
    /// Sums a buffer into a number, which all elements of another one get.
    Sum { of: usize, to: usize, chunks: usize },
    /// Adds an element of a buffer to a host object, and sets the element.
    Note { buffer: usize, at: usize },
}

const LEN: usize = 16;

fn work() -> impl Strategy<Value = Work> {
    let pair = || (0..3_usize, 1..3_usize).prop_map(|(from, next)| (from, (from + next) % 3));
    prop_oneof![
        3 => (pair(), 0..3_usize, 1..6_usize, any::<bool>())
            .prop_map(|((from, to), reach, chunks, updates)| Work::Mix { from, to, reach, chunks, updates }),
        1 => (pair(), 0..3_usize).prop_map(|((from, to), reach)| Work::Each { from, to, reach }),
        1 => (pair(), 1..6_usize).prop_map(|((of, to), chunks)| Work::Sum { of, to, chunks }),
        1 => (0..3_usize, 0..LEN).prop_map(|(buffer, at)| Work::Note { buffer, at }),
    ]
}

/// All that a program can see.
#[derive(Clone, Debug, PartialEq)]
struct State {
    buffers: Vec<Vec<u64>>,
    note: u64,
}

fn mixed(old: u64, sum: u64, replay: u64) -> u64 {
    (old ^ sum).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_add(replay)
}

impl State {
    fn new() -> Self {
        let buffers = (0..3).map(|b| (0..LEN as u64).map(|i| b * 1000 + i).collect()).collect();
        Self { buffers, note: 0 }
    }

    fn run(&mut self, work: &Work, replay: u64) {
        match *work {
            Work::Mix { from, to, reach, updates, .. } => {
                for i in 0..LEN {
                    let near = i.saturating_sub(reach)..(i + reach + 1).min(LEN);
                    let sum = self.buffers[from][near].iter().fold(0, |a: u64, &b| a.wrapping_add(b));
                    let old = if updates { self.buffers[to][i] } else { 0 };
                    self.buffers[to][i] = mixed(old, sum, replay);
                }
            }
            Work::Each { from, to, reach } => {
                for i in 0..LEN {
                    let near = [i, i.saturating_sub(reach), (i + reach).min(LEN - 1)];
                    let [here, left, right] = near.map(|i| self.buffers[from][i]);
                    let sum = here.wrapping_mul(3).wrapping_add(left).wrapping_add(right);
                    self.buffers[to][i] = sum.wrapping_add(replay);
                }
            }
            Work::Sum { of, to, .. } => {
                let sum = self.buffers[of].iter().fold(0, |a: u64, &b| a.wrapping_add(b));
                self.buffers[to].iter_mut().for_each(|u| *u = mixed(*u, sum, replay));
            }
            Work::Note { buffer, at } => {
                self.note = mixed(self.note, self.buffers[buffer][at], replay);
                self.buffers[buffer][at] = self.note;
            }
        }
    }
}

/// Where the tasks of a sequence fail: the numbers of a replay and of a work, in this order.
type Fails = Arc<Mutex<Vec<(u64, usize)>>>;

fn record(
    rt: &Runtime,
    works: &[Work],
    buffers: &[Buffer<u64, 1>],
    note: &ClusterObject<u64>,
    fails: &Fails,
) -> Sequence {
    let total = rt.buffer::<u64, 0>([]);
    let wrapping = || operator(0_u64, u64::wrapping_add);
    rt.record("random", |body| {
        for (number, work) in works.iter().enumerate() {
            let fails = Arc::clone(fails);
            let check = move |replay: u64, is_first: bool| {
                let fails = is_first && fails.lock().unwrap().contains(&(replay, number));
                assert!(!fails, "work {number} breaks");
            };
            match *work {
                Work::Mix { from, to, reach, chunks, updates } => {
                    let task = body
                        .task("mix")
                        .over([LEN])
                        .chunks(chunks)
                        .read(&buffers[from], neighborhood([reach]));
                    let sum = move |from: &ReadView<u64, 1>, i: usize| {
                        (i.saturating_sub(reach)..(i + reach + 1).min(LEN))
                            .fold(0, |a: u64, j| a.wrapping_add(from[[j]]))
                    };
                    if updates {
                        task.update(&buffers[to], one_to_one()).kernel(move |tile, (from, to)| {
                            check(tile.replay(), tile.range().contains_point([0]));
                            for [i] in tile.points() {
                                to[[i]] = mixed(to[[i]], sum(from, i), tile.replay());
                            }
                        })?;
                    } else {
                        task.write(&buffers[to], one_to_one()).kernel(move |tile, (from, to)| {
                            check(tile.replay(), tile.range().contains_point([0]));
                            for [i] in tile.points() {
                                to.set([i], mixed(0, sum(from, i), tile.replay()));
                            }
                        })?;
                    }
                }
                Work::Each { from, to, reach } => {
                    let task = body.task("each").over([LEN]).read(&buffers[from], neighborhood([reach]));
                    let reach = reach as isize;
                    task.write(&buffers[to], one_to_one()).each(|(from, to)| {
                        let near = from.at_clamped([-reach]) + from.at_clamped([reach]);
                        to.set(from.here() * 3 + near + to.replay().convert::<u64>());
                    })?;
                }
                Work::Sum { of, to, chunks } => {
                    let task = body.task("sum").over([LEN]).chunks(chunks).read(&buffers[of], one_to_one());
                    task.reduce(&total, wrapping()).kernel(|tile, (of, total)| {
                        tile.points().for_each(|[i]| total.combine([], of[[i]]));
                    })?;
                    let task = body.task("spread").over([LEN]).chunks(chunks).read(&total, all());
                    task.update(&buffers[to], one_to_one()).kernel(move |tile, (total, to)| {
                        check(tile.replay(), tile.range().contains_point([0]));
                        for [i] in tile.points() {
                            to[[i]] = mixed(to[[i]], total[[]], tile.replay());
                        }
                    })?;
                }
                Work::Note { buffer, at } => {
                    let part = GridBox::new([at], [at + 1]);
                    let task = body.task("note").once().update(&buffers[buffer], fixed(part));
                    task.effect(note, sequential()).host(move |replay, (u, note)| {
                        *note = mixed(*note, u[[at]], replay);
                        u[[at]] = *note;
                    })?;
                }
            }
        }
        Ok(())
    })
    .unwrap()
}

/// The replay that has met the condition, the buffers, and on the first node the note.
type Seen = (Option<u64>, Vec<Vec<u64>>, Option<u64>);

/// A random sequence, how often it is replayed, and then until when.
#[derive(Clone, Debug)]
struct Program {
    works: Vec<Work>,
    replays: Vec<u64>,
    most: u64,
    divisor: u64,
}

fn programs() -> impl Strategy<Value = Program> {
    let works = prop::collection::vec(work(), 1..8);
    (works, prop::collection::vec(1..40_u64, 1..4), 0..20_u64, 1..12_u64)
        .prop_map(|(works, replays, most, divisor)| Program { works, replays, most, divisor })
}

impl Program {
    /// Runs it in a loop. Returns the replay that has met the condition, and what is left.
    fn in_a_loop(&self) -> (Option<u64>, State) {
        let mut state = State::new();
        for &count in &self.replays {
            for replay in 0..count {
                self.works.iter().for_each(|work| state.run(work, replay));
            }
        }
        let met = (0..self.most).find(|&replay| {
            self.works.iter().for_each(|work| state.run(work, replay));
            state.buffers[0][0].is_multiple_of(self.divisor)
        });
        (met.map(|replay| replay + 1), state)
    }

    /// The same by a sequence.
    fn replayed(&self, rt: Runtime) -> Result<Seen, Error> {
        let initial = State::new();
        let buffers = initial.buffers.iter().map(|initial| rt.buffer_from(&initial[..]));
        let buffers: Vec<_> = buffers.collect::<Result<_, _>>()?;
        let note = rt.cluster_object(0, || 0)?;
        let sequence = record(&rt, &self.works, &buffers, &note, &Fails::default());
        for &count in &self.replays {
            sequence.replay(count)?;
        }
        let divisor = self.divisor;
        let until = sequence.replay_until(self.most, &buffers[0], move |u| u[[0]].is_multiple_of(divisor))?;
        let met = until.wait()?;
        let seen = buffers.iter().map(|u| Ok(rt.fence(u)?.wait()?.into_vec()));
        let seen = seen.collect::<Result<_, Error>>()?;
        drop((until, sequence));
        Ok((met, seen, rt.drain(note.capture())?))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_sequences_have_the_results_of_a_loop(
        program in programs(),
        threads in prop_oneof![Just(1), Just(2), Just(3), Just(4), Just(8)],
        seed in prop_oneof![2 => Just(None), 1 => any::<u64>().prop_map(Some)],
    ) {
        let _deadline = testing::deadline();
        let mut builder = Runtime::builder().threads(threads);
        if let Some(seed) = seed {
            builder = builder.seeded(seed);
        }
        let (met, State { buffers, note }) = program.in_a_loop();
        prop_assert_eq!(program.replayed(builder.build().unwrap()).unwrap(), (met, buffers, Some(note)));
    }

    #[test]
    fn random_sequences_have_the_results_of_a_loop_on_several_nodes(
        program in programs(),
        (nodes, threads) in (2..5_u16, 1..4_usize),
    ) {
        let _deadline = testing::deadline();
        let (met, State { buffers, note }) = program.in_a_loop();
        let local = local_nodes(nodes).threads(threads).delays(threads as u32, 7);
        let by_nodes = program.clone();
        for (node, result) in local.run(move |rt| by_nodes.replayed(rt)).into_iter().enumerate() {
            let expected = (met, buffers.clone(), (node == 0).then_some(note));
            prop_assert_eq!(result.unwrap(), expected, "node {} of {}", node, nodes);
        }
    }
    #[test]
    fn random_sequences_that_fail_are_replayed_again_when_their_buffers_are_healed(
        program in programs(),
        fails in prop::collection::vec((0..40_u64, 0..8_usize), 1..4),
        threads in prop_oneof![Just(1), Just(2), Just(3), Just(4), Just(8)],
    ) {
        let _deadline = testing::deadline();
        // No overwrite heals a host object, and a recorded kernel does not fail.
        let works: Vec<_> = program.works.into_iter().filter(|work| !matches!(work, Work::Note { .. })).collect();
        let can_fail = |&(_, work): &(u64, usize)| works.get(work).is_some_and(|work| !matches!(work, Work::Each { .. }));
        let fails: Vec<_> = fails.into_iter().filter(can_fail).collect();
        let rt = Runtime::builder().threads(threads).build().unwrap();
        let buffers: Vec<_> = State::new().buffers.iter().map(|initial| rt.buffer_from(&initial[..]).unwrap()).collect();
        let to_fail = Fails::default();
        let sequence = record(&rt, &works, &buffers, &rt.cluster_object(0, || 0).unwrap(), &to_fail);
        for &count in &program.replays {
            // Of all that break, the one that comes first in a loop.
            to_fail.lock().unwrap().clone_from(&fails);
            let first = fails.iter().filter(|&&(replay, _)| replay < count).min();
            let replayed = sequence.replay(count).unwrap().wait();
            to_fail.lock().unwrap().clear();
            if let Some((replay, work)) = first {
                let error = replayed.unwrap_err().to_string();
                let expected = [format!("in replay {replay}, task"), format!("work {work} breaks")];
                prop_assert!(expected.iter().all(|part| error.contains(part)), "{}: {:?}", error, expected);
                prop_assert!(rt.wait().is_err());
            } else {
                prop_assert!(replayed.is_ok());
            }
            let mut state = State::new();
            for (buffer, initial) in buffers.iter().zip(state.buffers.clone()) {
                let heal = rt.task("heal").over([LEN]).write(buffer, one_to_one());
                heal.kernel(move |tile, (u,)| tile.points().for_each(|[i]| u.set([i], initial[i]))).unwrap();
            }
            sequence.replay(count).unwrap();
            (0..count).for_each(|replay| works.iter().for_each(|work| state.run(work, replay)));
            for (buffer, expected) in buffers.iter().zip(&state.buffers) {
                prop_assert_eq!(&rt.fence(buffer).unwrap().wait().unwrap().into_vec(), expected);
            }
            rt.wait().unwrap();
        }
    }
}
