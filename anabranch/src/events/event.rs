//! Events: conditions that become true once, for which threads and futures wait.

use super::waker::LeftWaker;
use crate::sync::{
    Mutex, Thread,
    atomic::{AtomicU8, Ordering::*},
    thread,
};
use anabranch_par::Patience;
use std::{
    mem,
    task::{Context, Poll},
    time::{Duration, Instant},
};

const PENDING: u8 = 0;
/// Pending, and a waiter is registered.
const AWAITED: u8 = 1;
const DONE: u8 = 2;

/// A condition that becomes true once.
#[derive(Debug, Default)]
pub(crate) struct Event {
    state: AtomicU8,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    threads: Vec<Thread>,
    /// At most one future waits for an event.
    waker: Option<LeftWaker>,
}

impl Event {
    /// Whether the event is set.
    pub(crate) fn is_set(&self) -> bool {
        // Acquire: everything before `set` is visible.
        self.state.load(Acquire) == DONE
    }

    /// Sets the event and wakes all waiters.
    pub(crate) fn set(&self) {
        if self.state.swap(DONE, AcqRel) == AWAITED {
            // A waiter that registers after this sees DONE, because it registers under the lock.
            let waiters = mem::take(&mut *self.waiters.lock());
            waiters.threads.into_iter().for_each(|t| t.unpark());
            waiters.waker.into_iter().for_each(LeftWaker::wake);
        }
    }

    /// Blocks until the event is set. Calls `help` meanwhile, which returns whether it did anything useful;
    /// the thread parks only when there was nothing to do for a while, as its `patience` says. While it is
    /// parked, it calls `watch` at intervals.
    pub(crate) fn wait(
        &self,
        patience: Patience,
        mut help: impl FnMut() -> bool,
        every: Duration,
        watch: impl FnMut(),
    ) {
        let mut now = patience;
        while !self.is_set() {
            if help() {
                now = patience;
            } else if !now.pause() {
                return self.park(every, watch);
            }
        }
    }

    fn park(&self, every: Duration, mut watch: impl FnMut()) {
        if self.register(|w| w.threads.push(thread::current())) {
            let mut since = Instant::now();
            while !self.is_set() {
                thread::park_timeout(every);
                if since.elapsed() >= every {
                    watch();
                    since = Instant::now();
                }
            }
        }
    }

    /// Polls the event for a future.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_set() {
            return Poll::Ready(());
        }
        // A waker is the program's code: it is cloned before the lock is taken, and dropped after that.
        let mut waker = Some(LeftWaker::of(context));
        let pending = self.register(|waiters| mem::swap(&mut waiters.waker, &mut waker));
        drop(waker);
        if pending { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Registers a waiter. Returns `false` if the event is set already.
    fn register(&self, register: impl FnOnce(&mut Waiters)) -> bool {
        let mut waiters = self.waiters.lock();
        match self.state.compare_exchange(PENDING, AWAITED, AcqRel, Acquire) {
            Ok(_) | Err(AWAITED) => {
                register(&mut waiters);
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{Arc, atomic::AtomicUsize},
        task::Waker,
    };

    fn wait(event: &Event, help: impl FnMut() -> bool) {
        event.wait(Patience::new(), help, Duration::from_secs(1), || {});
    }

    #[test]
    fn a_parked_thread_is_woken() {
        let _deadline = testing::deadline();
        let event = Arc::new(Event::default());
        let setter = {
            let event = Arc::clone(&event);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                event.set();
            })
        };
        wait(&event, || false);
        assert!(event.is_set());
        setter.join().unwrap();
    }

    #[test]
    fn many_waiters_and_setters_race() {
        let _deadline = testing::deadline();
        for _ in 0..500 {
            let event = Arc::new(Event::default());
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let event = Arc::clone(&event);
                    std::thread::spawn(move || wait(&event, || false))
                })
                .collect();
            event.set();
            waiters.into_iter().for_each(|w| w.join().unwrap());
        }
    }

    #[test]
    fn a_waiting_thread_helps() {
        let _deadline = testing::deadline();
        let event = Event::default();
        let mut left = 5;
        wait(&event, || {
            left -= 1;
            if left == 0 {
                event.set();
            }
            true
        });
        assert_eq!(left, 0);
    }

    #[test]
    fn a_future_is_woken_once_per_registration() {
        let _deadline = testing::deadline();
        struct Count(AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let event = Event::default();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        assert!(event.poll(&mut context).is_pending());
        assert!(event.poll(&mut context).is_pending());
        event.set();
        assert_eq!(count.0.load(Relaxed), 1);
        assert!(event.poll(&mut context).is_ready());
    }
}
