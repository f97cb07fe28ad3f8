//! What a picture shows, before it is drawn.

use plotters::style::RGBColor;

use super::{
    colours::{self, Series},
    scale::Scale,
};
use crate::report::{Entry, Figures, Verdict, figure_text};

/// Longer names are cut.
const LONGEST: usize = 60;

/// A picture: lines of panels, and the names of the colours.
pub struct Picture {
    pub title: String,
    pub panels: Vec<Vec<Panel>>,
    pub series: Vec<Series>,
}

/// Rows with a common axis.
pub struct Panel {
    /// The headline, which may be empty.
    pub title: String,
    pub unit: String,
    pub lower_is_better: bool,
    pub scale: Scale,
    pub layout: Layout,
    pub blocks: Vec<Block>,
}

/// How the contenders of a row are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each has a line with its name on the left and its figures on the right.
    Lines,
    /// They stand close together, beside the label of the row; the legend names them.
    Together,
}

/// A row: our side and the peers.
pub struct Block {
    pub label: String,
    pub contenders: Vec<Contender>,
    pub bar: Option<f64>,
    pub better: Option<f64>,
}

/// The marks of a contender.
pub struct Contender {
    pub name: String,
    /// The figures, for the right of the line.
    pub figures: String,
    pub median: f64,
    pub best: Option<f64>,
    pub colour: RGBColor,
}

/// A picture with a panel for each unit, in which each contender has a line.
pub fn of_lines(title: &str, rows: &[Entry]) -> Picture {
    let peers = rows.iter().flat_map(|row| &row.peers).map(|peer| peer.name.as_str());
    let series = colours::of_systems(peers);
    Picture { title: shown(title), panels: panels_by_unit(rows), series }
}

/// A panel for each unit, one below the other.
pub fn panels_by_unit<'a>(rows: impl IntoIterator<Item = &'a Entry>) -> Vec<Vec<Panel>> {
    let mut by_unit: Vec<Vec<&Entry>> = Vec::new();
    let key = |row: &Entry| (row.unit.clone(), row.lower_is_better());
    for row in rows {
        match by_unit.iter_mut().find(|rows| key(rows[0]) == key(row)) {
            Some(rows) => rows.push(row),
            None => by_unit.push(vec![row]),
        }
    }
    let panel = |rows: &Vec<&Entry>| {
        let blocks =
            rows.iter().map(|row| Block::new(row, &row.name, |peer| colours::system(peer).1)).collect();
        vec![Panel::new(String::new(), Layout::Lines, rows, blocks)]
    };
    by_unit.iter().map(panel).collect()
}

impl Panel {
    /// A panel with the axis for `rows`, which are not empty.
    pub fn new(title: String, layout: Layout, rows: &[&Entry], blocks: Vec<Block>) -> Self {
        let scale = Scale::of(blocks.iter().flat_map(Block::all_figures));
        let (unit, lower_is_better) = (shown(&rows[0].unit), rows[0].lower_is_better());
        Self { title, unit, lower_is_better, scale, layout, blocks }
    }

    /// The label of the axis.
    pub fn axis(&self) -> String {
        let good = if self.lower_is_better { "small" } else { "large" };
        let log = if self.scale.log { ", logarithmic" } else { "" };
        format!("{} ({good} is good{log})", self.unit)
    }
}

impl Block {
    /// The marks of a row.
    pub fn new(row: &Entry, label: &str, colour: impl Fn(&str) -> RGBColor) -> Self {
        let peer = |peer: &Figures| {
            let best = Some(peer.best(row.lower_is_better()));
            Contender::new(&peer.name, peer.median, best, colour(&peer.name))
        };
        let mut ours = Contender::new(label, row.ours(), row.ours_best(), colours::OURS.1);
        ours.figures += match row.verdict() {
            Verdict::NoBar => "",
            Verdict::Missed => " bar missed",
            Verdict::Met => " bar met",
            Verdict::Better => " better met",
        };
        let contenders = std::iter::once(ours).chain(row.peers.iter().map(peer)).collect();
        Self { label: shown(label), contenders, bar: row.bar(), better: row.better() }
    }

    /// The figures that are drawn.
    pub fn all_figures(&self) -> impl Iterator<Item = f64> + '_ {
        let marks = self.contenders.iter().flat_map(|contender| [Some(contender.median), contender.best]);
        marks.chain([self.bar, self.better]).flatten()
    }
}

impl Contender {
    fn new(name: &str, median: f64, best: Option<f64>, colour: RGBColor) -> Self {
        let brackets = best.map_or(String::new(), |best| format!(" ({})", figure_text(best)));
        Self { name: shown(name), figures: figure_text(median) + &brackets, median, best, colour }
    }
}

/// A name as it is drawn: not too long, and without characters that XML does not allow.
pub fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(LONGEST).map(|c| if is_drawn(c) { c } else { ' ' }).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}

fn is_drawn(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}')
}
