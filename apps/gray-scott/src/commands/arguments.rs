//! Parsers and limits that several subcommands share.

use crate::error::Error;
use anabranch::default_threads;
use std::{fmt::Display, str::FromStr};

/// The most rows or columns.
pub(crate) const MAX_SIDE: usize = 1_000_000_000;
/// The most frames or steps.
pub(crate) const MAX_COUNT: u64 = 1_000_000_000_000;
/// The most threads.
pub(crate) const MAX_THREADS: usize = 1024;

/// The number of threads to use: the requested one, or that of the environment variable
/// `ANABRANCH_NUM_THREADS`, or one for each processor. On several nodes: of each node.
pub(crate) fn threads(requested: Option<usize>) -> Result<usize, Error> {
    Ok(requested.map_or_else(default_threads, Ok)?)
}

/// A parser for whole numbers from `low` to `high`. Its error names the range.
pub(crate) fn whole<T: Number>(
    low: T,
    high: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| within(text, low, high).ok_or_else(|| format!("must be a whole number from {low} to {high}"))
}

/// A parser for real numbers from `low` to `high`. Its error names the range.
pub(crate) fn real(
    low: f32,
    high: f32,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| within(text, low, high).ok_or_else(|| format!("must be a number from {low} to {high}"))
}

/// A number that the parsers above can read, compare and print.
pub(crate) trait Number: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static {}
impl<T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static> Number for T {}

/// The number, if it is from `low` to `high`. NaN is in no range.
fn within<T: Number>(text: &str, low: T, high: T) -> Option<T> {
    text.parse().ok().filter(|value| low <= *value && *value <= high)
}
