//! Tables of figures in Markdown, and the places in documents where they belong.
//!
//! A place begins with `<!-- figures: loops foreign -->`, which selects rows as the command line does, or
//! with `<!-- figures: machine -->`; it ends with `<!-- end of figures -->`. [`fill`] replaces what is
//! between.

use std::fmt::Write;

use crate::{
    harness::Failure,
    report::{Entry, Verdict, figure_text, left_out},
};

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

/// A table of rows: their names, their descriptions, and their entries. A row without an entry was not
/// measured yet.
pub fn table<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str, Option<&'a Entry>)>) -> String {
    let mut text = String::from("| row | what | Anabranch | peers | bar |\n|---|---|---|---|---|\n");
    let mut shown = Vec::new();
    for (name, about, entry) in rows {
        let _ = write!(text, "| `{name}` | {} | ", escaped(about));
        let Some(entry) = entry else {
            text.push_str("not measured yet | – | – |\n");
            continue;
        };
        let _ = writeln!(text, "{} | {} | {} |", ours(entry), escaped(&others(entry)), bar(entry));
        shown.push(entry);
    }
    for left_out in left_out(shown) {
        let _ = write!(text, "\n{left_out}.\n");
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn ours(entry: &Entry) -> String {
    let best = entry.ours_best().map_or(String::new(), |best| format!(" ({})", figure_text(best)));
    format!("**{}**{best} {}", figure_text(entry.ours()), entry.unit)
}

fn others(entry: &Entry) -> String {
    let figures = entry.quantities.iter().chain(&entry.peers).map(|figures| {
        let best = figures.best(entry.lower_is_better());
        format!("{} {} ({})", figures.name, figure_text(figures.median), figure_text(best))
    });
    let all: Vec<String> = figures.collect();
    if all.is_empty() { "–".into() } else { all.join("; ") }
}

fn bar(entry: &Entry) -> String {
    let sign = if entry.lower_is_better() { '≤' } else { '≥' };
    let limit =
        |limit: Option<f64>| limit.map_or("–".into(), |limit| format!("{sign} {}", figure_text(limit)));
    let bar = limit(entry.bar());
    match entry.verdict() {
        Verdict::NoBar => "–".into(),
        Verdict::Missed => format!("{bar} **missed**"),
        Verdict::Met => format!("{bar} met"),
        Verdict::Better => format!("{bar} met, {} too", limit(entry.better())),
    }
}

/// Replaces the text at every place of `document` by what `content` gives for its selection.
///
/// # Errors
/// A place without an end, and errors of `content`.
pub fn fill(
    document: &str,
    content: impl Fn(&[String]) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let (mut text, mut rest) = (String::new(), document);
    while let Some((before, place)) = rest.split_once(BEGIN) {
        let (selection, place) = place.split_once(" -->\n").ok_or("a place for figures has no ` -->`")?;
        let (_, after) =
            place.split_once(END).ok_or_else(|| format!("the figures `{selection}` have no `{END}`"))?;
        let words: Vec<String> = selection.split_whitespace().map(String::from).collect();
        let content = content(&words).map_err(|error| format!("the figures `{selection}`: {error}"))?;
        let _ = write!(text, "{before}{BEGIN}{selection} -->\n{content}{END}");
        rest = after;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        harness::{Contest, Context, Outcome},
        row::Row,
    };

    fn entry(row: Row) -> Entry {
        let context = Context { threads: 1, smoke: true, peers: true };
        let ours = Contest::ours(|| Ok(vec![1.0, 2.0, 4.0]));
        let outcome = ours.peer("a|b", || Ok(vec![8.0, 10.0, 20.0])).run(&context, 1).unwrap();
        Entry::new(&row, outcome)
    }

    fn never(_: &Context) -> Result<Outcome, Failure> {
        Err("this row is never measured".into())
    }

    #[test]
    fn a_line_shows_medians_the_best_in_brackets_and_a_missed_bar() {
        let line = |row: Row| table([("a/b", "hot", Some(&entry(row)))]).lines().nth(2).unwrap().to_string();
        let row = || Row::lower("a/b", "ns", "", never);
        let begin = "| `a/b` | hot | **2.00** (1.00) ns | a\\|b 10.0 (8.00) |";
        assert_eq!(line(row()), format!("{begin} – |"));
        assert_eq!(line(row().bar(1.0)), format!("{begin} ≤ 1.00 **missed** |"));
        assert_eq!(line(row().bar(2.0).better(1.5)), format!("{begin} ≤ 2.00 met |"));
        assert_eq!(line(row().bar(3.0).better(2.0)), format!("{begin} ≤ 3.00 met, ≤ 2.00 too |"));
        let speed = Row::higher("a/b", "MB/s", "", never).bar(3.0);
        assert_eq!(
            line(speed),
            "| `a/b` | hot | **2.00** (4.00) MB/s | a\\|b 10.0 (20.0) | ≥ 3.00 **missed** |"
        );
    }

    #[test]
    fn a_row_without_figures_is_shown_as_not_measured() {
        let table = table([("a/b", "new|row", None)]);
        assert_eq!(table.lines().nth(2), Some("| `a/b` | new\\|row | not measured yet | – | – |"));
    }

    #[test]
    fn places_are_filled_and_the_rest_of_a_document_stays() {
        let document = "a\n<!-- figures: x y -->\nold\n<!-- end of figures -->\nb\n\
            <!-- figures: machine -->\n<!-- end of figures -->\n";
        let content = |words: &[String]| Ok(format!("new {}\n", words.join("+")));
        let filled = fill(document, content).unwrap();
        let expected = "a\n<!-- figures: x y -->\nnew x+y\n<!-- end of figures -->\nb\n\
            <!-- figures: machine -->\nnew machine\n<!-- end of figures -->\n";
        assert_eq!(filled, expected);
        assert_eq!(fill(&filled, content).unwrap(), filled);
        assert_eq!(fill("no place", content).unwrap(), "no place");
        assert!(fill("<!-- figures: x -->\nno end", content).is_err());
        assert!(fill(document, |_| Err("nothing".into())).is_err());
    }
}
