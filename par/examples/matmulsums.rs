//! Computes many matrix products, each in a temporary buffer, and the sum of each product. Each variant gets
//! that buffer in another way; the program measures all of them. The guide's chapter `scratch_storage`
//! explains them one by one.
//!
//! ```sh
//! cargo run --release -p anabranch-par --example matmulsums                  # all products of the same size
//! cargo run --release -p anabranch-par --example matmulsums -- --non-uniform # sizes that grow along the loop
//! ```
//!
//! All variants must give the same bits as the sequential one.

use anabranch_par::{
    Critical,
    prelude::*,
    scratch::{self, Pool, WorkerLocal},
};
use std::{
    process::ExitCode,
    sync::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

const USAGE: &str = "usage: matmulsums [--non-uniform] [--smoke]
  --non-uniform  inner dimensions that grow along the loop, instead of 16 for all
  --smoke        small matrices, twice each: to see that everything works";

fn main() -> ExitCode {
    let (mut non_uniform, mut smoke) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--non-uniform" => non_uniform = true,
            "--smoke" => smoke = true,
            "--help" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            other => {
                eprintln!("unknown argument {other:?}\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let (n, pairs, runs) = match (smoke, non_uniform) {
        (true, _) => (24, 96, 2),
        (false, false) => (256, 768, 20),
        (false, true) => (256, 768, 4),
    };
    let inner = |i: usize| if non_uniform { i.isqrt().pow(2) } else { 16 };
    let problem = Problem::new(n, (1..=pairs).map(inner));
    let threads = ThreadPool::global().threads();
    let dimension = if non_uniform { "isqrt(i)^2" } else { "16" };
    println!("{pairs} products of {n} x {dimension} by {dimension} x {n}");
    println!("{threads} threads, least time of {runs} runs\n");
    compare(&problem, non_uniform, runs);
    ExitCode::SUCCESS
}

/// Pairs of matrices, in row-major order.
struct Problem {
    /// Products have `n` rows and columns.
    n: usize,
    pairs: Vec<Pair>,
    /// The number of buffers made so far.
    made: AtomicUsize,
}

struct Pair {
    /// `n` rows of `inner` elements.
    a: Vec<f64>,
    /// `inner` rows of `n` elements.
    b: Vec<f64>,
    inner: usize,
}

impl Problem {
    fn new(n: usize, inner: impl Iterator<Item = usize>) -> Self {
        // Pseudo-random numbers between 0 and 1, by SplitMix64.
        let mut state = 0_u64;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut matrix = |len| (0..len).map(|_| random()).collect();
        let pairs = inner.map(|inner| Pair { a: matrix(n * inner), b: matrix(inner * n), inner }).collect();
        Self { n, pairs, made: AtomicUsize::new(0) }
    }

    /// Memory for a product.
    fn buffer(&self) -> Vec<f64> {
        self.made.fetch_add(1, Relaxed);
        vec![0.0; self.n * self.n]
    }
}

/// The sum of the product's elements. `c`, which has `n` rows and columns, is overwritten with the product.
fn product_sum(Pair { a, b, inner }: &Pair, n: usize, c: &mut [f64]) -> f64 {
    multiply(a, b, c, n, *inner);
    // Sums in 16 lanes, so that the compiler vectorises the loop.
    let (blocks, rest) = c.as_chunks::<16>();
    let mut lanes = [0.0; 16];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, x)| *lane += x);
    }
    lanes.iter().chain(rest).sum()
}

/// `c = a * b`, with `n` rows of `inner` elements in `a` and `inner` rows of `n` in `b`.
fn multiply(a: &[f64], b: &[f64], c: &mut [f64], n: usize, inner: usize) {
    assert!(a.len() == n * inner && b.len() == inner * n && c.len() == n * n, "sizes do not fit");
    let (row_of_a, row) = (inner as isize, n as isize);
    // SAFETY: with these strides, `dgemm` accesses only elements inside the slices, whose lengths are checked
    // above. `c` overlaps neither `a` nor `b`, because it is borrowed exclusively.
    unsafe {
        matrixmultiply::dgemm(
            n,
            inner,
            n,
            1.0,
            a.as_ptr(),
            row_of_a,
            1,
            b.as_ptr(),
            row,
            1,
            0.0,
            c.as_mut_ptr(),
            row,
            1,
        );
    }
}

/// One buffer for the only thread.
fn sequential(problem: &Problem) -> Vec<f64> {
    let mut c = problem.buffer();
    problem.pairs.iter().map(|pair| product_sum(pair, problem.n, &mut c)).collect()
}

/// A new buffer for each product.
fn allocation_per_item(problem: &Problem) -> Vec<f64> {
    problem.pairs.par().map(|pair| product_sum(pair, problem.n, &mut problem.buffer())).collect()
}

/// A buffer for each participant of the loop.
fn loop_scratch(problem: &Problem, schedule: Schedule) -> Vec<f64> {
    problem
        .pairs
        .par()
        .schedule(schedule)
        .scratch(|| problem.buffer())
        .map(|c, pair| product_sum(pair, problem.n, c))
        .collect()
}

