//! Where the kernels of a program run.

use super::{Compute, Op, RANKS, ReadPattern, Reduction, Setup, WritePattern};
use anabranch::prelude::*;

/// Where a recorded kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Host,
    Device(usize),
}

impl Place {
    /// The place on this node of a kernel with this number. `None` on one node for the host.
    fn of(number: usize, setup: &Setup, node: u16) -> Option<Self> {
        // One place more than devices: the host.
        let place = (number + usize::from(node)) % (setup.devices + 1);
        match place < setup.devices {
            true => Some(Self::Device(place)),
            false => setup.nodes.is_some().then_some(Self::Host),
        }
    }

    /// The number of the device.
    pub fn device(self) -> Option<usize> {
        match self {
            Self::Host => None,
            Self::Device(number) => Some(number),
        }
    }
}

impl Compute {
    /// Where the kernel runs on this node, if a recorded kernel computes its values, from a buffer with this
    /// box. `None` if none does, and on one node for the host.
    pub fn place_recorded(&self, setup: &Setup, node: u16, from: &GridBox<3>) -> Option<Place> {
        let is_recorded = (self.write_pattern, self.fail) == (WritePattern::Same, None);
        if setup.devices == 0
            || self.place.is_multiple_of(4)
            || !(is_recorded && self.recorded_radius().is_some() && from.contains(&self.target))
        {
            return None;
        }
        Place::of(self.place / 4, setup, node)
    }

    /// As [`place_recorded`](Self::place_recorded), for a kernel of a sequence. With devices, a replay is many
    /// tasks: not all of them fail or are skipped together.
    pub fn place_in_sequence(&self, setup: &Setup, node: u16, from: &GridBox<3>) -> Option<Place> {
        self.place_recorded(setup, node, from).filter(|_| setup.all_succeed())
    }

    /// How far a recorded kernel reads around each point, if one can read these elements.
    pub fn recorded_radius(&self) -> Option<usize> {
        let rank = RANKS[self.to];
        let radius = match self.read_pattern {
            ReadPattern::Same => 0,
            // `computed` takes some of the elements of larger boxes, which depend on where the buffer ends.
            ReadPattern::Box(radius) if (2 * radius + 1).pow(rank as u32) < 12 => radius,
            _ => return None,
        };
        (rank == RANKS[self.from] && (1..=2).contains(&rank)).then_some(radius)
    }
}

impl Reduction {
    /// Where the kernel runs on this node, if a recorded kernel computes its values, from a buffer with this
    /// box. `None` if none does, and on one node for the host. Its tree is another one than that of a kernel,
    /// and the sum of integers is the same in both.
    pub fn place_recorded(&self, setup: &Setup, node: u16, from: &GridBox<3>) -> Option<Place> {
        let is_recorded = RANKS[self.to] == 0 && matches!(self.op, Op::Sum) && !self.fail;
        if setup.devices == 0
            || setup.faults.is_some()
            || self.place.is_multiple_of(4)
            || !(is_recorded && from.contains(&self.space))
        {
            return None;
        }
        Place::of(self.place / 4, setup, node)
    }
}
