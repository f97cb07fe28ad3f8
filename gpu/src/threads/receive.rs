//! Receiving on the two threads of a device: they spin for a moment before they block, because a thread that
//! blocks takes longer to wake than a small launch takes.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    thread,
    time::{Duration, Instant},
};

/// How long a thread spins: longer than a program takes that launches a small kernel, waits for it, and
/// launches the next one.
pub(super) const SPIN: Duration = Duration::from_micros(200);

/// The next message; `None` when no more can come. The thread spins, and then blocks.
pub(crate) fn next<T>(receiver: &Receiver<T>) -> Option<T> {
    next_soon(receiver)?.or_else(|| receiver.recv().ok())
}

/// The same. If no message comes for this time, the thread calls `idle`, and again after the same time until
/// that returns `true`.
pub(crate) fn next_or_idle<T>(
    receiver: &Receiver<T>,
    time: Duration,
    mut idle: impl FnMut() -> bool,
) -> Option<T> {
    if let Some(message) = next_soon(receiver)? {
        return Some(message);
    }
    loop {
        match receiver.recv_timeout(time) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if idle() => return receiver.recv().ok(),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The next message if it comes while the thread spins; `None` when no more can come.
fn next_soon<T>(receiver: &Receiver<T>) -> Option<Option<T>> {
    let begin = Instant::now();
    loop {
        match receiver.try_recv() {
            Ok(message) => return Some(Some(message)),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if begin.elapsed() < SPIN => thread::yield_now(),
            Err(TryRecvError::Empty) => return Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use testing::deadline;

    #[test]
    fn messages_come_in_order_whether_early_or_late() {
        let _deadline = deadline();
        let (sender, receiver) = mpsc::channel();
        let late = thread::spawn(move || {
            for message in 0..20 {
                thread::sleep(SPIN * (message % 3));
                sender.send(message).unwrap();
            }
        });
        let received = std::iter::from_fn(|| next(&receiver)).collect::<Vec<_>>();
        late.join().unwrap();
        assert_eq!(received, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_without_messages_is_idle_until_it_has_done_what_it_does_then() {
        let _deadline = deadline();
        let (sender, receiver) = mpsc::channel();
        let mut calls = 0;
        let idle = || {
            calls += 1;
            if calls == 3 {
                // It is not called again, however long the next message takes.
                let sender = sender.clone();
                thread::spawn(move || {
                    thread::sleep(50 * SPIN);
                    sender.send('a').unwrap();
                });
            }
            calls == 3
        };
        assert_eq!(next_or_idle(&receiver, SPIN, idle), Some('a'));
        assert_eq!(calls, 3);
        sender.send('b').unwrap();
        let not_idle = || -> bool { panic!("a message is there") };
        assert_eq!(next_or_idle(&receiver, SPIN, not_idle), Some('b'));
        drop(sender);
        assert_eq!(next_or_idle(&receiver, SPIN, not_idle), None);
    }
}