/// A buffer for each participant, kept for the next loop.
fn kept_scratch(problem: &Problem, buffers: &mut WorkerLocal<Vec<f64>>) -> Vec<f64> {
    problem
        .pairs
        .par()
        .scratch_in(buffers, || problem.buffer())
        .map(|c, pair| product_sum(pair, problem.n, c))
        .collect()
}

/// Two buffers, lent to the threads that need one.
fn pool(problem: &Problem) -> Vec<f64> {
    let buffers = Pool::new(2, || problem.buffer());
    problem.pairs.par().map(|pair| product_sum(pair, problem.n, &mut buffers.take())).collect()
}

/// A slice of the thread's scratch memory.
fn bump_scratch(problem: &Problem) -> Vec<f64> {
    let n = problem.n;
    problem.pairs.par().map(|pair| scratch::scope(|scope| product_sum(pair, n, scope.slice(n * n)))).collect()
}

/// A few tasks, each with a buffer, take the inputs out of a channel. Each result carries the number of its
/// input, to restore the order.
fn channel(problem: &Problem, tasks: usize) -> Vec<f64> {
    let (send, receive) = mpsc::channel();
    for numbered in problem.pairs.iter().enumerate() {
        send.send(numbered).expect("the receiver is there");
    }
    drop(send);
    let inputs = Critical::new(receive);
    let done: Vec<Vec<(usize, f64)>> = (0..tasks)
        .par()
        .chunking(false)
        .map(|_| {
            let mut c = problem.buffer();
            std::iter::from_fn(|| inputs.enter(|inputs| inputs.recv().ok()))
                .map(|(i, pair)| (i, product_sum(pair, problem.n, &mut c)))
                .collect()
        })
        .collect();
    let mut sums = vec![0.0; problem.pairs.len()];
    for (i, sum) in done.into_iter().flatten() {
        sums[i] = sum;
    }
    sums
}

type Variant<'w> = (String, Box<dyn FnMut(&Problem) -> Vec<f64> + 'w>);

/// All variants with their names. The sequential one is first.
fn variants<'w>(all_schedules: bool) -> Vec<Variant<'w>> {
    let mut kept = WorkerLocal::new();
    let mut variants: Vec<Variant<'w>> = vec![
        ("sequential".into(), Box::new(sequential)),
        ("allocation per item".into(), Box::new(allocation_per_item)),
        (".scratch(..)".into(), Box::new(|problem| loop_scratch(problem, Schedule::default()))),
        (".scratch_in(..)".into(), Box::new(move |problem| kept_scratch(problem, &mut kept))),
        ("Pool of 2".into(), Box::new(pool)),
        ("scratch::scope".into(), Box::new(bump_scratch)),
        (
            "channel, a task per thread".into(),
            Box::new(|problem| channel(problem, ThreadPool::global().threads())),
        ),
    ];
    if all_schedules {
        let schedules = [
            Schedule::Static(Split::Consecutive),
            Schedule::Static(Split::RoundRobin),
            Schedule::Dynamic,
            Schedule::Guided,
            Schedule::Greedy,
        ];
        for schedule in schedules {
            variants.push((
                format!(".scratch(..), {schedule:?}"),
                Box::new(move |problem| loop_scratch(problem, schedule)),
            ));
        }
    }
    variants
}

/// The measurements of one variant.
#[derive(Clone, Copy)]
struct Measured {
    least: Duration,
    /// Buffers made in the first and in the last run.
    first: usize,
    last: usize,
}

/// Runs all variants in turn, so that a disturbance of the machine affects all of them, and prints their
/// times.
fn compare(problem: &Problem, all_schedules: bool, runs: usize) {
    let mut variants = variants(all_schedules);
    let mut measured = vec![Measured { least: Duration::MAX, first: 0, last: 0 }; variants.len()];
    let expected = sequential(problem);
    for run in 0..runs {
        for ((name, variant), measured) in variants.iter_mut().zip(&mut measured) {
            let before = problem.made.load(Relaxed);
            let begun = Instant::now();
            let sums = variant(problem);
            measured.least = measured.least.min(begun.elapsed());
            measured.last = problem.made.load(Relaxed) - before;
            if run == 0 {
                measured.first = measured.last;
            }
            let same = sums.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()));
            assert!(same, "{name}: the bits differ from those of the sequential variant");
        }
    }
    let sequential = measured[0].least;
    println!("{:36} {:>9} {:>8} {:>13} {:>8}", "variant", "time", "speed-up", "buffers made", "later");
    for ((name, _), Measured { least, first, last }) in variants.iter().zip(measured) {
        let (time, speed_up) = (least.as_secs_f64() * 1e3, sequential.div_duration_f64(least));
        println!("{name:36} {time:6.1} ms {speed_up:8.2} {first:>13} {last:>8}");
    }
}
