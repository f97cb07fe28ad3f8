//! SVG: a picture for browsers and documents.
//!
//! Text stays text, in a monospaced font, so that boxes fit whichever monospaced font the viewer has. Looks
//! are attributes, not style sheets, so that a picture inside an HTML page changes nothing around it.

use super::{
    drawing::{Drawing, printable},
    element::{Edge, EdgeKind, Node, State},
    layout::{Item, Layout, Link, Route, lay_out},
    style,
};
use std::{collections::HashMap, fmt::Write};

const MONO: &str = "'DejaVu Sans Mono', Menlo, Consolas, monospace";
const SANS: &str = "'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif";
/// The width of a character of a monospaced font of size 1, rounded up.
const CELL: f64 = 0.605;
const MARGIN: f64 = 24.0;
/// The font size of edge labels.
const LABEL: f64 = 10.0;
/// The most characters of an edge label.
const LABEL_CHARS: usize = 24;

impl Drawing {
    /// The drawing as a picture: layers from top to bottom, a lane for each cluster, a legend of the kinds
    /// that occur.
    ///
    /// Long lines are shortened. A tooltip shows the whole text of a node and the kind of an edge.
    pub fn to_svg(&self) -> String {
        let cards: Vec<Card> = self.nodes().iter().map(Card::new).collect();
        let (lanes, items) = self.lanes(&cards);
        let widths: Vec<f64> =
            lanes.iter().map(|name| name.map_or(0.0, |n| cells(n) * 12.0 * CELL)).collect();
        let framed = lanes.iter().any(Option::is_some);
        let layout = lay_out(&items, &self.links(), &widths, framed);

        let mut head = vec![(self.title().to_owned(), 16.0, style::INK)];
        head.extend(self.note().map(|note| (note, 12.0, style::MUTED)));
        let head_width = head.iter().map(|(text, size, _)| cells(text) * size * 0.64).fold(360.0, f64::max);
        let pad = if framed { LANE_PAD } else { 0.0 };
        let inner = (layout.width + 2.0 * pad).max(head_width);
        let origin = [
            MARGIN + pad + (inner - layout.width - 2.0 * pad) / 2.0,
            MARGIN + 20.0 * head.len() as f64 + 12.0,
        ];
        let legend = self.legend(inner, origin[1] + layout.height + 28.0);

        let mut svg = Writer::new(inner + 2.0 * MARGIN, legend.bottom + MARGIN, self.title(), framed);
        svg.markers(&self.kinds().1);
        for (i, (text, size, fill)) in head.iter().enumerate() {
            let y = MARGIN + 14.0 + 20.0 * i as f64;
            let weight = if i == 0 { " font-weight=\"600\"" } else { "" };
            let attributes = format!("font-size=\"{size}\" fill=\"{fill}\"{weight}");
            svg.text(MARGIN, y, &attributes, text);
        }
        svg.lanes(&lanes, &layout, origin);
        svg.edges(self, &layout, origin);
        writeln!(svg.out, "<g font-family=\"{MONO}\">").unwrap();
        for (card, corner) in cards.iter().zip(&layout.corners) {
            svg.card(card, shifted(*corner, origin));
        }
        svg.labels(self, &layout, origin);
        svg.out += "</g>\n";
        svg.out += &legend.svg;
        svg.out + "</svg>\n"
    }

    /// The names of the lanes from left to right, and the size and lane of every node.
    fn lanes(&self, cards: &[Card]) -> (Vec<Option<&str>>, Vec<Item>) {
        let mut lanes: Vec<Option<&str>> = self.clusters().into_iter().map(Some).collect();
        if lanes.is_empty() || self.nodes().iter().any(|n| n.cluster.is_none()) {
            lanes.insert(0, None);
        }
        let lane_of: HashMap<_, _> = lanes.iter().enumerate().map(|(i, &l)| (l, i)).collect();
        let item = |(node, card): (&Node, &Card)| Item {
            width: card.width,
            height: card.height,
            lane: lane_of[&node.cluster.as_deref()],
        };
        (lanes.clone(), self.nodes().iter().zip(cards).map(item).collect())
    }

