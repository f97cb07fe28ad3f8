//! Settings from environment variables.

use super::{
    error::{MAX_WORKERS, PoolError},
    policy::WaitPolicy,
};

/// The number of threads if the program does not set one: the value of the environment variable
/// `ANABRANCH_NUM_THREADS`, or else the number of processors that this process may use.
///
/// # Errors
/// [`PoolError::Environment`].
pub fn default_threads() -> Result<usize, PoolError> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    Ok(or_environment(None, &NUM_THREADS)?.unwrap_or_else(processors))
}

/// A setting that an environment variable can make.
pub(super) struct Variable<T> {
    name: &'static str,
    allowed: &'static str,
    parse: fn(&str) -> Option<T>,
}

pub(super) const NUM_THREADS: Variable<usize> = Variable {
    name: "ANABRANCH_NUM_THREADS",
    allowed: "a number from 1 to 1024",
    parse: |value| value.parse().ok().filter(|threads| (1..=MAX_WORKERS).contains(threads)),
};

pub(super) const PIN: Variable<bool> = Variable {
    name: "ANABRANCH_PIN",
    allowed: "0, 1, true or false",
    parse: |value| match value {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    },
};

pub(super) const WAIT_POLICY: Variable<WaitPolicy> = Variable {
    name: "ANABRANCH_WAIT_POLICY",
    allowed: "spin, adaptive or passive",
    parse: |value| match value {
        "spin" => Some(WaitPolicy::Spin),
        "adaptive" => Some(WaitPolicy::Adaptive),
        "passive" => Some(WaitPolicy::Passive),
        _ => None,
    },
};

/// The setting of the program, or else of the environment variable. The variable is not read if the program
/// has set it.
pub(super) fn or_environment<T>(set: Option<T>, variable: &Variable<T>) -> Result<Option<T>, PoolError> {
    let value = match (set, std::env::var_os(variable.name)) {
        (None, Some(value)) if !value.is_empty() => value,
        (set, _) => return Ok(set),
    };
    let Variable { name: variable, allowed, parse } = *variable;
    match value.to_str().and_then(parse) {
        Some(setting) => Ok(Some(setting)),
        None => Err(PoolError::Environment { variable, value: value.display().to_string(), allowed }),
    }
}
