//! Calls that wait, inside tasks, on all threads that take part in the work of the task.

use super::witness::Witness;
use crate::program::{Call, Construct};
use anabranch::{Error, Fence, par, par::prelude::*, prelude::*};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
};

/// A call that waits, which must be refused.
pub struct InnerCall {
    pub call: Call,
    pub nest: Buffer<u64, 1>,
    pub witness: Arc<Witness>,
}

impl InnerCall {
    /// Makes the call once or several times, on threads that take part in the construct.
    pub fn make_on(&self, construct: Construct, rt: &Runtime) {
        let f = || self.make(rt);
        match construct {
            Construct::Task => f(),
            Construct::Loop => (0..8).par().for_each(|_| f()),
            Construct::LoopInLoop => (0..2).par().for_each(|_| (0..3).par().for_each(|_| f())),
            Construct::Join => drop(par::join(f, f)),
            Construct::Scope => par::scope(|s| (0..3).for_each(|_| drop(s.spawn(f)))),
            Construct::Job => par::scope(|s| s.spawn(f).join().expect("the call does not panic")),
            Construct::Callback | Construct::Waker => {}
        }
    }

    /// Makes the call here.
    pub fn make(&self, rt: &Runtime) {
        let result = self.result(rt);
        if !matches!(result, Some(Err(Error::WaitInsideTask { .. }))) {
            self.witness.note(format!("{:?} inside a task: {result:?}", self.call));
        }
    }

    /// The result of the call; `None` if it is a future that is not ready.
    fn result(&self, rt: &Runtime) -> Option<Result<(), Error>> {
        let group = || rt.group("inner");
        Some(match self.call {
            Call::Wait => rt.wait(),
            Call::Idle => return polled(rt.idle()),
            Call::Fence => rt.fence(&self.nest).and_then(Fence::wait).map(drop),
            Call::Barrier => rt.barrier().wait(),
            Call::GroupWait => group().wait(),
            Call::GroupIdle => return polled(group().idle()),
            Call::Handle => rt.task("inner").once().host(|()| ()).and_then(|task| task.wait()),
        })
    }

    /// Has the waker of a future make the call that waits for this task, if the task is not done before.
    pub fn make_in_waker(self, rt: &Arc<Runtime>, task: &mut TaskHandle) {
        // The runtime may keep the waker, which must not keep the runtime.
        let waker = Waker::from(Arc::new(Calls { call: self, rt: Arc::downgrade(rt) }));
        let _ = std::pin::Pin::new(task).poll(&mut Context::from_waker(&waker));
    }
}

fn polled(future: impl Future<Output = Result<(), Error>>) -> Option<Result<(), Error>> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// Makes the call when it is woken.
struct Calls {
    call: InnerCall,
    rt: Weak<Runtime>,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        if let Some(rt) = self.rt.upgrade() {
            self.call.make(&rt);
        }
    }
}
