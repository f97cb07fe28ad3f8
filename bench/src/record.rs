//! The recorded figures (`figures.json`), and the documents that show them.
//!
//! `--record` measures rows and replaces their figures in the record. The tables of the [`DOCUMENTS`] are
//! written from the record alone, so that no figure is ever typed by hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{harness::Failure, machine::Setting, markdown, report::Entry, row::Row, select};

/// The documents with figures, seen from the root of the repository.
const DOCUMENTS: [&str; 3] = ["README.md", "bench/README.md", "par/README.md"];
const RECORD: &str = "bench/figures.json";

/// The root of the repository that this program was built from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Figures that were measured under the same circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    setting: Setting,
    /// The names of rows that were added on another machine than that of the record, and wait for their
    /// figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<String>,
    rows: Vec<Entry>,
}

impl Record {
    /// Reads the record of the repository.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a record.
    pub fn load() -> Result<Self, Failure> {
        let path = root().join(RECORD);
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("cannot read the recorded figures, {}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| {
            format!("{} is not a record of figures: {error}; record `all`", path.display()).into()
        })
    }

    /// The record to which new figures of the rows `chosen` are [added](Self::add): without the old figures
    /// of these rows.
    ///
    /// # Errors
    /// If other rows were measured under other circumstances.
    pub fn without(rows: &[Row], chosen: &[usize], setting: &Setting) -> Result<Self, Failure> {
        if chosen.len() == rows.len() {
            return Ok(Self { setting: setting.clone(), waiting: Vec::new(), rows: Vec::new() });
        }
        let mut record = Self::load()?;
        record.check(setting)?;
        record.rows.retain(|entry| !chosen.iter().any(|&row| rows[row].name == entry.name));
        Ok(record)
    }

    fn check(&self, setting: &Setting) -> Result<(), Failure> {
        if self.setting == *setting {
            return Ok(());
        }
        let (recorded, here) = (self.setting.sentence(), setting.sentence());
        Err(format!(
            "the figures of the other rows were not taken as here: record `all`\n  {recorded}\n  {here}"
        )
        .into())
    }

    /// Adds figures.
    pub fn add(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.rows.extend(entries);
    }

    /// Writes the record and all documents. Both have the rows in the order of `rows`; figures of rows that
    /// are not among them are dropped.
    ///
    /// # Errors
    /// If a document has a place for rows that do not exist, or a file cannot be read or written.
    pub fn write(mut self, rows: &[Row]) -> Result<(), Failure> {
        let place = |entry: &Entry| rows.iter().position(|row| row.name == entry.name);
        self.rows.retain(|entry| place(entry).is_some());
        self.rows.sort_by_key(place);
        self.waiting.retain(|name| {
            rows.iter().any(|row| row.name == *name) && !self.rows.iter().any(|entry| entry.name == *name)
        });
        for entry in &mut self.rows {
            // A bar may have changed since the row was measured.
            let row = place(entry).map(|row| &rows[row]);
            row.into_iter().for_each(|row| entry.judge(row));
        }
        let text = serde_json::to_string_pretty(&self).expect("finite figures can be written as JSON") + "\n";
        write(&root().join(RECORD), &text)?;
        for name in DOCUMENTS {
            let path = root().join(name);
            write(&path, &self.filled(&path, rows)?)?;
        }
        Ok(())
    }

    /// The document with the recorded figures at its places.
    fn filled(&self, path: &Path, rows: &[Row]) -> Result<String, Failure> {
        let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let document = fs::read_to_string(path).map_err(|error| at(&error))?;
        let filled = markdown::fill(&document, |words| match words {
            [machine] if machine == "machine" => Ok(self.setting.sentence() + "\n"),
            words => self.table(words, rows),
        });
        filled.map_err(|error| at(&error).into())
    }

    /// The table of the rows that `words` select.
    fn table(&self, words: &[String], rows: &[Row]) -> Result<String, Failure> {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let mut lines = Vec::new();
        for row in select::select(&names, words)? {
            let row = &rows[row];
            let entry = self.rows.iter().find(|entry| entry.name == row.name);
            lines.push((&*row.name, row.about, entry));
        }
        Ok(markdown::table(lines))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{harness::Context, rows};

    #[test]
    fn the_documents_show_the_recorded_figures() {
        let (record, rows) = (Record::load().unwrap(), rows::all());
        for name in DOCUMENTS {
            let path = root().join(name);
            let filled = record.filled(&path, &rows).unwrap();
            let differs = "is not what `cargo run --release -p bench -- documents` writes";
            assert!(fs::read_to_string(&path).unwrap() == filled, "{name} {differs}");
        }
    }

    #[test]
    fn the_record_has_rows_of_the_program_in_their_order() {
        let Record { waiting, rows: recorded, .. } = Record::load().unwrap();
        let recorded: Vec<String> = recorded.into_iter().map(|entry| entry.name).collect();
        let mut rows = rows::all();
        for name in &waiting {
            assert!(rows.iter().any(|row| row.name == *name), "no row {name} waits for its figures");
            assert!(!recorded.contains(name), "{name} has its figures");
        }
        rows.retain(|row| {
            recorded.contains(&row.name) || (row.is_always_recorded() && !waiting.contains(&row.name))
        });
        let rows: Vec<String> = rows.into_iter().map(|row| row.name).collect();
        assert_eq!(
            recorded, rows,
            "`bench NAME --record` measures a new row, or it is `waiting`; `bench documents` drops old ones"
        );
    }

    #[test]
    fn figures_of_another_machine_are_not_mixed_in() {
        let setting = |threads| Setting::here(&Context { threads, smoke: false, peers: true });
        let record = Record { setting: setting(2), waiting: Vec::new(), rows: Vec::new() };
        assert!(record.check(&setting(2)).is_ok());
        let error = record.check(&setting(3)).unwrap_err().to_string();
        assert!(error.contains("record `all`") && error.contains("3 threads"), "{error}");
    }
}
