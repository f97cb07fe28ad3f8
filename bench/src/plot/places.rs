//! Where things are in a picture, in pixels.
//!
//! The width of a text is estimated: the program that shows the picture chooses the font.

use super::picture::{Block, Layout, Panel, Picture};

/// The width of a character. Bold ones, as those of our side, are seldom wider.
const CHARACTER: i32 = 8;
pub const MARGIN: i32 = 12;
/// The height of a line of text, in the legend and beside marks.
pub const LINE: i32 = 17;
/// The height of the line of a contender without text.
const NARROW: i32 = 9;
/// Above and below the lines of a row.
const PADDING: i32 = 3;
const TITLE: i32 = 30;
const PANEL_TITLE: i32 = 24;
/// The height of an axis: figures and label.
pub const AXIS: i32 = 44;
const GAP: i32 = 14;
/// The width of a mark in the legend.
pub const KEY: i32 = 30;
/// The width between the ends of an axis, where a contender has a line of its own.
const WIDE: i32 = 480;
/// The same for panels that stand side by side.
const SMALL: i32 = 330;

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// The places of the parts of a picture.
pub struct Places {
    pub width: i32,
    pub height: i32,
    /// The space for the labels on the left of each axis.
    pub left: i32,
    /// The space for the figures on the right of each axis.
    pub right: i32,
    /// The left end and the middle of each entry of the legend, line by line.
    pub legend: Vec<Vec<(i32, i32)>>,
    pub panels: Vec<Vec<Place>>,
}

impl Places {
    /// Arranges a picture with these texts in its legend.
    pub fn of(picture: &Picture, legend: &[Vec<&str>]) -> Self {
        let panels = || picture.panels.iter().flatten();
        let left = panels().map(label_width).max().unwrap_or(0) + 2 * MARGIN;
        let right = panels().map(figures_width).max().unwrap_or(0) + 2 * MARGIN;
        let panel_width =
            |panel: &Panel| left + right + if panel.layout == Layout::Lines { WIDE } else { SMALL };
        let line_width = |line: &Vec<Panel>| line.iter().map(panel_width).sum();
        let width = picture.panels.iter().map(line_width).max().unwrap_or(0);
        let width = width.max(text_width(&picture.title) * 9 / 8 + 2 * MARGIN);
        let (legend, mut y) = legend_places(legend, width);
        let mut places = Vec::new();
        for line in &picture.panels {
            let (mut x, mut below) = (0, y);
            let mut line_places = Vec::new();
            for panel in line {
                let (width, height) = (panel_width(panel), panel_height(panel));
                line_places.push(Place { x, y, width, height });
                (x, below) = (x + width, below.max(y + height + GAP));
            }
            places.push(line_places);
            y = below;
        }
        Self { width, height: y, left, right, legend, panels: places }
    }
}

/// The places of the entries of a legend, and its end. A line goes on below when it is full.
fn legend_places(lines: &[Vec<&str>], width: i32) -> (Vec<Vec<(i32, i32)>>, i32) {
    let mut y = TITLE + LINE / 2;
    let mut places = Vec::new();
    for line in lines {
        let (mut x, mut line_places) = (MARGIN, Vec::new());
        for text in line {
            let entry = KEY + text_width(text) + MARGIN;
            if x > MARGIN && x + entry > width {
                (x, y) = (MARGIN, y + LINE);
            }
            line_places.push((x, y));
            x += entry;
        }
        places.push(line_places);
        y += LINE;
    }
    (places, y - LINE / 2 + GAP)
}

fn text_width(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX / CHARACTER) * CHARACTER
}

fn label_width(panel: &Panel) -> i32 {
    let names = panel.blocks.iter().flat_map(|block| &block.contenders).map(|contender| &contender.name);
    let labels = panel.blocks.iter().map(|block| &block.label);
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text_width(text)).max();
    match panel.layout {
        Layout::Lines => widest(&mut labels.chain(names)).unwrap_or(0) + MARGIN,
        Layout::Together => widest(&mut { labels }).unwrap_or(0),
    }
}

fn figures_width(panel: &Panel) -> i32 {
    let all = panel.blocks.iter().flat_map(|block| &block.contenders);
    match panel.layout {
        Layout::Lines => all.map(|contender| text_width(&contender.figures)).max().unwrap_or(0),
        Layout::Together => 0,
    }
}

/// The height of the title of a panel.
pub fn title_height(panel: &Panel) -> i32 {
    if panel.title.is_empty() { 0 } else { PANEL_TITLE }
}

fn panel_height(panel: &Panel) -> i32 {
    let blocks: i32 = panel.blocks.iter().map(|block| block_height(block, panel.layout)).sum();
    title_height(panel) + blocks + AXIS
}

/// The height of the line of a contender.
pub fn line_height(layout: Layout) -> i32 {
    if layout == Layout::Lines { LINE } else { NARROW }
}

/// The height of the lines of a row.
pub fn block_height(block: &Block, layout: Layout) -> i32 {
    let lines = i32::try_from(block.contenders.len()).unwrap_or(i32::MAX / LINE);
    lines * line_height(layout) + 2 * PADDING
}

/// The middle of the line with this number, from the upper end of the row.
pub fn line_middle(number: usize, layout: Layout) -> i32 {
    let above = i32::try_from(number).unwrap_or(i32::MAX / LINE) * line_height(layout);
    PADDING + above + line_height(layout) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_legend_goes_on_below_when_it_is_full() {
        let lines = [vec!["bar"], vec!["median", "best", "a longer text"]];
        let (places, end) = legend_places(&lines, 200);
        let x: Vec<i32> = places[1].iter().map(|place| place.0).collect();
        assert!(x[0] == MARGIN && x[1] > MARGIN + KEY && x[2] == MARGIN, "{x:?}");
        let y: Vec<i32> = places.iter().flatten().map(|place| place.1 - places[0][0].1).collect();
        assert_eq!(y, [0, LINE, LINE, 2 * LINE]);
        assert!(end > places[1][2].1 + LINE / 2);
    }
}
