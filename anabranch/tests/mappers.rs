//! Range mappers are code of the program. Whatever they answer, no element is given to two users at once.

mod common;

use anabranch::{
    grid::{Chunk, MapperValue, RangeMapper},
    prelude::*,
};
use common::THREADS;
use std::{
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::*},
    },
};
use testing::deadline;

const LEN: usize = 24;

/// How a mapper misbehaves.
#[derive(Clone, Copy, Debug)]
enum Vice {
    /// It gives any box, another one at each call.
    Random,
    /// It gives the whole buffer for the first chunk, which is the whole index space, and then any box.
    RandomParts,
    /// It gives the whole buffer for the first chunk, and then any part of the chunk.
    Shrinks,
    /// It gives a box for the whole index space, and boxes of other chunks that reach beyond it.
    NotMonotonic,
    /// It is right, and then it gives everything to every chunk.
    Greedy,
    /// It leaves the buffer, now and then.
    Outside,
    /// It gives two boxes, now and then, and promises one.
    TwoBoxes,
    /// It panics, now and then.
    Panics,
}

const VICES: [Vice; 8] = [
    Vice::Random,
    Vice::RandomParts,
    Vice::Shrinks,
    Vice::NotMonotonic,
    Vice::Greedy,
    Vice::Outside,
    Vice::TwoBoxes,
    Vice::Panics,
];

struct Hostile {
    vice: Vice,
    seed: u64,
    calls: AtomicU64,
}

impl Hostile {
    fn new(vice: Vice, seed: u64) -> Self {
        Self { vice, seed, calls: AtomicU64::new(0) }
    }

    fn draw(&self, call: u64, below: usize) -> usize {
        let x = (self.seed << 20 | call).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % below
    }
}

impl RangeMapper<1, 1> for Hostile {
    type Shape = OneBox<1>;

    fn map(&self, chunk: &Chunk<1>, buffer: Extent<1>) -> Region<1> {
        let call = self.calls.fetch_add(1, Relaxed);
        let any = || {
            let min = self.draw(2 * call, LEN);
            GridBox::new(min, min + 1 + self.draw(2 * call + 1, LEN - min))
        };
        let bad = self.draw(call, 4) == 0;
        match self.vice {
            Vice::Random => any(),
            Vice::RandomParts if call > 0 => any(),
            Vice::NotMonotonic if call == 0 => GridBox::new(0, LEN / 2),
            Vice::Greedy if bad && call > 0 => GridBox::full(buffer),
            Vice::Outside if bad => GridBox::new(0, LEN + 1),
            Vice::TwoBoxes if bad => {
                let (min, max) = (chunk.range.min()[0], chunk.range.max()[0]);
                return [GridBox::new(min, min + 1), GridBox::new(max - 1, max)].into_iter().collect();
            }
            Vice::Panics if bad => resume_unwind(Box::new("on purpose")),
            Vice::Shrinks if call > 0 => {
                let (min, len) = (chunk.range.min()[0], chunk.range.len());
                let skip = self.draw(call, len);
                GridBox::new(min + skip, min + skip + 1 + self.draw(!call, len - skip))
            }
            Vice::RandomParts | Vice::Shrinks => GridBox::full(buffer),
            _ => chunk.range,
        }
        .into()
    }

    fn describe(&self) -> String {
        match self.vice {
            Vice::Panics => resume_unwind(Box::new("on purpose")),
            vice => format!("{vice:?}"),
        }
    }
}

/// Counts the users of each element, and those that were there at the wrong time.
#[derive(Default)]
struct Users {
    writers: [AtomicUsize; LEN],
    readers: [AtomicUsize; LEN],
    wrong: AtomicUsize,
}

impl Users {
    fn for_each(region: &Region<1>, change: impl Fn(usize)) {
        region.boxes().iter().flat_map(|b| b.min()[0]..b.max()[0]).for_each(change);
    }

    fn write(&self, region: &Region<1>, work: impl FnOnce()) {
        Self::for_each(region, |i| {
            let others = self.writers[i].fetch_add(1, SeqCst) + self.readers[i].load(SeqCst);
            self.wrong.fetch_add(others, SeqCst);
        });
        work();
        Self::for_each(region, |i| _ = self.writers[i].fetch_sub(1, SeqCst));
    }

    fn read(&self, region: &Region<1>, work: impl FnOnce()) {
        Self::for_each(region, |i| {
            self.readers[i].fetch_add(1, SeqCst);
            self.wrong.fetch_add(self.writers[i].load(SeqCst), SeqCst);
        });
        work();
        Self::for_each(region, |i| _ = self.readers[i].fetch_sub(1, SeqCst));
    }
}

