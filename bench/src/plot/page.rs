//! The page that shows the pictures, each with its table below.

use std::{fmt::Write, path::Path};

use super::Group;
use crate::{machine::Setting, report};

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Figures of Anabranch and its peers</title>
<style>
body { font-family: sans-serif; margin: 2em }
img { max-width: 100% }
pre { overflow-x: auto }
</style>
<h1>Figures of Anabranch and its peers</h1>
";

const EXPLANATION: &str = "<p>A dot is the median of the samples, and a ring beside it the best sample: the minimum, or the maximum of a
speed. A line across a row is its bar, which must be reached; a dashed one would be better. An axis is logarithmic where its figures differ by more
than a factor of 20; figures of zero or less are at its left end.</p>
";

/// The page with the pictures of `groups`.
pub fn html(file: &Path, setting: Option<&Setting>, groups: &[Group]) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let setting = setting.map_or(String::new(), |setting| setting.sentence().replace("**", ""));
    let mut text = format!("{HEAD}<p>From {}. {}</p>\n{EXPLANATION}<p>", escaped(&name), escaped(&setting));
    for Group { name, .. } in groups {
        let _ = writeln!(text, "<a href=\"#{name}\">{name}</a>");
    }
    text.push_str("</p>\n");
    for group in groups {
        let (name, file) = (&group.name, group.file_name());
        let table = escaped(&report::table(&group.rows));
        let _ = write!(
            text,
            "<h2 id=\"{name}\">{name}</h2>\n\
             <p><img src=\"{file}\" alt=\"the figures of {name}, which are in the table below\"></p>\n\
             <details><summary>Table</summary><pre>\n{table}</pre></details>\n"
        );
    }
    text + "</html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
