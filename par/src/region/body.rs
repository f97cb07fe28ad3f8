//! The work of a region, as its opener defines it and as the threads that join see it.

use super::claims::{Claimer, Counters, Partition};
use crate::context::Context;
use std::ptr;

/// The work of the participants of a region. It lives in the frame of the thread that opens the region.
///
/// A panic must not leave `participate`: it would reach a thread that has nothing to do with it.
pub(crate) trait RegionBody: Sync {
    /// Takes part until no unit is left to claim.
    fn participate(&self, claimer: &mut Claimer<'_>);
}

/// A [`RegionBody`] with its type erased, and everything else that a joining thread needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErasedBody {
    body: *const (),
    participate: unsafe fn(*const (), &mut Claimer<'_>),
    partition: Partition,
    /// The opener and all threads that may join.
    pub(super) participants: u32,
    /// Whether participants flush denormal numbers.
    pub(super) flush: bool,
    /// The context of the opener, which waits for the participants.
    pub(super) context: Context,
}

// SAFETY: `body` points to a `RegionBody`, which is `Sync`.
unsafe impl Send for ErasedBody {}
// SAFETY: as above.
unsafe impl Sync for ErasedBody {}

/// Takes part in the work of a body.
///
/// # Safety
/// `body` must point to a `B` that lives until this returns.
unsafe fn participate<B: RegionBody>(body: *const (), claimer: &mut Claimer<'_>) {
    // SAFETY: the caller vouches for the type and for the life of the body.
    unsafe { &*body.cast::<B>() }.participate(claimer);
}

impl ErasedBody {
    /// A number for the code of a body. Bodies of two types may have the same one if their code is the same.
    pub(super) fn code<B: RegionBody>() -> usize {
        participate::<B> as *const () as usize
    }

    pub(super) fn new<B: RegionBody>(
        body: &B,
        partition: Partition,
        participants: usize,
        flush: bool,
        context: Context,
    ) -> Self {
        Self {
            body: ptr::from_ref(body).cast(),
            participate: participate::<B>,
            partition,
            participants: participants as u32,
            flush,
            context,
        }
    }

    /// Whether a unit is left that no participant has claimed (a hint).
    pub(super) fn has_unclaimed(&self, counters: &Counters) -> bool {
        counters.has_unclaimed(&self.partition)
    }

    /// Takes part until no unit is left to claim.
    ///
    /// # Safety
    /// The calling thread must be counted as inside the region.
    pub(super) unsafe fn participate(self, counters: &Counters, own_block: usize) {
        // SAFETY: the opener keeps the body alive until every participant has left.
        unsafe { (self.participate)(self.body, &mut Claimer::new(self.partition, counters, own_block)) };
    }
}
