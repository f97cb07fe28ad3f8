//! The clocks of the system.

use rustix::time::{ClockId, clock_gettime};

/// Reads a clock, in seconds.
pub fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
