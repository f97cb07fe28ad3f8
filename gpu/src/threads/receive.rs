//! Receiving on the two threads of a device: they spin for a moment before they block, because a thread that blocks takes longer to wake
//! than a small launch takes.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    thread,
    time::{Duration, Instant},
};

/// How long a thread spins: longer than a program takes that launches a small kernel, waits for it, and launches the next one.
pub(super) const SPIN: Duration = Duration::from_micros(200);

/// How long a thread waits until it calls what it was given for that.
const IDLE: Duration = Duration::from_secs(1);

/// The next message; `None` when no more can come. If none comes for a while, calls `idle` once.
pub(crate) fn next<T>(receiver: &Receiver<T>, idle: impl FnOnce()) -> Option<T> {
    let begin = Instant::now();
    loop {
        match receiver.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if begin.elapsed() < SPIN => thread::yield_now(),
            Err(TryRecvError::Empty) => break,
        }
    }
    match receiver.recv_timeout(IDLE) {
        Ok(message) => return Some(message),
        Err(RecvTimeoutError::Disconnected) => return None,
        Err(RecvTimeoutError::Timeout) => idle(),
    }
    receiver.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn messages_come_in_order_whether_early_or_late() {
        let (sender, receiver) = mpsc::channel();
        let late = thread::spawn(move || {
            for message in 0..20 {
                thread::sleep(SPIN * (message % 3));
                sender.send(message).unwrap();
            }
        });
        let received = std::iter::from_fn(|| next(&receiver, || ())).collect::<Vec<_>>();
        late.join().unwrap();
        assert_eq!(received, (0..20).collect::<Vec<_>>());
    }
}