    fn links(&self) -> Vec<Link> {
        // Conflicts have no arrowheads, so a bundle of them reads as if its branches were connected. Bundle
        // them only where there is no room.
        let conflicts = self.edges().iter().filter(|e| !e.kind.is_directed()).count();
        let crowded = conflicts > self.nodes().len();
        let size = |text: &str| [cells(&shortened(text, LABEL_CHARS)) * LABEL * CELL + 4.0, LABEL + 2.0];
        let link = |(edge, &ends): (&Edge, &[usize; 2])| Link {
            ends,
            directed: edge.kind.is_directed(),
            group: (edge.kind.is_directed() || crowded).then_some(edge.kind as usize),
            label: (!edge.label.is_empty()).then(|| size(&edge.label)),
        };
        self.edges().iter().zip(self.ends()).map(link).collect()
    }

    /// The legend of the kinds that occur, in lines as wide as the picture, from `top` downwards.
    fn legend(&self, width: f64, top: f64) -> Legend {
        let (nodes, edges) = self.kinds();
        let mut legend = Legend { svg: String::new(), bottom: top, x: MARGIN, right: MARGIN + width };
        for kind in nodes {
            let look = style::node(kind);
            let radius = if look.round { 6 } else { 2 };
            legend.entry(&kind.to_string(), 18.0, |x, y| {
                format!(
                    "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"12\" rx=\"{radius}\" fill=\"{}\" stroke=\"{}\"/>",
                    num(x),
                    num(y - 6.0),
                    look.fill,
                    look.line
                )
            });
        }
        for kind in edges {
            legend.entry(&kind.to_string(), 30.0, |x, y| {
                format!("<path d=\"M{} {}h28\" {}/>", num(x), num(y), stroke(kind))
            });
        }
        legend
    }
}

/// The distance between the contents and the frame of a lane.
const LANE_PAD: f64 = 18.0;

struct Legend {
    svg: String,
    bottom: f64,
    x: f64,
    right: f64,
}

impl Legend {
    fn entry(&mut self, name: &str, sample: f64, draw: impl Fn(f64, f64) -> String) {
        let width = sample + 6.0 + cells(name) * 11.0 * 0.6 + 16.0;
        if self.x + width > self.right && self.x > MARGIN {
            self.x = MARGIN;
            self.bottom += 20.0;
        }
        let (x, y) = (self.x, self.bottom);
        writeln!(
            self.svg,
            "{}<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"{}\">{}</text>",
            draw(x, y),
            num(x + sample + 6.0),
            num(y + 4.0),
            style::MUTED,
            escaped(name)
        )
        .unwrap();
        self.x += width;
    }
}

/// A node as it is drawn: lines of text and a box around them.
struct Card<'a> {
    node: &'a Node,
    lines: Vec<(Line, String)>,
    width: f64,
    height: f64,
}

#[derive(Clone, Copy)]
enum Line {
    Head,
    Name,
    Detail,
}

impl Line {
    /// The font size and the height of the line.
    fn size(self) -> [f64; 2] {
        match self {
            Self::Head => [10.0, 14.0],
            Self::Name => [13.0, 18.0],
            Self::Detail => [10.5, 15.0],
        }
    }
}

impl<'a> Card<'a> {
    const DETAILS: usize = 12;

    fn new(node: &'a Node) -> Self {
        let mut lines = vec![(Line::Head, shortened(&node.headline(), 48))];
        let split = |text: &str| printable(text).split('\n').map(str::to_owned).collect::<Vec<_>>();
        if !node.name.is_empty() {
            lines.extend(split(&node.name).iter().map(|l| (Line::Name, shortened(l, 36))));
        }
        let details: Vec<String> = node.details.iter().flat_map(|l| split(l)).collect();
        lines.extend(details.iter().take(Self::DETAILS).map(|l| (Line::Detail, shortened(l, 48))));
        if details.len() > Self::DETAILS {
            lines.push((Line::Detail, format!("… {} more", details.len() - Self::DETAILS)));
        }
        let width = lines.iter().map(|(kind, text)| cells(text) * kind.size()[0] * CELL).fold(40.0, f64::max);
        let height: f64 = lines.iter().map(|(kind, _)| kind.size()[1]).sum();
        Self { node, lines, width: (width + 24.0).ceil(), height: height + 12.0 }
    }
}

