//! The heartbeat: the nodes are a ring, and each node checks that messages of its predecessor arrive.
//!
//! A stopped process is invisible to MPI: a receive from it is simply not done. So each node sends a *beat*
//! to its successor at least every eighth of the timeout. A node that has received no message of its
//! predecessor for the timeout reports it to all others as lost.

use crate::Place;
use std::time::{Duration, Instant};

pub(super) struct Heartbeat {
    timeout: Option<Duration>,
    pub predecessor: u16,
    pub successor: u16,
    heard: Instant,
    sent: Instant,
    polled: Instant,
}

/// What is due.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    Beat,
    /// The predecessor is lost, after this time.
    Lost(Duration),
}

impl Heartbeat {
    pub fn new(place: Place, timeout: Option<Duration>, now: Instant) -> Self {
        let Place { node, nodes } = place;
        let predecessor = if node == 0 { nodes - 1 } else { node - 1 };
        let successor = if node + 1 == nodes { 0 } else { node + 1 };
        let timeout = timeout.filter(|_| nodes > 1);
        Self { timeout, predecessor, successor, heard: now, sent: now, polled: now }
    }

    /// How often the endpoint must be polled, at least.
    pub fn interval(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout / 8)
    }

    /// A message of the predecessor has arrived.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The predecessor has finished: it may be silent.
    pub fn forget(&mut self) {
        self.timeout = None;
    }

    pub fn is_watching(&self) -> bool {
        self.timeout.is_some()
    }

    /// To be called after all messages that have arrived were read.
    pub fn due(&mut self, now: Instant) -> Due {
        let Some(timeout) = self.timeout else { return Due::Nothing };
        let away = now.saturating_duration_since(self.polled);
        self.polled = now;
        if away > timeout / 2 {
            // This process was stopped itself, or did not poll: the others were perhaps stopped together with
            // it.
            self.heard = now;
        }
        let silence = now.saturating_duration_since(self.heard);
        if silence > timeout {
            return Due::Lost(silence);
        }
        if now.saturating_duration_since(self.sent) >= timeout / 8 {
            self.sent = now;
            return Due::Beat;
        }
        Due::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_predecessor_is_lost_and_a_node_that_was_away_waits_anew() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(Place { node: 0, nodes: 3 }, Some(8 * second), start);
        assert_eq!((heartbeat.predecessor, heartbeat.successor), (2, 1));
        assert_eq!(heartbeat.due(start), Due::Nothing);
        assert_eq!(heartbeat.due(start + second), Due::Beat);
        heartbeat.heard(start + 3 * second);
        assert_eq!(heartbeat.due(start + 4 * second), Due::Beat);
        for step in 5..=11 {
            assert_eq!(heartbeat.due(start + step * second), Due::Beat);
        }
        assert_eq!(heartbeat.due(start + 12 * second), Due::Lost(9 * second));
        assert_eq!(heartbeat.due(start + 100 * second), Due::Beat, "the node itself was away");
        for step in 101..=108 {
            assert_eq!(heartbeat.due(start + step * second), Due::Beat);
        }
        assert_eq!(heartbeat.due(start + 109 * second), Due::Lost(9 * second));
    }

    #[test]
    fn a_node_alone_watches_nothing() {
        let heartbeat =
            Heartbeat::new(Place { node: 0, nodes: 1 }, Some(Duration::from_secs(1)), Instant::now());
        assert!(!heartbeat.is_watching());
    }
}
