//! Submitted jobs that keep the marks of the thread that submitted them.

use super::job::Job;
use crate::context::Marks;
use std::sync::Arc;

/// A job that runs with the marks of the thread that submitted it.
struct MarkedJob {
    marks: Marks,
    job: Arc<dyn Job>,
}

impl Job for MarkedJob {
    fn run(self: Arc<Self>) {
        // The queue had the only reference. The destructor of the job runs with its marks, too.
        if let Some(Self { marks, job }) = Arc::into_inner(self) {
            marks.enter(|| job.run());
        }
    }
}

/// The job itself or, if marks are set for the calling thread, one that runs it with these marks.
#[inline]
pub(super) fn with_current_marks(job: Arc<dyn Job>) -> Arc<dyn Job> {
    let marks = Marks::current();
    if marks.is_empty() { job } else { Arc::new(MarkedJob { marks, job }) }
}
