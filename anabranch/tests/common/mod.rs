//! Helpers that several test programs share.
#![allow(dead_code, reason = "each test program uses some of the helpers")]

pub mod devices;
pub mod steps;

use anabranch::{local_nodes, prelude::*};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt::Debug,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
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

/// Runs a program on one runtime, and on these numbers of nodes with these numbers of threads each and with
/// delays, and compares the results of all.
pub fn same_on<R: PartialEq + Debug + Send + 'static>(
    nodes: &'static [u16],
    threads: &'static [usize],
    program: impl Fn(Runtime) -> Result<R, Error> + Send + Sync + 'static,
) {
    let expected = program(Runtime::builder().threads(2).build().unwrap()).unwrap();
    for &nodes in nodes {
        for &threads in threads {
            let seed = u64::from(nodes) * 10 + threads as u64;
            let local = local_nodes(nodes).threads(threads).delays(threads as u32 * 3, seed);
            for (node, result) in local.run(&program).into_iter().enumerate() {
                let result = result.unwrap_or_else(|error| panic!("node {node} of {nodes}: {error}"));
                assert_eq!(result, expected, "node {node} of {nodes}, {threads} threads");
            }
        }
    }
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
            self.0.1.wait(&mut open);
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
