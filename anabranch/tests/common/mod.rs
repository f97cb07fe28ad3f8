//! Helpers that several test programs share.
#![allow(dead_code, reason = "each test program uses some of the helpers")]

use anabranch::prelude::*;
use parking_lot::{Condvar, Mutex};
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

pub const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

pub fn runtime(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).build().unwrap()
}

pub fn seeded(seed: u64) -> Runtime {
    Runtime::builder().threads(3).seeded(seed).build().unwrap()
}

/// Runtimes with each number of threads in `THREADS`, and five that run tasks in an order drawn from a seed.
pub fn runtimes() -> impl Iterator<Item = Runtime> {
    THREADS.into_iter().map(runtime).chain((0..5).map(seeded))
}

/// Blocks tasks until it is opened.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    pub fn pass(&self) {
        let mut open = self.0.0.lock();
        while !*open {
            let stuck = self.0.1.wait_for(&mut open, Duration::from_secs(30)).timed_out();
            assert!(!stuck || *open, "the gate was not opened within 30 seconds");
        }
    }
}

/// A minimal executor of futures.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs `test` on a thread, and fails if it takes more than a minute.
pub fn ends(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(test);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !thread.is_finished() {
        assert!(std::time::Instant::now() < deadline, "the test hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap();
}
