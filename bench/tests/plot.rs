//! `bench plot`: the pictures have a mark for each figure at its place, and errors say what to do.

#![forbid(unsafe_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use roxmltree::{Document, Node};
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::deadline;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the file of figures `run.json` and, after [`plot`](Self::plot), the pictures.
struct Folder(TempDir);

impl Folder {
    fn with(content: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("run.json"), content).expect("the file is written");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self) -> Output {
        let (file, pictures) = (self.path("run.json"), self.path("some/pictures"));
        bench(&["plot", file.to_str().unwrap(), "--output", pictures.to_str().unwrap()])
    }

    fn plot(&self) -> String {
        let output = self.run();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }

    fn refuse(&self) -> String {
        let output = self.run();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    }

    fn picture(&self, name: &str) -> Picture {
        let path = self.path("some/pictures").join(name);
        Picture::read(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
    }
}

/// The upper end and the width of a line.
type Bar = ([i32; 2], i32);

/// What a picture shows.
#[derive(Default)]
struct Picture {
    /// Each text, and where it begins.
    texts: Vec<(String, [i32; 2])>,
    /// The middles and colours of dots.
    medians: Vec<([i32; 2], String)>,
    /// The middles of rings.
    bests: Vec<[i32; 2]>,
    /// Upright lines in black.
    bars: Vec<Bar>,
    size: [i32; 2],
}

impl Picture {
    fn read(svg: &str) -> Self {
        let document = Document::parse(svg).expect("the picture is XML");
        let number = |node: Node, name: &str| node.attribute(name).expect(name).parse::<i32>().expect(name);
        let root = document.root_element();
        let mut picture =
            Self { size: ["width", "height"].map(|name| number(root, name)), ..Self::default() };
        for node in root.children() {
            match node.tag_name().name() {
                "text" => {
                    let content = node.text().unwrap_or_default().trim().to_string();
                    picture.texts.push((content, ["x", "y"].map(|name| number(node, name))));
                }
                "circle" => {
                    let middle = ["cx", "cy"].map(|name| number(node, name));
                    match node.attribute("fill") {
                        Some("none") => picture.bests.push(middle),
                        colour => picture.medians.push((middle, colour.expect("a colour").into())),
                    }
                }
                "polyline" if node.attribute("stroke") == Some("#1E1E1E") => {
                    let points = node.attribute("points").expect("points");
                    let numbers: Vec<i32> =
                        points.split([',', ' ']).filter_map(|number| number.parse().ok()).collect();
                    if numbers[0] == numbers[2] {
                        picture.bars.push(([numbers[0], numbers[1]], number(node, "stroke-width")));
                    }
                }
                _ => {}
            }
        }
        picture
    }

    /// The height of the text, which is there once, in the legend or below.
    fn height(&self, text: &str) -> i32 {
        let found: Vec<_> = self.texts.iter().filter(|(other, _)| other == text).collect();
        assert_eq!(found.len(), 1, "{text}: {:?}", self.texts);
        found[0].1[1]
    }

    /// The dots below the legend, which has one for the samples and one for each of `series` colours.
    fn medians(&self, series: usize) -> &[([i32; 2], String)] {
        &self.medians[1 + series..]
    }

    /// The place of the only dot at the height of a text.
    fn median(&self, text: &str) -> i32 {
        let y = self.height(text);
        let dots: Vec<_> = self.medians.iter().filter(|(middle, _)| middle[1] == y).collect();
        assert_eq!(dots.len(), 1, "{text}: {:?}", self.medians);
        dots[0].0[0]
    }

    /// The place of the only ring at the height of a text.
    fn best(&self, text: &str) -> i32 {
        let y = self.height(text);
        let rings: Vec<_> = self.bests.iter().filter(|middle| middle[1] == y).collect();
        assert_eq!(rings.len(), 1, "{text}: {:?}", self.bests);
        rings[0][0]
    }
}

/// A row as `--json` writes it, with the best figure at half of the median.
fn row(name: &str, unit: &str, ours: f64, peers: &[(&str, f64)]) -> Value {
    let peers: Vec<Value> = peers
        .iter()
        .map(|(name, figure)| json!({"name": name, "median": figure, "min": figure / 2.0, "max": figure * 2.0}))
        .collect();
    json!({
        "name": name, "unit": unit, "lower_is_better": true, "ours_median": ours, "ours_min": ours / 2.0,
        "ours_max": ours * 2.0, "bar": null, "better": null, "met": null, "peers": peers,
    })
}

