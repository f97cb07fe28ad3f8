//! Sweeps on a device: each step is a launch, and the device has the next ones while it works on the first.

use super::times::{Accounts, Computing};
use crate::{error::Error, kernel::DeviceStepper};
use anabranch::prelude::*;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// The largest number of steps of a sweep. The main thread looks at the interruption and the pace between sweeps.
pub(super) const STEPS: u64 = 16;

/// What advances the grid on a device.
pub(super) struct OnDevice {
    pub(super) stepper: DeviceStepper,
    sweeps: Arc<Mutex<Sweeps>>,
}

/// The sweeps in flight, which end in the order of their submission. The time counts as computing while there is one.
struct Sweeps {
    accounts: Accounts,
    first: Option<Computing>,
    /// The updates of those behind it.
    others: VecDeque<u64>,
}

impl OnDevice {
    pub(super) fn new(stepper: DeviceStepper, accounts: &Accounts) -> Self {
        let sweeps = Sweeps { accounts: accounts.clone(), first: None, others: VecDeque::new() };
        Self { stepper, sweeps: Arc::new(Mutex::new(sweeps)) }
    }

    /// Counts a sweep of this many updates from now on, or from the end of the sweep before it, until `last`, its last step, ends.
    pub(super) fn count(&self, updates: u64, last: &TaskHandle) {
        self.sweeps.lock().begin(updates);
        let sweeps = Arc::clone(&self.sweeps);
        last.on_done(move |_| sweeps.lock().end());
    }
}

impl Sweeps {
    fn begin(&mut self, updates: u64) {
        match self.first {
            None => self.first = Some(self.accounts.computing(updates)),
            Some(_) => self.others.push_back(updates),
        }
    }

    fn end(&mut self) {
        let next = self.others.pop_front().map(|updates| self.accounts.computing(updates));
        // The one that has ended is dropped after the next one has begun: no moment is between them.
        self.first = next;
    }
}

/// Submits the steps of a sweep with `step`, which gets the number of steps that are left after it.
pub(super) fn sweep(
    steps: u64,
    mut step: impl FnMut(u64) -> Result<TaskHandle, Error>,
) -> Result<Option<TaskHandle>, Error> {
    let mut last = None;
    for left in (0..steps).rev() {
        last = Some(step(left)?);
    }
    Ok(last)
}
