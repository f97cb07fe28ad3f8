use super::{Item, Layout, Link, Route, lay_out};
use proptest::prelude::*;

/// Graphs of up to `most` items in up to three lanes; some edges close cycles, some are undirected.
fn graphs(most: usize) -> impl Strategy<Value = (Vec<Item>, Vec<Link>)> {
    let item = (40.0..220.0, 26.0..140.0, 0..3_usize);
    let item = item.prop_map(|(width, height, lane)| Item { width, height, lane });
    let items = prop_oneof![
        prop::collection::vec(item.clone().prop_map(|i| Item { lane: 0, ..i }), 2..most),
        prop::collection::vec(item, 2..most)
    ];
    items.prop_flat_map(|items| {
        let label = prop::option::of((8.0..90.0).prop_map(|width| [width, 12.0]));
        let n = items.len();
        let link = (0..n, 0..n, 0..8_usize, label).prop_filter_map("a loop", move |(a, b, kind, label)| {
            let ends = if kind == 0 { [a.max(b), a.min(b)] } else { [a.min(b), a.max(b)] };
            (a != b).then_some(Link {
                ends,
                directed: kind < 6,
                group: (kind < 7).then_some(kind / 2),
                label,
            })
        });
        (Just(items), prop::collection::vec(link, 0..3 * n))
    })
}

fn laid_out(items: &[Item], links: &[Link]) -> Layout {
    let lanes = items.iter().map(|i| i.lane + 1).max().unwrap_or(1);
    lay_out(items, links, &vec![0.0; lanes], lanes > 1)
}

/// Left, top, right, bottom.
fn frames(items: &[Item], layout: &Layout) -> Vec<[f64; 4]> {
    let frame = |(i, c): (&Item, &[f64; 2])| [c[0], c[1], c[0] + i.width, c[1] + i.height];
    items.iter().zip(&layout.corners).map(frame).collect()
}

fn meet(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Within a frame, but for the error of rounding.
fn within(a: [f64; 4], frame: [f64; 4]) -> bool {
    let slack = 1e-6;
    a[0] > frame[0] - slack && a[1] > frame[1] - slack && a[2] < frame[2] + slack && a[3] < frame[3] + slack
}

/// Points along the whole way.
fn points(route: &Route) -> Vec<[f64; 2]> {
    let steps = |n: usize| (0..=n).map(move |i| i as f64 / n as f64);
    let between = |a: f64, b: f64, t: f64| a + (b - a) * t;
    match route {
        Route::Line([a, b]) => steps(20).map(|t| [between(a[0], b[0], t), between(a[1], b[1], t)]).collect(),
        Route::Arc { ends: [a, b], y, depth } => {
            let down =
                |end: &[f64; 2]| steps(10).map(|t| [end[0], between(end[1], *y, t)]).collect::<Vec<_>>();
            let across = steps(20).map(|t| [between(a[0], b[0], t), y + 3.0 * depth * t * (1.0 - t)]);
            [down(a), across.collect(), down(b).into_iter().rev().collect()].concat()
        }
        Route::Steps(points) => {
            let piece = |pair: &[[f64; 2]]| {
                let [a, b] = [pair[0], pair[1]];
                steps(20)
                    .map(move |t| [between(a[0], b[0], t * t * (3.0 - 2.0 * t)), between(a[1], b[1], t)])
                    .collect::<Vec<_>>()
            };
            points.windows(2).flat_map(piece).collect()
        }
    }
}

proptest! {
    // 96, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig { cases: (ProptestConfig::default().cases * 3).div_ceil(8), ..ProptestConfig::default() })]

    #[test]
    fn items_do_not_touch_and_are_inside((items, links) in graphs(60)) {
        let layout = laid_out(&items, &links);
        let frames = frames(&items, &layout);
        for (i, a) in frames.iter().enumerate() {
            let grown = [a[0] - 10.0, a[1] - 10.0, a[2] + 10.0, a[3] + 10.0];
            for b in &frames[i + 1..] {
                prop_assert!(!meet(grown, *b), "{a:?} and {b:?}");
            }
            let [left, right] = layout.lanes[items[i].lane];
            prop_assert!(within(*a, [left, 0.0, right, layout.height]) && right <= layout.width, "{a:?}");
        }
    }

    #[test]
    fn edges_join_their_ends_and_pass_by_all_others((items, links) in graphs(40)) {
        let layout = laid_out(&items, &links);
        let frames = frames(&items, &layout);
        for (link, route) in links.iter().zip(&layout.routes) {
            let points = points(route);
            for (end, point) in link.ends.into_iter().zip([&points[0], &points[points.len() - 1]]) {
                let [x, y] = *point;
                prop_assert!(within([x, y, x, y], frames[end]), "{route:?}");
            }
            for (i, f) in frames.iter().enumerate() {
                let inner = [f[0] + 0.1, f[1] + 0.1, f[2] - 0.1, f[3] - 0.1];
                let inside = |p: &[f64; 2]| p[0] > inner[0] && p[0] < inner[2] && p[1] > inner[1] && p[1] < inner[3];
                prop_assert!(!points.iter().any(inside), "{route:?} runs through item {i}, {f:?}");
            }
        }
    }

    #[test]
    fn edges_lead_downwards_unless_there_is_a_cycle((items, links) in graphs(40)) {
        let forward = |l: &Link| !l.directed || l.ends[0] < l.ends[1];
        let links: Vec<Link> = links.into_iter().filter(forward).collect();
        let layout = laid_out(&items, &links);
        let frames = frames(&items, &layout);
        for link in links.iter().filter(|l| l.directed) {
            prop_assert!(frames[link.ends[0]][3] < frames[link.ends[1]][1]);
        }
    }

    #[test]
    fn labels_lie_on_no_item_and_not_on_each_other((items, links) in graphs(40)) {
        let layout = laid_out(&items, &links);
        let label = |(link, place): (&Link, &Option<[f64; 2]>)| {
            let ([width, height], [x, y]) = (link.label?, (*place)?);
            Some([x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0])
        };
        let labels: Vec<_> = links.iter().zip(&layout.labels).filter_map(label).collect();
        for (i, &a) in labels.iter().enumerate() {
            prop_assert!(!frames(&items, &layout).iter().any(|&f| meet(a, f)), "on an item");
            prop_assert!(!labels[i + 1..].iter().any(|&b| meet(a, b)), "on another label");
        }
    }
}

#[test]
fn a_chain_is_straight() {
    let items = [100.0, 60.0, 180.0].map(|width| Item { width, height: 40.0, lane: 0 });
    let links = [[0, 1], [1, 2]].map(|ends| Link { ends, directed: true, group: Some(0), label: None });
    let layout = laid_out(&items, &links);
    for route in layout.routes {
        let Route::Steps(points) = route else { panic!("{route:?}") };
        assert!(points.iter().all(|p| p[0] == points[0][0]), "{points:?}");
    }
}

#[test]
fn many_independent_tasks_fill_a_page_and_not_a_line() {
    let items = vec![Item { width: 150.0, height: 60.0, lane: 0 }; 201];
    let links: Vec<_> =
        (1..201).map(|i| Link { ends: [0, i], directed: true, group: Some(0), label: None }).collect();
    let layout = laid_out(&items, &links);
    assert!(layout.width < 3.0 * layout.height && layout.height < 3.0 * layout.width, "{layout:?}");
}

#[test]
fn nothing_takes_no_room() {
    let layout = laid_out(&[], &[]);
    assert_eq!((layout.width, layout.height), (0.0, 0.0));
}
