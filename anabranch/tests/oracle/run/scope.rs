//! Where steps are submitted to: a group of the runtime, or the runtime itself.

use super::results::{Numbers, Pending, once_polled};
use crate::{
    common::block_on,
    program::{WaitFor, When},
};
use anabranch::{
    Barrier, Error, Fence, Sequence, SequenceBody, Status,
    interface::{Captures, Copies, Fenceable, NewTask},
    prelude::*,
};

#[derive(Clone, Copy)]
pub struct Scope<'r> {
    pub rt: &'r Runtime,
    pub group: Option<&'r TaskGroup>,
}

impl<'r> Scope<'r> {
    pub fn task(self, name: String) -> NewTask<'r> {
        match self.group {
            None => self.rt.task(name),
            Some(group) => group.task(name),
        }
    }

    pub fn record(
        self,
        name: String,
        body: impl FnOnce(&SequenceBody<'_>) -> Result<(), Error>,
    ) -> Result<Sequence, Error> {
        match self.group {
            None => self.rt.record(name, body),
            Some(group) => group.record(name, body),
        }
    }

    pub fn wait(self, how: WaitFor) -> Result<(), Error> {
        let idle = || self.group.map_or_else(|| self.rt.idle(), TaskGroup::idle);
        match how {
            WaitFor::Wait => self.group.map_or_else(|| self.rt.wait(), TaskGroup::wait),
            WaitFor::Idle => idle().wait(),
            WaitFor::Awaited => block_on(idle()),
        }
    }

    fn fence<C: Captures<Copies>>(self, what: FenceOf<C>) -> Result<Fence<C::Output>, Error> {
        match self.group {
            None => self.rt.fence(what),
            Some(group) => group.fence(what),
        }
    }

    fn barrier_with<C: Captures<Copies>>(self, captures: C) -> Result<Barrier<C::Output>, Error> {
        match self.group {
            None => self.rt.barrier_with(captures),
            Some(group) => group.barrier_with(captures),
        }
    }
}

/// Adapts any captures to a fence.
struct FenceOf<C>(C);

impl<C: Captures<Copies>> Fenceable for FenceOf<C> {
    type Captures = C;

    fn captures(self) -> C {
        self.0
    }
}

/// Captures values by a fence or a barrier, with a callback.
pub struct CaptureBy<'r, F> {
    pub scope: Scope<'r>,
    pub barrier: bool,
    pub callback: F,
}

impl<F: FnOnce(Status) + Send + 'static> CaptureBy<'_, F> {
    pub fn all<C: Captures<Copies, Output: Numbers>>(self, captures: C) -> Result<Pending, Error> {
        let Self { scope, barrier, callback } = self;
        Ok(if barrier {
            let barrier = scope.barrier_with(captures)?;
            barrier.on_done(callback);
            Box::new(|when| match when {
                When::Now | When::Later => Some(barrier.wait().map(Numbers::numbers)),
                When::Awaited => Some(block_on(barrier).map(Numbers::numbers)),
                When::Never | When::Polled => None,
            })
        } else {
            let fence = scope.fence(FenceOf(captures))?;
            fence.on_done(callback);
            Box::new(|when| match when {
                When::Now | When::Later => Some(fence.wait().map(Numbers::numbers)),
                When::Awaited => Some(block_on(fence).map(Numbers::numbers)),
                When::Polled => {
                    once_polled(fence);
                    None
                }
                When::Never => None,
            })
        })
    }
}
