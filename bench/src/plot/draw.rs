//! Draws a picture as SVG.

use plotters::{
    coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter},
    prelude::*,
};

use super::{
    marks::{self, Area, Point},
    picture::{Block, Layout, Panel, Picture},
    places::{self, AXIS, KEY, MARGIN, Place, Places},
    scale::Scale,
};
use crate::{harness::Failure, report::rounded};

const SHADE: RGBColor = RGBColor(243, 243, 243);
const GRID: RGBColor = RGBColor(205, 205, 205);
const LIGHT_GRID: RGBColor = RGBColor(230, 230, 230);

/// The text of an SVG file.
///
/// # Errors
/// If the library that draws has one.
pub fn svg(picture: &Picture) -> Result<String, Failure> {
    let legend = legend(picture);
    let texts: Vec<Vec<&str>> =
        legend.iter().map(|line| line.iter().map(|entry| entry.0).collect()).collect();
    let places = Places::of(picture, &texts);
    let size = (u32::try_from(places.width)?, u32::try_from(places.height)?);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        marks::text(&root, &picture.title, (MARGIN, 18), marks::TITLE)?;
        for (&(text, key), &place) in legend.iter().flatten().zip(places.legend.iter().flatten()) {
            draw_key(&root, text, key, place)?;
        }
        for (panel, &place) in picture.panels.iter().flatten().zip(places.panels.iter().flatten()) {
            draw_panel(&root, panel, place, &places)?;
        }
        root.present()?;
    }
    Ok(text)
}

/// What an entry of the legend explains.
#[derive(Clone, Copy)]
enum Key {
    Samples,
    Bar,
    Better,
    Series(RGBColor),
}

/// The lines of the legend: the marks of the picture, and its colours.
fn legend(picture: &Picture) -> [Vec<(&str, Key)>; 2] {
    let blocks = || picture.panels.iter().flatten().flat_map(|panel| &panel.blocks);
    let mut marks = vec![("best sample and median", Key::Samples)];
    if blocks().any(|block| block.bar.is_some()) {
        marks.push(("bar", Key::Bar));
    }
    if blocks().any(|block| block.better.is_some()) {
        marks.push(("better", Key::Better));
    }
    let series = picture.series.iter().map(|(name, colour)| (name.as_str(), Key::Series(*colour)));
    [marks, series.collect()]
}

fn draw_key(root: &Area, text: &str, key: Key, (x, y): Point) -> Result<(), Failure> {
    let (begin, middle, end) = ((x + 4, y), (x + KEY / 2, y), (x + KEY - 10, y));
    match key {
        Key::Samples => {
            marks::between(root, begin, end, BLACK)?;
            marks::best(root, begin, BLACK)?;
            marks::median(root, end, BLACK)?;
        }
        Key::Bar => marks::bar(root, begin, end)?,
        Key::Better => marks::better(root, begin, end)?,
        Key::Series(colour) => marks::median(root, middle, colour)?,
    }
    marks::text(root, text, (x + KEY, y), marks::PLAIN)
}

fn draw_panel(root: &Area, panel: &Panel, place: Place, places: &Places) -> Result<(), Failure> {
    let Place { x, y, width, height } = place;
    if !panel.title.is_empty() {
        marks::text(root, &panel.title, (x + places.left, y + 10), marks::BOLD)?;
    }
    let top = y + places::title_height(panel);
    let mut tops = Vec::new();
    let mut below = top;
    for (i, block) in panel.blocks.iter().enumerate() {
        let block_height = places::block_height(block, panel.layout);
        if i % 2 == 0 {
            let corners = [(x + MARGIN / 2, below), (x + width - MARGIN / 2, below + block_height)];
            root.draw(&Rectangle::new(corners, SHADE.filled()))?;
        }
        tops.push(below);
        below += block_height;
    }
    let area = root.clone().shrink((x, top), (width, height - (top - y)));
    let Scale { log, from, to } = panel.scale;
    let place_of = match log {
        true => axis(&area, panel, places, (from..to).log_scale())?,
        false => axis(&area, panel, places, from..to)?,
    };
    for (block, top) in panel.blocks.iter().zip(tops) {
        draw_block(root, block, panel, &place_of, Place { y: top, ..place }, places)?;
    }
    Ok(())
}

/// Draws an axis below the rows, and returns the place of a figure.
fn axis<'a, X>(
    area: &Area<'a>,
    panel: &Panel,
    places: &Places,
    range: X,
) -> Result<Box<dyn Fn(f64) -> i32 + 'a>, Failure>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64> + 'a,
{
    let mut chart = ChartBuilder::on(area)
        .margin_left(places.left)
        .margin_right(places.right)
        .x_label_area_size(AXIS)
        .build_cartesian_2d(range, 0.0..1.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(8)
        .max_light_lines(if panel.scale.log { 10 } else { 0 })
        .light_line_style(LIGHT_GRID)
        .bold_line_style(GRID)
        .set_all_tick_mark_size(5)
        .axis_style(GRID)
        .label_style(("sans-serif", marks::FONT))
        .x_label_formatter(&|figure| tick_text(*figure))
        .x_desc(panel.axis())
        .draw()?;
    let scale = panel.scale;
    Ok(Box::new(move |figure| chart.backend_coord(&(scale.place(figure), 0.0)).0))
}

/// A round figure without unnecessary digits.
fn tick_text(figure: f64) -> String {
    let figure = rounded(figure);
    match figure.abs() {
        size if size == 0.0 || (1e-6..1e9).contains(&size) => figure.to_string(),
        _ => format!("{figure:e}"),
    }
}

fn draw_block(
    root: &Area,
    block: &Block,
    panel: &Panel,
    place_of: &dyn Fn(f64) -> i32,
    place: Place,
    places: &Places,
) -> Result<(), Failure> {
    let (top, bottom) = (place.y, place.y + places::block_height(block, panel.layout));
    if let Some(figure) = block.better {
        let x = place_of(figure);
        marks::better(root, (x, top), (x, bottom))?;
    }
    if let Some(figure) = block.bar {
        let x = place_of(figure);
        marks::bar(root, (x, top), (x, bottom))?;
    }
    let label_x = place.x + MARGIN;
    if panel.layout == Layout::Together {
        marks::text(root, &block.label, (label_x, (top + bottom) / 2), marks::BOLD)?;
    }
    for (number, contender) in block.contenders.iter().enumerate() {
        let y = top + places::line_middle(number, panel.layout);
        let median = (place_of(contender.median), y);
        if let Some(figure) = contender.best {
            let best = (place_of(figure), y);
            marks::between(root, median, best, contender.colour)?;
            marks::best(root, best, contender.colour)?;
        }
        marks::median(root, median, contender.colour)?;
        if panel.layout == Layout::Lines {
            let (indent, style) = if number == 0 { (0, marks::BOLD) } else { (MARGIN, marks::PLAIN) };
            marks::text(root, &contender.name, (label_x + indent, y), style)?;
            let right = place.x + place.width - places.right + MARGIN;
            marks::text(root, &contender.figures, (right, y), style)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::tick_text;

    #[test]
    fn the_figures_of_an_axis_are_short() {
        let texts = [0.1 + 0.2, 1000.0, 0.0, 2.5, 1e-9, 1e300].map(tick_text);
        assert_eq!(texts, ["0.3", "1000", "0", "2.5", "1e-9", "1e300"]);
    }
}
