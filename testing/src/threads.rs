//! What the threads of a test do.

use std::{fs, thread, time::Duration};

/// How many looks in a row must find the threads asleep.
const LOOKS: usize = 20;

/// Waits until this process has at least this number of threads whose names begin with `name`, and all of
/// them are asleep, in each of several looks in a row. A thread that spins or yields is never asleep, on
/// however busy a machine: a test that waits for it ends with its deadline. A new thread has its name only
/// when it runs for the first time, which may be long after it was spawned.
pub fn wait_until_asleep(name: &str, threads: usize) {
    let mut asleep = 0;
    while asleep < LOOKS {
        thread::sleep(Duration::from_millis(1));
        asleep = if are_asleep(name, threads) { asleep + 1 } else { 0 };
    }
}

/// The number of threads of this process whose names begin with `name`. The list of threads that the system
/// gives ends early if an older one of them ends while it is read (seen once in some 4,000 times beside
/// threads that end). So this is the largest of several counts.
pub fn count(name: &str) -> usize {
    (0..LOOKS).map(|_| listed(name)).max().unwrap_or_default()
}

fn listed(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("a list of the threads");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

fn are_asleep(name: &str, threads: usize) -> bool {
    let tasks = fs::read_dir("/proc/self/task").expect("a list of the threads");
    // A thread may end before its file is read.
    let stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    // The number of the thread, its name in parentheses, its state.
    let named: Vec<_> = stats.filter(|stat| stat.contains(&format!("({name}"))).collect();
    named.len() >= threads
        && named.iter().all(|stat| stat.rsplit(')').next().is_some_and(|state| state.starts_with(" S")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    /// Calls `look` while a thread with this name calls `wait` again and again.
    fn beside(name: &str, wait: fn(), look: impl FnOnce()) {
        let (end, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
        let (ends, begins) = (Arc::clone(&end), Arc::clone(&begun));
        let run = move || {
            begins.wait();
            while !ends.load(Relaxed) {
                wait();
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run).unwrap();
        begun.wait();
        look();
        end.store(true, Relaxed);
        thread.thread().unpark();
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_yields_is_not_asleep() {
        let _deadline = crate::deadline();
        beside("yields", thread::yield_now, || {
            // Until it has left the barrier it may be asleep there.
            while are_asleep("yields", 1) {
                thread::yield_now();
            }
            for _ in 0..50 {
                thread::sleep(Duration::from_millis(1));
                assert!(!are_asleep("yields", 1));
            }
        });
    }

    #[test]
    fn threads_that_have_no_name_yet_are_waited_for() {
        let _deadline = crate::deadline();
        assert!(!are_asleep("nobody", 1));
        beside("early", thread::park, || {
            wait_until_asleep("early", 1);
            assert!(!are_asleep("early", 2), "a second thread has yet to begin");
        });
    }

    #[test]
    fn a_thread_that_is_parked_is_asleep() {
        let _deadline = crate::deadline();
        beside("parks", thread::park, || wait_until_asleep("parks", 1));
    }
}
