//! The picture of Task Bench: a panel for each width and each way to run the tasks, with the patterns on one
//! axis and the systems as series.

use super::{
    colours::{self, OURS},
    picture::{Block, Layout, Panel, Picture, panels_by_unit, shown},
    scale::Scale,
};
use crate::report::Entry;

/// The first word of the rows.
pub const GROUP: &str = "taskbench";

/// The words of the name of a row: `taskbench/PATTERN/WIDTH`, and `/tasks` if each task is submitted.
struct Name<'a> {
    pattern: &'a str,
    width: &'a str,
    way: &'a str,
}

impl<'a> Name<'a> {
    fn parse(row: &'a str) -> Option<Self> {
        let words: Vec<&str> = row.split('/').collect();
        match words[..] {
            [GROUP, pattern, width] => Some(Self { pattern, width, way: "" }),
            [GROUP, pattern, width, way] => Some(Self { pattern, width, way }),
            _ => None,
        }
    }

    fn panel_title(&self) -> String {
        let way = match self.way {
            "" => "sequences, replayed",
            "tasks" => "tasks, submitted",
            other => other,
        };
        shown(&format!("{} columns; {way}", self.width))
    }
}

/// The picture of the rows. Rows that are named or measured otherwise follow as lines.
pub fn picture(rows: &[Entry]) -> Picture {
    let peers = rows.iter().flat_map(|row| &row.peers).map(|peer| peer.name.as_str());
    let series = colours::of_peers(peers);
    let colour = |peer: &str| series.iter().find(|(name, _)| name == peer).map_or(OURS.1, |found| found.1);
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for row in rows {
        match Name::parse(&row.name) {
            Some(name) if row.unit == "us" && row.lower_is_better() => named.push((name, row)),
            _ => others.push(row),
        }
    }
    let (ways, widths) = (each_once(&named, |name| name.way), each_once(&named, |name| name.width));
    let mut panels: Vec<Vec<Panel>> = Vec::new();
    for way in ways {
        let of = |width: &&str| {
            let chosen = named.iter().filter(|(name, _)| name.way == way && name.width == *width);
            let (names, rows): (Vec<_>, Vec<_>) = chosen.map(|(name, row)| (name, *row)).unzip();
            let block = |(name, row): (&&Name, &&Entry)| Block::new(row, name.pattern, colour);
            let blocks = names.iter().zip(&rows).map(block).collect();
            Some(Panel::new(names.first()?.panel_title(), Layout::Together, &rows, blocks))
        };
        panels.push(with_common_scale(widths.iter().filter_map(of).collect()));
    }
    panels.extend(panels_by_unit(others));
    let title =
        "taskbench: METG(50 %), the mean length of the shortest tasks with which half of the time is work";
    Picture { title: title.into(), panels, series }
}

fn each_once<'a>(named: &[(Name<'a>, &Entry)], word: impl Fn(&Name<'a>) -> &'a str) -> Vec<&'a str> {
    let mut words = Vec::new();
    for word in named.iter().map(|(name, _)| word(name)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Panels side by side are compared, so that they have the same axis.
fn with_common_scale(panels: Vec<Panel>) -> Vec<Panel> {
    let figures = panels.iter().flat_map(|panel| &panel.blocks).flat_map(Block::all_figures);
    let scale = Scale::of(figures);
    panels.into_iter().map(|panel| Panel { scale, ..panel }).collect()
}
