//! Vertical places, and the paths of the edges.
//!
//! Between two ranks there is a gap. An edge moves sideways only in gaps, and passes the nodes of a rank in a
//! straight line.

use super::{
    layered::{Item, Layered, Link},
    place::{Places, apart},
};
use std::collections::HashMap;

/// The space above the contents of a lane, within its frame.
const LANE_TOP: f64 = 34.0;
/// The space below them.
const LANE_BOTTOM: f64 = 16.0;
/// The smallest height of a gap.
const GAP: f64 = 40.0;
/// The distance between two edges on one side of an item.
const PORT_GAP: f64 = 14.0;

/// The path of an edge from its first end to its second.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::print) enum Route {
    /// From point to point: straight between points above each other, else a curve that starts and ends
    /// vertically.
    Steps(Vec<[f64; 2]>),
    /// A straight line.
    Line([[f64; 2]; 2]),
    /// From the bottom of one item to the bottom of another of the same rank: down to `y`, then a curve of
    /// that depth.
    Arc { ends: [[f64; 2]; 2], y: f64, depth: f64 },
}

/// A finished layout.
#[derive(Clone, Debug)]
pub(in crate::print) struct Layout {
    pub width: f64,
    pub height: f64,
    /// The upper left corner of each item.
    pub corners: Vec<[f64; 2]>,
    /// The left and right end of each lane's contents.
    pub lanes: Vec<[f64; 2]>,
    pub routes: Vec<Route>,
    /// The middle of each label; `None` for labels that there is no room for.
    pub labels: Vec<Option<[f64; 2]>>,
}

/// Completes a layout.
pub(super) fn routed(
    items: &[Item],
    links: &[Link],
    graph: &Layered,
    rows: &[Vec<usize>],
    places: Places,
    framed: bool,
) -> Layout {
    let bands = bands(items, graph, rows, &places.x, framed);
    let router = Router { items, links, graph, rows, x: &places.x, bands: &bands, ports: HashMap::new() };
    let (routes, labels) = router.run();
    let deepest = |route: &Route| match route {
        Route::Arc { y, .. } => y + GAP,
        _ => 0.0,
    };
    let bottom = bands.last().map_or(0.0, |band| band[1]);
    let bottom = routes.iter().map(deepest).fold(bottom, f64::max);
    let corners = items.iter().enumerate().map(|(i, item)| {
        let [top, bottom] = bands[graph.slots[i].rank];
        [places.x[i] - item.width / 2.0, f64::midpoint(top, bottom) - item.height / 2.0]
    });
    Layout {
        width: places.lanes.last().map_or(0.0, |lane| lane[1]),
        height: bottom + if framed { LANE_BOTTOM } else { 0.0 },
        corners: corners.collect(),
        lanes: places.lanes,
        routes,
        labels,
    }
}

/// The top and the bottom of each rank. A gap is higher the farther edges move sideways in it.
fn bands(items: &[Item], graph: &Layered, rows: &[Vec<usize>], x: &[f64], framed: bool) -> Vec<[f64; 2]> {
    let mut top = if framed { LANE_TOP } else { 0.0 };
    let band = |row: &Vec<usize>| {
        let height = row.iter().filter_map(|&slot| items.get(slot)).map(|i| i.height).fold(0.0, f64::max);
        let moves = row.iter().flat_map(|&upper| {
            graph.neighbours[1][upper].iter().map(move |&lower| (x[upper] - x[lower]).abs())
        });
        let band = [top, top + height];
        top += height + GAP + (moves.fold(0.0, f64::max) * 0.1).min(60.0);
        band
    };
    rows.iter().map(band).collect()
}

struct Router<'a> {
    items: &'a [Item],
    links: &'a [Link],
    graph: &'a Layered,
    rows: &'a [Vec<usize>],
    x: &'a [f64],
    bands: &'a [[f64; 2]],
    /// The horizontal place where a link leaves (side 1, below) or enters (side 0, above) an item.
    ports: HashMap<(usize, usize, Port), f64>,
}

