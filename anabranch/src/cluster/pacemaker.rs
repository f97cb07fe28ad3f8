//! The thread of a node that polls the transport while transfers are under way, and sleeps otherwise.

use super::Cluster;
use anabranch_wire::Pace;
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

#[derive(Default)]
pub(super) struct Pacemaker {
    thread: Mutex<Option<JoinHandle<()>>>,
    ends: AtomicBool,
    /// Whether it sleeps, or is about to.
    sleeps: AtomicBool,
}

/// Starts the thread of this node. It polls at least once in each `interval`, to tell the other nodes that this one is alive.
pub(super) fn start(cluster: &Arc<Cluster>, interval: Option<Duration>, name: String) -> io::Result<()> {
    let shared = Arc::clone(cluster);
    let run = move || shared.pacemaker.run(&shared, interval);
    *cluster.pacemaker.thread.lock() = Some(thread::Builder::new().name(name).spawn(run)?);
    Ok(())
}

impl Pacemaker {
    fn run(&self, cluster: &Cluster, interval: Option<Duration>) {
        let mut pace = Pace::new();
        while !self.ends.load(Acquire) {
            if cluster.is_busy() {
                pace.after(cluster.poll());
                continue;
            }
            pace = Pace::new();
            cluster.poll();
            // SeqCst, here and in `wake`: either this thread sees the transfers, or the other thread sees that this one sleeps.
            self.sleeps.store(true, SeqCst);
            if !cluster.is_busy() && !self.ends.load(SeqCst) {
                match interval {
                    Some(interval) => thread::park_timeout(interval / 2),
                    None => thread::park(),
                }
            }
            self.sleeps.store(false, SeqCst);
        }
    }

    /// Wakes the thread if it sleeps: transfers have begun.
    pub(super) fn wake(&self) {
        if self.sleeps.load(SeqCst)
            && let Some(thread) = &*self.thread.lock()
        {
            thread.thread().unpark();
        }
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.ends.store(true, SeqCst);
        let thread = self.thread.lock().take();
        let Some(thread) = thread else { return };
        thread.thread().unpark();
        // The thread may be the one that ends the runtime, in the waker of a future.
        if thread.thread().id() != thread::current().id()
            && let Err(payload) = thread.join()
        {
            anabranch_par::discard_payload(payload);
        }
    }
}
