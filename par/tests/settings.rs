//! Settings come from the program or from the environment, and wrong ones are errors. The environment belongs
//! to the whole process, so these tests run child processes, which run only `probe`.

use anabranch_par::{MAX_WORKERS, PoolError, WaitPolicy, prelude::*};
use std::process::Command;

/// Builds a pool in a child process with these environment variables. Returns its number of threads, or the
/// error.
fn probe_with(variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["probe", "--exact", "--ignored", "--nocapture"])
        .env_remove("ANABRANCH_NUM_THREADS")
        .env_remove("ANABRANCH_PIN")
        .env_remove("ANABRANCH_WAIT_POLICY")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (_, answer) = output.split_once("answer: ").expect("the probe prints an answer");
    answer.lines().next().unwrap().into()
}

#[test]
#[ignore = "the other tests run it in child processes"]
fn probe() {
    let _deadline = testing::deadline();
    let mut builder = ThreadPool::builder();
    if std::env::var_os("EXPLICIT").is_some() {
        builder = builder.threads(3).pin(false).wait_policy(WaitPolicy::Passive);
    }
    match builder.build() {
        Ok(pool) => {
            // Each worker pins itself before it does anything else, so all workers that take part in this
            // loop are pinned.
            (0..100).par().on(&pool).for_each(|_| ());
            println!("answer: {} threads", pool.threads());
        }
        Err(error) => println!("answer: {error}"),
    }
}

#[test]
fn the_number_of_threads_counts_the_caller() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::builder().threads(threads).build().unwrap();
        assert_eq!((pool.threads(), pool.workers()), (threads, threads - 1));
        let pool = ThreadPool::builder().workers(threads).build().unwrap();
        assert_eq!((pool.threads(), pool.workers()), (threads + 1, threads));
    }
}

#[test]
fn a_pool_with_no_threads_or_too_many_is_an_error() {
    let _deadline = testing::deadline();
    for (builder, number) in [
        (ThreadPool::builder().threads(0), 0),
        (ThreadPool::builder().threads(MAX_WORKERS + 2), MAX_WORKERS + 2),
        (ThreadPool::builder().workers(MAX_WORKERS + 1), MAX_WORKERS + 1),
    ] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, PoolError::Threads { asked } if asked == number), "{error}");
    }
}

#[test]
fn the_environment_sets_the_number_of_threads() {
    let _deadline = testing::deadline();
    for threads in ["1", "2", "3", "4", "8"] {
        assert_eq!(probe_with(&[("ANABRANCH_NUM_THREADS", threads)]), format!("{threads} threads"));
    }
}

#[test]
fn without_a_variable_the_pool_uses_every_processor() {
    let _deadline = testing::deadline();
    let processors = std::thread::available_parallelism().unwrap();
    assert_eq!(probe_with(&[("ANABRANCH_NUM_THREADS", "")]), format!("{processors} threads"));
    assert_eq!(probe_with(&[]), format!("{processors} threads"));
}

#[test]
fn every_allowed_value_builds_a_working_pool() {
    let _deadline = testing::deadline();
    let threads = ("ANABRANCH_NUM_THREADS", "2");
    for pin in ["0", "1", "true", "false"] {
        assert_eq!(probe_with(&[threads, ("ANABRANCH_PIN", pin)]), "2 threads");
    }
    for policy in ["spin", "adaptive", "passive"] {
        assert_eq!(probe_with(&[threads, ("ANABRANCH_WAIT_POLICY", policy)]), "2 threads");
    }
}

#[test]
fn a_wrong_value_is_an_error_that_names_the_allowed_ones() {
    let _deadline = testing::deadline();
    for wrong in ["0", "-1", "1025", "two", " 2"] {
        assert_eq!(
            probe_with(&[("ANABRANCH_NUM_THREADS", wrong)]),
            format!(
                "the environment variable ANABRANCH_NUM_THREADS is {wrong:?}; it must be a number from 1 to 1024"
            )
        );
    }
    assert_eq!(
        probe_with(&[("ANABRANCH_PIN", "yes")]),
        "the environment variable ANABRANCH_PIN is \"yes\"; it must be 0, 1, true or false"
    );
    assert_eq!(
        probe_with(&[("ANABRANCH_WAIT_POLICY", "active")]),
        "the environment variable ANABRANCH_WAIT_POLICY is \"active\"; it must be spin, adaptive or passive"
    );
}

#[test]
fn the_program_overrides_even_a_wrong_environment() {
    let _deadline = testing::deadline();
    let variables = [
        ("EXPLICIT", "1"),
        ("ANABRANCH_NUM_THREADS", "many"),
        ("ANABRANCH_PIN", "maybe"),
        ("ANABRANCH_WAIT_POLICY", "never"),
    ];
    assert_eq!(probe_with(&variables), "3 threads");
}

/// Under every wait policy, all items run before the loop returns.
#[test]
fn loops_run_all_items_under_every_wait_policy() {
    let _deadline = testing::deadline();
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    for policy in [WaitPolicy::Spin, WaitPolicy::Adaptive, WaitPolicy::Passive] {
        for threads in [1, 2, 3, 4, 8] {
            let builder = ThreadPool::builder().threads(threads).share_short_loops(true);
            let pool = builder.wait_policy(policy).build().unwrap();
            for _ in 0..20 {
                let sum = AtomicUsize::new(0);
                (0..100).par().on(&pool).for_each(|item| {
                    sum.fetch_add(item, Relaxed);
                });
                assert_eq!(sum.into_inner(), 4950);
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod idle {
    use super::*;
    use std::time::Duration;

    /// User and system time of this process's threads of this name, in clock ticks.
    fn ticks(name: &str) -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok())
            .filter(|stat| stat.contains(&format!("({name}")))
            .map(|stat| {
                let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
                fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
            })
            .sum()
    }

    #[test]
    fn a_worker_that_spins_never_sleeps() {
        let _deadline = testing::deadline();
        let pool = ThreadPool::builder().workers(1).name("spinning").wait_policy(WaitPolicy::Spin);
        let _pool = pool.build().unwrap();
        // A spinning worker uses processor time all the time.
        while ticks("spinning") < 10 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_passive_worker_sleeps_whatever_its_spin_is() {
        let _deadline = testing::deadline();
        let pool = ThreadPool::builder().workers(4).name("passive").wait_policy(WaitPolicy::Passive);
        let pool = pool.spin(Duration::from_secs(1000)).build().unwrap();
        (0..100).par().on(&pool).for_each(|_| ());
        testing::threads::wait_until_asleep("passive", 4);
    }
}