/// Submits a task that updates, and one that reads, each with a hostile mapper. Returns how many were
/// accepted.
fn submit(rt: &Runtime, u: &Buffer<u64, 1>, users: &Arc<Users>, vice: Vice, seed: u64) -> usize {
    let (of_write, of_read) = (Arc::clone(users), Arc::clone(users));
    let update = || {
        let task = rt.task("update").over([LEN]).chunks(6).update(u, Hostile::new(vice, seed));
        task.kernel(move |_, (u,)| {
            let region = u.region().clone();
            of_write.write(&region, || {
                std::thread::yield_now();
                for i in region.boxes().iter().flat_map(|b| b.min()[0]..b.max()[0]) {
                    u[[i]] += 1;
                }
            });
        })
    };
    let read = || {
        let task = rt.task("read").over([LEN]).chunks(5).read(u, Hostile::new(vice, !seed));
        task.kernel(move |_, (u,)| {
            of_read.read(u.region(), || {
                std::thread::yield_now();
                u.region().boxes().iter().for_each(|b| drop(u.run(b.min().0).to_vec()));
            });
        })
    };
    // A mapper that panics does so where the task is submitted.
    let accepted = |submitted: std::thread::Result<Result<TaskHandle, Error>>| matches!(submitted, Ok(Ok(_)));
    let update = accepted(catch_unwind(AssertUnwindSafe(update)));
    usize::from(update) + usize::from(accepted(catch_unwind(AssertUnwindSafe(read))))
}

#[test]
fn no_answer_of_a_mapper_gives_an_element_to_two_users() {
    let _deadline = deadline();
    for threads in THREADS {
        for nodes in [None, Some(3)] {
            let builder = Runtime::builder().threads(threads);
            let rt = nodes.into_iter().fold(builder, anabranch::Builder::dry_run).build().unwrap();
            for vice in VICES {
                let (users, mut accepted) = (Arc::new(Users::default()), 0);
                let u = rt.buffer_from(&[0_u64; LEN]).unwrap();
                for seed in 0..60 {
                    accepted += submit(&rt, &u, &users, vice, seed);
                }
                rt.wait().unwrap();
                assert_eq!(users.wrong.load(SeqCst), 0, "{vice:?} on {threads} threads");
                // The runtime is as it was: tasks are accepted, ordered and run.
                rt.task("fill").over([LEN]).update(&u, one_to_one()).kernel(|_, (u,)| u.fill(7)).unwrap();
                assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [7; LEN]);
                match vice {
                    Vice::NotMonotonic => assert_eq!(accepted, 0),
                    Vice::Shrinks => assert_eq!(accepted, 120),
                    Vice::Random => {}
                    Vice::TwoBoxes => {
                        assert!((1..120).contains(&accepted), "{accepted} on {threads} threads")
                    }
                    _ => assert!(accepted > 0, "{vice:?} on {threads} threads: nothing was tried"),
                }
            }
        }
    }
}

#[test]
fn a_dry_run_with_a_hostile_mapper_says_where_its_commands_end() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).dry_run(4).build().unwrap();
    let u = rt.buffer_from(&[0_u64; LEN]).unwrap();
    let calls = AtomicUsize::new(0);
    // Right for the runtime's own two chunks, and then it panics.
    let mapper = mapper(move |chunk: &Chunk<1>, _: Extent<1>| {
        if calls.fetch_add(1, Relaxed) >= 3 {
            resume_unwind(Box::new("on purpose"));
        }
        chunk.range
    });
    rt.task("half right").over([LEN]).chunks(2).update(&u, mapper).kernel(|_, (u,)| u.fill(1)).unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [1; LEN]);
    let summary = rt.dry_run_summary().unwrap();
    assert!(summary.contains("commands end where this was refused"), "{summary}");
    assert!(summary.contains("half right"), "{summary}");
}

/// The neighbours of a chunk, by a mapper that can be compared and counts its calls.
struct Counted(Arc<AtomicUsize>);

impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl RangeMapper<1, 1> for Counted {
    type Shape = OneBox<1>;

    fn map(&self, chunk: &Chunk<1>, buffer: Extent<1>) -> Region<1> {
        self.0.fetch_add(1, Relaxed);
        neighborhood([1]).map(chunk, buffer)
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

#[test]
fn a_task_that_is_submitted_again_with_equal_mappers_is_not_derived_again() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).dry_run(16).build().unwrap();
    let [mut u, mut v] = [(); 2].map(|()| rt.buffer_from(&[0_u64; LEN]).unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let mut step = || {
        let before = calls.load(Relaxed);
        let near = Counted(calls.clone());
        rt.task("step")
            .over([LEN])
            .chunks(1)
            .read(&u, near)
            .write(&v, one_to_one())
            .kernel(|_, (_, v)| v.fill(1))
            .unwrap();
        std::mem::swap(&mut u, &mut v);
        rt.wait().unwrap();
        assert!(rt.dry_run_summary().is_some());
        calls.load(Relaxed) - before
    };
    let first = step();
    assert!(first > 16, "{first} calls: each node derives the first step");
    let last = (0..100).map(|_| step()).skip(50);
    assert!(last.eq([1; 50]), "only the declaration calls the mapper");
}
