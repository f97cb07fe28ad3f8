//! How an endpoint ends.
//!
//! | how | what the other nodes see |
//! |---|---|
//! | [`finish`](Endpoint::finish) | nothing: it returns when all nodes have called it |
//! | [`abort`](Endpoint::abort), or an error that this node found | [`WireError::Aborted`], with the reason |
//! | a message that does not fit what this node expects | the same, a second later |
//! | dropped otherwise, also by a panic | [`WireError::Left`] |
//! | no poll for the timeout | [`WireError::Lost`] |

use super::{Endpoint, POST, State, header::Kind};
use crate::{MemoryMut, Pace, Place, Tag, WireError};
use std::time::{Duration, Instant};

/// How long an endpoint that ends tries to send what it has begun to send.
const FAREWELL: Duration = Duration::from_secs(2);

impl Endpoint {
    /// Ends the communication with success: waits until all transfers of this node are over and all nodes
    /// have called this.
    ///
    /// # Errors
    /// If the communication has failed or fails meanwhile.
    pub fn finish(mut self) -> Result<(), WireError> {
        let (mut events, mut pace) = (Vec::new(), Pace::new());
        let mut barrier = None;
        loop {
            if barrier.is_none() && !self.is_busy() {
                let parts = vec![Vec::new(); self.place().nodes.into()];
                barrier = Some(self.gather(Tag::FINISH, MemoryMut::empty(), &parts)?);
            }
            if barrier.is_some() && !self.is_busy() {
                break;
            }
            events.clear();
            pace.after(self.poll(&mut events)?);
        }
        if self.place().nodes > 1 {
            let successor = self.heartbeat.successor;
            self.link.control(successor, Kind::Finished, 0, &[]).map_err(|error| self.fail(error))?;
        }
        self.state = State::Finished;
        Ok(())
    }

    /// Ends the communication of all nodes: each other one gets [`WireError::Aborted`] with this reason.
    pub fn abort(mut self, why: &str) {
        if self.check_open().is_ok() {
            let node = self.place().node;
            self.fail(WireError::Aborted { node, why: why.to_owned() });
        }
    }

    /// Notes the error, and says it to the other nodes.
    pub(super) fn fail(&mut self, error: WireError) -> WireError {
        if let State::Failed(first) = &self.state {
            return first.clone();
        }
        let error = match (self.wrong.take(), error) {
            // A node may end because of what was wrong. If it gives up, it says why.
            (Some((wrong, _)), error) if !matches!(error, WireError::Aborted { .. }) => wrong,
            (_, error) => error,
        };
        self.state = State::Failed(error.clone());
        let node = self.place().node;
        match &error {
            // The others hear the same from the same node.
            WireError::Left { .. } => {}
            WireError::Aborted { node: other, .. } if *other != node => {}
            WireError::Aborted { why, .. } => self.say(Kind::Aborted, 0, why.as_bytes()),
            WireError::Lost { node, silence } => {
                let milliseconds = silence.as_millis() as u64;
                self.say(Kind::Lost, (*node).into(), &milliseconds.to_le_bytes());
            }
            other => self.say(Kind::Aborted, 0, other.to_string().as_bytes()),
        }
        error
    }

    /// Says to all other nodes why this one ends. The network may have failed, and then they hear it
    /// elsewhere.
    fn say(&mut self, kind: Kind, number: u32, payload: &[u8]) {
        let Place { node, nodes } = self.place();
        let payload = &payload[..payload.len().min(POST)];
        for other in (0..nodes).filter(|&other| other != node) {
            let _ = self.link.control(other, kind, number, payload);
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if matches!(self.state, State::Open)
            && let Some((wrong, _)) = self.wrong.take()
        {
            self.fail(wrong);
        }
        if matches!(self.state, State::Open) {
            self.say(Kind::Left, std::thread::panicking().into(), &[]);
        }
        let failed = !matches!(self.state, State::Finished);
        let (start, mut pace) = (Instant::now(), Pace::new());
        while !self.link.transport.is_flushed() && (!failed || start.elapsed() < FAREWELL) {
            self.arrivals.clear();
            if self.link.transport.poll(&mut self.arrivals).is_err() {
                break;
            }
            pace.after(false);
        }
        let place = self.place();
        let failure = match &self.state {
            State::Finished => None,
            State::Failed(error) => Some(error.clone()),
            State::Open => Some(WireError::Left { node: place.node, panicked: std::thread::panicking() }),
        };
        self.link.transport.close(failure.as_ref());
    }
}
