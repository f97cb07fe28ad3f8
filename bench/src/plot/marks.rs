//! The marks for medians, best samples and bars, in panels and in the legend.

use plotters::{
    coord::Shift,
    element::DashedPathElement,
    prelude::*,
    style::{
        FontStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::harness::Failure;

/// A part of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A point of a picture.
pub type Point = (i32, i32);

/// The size of text. The backend divides it by 1.24.
pub const FONT: i32 = 15;
const INK: RGBColor = RGBColor(30, 30, 30);

/// A median: a dot.
pub fn median(area: &Area, at: Point, colour: RGBColor) -> Result<(), Failure> {
    Ok(area.draw(&Circle::new(at, 4, colour.filled()))?)
}

/// A best sample: a ring.
pub fn best(area: &Area, at: Point, colour: RGBColor) -> Result<(), Failure> {
    Ok(area.draw(&Circle::new(at, 4, colour.stroke_width(1)))?)
}

/// The line from a median to the best sample.
pub fn between(area: &Area, from: Point, to: Point, colour: RGBColor) -> Result<(), Failure> {
    Ok(area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?)
}

/// A figure to reach: a line.
pub fn bar(area: &Area, from: Point, to: Point) -> Result<(), Failure> {
    Ok(area.draw(&PathElement::new([from, to], INK.stroke_width(2)))?)
}

/// A figure that would be better: a dashed line.
pub fn better(area: &Area, from: Point, to: Point) -> Result<(), Failure> {
    Ok(area.draw(&DashedPathElement::new([from, to], 4, 3, INK.stroke_width(1)))?)
}

/// Text that begins at a point, and whose middle is at its height.
pub fn text(area: &Area, text: &str, at: Point, style: Writing) -> Result<(), Failure> {
    let font_style = if style.bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = ("sans-serif", style.size).into_font().style(font_style);
    let style = TextStyle::from(font).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

/// How text is written.
#[derive(Clone, Copy)]
pub struct Writing {
    bold: bool,
    size: i32,
}

/// Text beside marks.
pub const PLAIN: Writing = Writing { bold: false, size: FONT };
/// Our side, and titles of panels.
pub const BOLD: Writing = Writing { bold: true, size: FONT };
/// The title of a picture.
pub const TITLE: Writing = Writing { bold: true, size: 19 };