struct Writer {
    out: String,
    framed: bool,
}

impl Writer {
    fn new(width: f64, height: f64, title: &str, framed: bool) -> Self {
        let (width, height) = (width.ceil(), height.ceil());
        let paper = style::PAPER;
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{SANS}\" xml:space=\"preserve\" aria-label=\"{}\">\n\
             <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{paper}\"/>\n",
            escaped(title).replace('\n', " ")
        );
        Self { out, framed }
    }

    fn markers(&mut self, kinds: &[EdgeKind]) {
        for kind in kinds.iter().filter(|k| k.is_directed()) {
            writeln!(
                self.out,
                "<marker id=\"anabranch-{kind}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" \
                 markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
                 <path d=\"M0 0.8L8 4L0 7.2z\" fill=\"{}\"/></marker>",
                style::edge(*kind)
            )
            .unwrap();
        }
    }

    fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let (x, y, text) = (num(x), num(y), escaped(&printable(text).replace('\n', " ")));
        writeln!(self.out, "<text x=\"{x}\" y=\"{y}\" {attributes}>{text}</text>").unwrap();
    }

    fn lanes(&mut self, names: &[Option<&str>], layout: &Layout, [x0, y0]: [f64; 2]) {
        for (name, &[left, right]) in names.iter().zip(&layout.lanes) {
            let Some(name) = name else { continue };
            writeln!(
                self.out,
                "<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{}\" stroke=\"{}\"/>",
                num(x0 + left - LANE_PAD),
                num(y0),
                num(right - left + 2.0 * LANE_PAD),
                num(layout.height),
                style::LANE,
                style::FRAME
            )
            .unwrap();
            let attributes = format!("font-size=\"12\" font-weight=\"600\" fill=\"{}\"", style::MUTED);
            self.text(x0 + left - 6.0, y0 + 20.0, &attributes, name);
        }
    }

    fn edges(&mut self, drawing: &Drawing, layout: &Layout, origin: [f64; 2]) {
        for (edge, route) in drawing.edges().iter().zip(&layout.routes) {
            let join = if edge.kind.is_directed() { "→" } else { "–" };
            let about = if edge.label.is_empty() { String::new() } else { format!(", {}", edge.label) };
            writeln!(
                self.out,
                "<path class=\"edge\" d=\"{}\" {}><title>{}</title></path>",
                path(route, origin),
                stroke(edge.kind),
                escaped(&format!("{} {join} {} ({}{about})", edge.from, edge.to, edge.kind))
            )
            .unwrap();
        }
    }

    /// Draws labels on top of all edges, with a halo in the colour of the background.
    fn labels(&mut self, drawing: &Drawing, layout: &Layout, origin: [f64; 2]) {
        let ground = if self.framed { style::LANE } else { style::PAPER };
        writeln!(
            self.out,
            "<g text-anchor=\"middle\" font-size=\"{LABEL}\" stroke=\"{ground}\" stroke-width=\"4\" \
             stroke-linejoin=\"round\" paint-order=\"stroke\">"
        )
        .unwrap();
        for (edge, place) in drawing.edges().iter().zip(&layout.labels) {
            let Some(place) = place else { continue };
            let [x, y] = shifted(*place, origin);
            let attributes = format!("fill=\"{}\"", style::edge(edge.kind));
            self.text(x, y + 3.5, &attributes, &shortened(&edge.label, LABEL_CHARS));
        }
        self.out += "</g>\n";
    }

    fn card(&mut self, card: &Card, [x, y]: [f64; 2]) {
        let node = card.node;
        let look = style::node(node.kind);
        let radius = if look.round { 14 } else { 4 };
        let outline = match (node.state, style::state(node.state)) {
            (Some(State::Skipped), Some(line)) => {
                format!(
                    "stroke=\"{line}\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\" fill-opacity=\"0.55\""
                )
            }
            (_, Some(line)) => format!("stroke=\"{line}\" stroke-width=\"2.5\""),
            (_, None) => format!("stroke=\"{}\" stroke-width=\"1.2\"", look.line),
        };
        let mut whole = vec![node.headline()];
        whole.extend((!node.name.is_empty()).then(|| node.name.clone()));
        whole.extend(node.details.iter().cloned());
        writeln!(
            self.out,
            "<g class=\"node\"><title>{}</title>\n<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             rx=\"{radius}\" fill=\"{}\" {outline}/>",
            escaped(&whole.join("\n")),
            num(x),
            num(y),
            num(card.width),
            num(card.height),
            look.fill
        )
        .unwrap();
        let mut bottom = y + 6.0;
        for (kind, text) in &card.lines {
            let [size, height] = kind.size();
            bottom += height;
            let special = match kind {
                Line::Head => " fill-opacity=\"0.8\"",
                Line::Name => " font-weight=\"700\"",
                Line::Detail => "",
            };
            let attributes = format!("font-size=\"{size}\" fill=\"{}\"{special}", look.text);
            self.text(x + 12.0, bottom - 4.0, &attributes, text);
        }
        self.out += "</g>\n";
    }
}

