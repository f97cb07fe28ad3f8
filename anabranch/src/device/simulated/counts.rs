//! What a simulated device counts.

/// What a simulated device has done, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The uploads.
    pub uploads: u64,
    /// The downloads.
    pub downloads: u64,
    /// The launches.
    pub launches: u64,
    /// The bytes that uploads have set.
    pub bytes_up: u64,
    /// The bytes that downloads have taken.
    pub bytes_down: u64,
    /// The allocations that are not free again.
    pub allocations: u64,
    /// The bytes of these allocations.
    pub bytes_in_use: u64,
    /// The most bytes that were in use at one time.
    pub most_bytes: u64,
    /// The allocations that were refused.
    pub refused: u64,
    /// The batches that have failed. Those of a lost device do not count.
    pub failed: u64,
}
