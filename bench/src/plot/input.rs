//! Reads the figures of a run from what this program writes.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use crate::{harness::Failure, machine::Setting, report::Entry};

/// The figures to draw: the array that `--json` writes, the record of the repository, or the newest run of a
/// history.
#[derive(Deserialize)]
pub struct Run {
    /// The circumstances. The array does not have them.
    pub setting: Option<Setting>,
    /// The figures of at least one row.
    pub rows: Vec<Entry>,
}

impl Run {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read, is not a run of this program, or has no figures.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let help = "`bench NAME… --json FILE` writes figures to a file";
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read the figures {shown}: {error}; {help}"))?;
        let run = Self::parse(&text)
            .map_err(|error| format!("{shown} is not a run of this program: {error}; {help}"))?;
        match run {
            Some(run) if !run.rows.is_empty() => Ok(run),
            _ => Err(format!("{shown} has no figures: no row was measured; {help}").into()),
        }
    }

    /// Reads one value after the other, and returns the last one.
    fn parse(text: &str) -> serde_json::Result<Option<Self>> {
        let mut last = None;
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            let value = value?;
            last = Some(match value.is_array() {
                true => Self { setting: None, rows: serde_json::from_value(value)? },
                false => serde_json::from_value(value)?,
            });
        }
        Ok(last)
    }
}
