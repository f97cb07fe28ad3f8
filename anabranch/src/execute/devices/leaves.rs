//! The reductions of a launch on one of several nodes.
//!
//! A device leaves the results of the [leaves](anabranch_kernel::Leaves) of its points in memory that the
//! launch has for itself. The same batch copies them to the host. There they are combined as far as they form
//! subtrees, as the results of threads are, and the nodes exchange these partial results. So no node copies
//! the number that it reduces to, and the task has ended when its partial results are on the host.

use crate::device::{Device, DeviceError, DeviceMemory, DeviceStep, Download, Run};
use parking_lot::Mutex;
use std::sync::Arc;

/// What gets the results of leaves on the host.
pub(crate) trait LeavesOnHost: Send {
    /// The number of results that an operand gets, and the bytes of each; `None` if it is no reduction.
    fn results(&self, operand: usize) -> Option<[usize; 2]>;

    /// Takes the results for an operand.
    fn put(&self, operand: usize, results: &[u8]);

    /// Combines the results, which all operands have.
    fn combine(&self);
}

/// The results of a launch that the device copies to the host.
#[derive(Default)]
pub(super) struct Landings(Vec<Landing>);

struct Landing {
    /// The name of the device.
    device: String,
    operand: usize,
    /// The results, which the device may write after the task has ended: so this is not memory of the task.
    results: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Landings {
    /// The copy of the results for an operand.
    pub(super) fn download(
        &mut self,
        device: &dyn Device,
        operand: usize,
        from: &DeviceMemory,
        bytes: usize,
    ) -> DeviceStep {
        let (device, results) = (device.info().name.clone(), Arc::<Mutex<_>>::default());
        let taken = Arc::clone(&results);
        self.0.push(Landing { device, operand, results });
        let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| {
            let mut results = vec![0; bytes];
            get(&mut results);
            *taken.lock() = Some(results);
        });
        let runs = vec![Run { offset: 0, bytes: bytes as u64 }];
        DeviceStep::Download(Download { from: from.clone(), runs, take })
    }

    /// Combines the results when the device says that it has done the batch.
    ///
    /// # Errors
    /// If it has not copied all of them.
    pub(super) fn land(self, leaves: &dyn LeavesOnHost) -> Result<(), DeviceError> {
        for Landing { device, operand, results } in self.0 {
            let why = "it says that a copy of results is done, and has not made it";
            let results =
                results.lock().take().ok_or_else(|| DeviceError::Failed { device, why: why.into() })?;
            leaves.put(operand, &results);
        }
        leaves.combine();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Simulated;
    use testing::deadline;

    /// What [`LeavesOnHost`] has been given.
    #[derive(Default)]
    struct Noted(Mutex<(Vec<u8>, bool)>);

    impl LeavesOnHost for Noted {
        fn results(&self, _: usize) -> Option<[usize; 2]> {
            Some([2, 4])
        }

        fn put(&self, _: usize, results: &[u8]) {
            self.0.lock().0.extend_from_slice(results);
        }

        fn combine(&self) {
            self.0.lock().1 = true;
        }
    }

    /// What comes of results that a device says it has copied. It may have forgotten the second copy.
    fn landed(forgets: bool) -> (Result<(), DeviceError>, (Vec<u8>, bool)) {
        let (device, noted, mut landings) = (Simulated::new(), Noted::default(), Landings::default());
        let memory = device.allocate(8).unwrap();
        for (operand, forgets) in [false, forgets].into_iter().enumerate() {
            let DeviceStep::Download(download) = landings.download(&device, operand, &memory, 8) else {
                panic!("it is a copy to the host")
            };
            if !forgets {
                (download.take)(&mut |bytes| bytes.fill(operand as u8 + 1));
            }
        }
        (landings.land(&noted), noted.0.into_inner())
    }

    #[test]
    fn results_are_combined_when_all_of_them_are_there() {
        let _deadline = deadline();
        assert_eq!(landed(false), (Ok(()), ([[1; 8], [2; 8]].concat(), true)));
        let (result, (_, is_combined)) = landed(true);
        assert!(result.unwrap_err().to_string().contains("has not made it") && !is_combined);
    }
}
