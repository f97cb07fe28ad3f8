//! Random sequences, replayed: the results of a loop, with several threads and on several nodes, and after
//! failures.

use anabranch::{ClusterObject, Runtime, Sequence, SequenceBody, local_nodes, prelude::*};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use std::sync::{Arc, Mutex};

/// The task of a random sequence.
#[derive(Clone, Debug)]
enum Work {
    /// Adds the neighbours of one buffer, `reach` away, to another one.
    Mix { by: By, from: usize, to: usize, reach: usize, updates: bool },
    /// Adds elements of one buffer, `reach` away, and the number of the replay for another one: a recorded
    /// kernel.
    Each { from: usize, to: usize, reach: usize },
    /// Sums a buffer into a number, which all elements of another one get.
    Sum { of: usize, to: usize, chunks: usize },
    /// Adds an element of a buffer to a host object, and sets the element.
    Note { buffer: usize, at: usize, blocks: bool },
}

/// What kind of task a work is.
#[derive(Clone, Copy, Debug)]
enum By {
    /// A kernel of this many chunks.
    Kernel(usize),
    /// A host task with a part for each node.
    Host,
    /// A batch.
    Batch,
}

const LEN: usize = 16;

fn work() -> impl Strategy<Value = Work> {
    let pair = || (0..3_usize, 1..3_usize).prop_map(|(from, next)| (from, (from + next) % 3));
    let by = prop_oneof![
        3 => (1..6_usize).prop_map(By::Kernel),
        1 => Just(By::Host),
        2 => Just(By::Batch),
    ];
    prop_oneof![
        4 => (by, pair(), 0..3_usize, any::<bool>())
            .prop_map(|(by, (from, to), reach, updates)| Work::Mix { by, from, to, reach, updates }),
        1 => (pair(), 0..3_usize).prop_map(|((from, to), reach)| Work::Each { from, to, reach }),
        1 => (pair(), 1..6_usize).prop_map(|((of, to), chunks)| Work::Sum { of, to, chunks }),
        1 => (0..3_usize, 0..LEN, 0..6_usize)
            .prop_map(|(buffer, at, blocks)| Work::Note { buffer, at, blocks: blocks == 0 }),
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
            Work::Note { buffer, at, .. } => {
                self.note = mixed(self.note, self.buffers[buffer][at], replay);
                self.buffers[buffer][at] = self.note;
            }
        }
    }
}

/// Where the tasks of a sequence fail: the numbers of a replay and of a work, in this order.
type Fails = Arc<Mutex<Vec<(u64, usize)>>>;

/// What the tasks of a sequence use.
struct Data<'a> {
    buffers: &'a [Buffer<u64, 1>],
    note: &'a ClusterObject<u64>,
    total: Buffer<u64, 0>,
    fails: &'a Fails,
}

fn record(
    rt: &Runtime,
    works: &[Work],
    buffers: &[Buffer<u64, 1>],
    note: &ClusterObject<u64>,
    fails: &Fails,
) -> Sequence {
    let data = Data { buffers, note, total: rt.buffer([]), fails };
    rt.record("random", |body| {
        let mut works = works.iter().enumerate();
        works.try_for_each(|(number, work)| data.record(body, number, work))
    })
    .unwrap()
}

/// The sum of the elements of a buffer around a point.
fn around(from: &ReadView<u64, 1>, i: usize, reach: usize) -> u64 {
    (i.saturating_sub(reach)..(i + reach + 1).min(LEN)).fold(0, |sum: u64, j| sum.wrapping_add(from[[j]]))
}