#[test]
fn a_picture_has_a_dot_and_a_ring_for_each_system_at_the_places_of_their_figures() {
    let _deadline = deadline();
    let mut first = row("loops/a", "ns", 4.0, &[("rayon map", 2.0), ("TBB static", 8.0), ("serial", 16.0)]);
    (first["bar"], first["better"], first["met"]) = (json!(12.0), json!(2.0), json!(true));
    let folder = Folder::with(&json!([first, row("loops/b", "ns", 2.0, &[("rayon join", 3.0)])]).to_string());
    assert!(folder.plot().starts_with("1 pictures of 2 rows: open "));

    let picture = folder.picture("loops.svg");
    let series = ["Anabranch", "rayon", "TBB", "others"];
    assert_eq!(picture.medians(series.len()).len(), 6);
    series.iter().for_each(|name| assert!(picture.height(name) < picture.height("loops/a")));
    // The axis is linear: each unit has the same width.
    let x = ["loops/b", "loops/a", "TBB static", "serial"].map(|name| picture.median(name));
    let unit = f64::from(x[3] - x[0]) / 14.0;
    for (place, figure) in x.iter().zip([2.0, 4.0, 8.0, 16.0]) {
        assert!((f64::from(place - x[0]) - (figure - 2.0) * unit).abs() <= 2.0, "{x:?}");
    }
    assert!((picture.best("serial") - picture.median("TBB static")).abs() <= 1);
    assert!((picture.best("TBB static") - picture.median("loops/a")).abs() <= 1);
    let place = |figure: f64| f64::from(x[0]) + (figure - 2.0) * unit;
    let is_at = |bar: &[i32; 2], figure| (f64::from(bar[0]) - place(figure)).abs() <= 2.0;
    let (bar, better): (Vec<Bar>, Vec<Bar>) = picture.bars.iter().partition(|(_, width)| *width == 2);
    assert!(bar.len() == 1 && is_at(&bar[0].0, 12.0), "{:?}", picture.bars);
    assert!(!better.is_empty() && better.iter().all(|(end, _)| is_at(end, 2.0)), "{:?}", picture.bars);
    assert!(picture.height("ns (small is good)") > picture.height("rayon join"));
    for text in ["4.00 (2.00) bar met", "3.00 (1.50)", "bar", "better"] {
        picture.height(text);
    }
}

#[test]
fn figures_that_differ_much_have_a_logarithmic_axis_and_each_unit_an_axis() {
    let _deadline = deadline();
    let rows = json!([
        row("a/x", "ns", 1.0, &[("rayon", 10.0), ("TBB", 100.0)]),
        row("a/y", "MB", 7.0, &[]),
        row("a/zero", "ns", 0.0, &[]),
    ]);
    let folder = Folder::with(&rows.to_string());
    folder.plot();
    let picture = folder.picture("a.svg");
    // "TBB" is also in the legend.
    let dots = picture.medians(3);
    let at = |i: usize| dots[i].0[0];
    assert!(((at(2) - at(1)) - (at(1) - at(0))).abs() <= 2, "{dots:?}");
    assert!(at(3) < at(0), "zero is at the left end: {dots:?}");
    picture.height("ns (small is good, logarithmic)");
    picture.height("MB (small is good)");
}

#[test]
fn the_patterns_of_task_bench_share_an_axis_and_systems_are_series() {
    let _deadline = deadline();
    let peers = [("team and barrier", 0.3), ("MPI", 0.4), ("OpenMP tasks", 5.0)];
    let mut rows = Vec::new();
    for pattern in ["trivial", "fft"] {
        for width in [4, 16] {
            rows.push(row(&format!("taskbench/{pattern}/{width}"), "us", 0.1, &peers));
            let peers = [("a kernel per step", 2.0), ("OpenMP tasks", 5.0)];
            rows.push(row(&format!("taskbench/{pattern}/{width}/tasks"), "us", 1.0, &peers));
        }
    }
    rows.push(row("taskbench/new", "us", 1.0, &[]));
    let folder = Folder::with(&Value::from(rows).to_string());
    folder.plot();
    let picture = folder.picture("taskbench.svg");
    let series = ["Anabranch", "team and barrier", "MPI", "OpenMP tasks", "a kernel per step"];
    let names: Vec<&str> = picture.texts.iter().map(|(text, _)| text.as_str()).collect();
    for name in series.iter().chain(&["taskbench/new", "16 columns; tasks, submitted"]) {
        assert_eq!(names.iter().filter(|text| *text == name).count(), 1, "{name}: {names:?}");
    }
    for pattern in ["trivial", "fft"] {
        assert_eq!(names.iter().filter(|text| **text == pattern).count(), 4, "{pattern}: {names:?}");
    }
    let dots = picture.medians(series.len());
    assert_eq!(dots.len(), 8 * 3 + 4 + 1);
    let count = |i: usize| dots.iter().filter(|dot| dot.1 == picture.medians[1 + i].1).count();
    assert_eq!([0, 1, 2, 3, 4].map(count), [9, 4, 4, 8, 4]);
}

