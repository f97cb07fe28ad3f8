//! The memory of a simulated device, and the account of it.

use super::{counts::Counts, settings::Settings};
use crate::device::{DeviceError, DeviceMemory, Run};
use parking_lot::{Mutex, MutexGuard};
use std::{ops::Range, sync::Arc};

/// What a device has done, and what memory it has given out. There is one for each device: it says what
/// belongs to which.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Account>);

#[derive(Default)]
struct Account {
    counts: Counts,
    /// The calls so far, whether or not they were refused.
    allocations: u64,
    programs: u64,
}

impl Ledger {
    pub(super) fn counts(&self) -> Counts {
        self.0.lock().counts
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.0.lock().counts);
    }

    /// The number of the program that is being prepared.
    pub(super) fn count_program(&self) -> u64 {
        let mut account = self.0.lock();
        account.programs += 1;
        account.programs
    }

    /// Enters an allocation, or says how many bytes are in use if it is refused.
    fn enter(&self, bytes: u64, settings: &Settings) -> Result<(), u64> {
        let mut account = self.0.lock();
        account.allocations += 1;
        let is_refused = settings.refused_allocations.contains(&account.allocations);
        let counts = &mut account.counts;
        let used = counts.bytes_in_use;
        let after = used.checked_add(bytes).filter(|&after| after <= settings.memory.unwrap_or(u64::MAX));
        match after {
            Some(after) if !is_refused => {
                counts.bytes_in_use = after;
                counts.most_bytes = counts.most_bytes.max(after);
                counts.allocations += 1;
                Ok(())
            }
            _ => {
                counts.refused += 1;
                Err(used)
            }
        }
    }
}

/// An allocation: words, so that its beginning is aligned for all numbers.
pub(super) struct Block {
    bytes: u64,
    words: Mutex<Vec<u64>>,
    ledger: Arc<Ledger>,
}

impl Block {
    pub(super) fn new(bytes: u64, ledger: &Arc<Ledger>, settings: &Settings) -> Result<Self, DeviceError> {
        let device = settings.name.clone();
        if bytes > settings.largest {
            return Err(DeviceError::TooLarge { device, bytes, most: settings.largest });
        }
        let budget = settings.memory.unwrap_or(u64::MAX);
        let refused = |used| DeviceError::OutOfMemory { device, bytes, used, budget };
        if let Err(used) = ledger.enter(bytes, settings) {
            return Err(refused(used));
        }
        // From here on the destructor takes it out of the account.
        let block = Self { bytes, words: Mutex::default(), ledger: Arc::clone(ledger) };
        let count = bytes.div_ceil(8) as usize;
        {
            let mut words = block.words.lock();
            if words.try_reserve_exact(count).is_err() {
                return Err(refused(ledger.counts().bytes_in_use - bytes));
            }
            words.resize(count, 0);
        }
        Ok(block)
    }

    /// The block of a memory, if it belongs to this device.
    pub(super) fn of<'m>(memory: &'m DeviceMemory, ledger: &Arc<Ledger>) -> Result<&'m Self, String> {
        let block = memory.inner::<Self>().filter(|block| Arc::ptr_eq(&block.ledger, ledger));
        block.ok_or_else(|| "a batch uses memory of another device".into())
    }

    pub(super) fn words(&self) -> MutexGuard<'_, Vec<u64>> {
        self.words.lock()
    }

    /// The bytes of some runs, and the number of all of them.
    pub(super) fn ranges(&self, runs: &[Run]) -> Result<(Vec<Range<usize>>, usize), String> {
        let mut total = 0_usize;
        let mut range = |run: &Run| {
            let Run { offset, bytes } = *run;
            if offset % 4 != 0 || bytes % 4 != 0 {
                return Err(format!("a copy has {bytes} bytes from {offset}, which are no multiples of 4"));
            }
            let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes);
            let range = end.map(|end| offset as usize..end as usize);
            total = total.checked_add(bytes as usize).ok_or("a copy has too many bytes")?;
            range.ok_or_else(|| {
                format!("a copy has {bytes} bytes from {offset}, but the memory has {}", self.bytes)
            })
        };
        let ranges = runs.iter().map(&mut range).collect::<Result<_, _>>()?;
        Ok((ranges, total))
    }

    /// The number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let bytes = self.bytes;
        self.ledger.count(|counts| {
            counts.bytes_in_use -= bytes;
            counts.allocations -= 1;
        });
    }
}
