//! Receiving on the two threads of a device: they spin for a moment before they block, because a thread that blocks takes longer to wake
//! than a small launch takes.

use std::{
    sync::mpsc::{Receiver, TryRecvError},
    thread,
    time::{Duration, Instant},
};

/// How long a thread spins. Waking it costs about as much.
const SPIN: Duration = Duration::from_micros(50);

/// The next message; `None` when no more can come.
pub(crate) fn next<T>(receiver: &Receiver<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        match receiver.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if begin.elapsed() < SPIN => thread::yield_now(),
            Err(TryRecvError::Empty) => return receiver.recv().ok(),
        }
    }
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
        let received = std::iter::from_fn(|| next(&receiver)).collect::<Vec<_>>();
        late.join().unwrap();
        assert_eq!(received, (0..20).collect::<Vec<_>>());
    }
}
