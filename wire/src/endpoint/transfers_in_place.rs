//! Transfers in place, most of them large: whether they move by now, and how long a thread polls for them
//! without a rest.
//!
//! MPI moves a large box in fragments, and only while both nodes call it. It does not say so: until the last
//! fragment is in place, a poll has nothing to report. A thread that rests between two polls would make each
//! fragment wait for it, and for the rest of the thread on the other node. So [`poll`](super::Endpoint::poll)
//! answers *true* while transfers move.
//!
//! - A transfer moves from the moment at which the receiver takes it. The receiver reports that to the
//!   sender, which rests until then.
//! - Each transfer prolongs the time by its bytes at [`SLOWEST`], and the first by the [longest
//!   rest](Pace::LONGEST) of the other node. A network that is slower, or a node that does not answer, costs
//!   no more than that: afterwards threads rest as usual.

use crate::Pace;
use std::time::{Duration, Instant};

/// The slowest transfer that a thread polls for without a rest, in bytes per microsecond: 500 MB/s.
const SLOWEST: u64 = 500;

#[derive(Default)]
pub(super) struct TransfersInPlace {
    /// When threads rest again, if transfers move.
    until: Option<Instant>,
}

impl TransfersInPlace {
    /// A transfer begins to move.
    pub fn begin(&mut self, bytes: u64, now: Instant) {
        let until = self.until.filter(|&until| until > now).unwrap_or(now + Pace::LONGEST);
        self.until = Some(until + Duration::from_micros(bytes.div_ceil(SLOWEST)));
    }

    /// No transfer is under way.
    pub fn end(&mut self) {
        self.until = None;
    }

    /// Whether transfers have begun to move and may still do.
    pub fn is_any(&self) -> bool {
        self.until.is_some()
    }

    /// Whether a thread is to poll again without a rest.
    pub fn hurries(&mut self, now: Instant) -> bool {
        let hurries = self.until.is_some_and(|until| now < until);
        if !hurries {
            self.end();
        }
        hurries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_follows_from_the_bytes_and_ends() {
        let (mut in_place, start) = (TransfersInPlace::default(), Instant::now());
        let after = |micros| start + Duration::from_micros(micros);
        assert!(!in_place.is_any() && !in_place.hurries(start));
        in_place.begin(1_000_000, start);
        assert!(in_place.hurries(after(2_999)));
        // A second transfer shares the network with the first.
        in_place.begin(500_000, after(2_999));
        assert!(in_place.hurries(after(3_999)));
        assert!(!in_place.hurries(after(4_000)), "the network is slower, or the other node does not answer");
        assert!(!in_place.is_any());
        in_place.begin(0, after(9_000));
        in_place.end();
        assert!(!in_place.hurries(after(9_001)));
    }
}