#[test]
fn the_recorded_figures_are_all_drawn_and_on_the_page() {
    let _deadline = deadline();
    let record = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("figures.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let folder = Folder::with(&record.to_string());
    folder.plot();
    let page = fs::read_to_string(folder.path("some/pictures/index.html")).unwrap();
    assert!(page.contains(record["setting"]["machine"].as_str().unwrap()), "{page}");
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    for row in record["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        assert!(page.contains(name), "{name}");
        let group = name.split('/').next().unwrap();
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group.into(), vec![row])),
        }
    }
    for (group, rows) in groups {
        let file = format!("{group}.svg");
        assert!(page.contains(&format!("<img src=\"{file}\"")), "{file}");
        let picture = folder.picture(&file);
        let contenders: usize = rows.iter().map(|row| 1 + row["peers"].as_array().unwrap().len()).sum();
        let first_row = picture.medians.iter().rposition(|(middle, _)| middle[1] < 70).expect("a legend");
        assert_eq!(picture.medians.len() - first_row - 1, contenders, "{file}");
        for row in rows.iter().filter(|_| group != "taskbench") {
            picture.height(row["name"].as_str().unwrap());
        }
        let [width, height] = picture.size;
        for (text, [x, y]) in &picture.texts {
            assert!((0..width).contains(x) && (0..height).contains(y), "{file}: {text} at {x}, {y}");
        }
        for (middle, _) in &picture.medians {
            assert!(
                (0..width).contains(&middle[0]) && (0..height).contains(&middle[1]),
                "{file}: {middle:?}"
            );
        }
    }
}

#[test]
fn a_run_is_drawn_from_the_array_and_from_the_newest_line_of_a_history() {
    let _deadline = deadline();
    let folder = Folder::with("");
    let [array, history] = ["run.json", "history"].map(|name| folder.path(name));
    let measure = |row: &str, option: &str, path: &Path| {
        let output = bench(&[row, "--smoke", "--no-peers", option, path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    measure("graph/soup", "--json", &array);
    folder.plot();
    folder.picture("graph.svg").height("graph/soup");

    measure("graph/soup", "--history", &history);
    measure("schedule/exclusive-200", "--history", &history);
    let folder = Folder::with(&fs::read_to_string(history).unwrap());
    assert!(folder.plot().starts_with("1 pictures of 1 rows"));
    folder.picture("schedule.svg").height("schedule/exclusive-200");
    let page = fs::read_to_string(folder.path("some/pictures/index.html")).unwrap();
    assert!(page.contains("A smoke run: these figures mean little. Measured on"), "{page}");
}

#[test]
fn names_with_special_characters_make_no_mischief() {
    let _deadline = deadline();
    let nasty = "a<b>&\"c'\u{1}]]> --> é";
    let rows =
        json!([row(&format!("../up/{nasty}"), nasty, 1.0, &[(nasty, 2.0)]), row("a b/c", "ns", 1.0, &[])]);
    let folder = Folder::with(&rows.to_string());
    folder.plot();
    folder.picture("--.svg").height("../up/a<b>&\"c' ]]> --> é");
    folder.picture("a-b.svg").height("a b/c");
    let page = fs::read_to_string(folder.path("some/pictures/index.html")).unwrap();
    assert!(page.contains("../up/a&lt;b&gt;&amp;"), "{page}");
}

#[test]
fn what_cannot_be_drawn_is_named_with_what_to_do() {
    let _deadline = deadline();
    let missing = bench(&["plot", "/no/such/run.json"]);
    let message = text(&missing.stderr);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        message.contains("cannot read the figures /no/such/run.json") && message.contains("--json"),
        "{message}"
    );

    for content in ["{\"a\": 1}", "[{\"name\": \"a\"}]", "not JSON", "3", "[1e999]"] {
        let message = Folder::with(content).refuse();
        assert!(message.contains("run.json is not a run of this program: "), "{content}: {message}");
        assert!(message.contains("`bench NAME… --json FILE` writes figures"), "{content}: {message}");
    }
    for content in ["", "[]"] {
        let message = Folder::with(content).refuse();
        assert!(message.contains("run.json has no figures: no row was measured"), "{content}: {message}");
    }

    let folder = Folder::with(&json!([row("a/b", "ns", 1.0, &[])]).to_string());
    fs::write(folder.path("some"), "a file where the folder should be").unwrap();
    let message = folder.refuse();
    assert!(message.contains("cannot write ") && message.contains("some/pictures: "), "{message}");
    assert!(message.contains("`--output FOLDER` names another folder"), "{message}");

    for (arguments, expected) in [
        (&["plot"][..], "`plot` draws the figures of one file: `plot FILE`"),
        (&["plot", "a", "b"], "`plot` draws the figures of one file"),
        (&["graph/soup", "--output", "x"], "`--output` is the folder of `plot FILE`"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}