fn shifted(point: [f64; 2], origin: [f64; 2]) -> [f64; 2] {
    [point[0] + origin[0], point[1] + origin[1]]
}

fn stroke(kind: EdgeKind) -> String {
    let colour = style::edge(kind);
    let width = if kind == EdgeKind::Message { 2.0 } else { 1.3 };
    let end = match kind {
        EdgeKind::Conflict => "stroke-dasharray=\"5 4\"".to_owned(),
        _ => format!("marker-end=\"url(#anabranch-{kind})\""),
    };
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" {end}")
}

fn path(route: &Route, origin: [f64; 2]) -> String {
    let point = |p: [f64; 2]| {
        let [x, y] = shifted(p, origin);
        format!("{} {}", num(x), num(y))
    };
    match route {
        Route::Line([from, to]) => format!("M{}L{}", point(*from), point(*to)),
        Route::Arc { ends: [from, to], y, depth } => {
            let turn = |end: &[f64; 2], dy: f64| point([end[0], y + dy]);
            format!(
                "M{}L{}C{} {} {}L{}",
                point(*from),
                turn(from, 0.0),
                turn(from, *depth),
                turn(to, *depth),
                turn(to, 0.0),
                point(*to)
            )
        }
        Route::Steps(points) => {
            let mut out = format!("M{}", point(points[0]));
            for pair in points.windows(2) {
                let ([x0, y0], [x1, y1]) = (pair[0], pair[1]);
                if (y0 - y1).abs() < 0.5 {
                    continue; // no direction for the arrowhead
                }
                if (x0 - x1).abs() < 0.5 {
                    write!(out, "L{}", point(pair[1])).unwrap();
                } else {
                    let middle = f64::midpoint(y0, y1);
                    let controls = [point([x0, middle]), point([x1, middle])];
                    write!(out, "C{} {} {}", controls[0], controls[1], point(pair[1])).unwrap();
                }
            }
            out
        }
    }
}

/// The number of columns of a text in a monospaced font: East Asian characters and emoji take two.
fn cells(text: &str) -> f64 {
    let wide = |c: char| {
        matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f000}'..='\u{3ffff}')
    };
    text.chars().map(|c| if wide(c) { 2.0 } else { 1.0 }).sum()
}

/// The text on one line, cut to at most `most` characters.
fn shortened(text: &str, most: usize) -> String {
    let line = printable(text).replace('\n', " ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Rounds a coordinate to tenths of a pixel.
fn num(x: f64) -> f64 {
    (x * 10.0).round() / 10.0 + 0.0 // no negative zero
}
