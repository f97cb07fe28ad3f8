//! Calls that wait, inside tasks, on all threads that take part in the work of the task.

use crate::program::{Call, Construct};
use anabranch::{Error, Fence, par, par::prelude::*, prelude::*};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Calls `f` once or several times, on threads that take part in the construct.
pub fn on_threads_of(construct: Construct, f: impl Fn() + Sync) {
    match construct {
        Construct::Task => f(),
        Construct::Loop => (0..8).par().for_each(|_| f()),
        Construct::LoopInLoop => (0..2).par().for_each(|_| (0..3).par().for_each(|_| f())),
        Construct::Join => drop(par::join(&f, &f)),
        Construct::Scope => par::scope(|s| (0..3).for_each(|_| drop(s.spawn(&f)))),
        Construct::Job => par::scope(|s| s.spawn(&f).join().expect("the call does not panic")),
    }
}

/// Whether the call, inside a task, is the error that it must be.
pub fn is_refused(rt: &Runtime, nest: &Buffer<u64, 1>, call: Call) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let error = match call {
        Call::Wait => rt.wait().err(),
        Call::Idle => match pin!(rt.idle()).poll(&mut context) {
            Poll::Ready(result) => result.err(),
            Poll::Pending => None,
        },
        Call::Fence => rt.fence(nest).and_then(Fence::wait).err(),
        Call::Barrier => rt.barrier().wait().err(),
    };
    matches!(error, Some(Error::WaitInsideTask { .. }))
}
