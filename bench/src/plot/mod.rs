//! Pictures of a run: an SVG for each group of rows, and a page that shows them.
//!
//! ```text
//! cargo run --release -p bench -- all --json figures.json
//! cargo run --release -p bench -- plot figures.json --output plots
//! ```
//!
//! [`input`] reads the figures, and [`picture`] and [`task_bench`] arrange them in panels with a [`scale`]
//! and [`colours`]. [`draw`] draws the panels and their [`marks`] where [`places`] says, and [`page`] writes
//! the page. The rows of a group have the same word before the first `/` of their names.

mod colours;
mod draw;
mod input;
mod marks;
mod page;
mod picture;
mod places;
mod scale;
mod task_bench;

use std::{fs, path::Path};

use crate::{harness::Failure, report::Entry};
use input::Run;
use picture::Picture;

/// Rows that share a picture, in the order of the run.
struct Group {
    name: String,
    rows: Vec<Entry>,
}

impl Group {
    fn file_name(&self) -> String {
        format!("{}.svg", self.name)
    }

    fn picture(&self) -> Picture {
        match self.name.as_str() {
            task_bench::GROUP => task_bench::picture(&self.rows),
            name => picture::of_lines(name, &self.rows),
        }
    }
}

/// Draws the figures of `file` into `folder`, and returns a line that says where they are.
///
/// # Errors
/// If the file cannot be read, is not a run of this program or has no figures, or if the folder cannot be
/// written.
pub fn plot(file: &Path, folder: &Path) -> Result<String, Failure> {
    let run = Run::load(file)?;
    let count = run.rows.len();
    let groups = groups(run.rows);
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    for group in &groups {
        write(&folder.join(group.file_name()), &draw::svg(&group.picture())?)?;
    }
    let page = folder.join("index.html");
    write(&page, &page::html(file, run.setting.as_ref(), &groups))?;
    Ok(format!("{} pictures of {count} rows: open {}\n", groups.len(), page.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    format!("cannot write {}: {error}; `--output FOLDER` names another folder", path.display()).into()
}

/// The groups of the rows, in the order in which they appear.
fn groups(rows: Vec<Entry>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let name = group_name(&row.name);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name, rows: vec![row] }),
        }
    }
    groups
}

/// The word before the first `/`, as it can be the name of a file.
fn group_name(row: &str) -> String {
    let word = row.split('/').next().unwrap_or_default();
    let name: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.is_empty() { "-".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::group_name;

    #[test]
    fn the_name_of_a_group_is_a_plain_name_of_a_file() {
        let names = ["region/empty-hot", "gray-scott/512x512/1t", "alone", "../../x", "a b&c/d", "/x"];
        assert_eq!(names.map(group_name), ["region", "gray-scott", "alone", "--", "a-b-c", "-"]);
    }
}
