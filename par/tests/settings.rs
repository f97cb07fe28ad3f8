//! Settings: from the program, from the environment, and wrong ones. The environment belongs to the whole process, so
//! what it says is tried in child processes, which run `probe` alone.

use anabranch_par::{MAX_WORKERS, PoolError, WaitPolicy, prelude::*};
use std::process::Command;

/// Builds a pool in a child process with these environment variables; what it is, or the error.
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
#[ignore = "run in child processes by the others"]
fn probe() {
    let mut builder = ThreadPool::builder();
    if std::env::var_os("EXPLICIT").is_some() {
        builder = builder.threads(3).pin(false).wait_policy(WaitPolicy::Passive);
    }
    match builder.build() {
        Ok(pool) => {
            // Its workers bind themselves first of all, so by now those that take part have.
            (0..100).par().on(&pool).for_each(|_| ());
            println!("answer: {} threads", pool.threads());
        }
        Err(error) => println!("answer: {error}"),
    }
}

#[test]
fn the_number_of_threads_counts_the_caller() {
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::builder().threads(threads).build().unwrap();
        assert_eq!((pool.threads(), pool.workers()), (threads, threads - 1));
        let pool = ThreadPool::builder().workers(threads).build().unwrap();
        assert_eq!((pool.threads(), pool.workers()), (threads + 1, threads));
    }
}

#[test]
fn a_pool_of_no_threads_or_too_many_is_refused() {
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
    for threads in ["1", "2", "3", "4", "8"] {
        assert_eq!(probe_with(&[("ANABRANCH_NUM_THREADS", threads)]), format!("{threads} threads"));
    }
}

#[test]
fn nothing_in_the_environment_means_every_processor() {
    let processors = std::thread::available_parallelism().unwrap();
    assert_eq!(probe_with(&[("ANABRANCH_NUM_THREADS", "")]), format!("{processors} threads"));
    assert_eq!(probe_with(&[]), format!("{processors} threads"));
}

#[test]
fn every_value_that_is_allowed_builds_a_pool_that_works() {
    let threads = ("ANABRANCH_NUM_THREADS", "2");
    for pin in ["0", "1", "true", "false"] {
        assert_eq!(probe_with(&[threads, ("ANABRANCH_PIN", pin)]), "2 threads");
    }
    for policy in ["spin", "adaptive", "passive"] {
        assert_eq!(probe_with(&[threads, ("ANABRANCH_WAIT_POLICY", policy)]), "2 threads");
    }
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
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
fn the_program_overrides_the_environment_even_where_that_is_wrong() {
    let variables = [
        ("EXPLICIT", "1"),
        ("ANABRANCH_NUM_THREADS", "many"),
        ("ANABRANCH_PIN", "maybe"),
        ("ANABRANCH_WAIT_POLICY", "never"),
    ];
    assert_eq!(probe_with(&variables), "3 threads");
}

/// Whichever way threads wait: all items are run, and the opener waits for the others.
#[test]
fn regions_are_whole_under_every_policy() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    for policy in [WaitPolicy::Spin, WaitPolicy::Adaptive, WaitPolicy::Passive] {
        for threads in [1, 2, 3, 4, 8] {
            let pool = ThreadPool::builder().threads(threads).wait_policy(policy).build().unwrap();
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
        let pool = ThreadPool::builder().workers(1).name("spinning").wait_policy(WaitPolicy::Spin);
        let _pool = pool.build().unwrap();
        // It uses a processor for as long as anyone looks.
        while ticks("spinning") < 10 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_passive_worker_sleeps_whatever_its_spin_is() {
        let pool = ThreadPool::builder().workers(4).name("passive").wait_policy(WaitPolicy::Passive);
        let pool = pool.spin(Duration::from_secs(1000)).build().unwrap();
        (0..100).par().on(&pool).for_each(|_| ());
        // As long as the machine lets them not even begin, they have not come to sleep.
        let quiet = || {
            let before = ticks("passive");
            std::thread::sleep(Duration::from_millis(100));
            ticks("passive") == before
        };
        assert!((0..50).any(|_| quiet()));
    }
}
