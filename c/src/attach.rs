//! Attachments of the calling thread. They are counted; the thread leaves the runtime when the last one ends.

use crate::{anabranch_status::*, error::Failure};
use anabranch_par::foreign::{self, Attached};
use std::{cell::Cell, mem::ManuallyDrop};

/// The attachments of one thread.
struct Attachment {
    count: Cell<usize>,
    /// Present while `count` is not 0. It is never dropped when the thread ends, because the thread then
    /// leaves by itself. So the thread-local variable needs no destructor, and other destructors of the
    /// thread may still use it.
    guard: Cell<Option<ManuallyDrop<Attached>>>,
}

thread_local! {
    static ATTACHMENT: Attachment = const { Attachment { count: Cell::new(0), guard: Cell::new(None) } };
}

pub(crate) fn attach() {
    ATTACHMENT.with(|attachment| {
        if attachment.count.get() == 0 {
            attachment.guard.set(Some(ManuallyDrop::new(foreign::attach())));
        }
        attachment.count.set(attachment.count.get() + 1);
    });
}

pub(crate) fn detach() -> Result<(), Failure> {
    ATTACHMENT.with(|attachment| {
        match attachment.count.get() {
            0 => {
                let message = "this thread is not attached: each anabranch_detach ends one anabranch_attach of its thread";
                return Err(Failure::new(ANABRANCH_NOT_ATTACHED, message));
            }
            1 => detach_guard(attachment)?,
            _ => {}
        }
        attachment.count.set(attachment.count.get() - 1);
        Ok(())
    })
}

fn detach_guard(attachment: &Attachment) -> Result<(), Failure> {
    let Some(guard) = attachment.guard.take() else { return Ok(()) };
    ManuallyDrop::into_inner(guard).detach().map_err(|refused| {
        attachment.guard.set(Some(ManuallyDrop::new(refused.into_guard())));
        let message = "a thread cannot detach inside a loop or a job; detach when that has ended";
        Failure::new(ANABRANCH_STILL_INSIDE, message)
    })
}