/// The links that share a place at an item: a bundle below, a single link above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Port {
    Bundle(usize),
    Link(usize),
}

impl Router<'_> {
    fn run(mut self) -> (Vec<Route>, Vec<Option<[f64; 2]>>) {
        self.place_ports(1);
        self.place_ports(0);
        let routes: Vec<Route> = (0..self.links.len()).map(|link| self.route(link)).collect();
        let mut taken = vec![Vec::new(); self.bands.len()];
        let labels = (0..self.links.len()).map(|i| self.label(i, &routes[i], &mut taken)).collect();
        (routes, labels)
    }

    fn is_flat(&self, link: usize) -> bool {
        let [a, b] = self.links[link].ends;
        self.graph.slots[a].rank == self.graph.slots[b].rank
    }

    /// Whether the ends of a link are next to each other in one rank, and the label fits between them.
    fn is_short(&self, link: usize) -> bool {
        let [a, b] = self.links[link].ends;
        let row = &self.rows[self.graph.slots[a].rank];
        let between = (self.x[a] - self.x[b]).abs() - f64::midpoint(self.items[a].width, self.items[b].width);
        self.is_flat(link)
            && row.windows(2).any(|pair| pair == [a, b] || pair == [b, a])
            && self.items[a].lane == self.items[b].lane
            && self.links[link].label.is_none_or(|[width, _]| width <= between)
    }

    fn port_below(&self, link: usize) -> Port {
        self.links[link].group.map_or(Port::Link(link), Port::Bundle)
    }

    /// Spreads the ports of each item, each as near as possible to the other ends of its edges.
    fn place_ports(&mut self, side: usize) {
        let mut preferred: HashMap<(usize, Port), Vec<f64>> = HashMap::new();
        let mut prefer = |item, port, x| preferred.entry((item, port)).or_default().push(x);
        for (link, chain) in self.graph.chains.iter().enumerate() {
            let (first, last) = (chain[0], chain[chain.len() - 1]);
            let port = self.port_below(link);
            match (self.is_flat(link), side) {
                (true, 1) if !self.is_short(link) => {
                    prefer(first, port, self.x[last]);
                    prefer(last, port, self.x[first]);
                }
                (true, _) => {}
                (false, 1) => prefer(first, port, self.x[chain[1]]),
                (false, _) => {
                    let before = chain[chain.len() - 2];
                    let left = self.ports.get(&(before, 1, port)).filter(|_| chain.len() == 2);
                    prefer(last, Port::Link(link), left.copied().unwrap_or(self.x[before]));
                }
            }
        }
        let mut ports: Vec<Vec<(f64, Port)>> = vec![Vec::new(); self.items.len()];
        for ((item, port), xs) in preferred {
            let mut xs = xs;
            xs.sort_by(f64::total_cmp); // so that the sum is the same in every run
            ports[item].push((xs.iter().sum::<f64>() / xs.len() as f64, port));
        }
        for (item, mut own) in ports.into_iter().enumerate() {
            own.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let room = self.items[item].width - 24.0;
            let gap = PORT_GAP.min(room / own.len().max(1) as f64);
            // An edge to a far end leaves near the middle of the item, not at its corner.
            let (middle, reach) = (self.x[item], room * 0.35);
            let near = |x: f64| (x.clamp(middle - reach, middle + reach), 1.0);
            let preferred: Vec<_> = own.iter().map(|&(x, _)| near(x)).collect();
            let gaps = vec![gap; own.len().saturating_sub(1)];
            let all = gap * gaps.len() as f64;
            let (low, high) = (middle - room / 2.0, middle + room / 2.0 - all);
            for (i, ((_, port), x)) in own.into_iter().zip(apart(&preferred, &gaps)).enumerate() {
                let before = gap * i as f64;
                self.ports.insert((item, side, port), (x - before).clamp(low, high) + before);
            }
        }
    }

    /// The top and the bottom of an item.
    fn span(&self, item: usize) -> [f64; 2] {
        let [top, bottom] = self.bands[self.graph.slots[item].rank];
        let (middle, half) = (f64::midpoint(top, bottom), self.items[item].height / 2.0);
        [middle - half, middle + half]
    }

    fn route(&self, link: usize) -> Route {
        let chain = &self.graph.chains[link];
        let (first, last) = (chain[0], chain[chain.len() - 1]);
        let below = self.port_below(link);
        if self.is_flat(link) {
            let bottom = self.bands[self.graph.slots[first].rank][1];
            if self.is_short(link) {
                let sign = (self.x[last] - self.x[first]).signum();
                let side = |item: usize, sign: f64| self.x[item] + sign * self.items[item].width / 2.0;
                let y = f64::midpoint(self.span(first)[0], self.span(first)[1]);
                return Route::Line([[side(first, sign), y], [side(last, -sign), y]]);
            }
            let end = |item| [self.ports[&(item, 1, below)], self.span(item)[1]];
            let ends = [end(first), end(last)];
            let depth = (14.0 + (ends[0][0] - ends[1][0]).abs() * 0.03).min(GAP - 8.0);
            return Route::Arc { ends, y: bottom, depth };
        }
        let x = self.ports[&(first, 1, below)];
        let mut points = vec![[x, self.span(first)[1]], [x, self.bands[self.graph.slots[first].rank][1]]];
        for &slot in &chain[1..chain.len() - 1] {
            points.extend(self.bands[self.graph.slots[slot].rank].map(|y| [self.x[slot], y]));
        }
        let x = self.ports[&(last, 0, Port::Link(link))];
        points.extend([[x, self.bands[self.graph.slots[last].rank][0]], [x, self.span(last)[0]]]);
        if first != self.links[link].ends[0] {
            points.reverse();
        }
        Route::Steps(points)
    }

    /// A free place for the label on the last piece of the path, in the gap above the lower end.
    fn label(&self, link: usize, route: &Route, taken: &mut [Vec<[f64; 4]>]) -> Option<[f64; 2]> {
        let [width, height] = self.links[link].label?;
        let chain = &self.graph.chains[link];
        let gap = self.graph.slots[chain[chain.len() - 1]].rank - usize::from(!self.is_flat(link));
        let (low, high) = match self.bands.get(gap + 1) {
            Some(below) => (self.bands[gap][1] + 1.0, below[0] - 7.0), // clear of the arrowheads
            None => (self.bands[gap][1], self.bands[gap][1] + GAP),
        };
        let free = |&[x, y]: &[f64; 2]| {
            let own = [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0];
            let apart = |o: &[f64; 4]| own[0] >= o[2] || own[2] <= o[0] || own[1] >= o[3] || own[3] <= o[1];
            let inside = matches!(route, Route::Line(_)) || own[1] >= low && own[3] <= high;
            inside && taken[gap].iter().all(apart)
        };
        let place = [0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2].map(|t| route.at(t)).into_iter().find(free)?;
        let [x, y] = place;
        taken[gap].push([x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]);
        Some(place)
    }
}

impl Route {
    /// A point on the last piece between two ranks, for `t` from 0 to 1.
    fn at(&self, t: f64) -> [f64; 2] {
        let s = 1.0 - t;
        match self {
            Self::Steps(points) => {
                // The lowest gap is next to the end that is further down.
                let n = points.len();
                let down = points[0][1] < points[n - 1][1];
                let [a, b] = if down { [points[n - 3], points[n - 2]] } else { [points[2], points[1]] };
                let x = a[0] + (b[0] - a[0]) * t * t * (3.0 - 2.0 * t);
                let y = a[1] + (b[1] - a[1]) * (1.5 * s * s * t + 1.5 * s * t * t + t * t * t);
                [x, y]
            }
            Self::Line([a, b]) => [a[0] * s + b[0] * t, a[1] * s + b[1] * t],
            Self::Arc { ends: [a, b], y, depth } => [a[0] * s + b[0] * t, y + depth * 3.0 * s * t],
        }
    }
}