impl Data<'_> {
    /// What the first point of a work calls: it panics where the work fails.
    fn check(&self, number: usize) -> impl Fn(u64) + Clone + Send + Sync + use<> {
        let fails = Arc::clone(self.fails);
        move |replay| {
            let fails = fails.lock().unwrap().contains(&(replay, number));
            assert!(!fails, "work {number} breaks");
        }
    }

    fn record(&self, body: &SequenceBody<'_>, number: usize, work: &Work) -> Result<(), Error> {
        let Self { buffers, note, .. } = self;
        match *work {
            Work::Mix { by: By::Batch, .. } => self.record_batch(body, number, work),
            Work::Mix { .. } => self.record_mix(body, number, work),
            Work::Each { from, to, reach } => {
                let task = body.task("each").over([LEN]).read(&buffers[from], neighborhood([reach]));
                let reach = reach as isize;
                task.write(&buffers[to], one_to_one()).each(|(from, to)| {
                    let near = from.at_clamped([-reach]) + from.at_clamped([reach]);
                    to.set(from.here() * 3 + near + to.replay().convert::<u64>());
                })
            }
            Work::Sum { of, to, chunks } => self.record_sum(body, number, [of, to], chunks),
            Work::Note { buffer, at, blocks } => {
                let part = GridBox::new([at], [at + 1]);
                let task = body.task("note").once().update(&buffers[buffer], fixed(part));
                let task = if blocks { task.blocking() } else { task };
                task.effect(*note, sequential()).host(move |replay, (u, note)| {
                    *note = mixed(*note, u[[at]], replay);
                    u[[at]] = *note;
                })
            }
        }
    }

    /// Records a mix by a kernel or a host task.
    fn record_mix(&self, body: &SequenceBody<'_>, number: usize, work: &Work) -> Result<(), Error> {
        let &Work::Mix { by, from, to, reach, updates } = work else { unreachable!() };
        let (from, to, check) = (&self.buffers[from], &self.buffers[to], self.check(number));
        let task = body.task("mix").over([LEN]).read(from, neighborhood([reach]));
        let task = if let By::Kernel(chunks) = by { task.chunks(chunks) } else { task };
        let check = move |tile: &Tile<1>| {
            if tile.range().contains_point([0]) {
                check(tile.replay());
            }
        };
        let update = {
            let check = check.clone();
            move |tile: &Tile<1>, (from, to): (&ReadView<u64, 1>, &mut UpdateView<'_, u64, 1>)| {
                check(tile);
                tile.points().for_each(|[i]| to[[i]] = mixed(to[[i]], around(from, i, reach), tile.replay()));
            }
        };
        let write = move |tile: &Tile<1>, (from, to): (&ReadView<u64, 1>, &mut WriteView<'_, u64, 1>)| {
            check(tile);
            tile.points().for_each(|[i]| to.set([i], mixed(0, around(from, i, reach), tile.replay())));
        };
        match (by, updates) {
            (By::Host, true) => task.update(to, one_to_one()).host(update),
            (By::Host, false) => task.write(to, one_to_one()).host(write),
            (_, true) => task.update(to, one_to_one()).kernel(update),
            (_, false) => task.write(to, one_to_one()).kernel(write),
        }
    }

    fn record_batch(&self, body: &SequenceBody<'_>, number: usize, work: &Work) -> Result<(), Error> {
        let &Work::Mix { from, to, reach, updates, .. } = work else { unreachable!() };
        let (from, to, check) = (&self.buffers[from], &self.buffers[to], self.check(number));
        let tasks = body.tasks("batch").each([LEN]).read(from, neighborhood([reach]));
        let check = move |replay, i: usize| {
            if i == 0 {
                check(replay);
            }
        };
        if updates {
            tasks.update(to, one_to_one()).host(move |replay, [i], (from, to)| {
                check(replay, i);
                to[[i]] = mixed(to[[i]], around(from, i, reach), replay);
            })
        } else {
            tasks.write(to, one_to_one()).host(move |replay, [i], (from, to)| {
                check(replay, i);
                to.set([i], mixed(0, around(from, i, reach), replay));
            })
        }
    }

    fn record_sum(
        &self,
        body: &SequenceBody<'_>,
        number: usize,
        [of, to]: [usize; 2],
        chunks: usize,
    ) -> Result<(), Error> {
        let (Self { buffers, total, .. }, check) = (self, self.check(number));
        let task = body.task("sum").over([LEN]).chunks(chunks).read(&buffers[of], one_to_one());
        task.reduce(total, operator(0_u64, u64::wrapping_add)).kernel(|tile, (of, total)| {
            tile.points().for_each(|[i]| total.combine([], of[[i]]));
        })?;
        let task = body.task("spread").over([LEN]).chunks(chunks).read(total, all());
        task.update(&buffers[to], one_to_one()).kernel(move |tile, (total, to)| {
            if tile.range().contains_point([0]) {
                check(tile.replay());
            }
            tile.points().for_each(|[i]| to[[i]] = mixed(to[[i]], total[[]], tile.replay()));
        })
    }
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
