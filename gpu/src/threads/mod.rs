//! The two threads of a device, and what they share.

pub(crate) mod complete;
pub(crate) mod encode;
pub(crate) mod group;
mod prepare;
pub(crate) mod receive;
pub(crate) mod shared;

use anabranch::device::Timeline;
use std::thread;

/// Loses the device if its thread panics, so that nothing waits for it without end.
pub(crate) struct LosesOnPanic<'a>(pub(crate) &'a Timeline);

impl Drop for LosesOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lose("its thread has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    #[test]
    fn a_thread_that_panics_loses_the_device_and_what_waits_gets_the_error() {
        let _deadline = deadline();
        let timeline = Timeline::new("a GPU");
        let value = timeline.begin();
        thread::scope(|scope| {
            let ended = scope.spawn(|| drop(LosesOnPanic(&timeline))).join();
            assert!(ended.is_ok() && timeline.is_lost().is_none());
            let panicked = scope.spawn(|| {
                let _loses = LosesOnPanic(&timeline);
                panic!("on purpose");
            });
            assert!(panicked.join().is_err());
        });
        let error = timeline.wait(value, || ()).unwrap_err().to_string();
        assert!(error.contains("its thread has panicked"), "{error}");
    }
}
