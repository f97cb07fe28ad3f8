//! When a simulated device is slow, refuses, fails or is lost.

use crate::device::{DeviceInfo, DeviceKind};
use std::{collections::BTreeSet, time::Duration};

/// The largest allocation that the host permits.
const LARGEST: u64 = isize::MAX as u64;

/// Settings of a [`Simulated`](super::Simulated) device. Allocations, programs and batches are counted
/// from 1.
///
/// ```
/// use anabranch::device::{Device, DeviceError, Simulated};
///
/// let device = Simulated::builder().named("small").memory(100).build();
/// let first = device.allocate(80)?;
/// let refused = device.allocate(40).unwrap_err();
/// assert_eq!(refused.to_string(), "the device small has no memory left for 40 bytes: 80 of 100 bytes are in use");
/// drop(first);
/// assert!(device.allocate(40).is_ok());
/// # Ok::<(), DeviceError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SimulatedBuilder(pub(super) Settings);

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) memory: Option<u64>,
    pub(super) largest: u64,
    pub(super) seed: u64,
    /// The longest delay before a step.
    pub(super) longest_delay: Duration,
    pub(super) refused_allocations: BTreeSet<u64>,
    pub(super) refused_programs: BTreeSet<u64>,
    pub(super) failing_batches: BTreeSet<u64>,
    pub(super) lost_after: Option<u64>,
}

impl Settings {
    pub(super) fn info(&self) -> DeviceInfo {
        DeviceInfo {
            name: self.name.clone(),
            kind: DeviceKind::Simulated,
            memory: self.memory,
            largest_buffer: self.largest,
            has_f64: true,
            has_i64: true,
        }
    }
}

impl Default for SimulatedBuilder {
    fn default() -> Self {
        Self(Settings {
            name: "simulated".into(),
            memory: None,
            largest: LARGEST,
            seed: 0,
            longest_delay: Duration::ZERO,
            refused_allocations: BTreeSet::new(),
            refused_programs: BTreeSet::new(),
            failing_batches: BTreeSet::new(),
            lost_after: None,
        })
    }
}

impl SimulatedBuilder {
    /// The name of the device. Without this it is `simulated`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// The device waits before each step, for a random time below `longest`. The seed determines these times.
    pub fn delays(mut self, seed: u64, longest: Duration) -> Self {
        (self.0.seed, self.0.longest_delay) = (seed, longest);
        self
    }

    /// The bytes that allocations may take together.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.0.memory = Some(bytes);
        self
    }

    /// The bytes that one allocation may take.
    pub fn largest_buffer(mut self, bytes: u64) -> Self {
        self.0.largest = bytes.min(LARGEST);
        self
    }

    /// The device refuses its `n`th allocation, as if it had no memory left. Several calls refuse several
    /// allocations.
    pub fn refuse_allocation(mut self, n: u64) -> Self {
        self.0.refused_allocations.insert(n);
        self
    }

    /// The device cannot run the `n`th recording that it gets. Several calls refuse several recordings.
    pub fn refuse_program(mut self, n: u64) -> Self {
        self.0.refused_programs.insert(n);
        self
    }

    /// Batch `n` fails, and does nothing of what it should. Several calls fail several batches.
    pub fn fail_batch(mut self, n: u64) -> Self {
        self.0.failing_batches.insert(n);
        self
    }

    /// The device does `n` batches. When it comes to the next one, it is lost.
    pub fn lose_after(mut self, n: u64) -> Self {
        self.0.lost_after = Some(n);
        self
    }
}
