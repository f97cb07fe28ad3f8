//! On one processor no thread spins, and everything ends.
//!
//! The tests bind a thread to one processor. The pools and lanes that it builds have that processor only.

use crate::{
    Job, Lanes, ThreadPool, WaitPolicy, join,
    patience::processors,
    prelude::*,
    thread_pool::affinity::{allowed_processors, bind},
};
use std::{
    fs, iter, panic,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

const POLICIES: [WaitPolicy; 3] = [WaitPolicy::Spin, WaitPolicy::Adaptive, WaitPolicy::Passive];

/// Calls `f` on a thread that may use one processor only.
fn on_one_processor(f: impl FnOnce() + Send) {
    let alone = || {
        bind(*allowed_processors().unwrap().last().unwrap()).unwrap();
        f();
    };
    let result = thread::scope(|threads| threads.spawn(alone).join());
    result.unwrap_or_else(|payload| panic::resume_unwind(payload));
}

fn pool(threads: usize, policy: WaitPolicy) -> ThreadPool {
    ThreadPool::builder().threads(threads).wait_policy(policy).share_short_loops(true).build().unwrap()
}

#[test]
fn threads_of_one_processor_may_not_spin() {
    let _deadline = testing::deadline();
    on_one_processor(|| {
        for policy in POLICIES {
            let pool = pool(2, policy);
            assert!(!pool.state().patience.may_spin() && !pool.state().idle.may_spin(), "{policy:?}");
        }
        let lanes: Lanes = Lanes::new(1, 1, "alone-").unwrap();
        assert!(!lanes.patience().may_spin());
    });
}

#[test]
fn threads_of_many_processors_may_spin() {
    let _deadline = testing::deadline();
    let many = processors() > 1;
    for policy in POLICIES {
        let (pool, may) = (pool(2, policy), many && policy != WaitPolicy::Passive);
        assert_eq!(
            (pool.state().patience.may_spin(), pool.state().idle.may_spin()),
            (may, may),
            "{policy:?}"
        );
    }
    let lanes: Lanes = Lanes::new(1, 1, "many-").unwrap();
    assert_eq!(lanes.patience().may_spin(), many);
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

struct Answer(mpsc::Sender<usize>, usize);

impl Job for Answer {
    fn run(self: Arc<Self>) {
        self.0.send(self.1).unwrap();
    }
}

#[test]
fn everything_ends() {
    let _deadline = testing::deadline();
    on_one_processor(|| {
        for (policy, threads) in POLICIES.into_iter().flat_map(|p| [1, 2, 3, 4, 8].map(|t| (p, t))) {
            let pool = pool(threads, policy);
            let lanes: Lanes = Lanes::new(2, 4, "alone-").unwrap();
            for round in 0..20 {
                let sum: usize = (0..1000_usize).par().on(&pool).chunk_size(10).sum();
                assert_eq!(sum, 499_500);
                assert_eq!(pool.install(|| fibonacci(12)), 144);
                assert_eq!(pool.spawn(move || round).join().unwrap(), round);
                let both = pool.scope(|scope| {
                    let (one, two) = (scope.spawn(|| fibonacci(5)), scope.spawn(|| round));
                    (one.join().unwrap(), two.join().unwrap())
                });
                assert_eq!(both, (5, round));
                if threads > 1 {
                    assert_eq!(pool.spawn_on(0, move || round).unwrap().join().unwrap(), round);
                }
                let members = pool.team(threads, |member| {
                    (0..5).for_each(|_| member.barrier());
                    member.index()
                });
                assert!(members.unwrap().into_iter().eq(0..threads));
                let (sender, answers) = mpsc::channel();
                (0..10).for_each(|i| lanes.submit(Arc::new(Answer(sender.clone(), i))));
                let sum: usize = answers.iter().take(10).sum();
                assert_eq!(sum, 45);
            }
        }
    });
}

/// User and system time of the threads of this process with this name, in clock ticks.
fn ticks(name: &str) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let stat = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("stat")).ok());
    stat.filter(|stat| stat.contains(&format!("({name}")))
        .map(|stat| {
            let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
        })
        .sum()
}

/// On many processors these workers would spin until the end of the test.
#[test]
fn workers_without_work_use_no_processor_time() {
    let _deadline = testing::deadline();
    on_one_processor(|| {
        let pool = ThreadPool::builder().threads(4).name("lone-").spin(Duration::from_secs(1000));
        let pool = pool.wait_policy(WaitPolicy::Adaptive).build().unwrap();
        (0..100).par().on(&pool).for_each(|_| ());
        // On a busy machine the workers may not have begun yet, so they fall asleep later.
        let quiet = || {
            let before = ticks("lone-");
            thread::sleep(Duration::from_millis(100));
            ticks("lone-") == before
        };
        assert!(iter::repeat_with(quiet).take(50).any(|quiet| quiet));
    });
}
