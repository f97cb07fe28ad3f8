//! Drawings in every format: a small one word for word, text that needs escaping, bounds, and large graphs.

use anabranch_graph::print::{Drawing, Edge, EdgeKind, Format, Node, NodeKind, State, UnknownFormat};
use proptest::prelude::*;
use std::{io::Write as _, process, time::Duration, time::Instant};

/// A host task that saves what a kernel wrote, and two that exclude each other, on two nodes.
fn small() -> Drawing {
    let mut drawing = Drawing::new("small");
    drawing.push_node(Node::new("T0", NodeKind::Epoch, ""));
    drawing.push_node(Node::new("T1", NodeKind::Kernel, "init").detail("write u [0..5]").state(State::Done));
    drawing.push_node(Node::new("T2", NodeKind::HostTask, "save").detail("read u [0..5]").cluster("node 1"));
    drawing.push_edge(Edge::new("T0", "T1", EdgeKind::Serial));
    drawing.push_edge(Edge::new("T1", "T2", EdgeKind::True).label("u"));
    drawing.push_edge(Edge::new("T0", "T2", EdgeKind::Conflict).label("log"));
    drawing
}

/// Text with every character that one of the formats treats specially.
const NASTY: &str = "a \"b\" <c> & 'd' \\n \\N {e|f} #lt; `g` ]] --> %% ;\nÄ∇·u 温度 🌊\u{1}\t\r\nend";

fn nasty() -> Drawing {
    let mut drawing = Drawing::new(NASTY);
    drawing.push_node(Node::new(NASTY, NodeKind::Kernel, NASTY).detail(NASTY).cluster(NASTY));
    drawing.push_node(Node::new("end", NodeKind::Horizon, "").detail("").state(State::Failed));
    drawing.push_edge(Edge::new(NASTY, "end", EdgeKind::Message).label(NASTY));
    drawing
}

#[test]
fn dot() {
    assert_eq!(small().render(Format::Dot), DOT);
}

#[test]
fn mermaid() {
    assert_eq!(small().render(Format::Mermaid), MMD);
}

#[test]
fn json() {
    assert_eq!(small().render(Format::Json), JSON);
}

#[test]
fn svg() {
    assert_eq!(small().render(Format::Svg), SVG);
}

#[test]
fn text_that_graphviz_treats_specially_is_escaped() {
    let mut drawing = Drawing::new("");
    drawing.push_node(Node::new("T1", NodeKind::Kernel, "a \"b\" \\N &lt;\nc\u{7}").detail("d\ne"));
    let dot = drawing.to_dot();
    assert!(dot.contains(r#"label="T1 · kernel\na \"b\" \\N &amp;lt;\nc�\nd\le\l""#), "{dot}");
}

#[test]
fn text_that_mermaid_treats_specially_is_escaped() {
    let mut drawing = Drawing::new("a \"title\"\\");
    drawing.push_node(Node::new("T1", NodeKind::Kernel, "a \"b\" <c> #d; `e`\nf_g").detail("[0..5]"));
    let mermaid = drawing.to_mermaid();
    assert!(mermaid.starts_with("---\ntitle: \"a \\\"title\\\"\\\\\"\n---\n"), "{mermaid}");
    let label = "T1 · kernel<br/>a #34;b#34; #60;c#62; #35;d#59; #96;e#96;<br/>f#95;g<br/>[0..5]";
    assert!(mermaid.contains(&format!("n0[\"{label}\"]")), "{mermaid}");
}

#[test]
fn every_text_survives_json() {
    let value: serde_json::Value = serde_json::from_str(&nasty().to_json()).unwrap();
    assert_eq!(value["title"], NASTY);
    assert_eq!(value["note"], serde_json::Value::Null);
    assert_eq!(value["nodes"][0]["id"], NASTY);
    assert_eq!(value["nodes"][0]["details"][0], NASTY);
    assert_eq!(value["nodes"][0]["cluster"], NASTY);
    assert_eq!(value["nodes"][1]["kind"], "horizon");
    assert_eq!(value["nodes"][1]["state"], "failed");
    assert_eq!(value["edges"][0]["from"], NASTY);
    assert_eq!(value["edges"][0]["kind"], "message");
}

#[test]
fn svg_with_any_text_is_well_formed_and_shows_it() {
    let svg = nasty().to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> =
        document.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
    assert!(texts.contains(&"a \"b\" <c> & 'd' \\n \\N {e|f} #lt; `g…"), "{texts:?}");
    assert!(texts.contains(&"Ä∇·u 温度 🌊\u{fffd} "), "{texts:?}");
    let titles: Vec<_> =
        document.descendants().filter(|n| n.has_tag_name("title")).filter_map(|n| n.text()).collect();
    assert!(titles.iter().any(|t| t.contains("温度")), "{titles:?}");
}

#[test]
fn empty_drawings_are_drawings() {
    let drawing = Drawing::new("");
    assert!(roxmltree::Document::parse(&drawing.to_svg()).is_ok());
    assert!(drawing.to_dot().ends_with("}\n"));
    assert!(drawing.to_mermaid().ends_with("flowchart TB\n"));
    let value: serde_json::Value = serde_json::from_str(&drawing.to_json()).unwrap();
    assert_eq!(value["nodes"], serde_json::json!([]));
}

#[test]
fn graphviz_accepts_the_dot() {
    let _deadline = testing::deadline();
    for drawing in [small(), nasty(), Drawing::new("empty")] {
        let pipe = process::Stdio::piped;
        let child = process::Command::new("dot").arg("-Tsvg").stdin(pipe()).stdout(pipe()).spawn();
        let Ok(mut child) = child else {
            // Not captured by the test harness, so that `./check` lists it.
            let _ = writeln!(std::io::stderr(), "skipped: there is no `dot` on this machine");
            return;
        };
        child.stdin.take().unwrap().write_all(drawing.to_dot().as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success(), "{}", drawing.to_dot());
    }
}

#[test]
fn formats_are_named_by_their_extensions() {
    for (name, format) in
        [("dot", Format::Dot), ("gv", Format::Dot), ("SVG", Format::Svg), ("json", Format::Json)]
    {
        assert_eq!(name.parse(), Ok(format));
        assert_eq!(Format::from_path(format!("/tmp/a.b/graph.{name}")), Ok(format));
    }
    assert_eq!("mermaid".parse(), Ok(Format::Mermaid));
    assert_eq!("mmd".parse(), Ok(Format::Mermaid));
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
}

#[test]
fn the_error_for_an_unknown_format_lists_all_formats() {
    let error = "png".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"png\" names no format for graphs; use one of dot or gv, svg, mmd or mermaid, json"
    );
    assert_eq!(Format::from_path("svg"), Err(UnknownFormat { asked: "svg".into() }));
}

#[test]
fn a_full_drawing_counts_what_it_leaves_out() {
    let mut drawing = Drawing::with_limit("tasks", 2);
    let kept: Vec<_> =
        (0..5).map(|i| drawing.push_node(Node::new(format!("T{i}"), NodeKind::Kernel, ""))).collect();
    assert_eq!(kept, [true, true, false, false, false]);
    assert!(drawing.is_full());
    assert!(drawing.push_edge(Edge::new("T0", "T1", EdgeKind::True)));
    assert!(!drawing.push_edge(Edge::new("T1", "T2", EdgeKind::True)));
    assert!(drawing.push_node(Node::new("T1", NodeKind::Kernel, "known")), "a known node is replaced");
    assert!(drawing.set_state("T1", State::Done) && !drawing.set_state("T4", State::Done));

    let note = "the first 2 nodes only: 3 more and 1 edge left out";
    assert_eq!(drawing.note().as_deref(), Some(note));
    for format in Format::ALL {
        assert!(drawing.render(format).contains(note), "{format}");
    }
}

#[test]
fn an_edge_without_an_end_is_counted() {
    let mut drawing = Drawing::new("");
    drawing.push_node(Node::new("T0", NodeKind::Kernel, ""));
    assert!(!drawing.push_edge(Edge::new("T0", "T9", EdgeKind::True)));
    assert_eq!(drawing.note().as_deref(), Some("1 edge left out"));
}

#[test]
fn edges_are_bounded_like_nodes() {
    let mut drawing = Drawing::with_limit("", 2);
    drawing.push_node(Node::new("T0", NodeKind::Kernel, ""));
    drawing.push_node(Node::new("T1", NodeKind::Kernel, ""));
    let kept = (0..100).filter(|_| drawing.push_edge(Edge::new("T0", "T1", EdgeKind::True))).count();
    assert_eq!((kept, drawing.edges().len()), (20, 20));
    assert_eq!(drawing.note().as_deref(), Some("80 edges left out"));
}

#[test]
fn conflicts_have_no_direction() {
    let mut drawing = Drawing::new("");
    drawing.push_node(Node::new("A", NodeKind::HostTask, ""));
    drawing.push_node(Node::new("B", NodeKind::HostTask, ""));
    drawing.push_edge(Edge::new("A", "B", EdgeKind::Conflict));
    assert!(drawing.to_dot().contains("style=dashed, dir=none"));
    assert!(drawing.to_mermaid().contains("n0 -.- n1"));
    let svg = drawing.to_svg();
    assert!(svg.contains("stroke-dasharray") && !svg.contains("marker"), "{svg}");
}

/// Left, top, right and bottom of the first rectangle of an element.
fn frame(node: roxmltree::Node) -> [f64; 4] {
    let rect = node.descendants().find(|n| n.has_tag_name("rect")).unwrap();
    let number = |name| rect.attribute(name).unwrap_or("0").parse::<f64>().unwrap();
    let [x, y] = [number("x"), number("y")];
    [x, y, x + number("width"), y + number("height")]
}

fn random_drawings() -> impl Strategy<Value = Drawing> {
    let nodes = prop::collection::vec((0..9_usize, "[a-z \"<&]{0,60}", 0..4_usize, 0..3_usize), 1..40);
    let edges = prop::collection::vec((0..40_usize, 0..40_usize, 0..6_usize, "[a-z]{0,8}"), 0..100);
    (nodes, edges, any::<bool>()).prop_map(|(nodes, edges, clustered)| {
        let mut drawing = Drawing::new("random");
        for (i, (kind, name, details, cluster)) in nodes.into_iter().enumerate() {
            let mut node = Node::new(format!("T{i}"), NodeKind::ALL[kind], name);
            node.details = (0..details).map(|d| format!("read buffer {d} [0..5, 0..{i}]")).collect();
            node.cluster = (clustered && cluster > 0).then(|| format!("node {cluster}"));
            drawing.push_node(node);
        }
        for (a, b, kind, label) in edges {
            let (from, to) = (format!("T{}", a.min(b)), format!("T{}", a.max(b)));
            drawing.push_edge(Edge::new(from, to, EdgeKind::ALL[kind]).label(label));
        }
        drawing
    })
}

proptest! {
    // 64, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(4), ..ProptestConfig::default() })]

    #[test]
    fn a_picture_shows_all_nodes_and_none_hides_another(drawing in random_drawings()) {
        let svg = drawing.to_svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let page = frame(document.root_element());
        let is_node = |n: &roxmltree::Node| n.attribute("class") == Some("node");
        let frames: Vec<_> = document.descendants().filter(is_node).map(frame).collect();
        prop_assert_eq!(frames.len(), drawing.nodes().len());
        for (i, a) in frames.iter().enumerate() {
            prop_assert!(a[0] > page[0] && a[1] > page[1] && a[2] < page[2] && a[3] < page[3]);
            for b in &frames[i + 1..] {
                prop_assert!(a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3]);
            }
        }
        let edges = document.descendants().filter(|n| n.attribute("class") == Some("edge")).count();
        prop_assert_eq!(edges, drawing.edges().len());
    }

    #[test]
    fn json_can_be_read_back(drawing in random_drawings()) {
        let value: serde_json::Value = serde_json::from_str(&drawing.to_json()).unwrap();
        prop_assert_eq!(value["nodes"].as_array().unwrap().len(), drawing.nodes().len());
        for (edge, read) in drawing.edges().iter().zip(value["edges"].as_array().unwrap()) {
            prop_assert_eq!(&read["from"], edge.from.as_str());
            prop_assert_eq!(&read["label"], edge.label.as_str());
        }
    }

    #[test]
    fn the_same_drawing_gives_the_same_picture(drawing in random_drawings()) {
        prop_assert_eq!(drawing.to_svg(), drawing.clone().to_svg());
    }
}

/// A graph in which every node depends on three earlier ones, some of them far back.
fn large(nodes: usize) -> Drawing {
    let mut drawing = Drawing::with_limit("large", nodes);
    let mut seed = 1_u64;
    for i in 0..nodes {
        drawing.push_node(Node::new(format!("T{i}"), NodeKind::Kernel, "step").detail("update u [0..5]"));
        for reach in [8, 30, 200].into_iter().filter(|_| i > 0) {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let back = (seed >> 33) as usize % reach.min(i) + 1;
            let (from, to) = (format!("T{}", i - back), format!("T{i}"));
            drawing.push_edge(Edge::new(from, to, EdgeKind::True).label("u"));
        }
    }
    drawing
}

#[test]
fn five_hundred_nodes_are_drawn_quickly() {
    let drawing = large(500);
    let start = Instant::now();
    let svg = drawing.to_svg();
    let took = start.elapsed();
    eprintln!("500 nodes, {} edges: {took:?}, {} KiB", drawing.edges().len(), svg.len() >> 10);
    let bound = if cfg!(debug_assertions) { 10 } else { 1 };
    assert!(took < Duration::from_secs(bound), "{took:?}");
}

// The small drawing in every format, word for word.

const DOT: &str = r##"digraph "small" {
  graph [label="small", labelloc=t, fontname="Helvetica", newrank=true];
  node [shape=box, style=filled, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  "T0" [label="T0 · epoch", fillcolor="#3e4c59", color="#1f2933", fontcolor="#ffffff", style="filled,rounded"];
  "T1" [label="T1 · kernel · done\ninit\nwrite u [0..5]\l", fillcolor="#dbeafe", color="#3b6fb6", fontcolor="#1f2933"];
  subgraph cluster_0 {
    label="node 1"; style="rounded,filled"; color="#f1f3f5";
    "T2" [label="T2 · host task\nsave\nread u [0..5]\l", fillcolor="#fdecc8", color="#b7791f", fontcolor="#1f2933"];
  }
  "T0" -> "T1" [color="#8a5fbf", fontcolor="#8a5fbf", tooltip="serial"];
  "T1" -> "T2" [color="#1f2933", fontcolor="#1f2933", tooltip="true", label="u"];
  "T0" -> "T2" [color="#d11a2a", fontcolor="#d11a2a", tooltip="conflict", style=dashed, dir=none, constraint=false, label="log"];
}
"##;

const MMD: &str = r##"---
title: "small"
---
flowchart TB
  n0(["T0 · epoch"])
  n1["T1 · kernel · done<br/>init<br/>write u [0..5]"]
  subgraph c0["node 1"]
    n2["T2 · host task<br/>save<br/>read u [0..5]"]
  end
  n0 --> n1
  n1 -->|"u"| n2
  n0 -.-|"log"| n2
  classDef k0 fill:#dbeafe,stroke:#3b6fb6,color:#1f2933
  class n1 k0
  classDef k1 fill:#fdecc8,stroke:#b7791f,color:#1f2933
  class n2 k1
  classDef k2 fill:#3e4c59,stroke:#1f2933,color:#ffffff
  class n0 k2
  linkStyle 1 stroke:#1f2933
  linkStyle 0 stroke:#8a5fbf
  linkStyle 2 stroke:#d11a2a
"##;

const JSON: &str = r##"{
  "title": "small",
  "note": null,
  "nodes": [
    {"id": "T0", "kind": "epoch", "name": "", "details": [], "cluster": null, "state": null},
    {"id": "T1", "kind": "kernel", "name": "init", "details": ["write u [0..5]"], "cluster": null, "state": "done"},
    {"id": "T2", "kind": "host task", "name": "save", "details": ["read u [0..5]"], "cluster": "node 1", "state": null}
  ],
  "edges": [
    {"from": "T0", "to": "T1", "kind": "serial", "label": ""},
    {"from": "T1", "to": "T2", "kind": "true", "label": "u"},
    {"from": "T0", "to": "T2", "kind": "conflict", "label": "log"}
  ]
}
"##;

const SVG: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="411" height="429" viewBox="0 0 411 429" font-family="'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif" xml:space="preserve" aria-label="small">
<rect width="411" height="429" rx="8" fill="#fcfcfb"/>
<marker id="anabranch-true" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#1f2933"/></marker>
<marker id="anabranch-serial" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#8a5fbf"/></marker>
<text x="24" y="38" font-size="16" fill="#1f2933" font-weight="600">small</text>
<rect class="lane" x="242" y="56" width="145" height="300.3" rx="8" fill="#f1f3f5" stroke="#cbd2d9"/>
<text x="254" y="76" font-size="12" font-weight="600" fill="#52606d">node 1</text>
<path class="edge" d="M144.2 116L144.2 161.7" fill="none" stroke="#8a5fbf" stroke-width="1.3" marker-end="url(#anabranch-serial)"><title>T0 → T1 (serial)</title></path>
<path class="edge" d="M146.7 220.7C146.7 251 277.8 251 277.8 281.3" fill="none" stroke="#1f2933" stroke-width="1.3" marker-end="url(#anabranch-true)"><title>T1 → T2 (true, u)</title></path>
<path class="edge" d="M186.9 116C186.9 138.9 194 138.9 194 161.7L194 220.7C194 251 291.8 251 291.8 281.3" fill="none" stroke="#d11a2a" stroke-width="1.3" stroke-dasharray="5 4"><title>T0 – T2 (conflict, log)</title></path>
<g font-family="'DejaVu Sans Mono', Menlo, Consolas, monospace">
<g class="node"><title>T0 · epoch</title>
<rect x="123" y="90" width="85" height="26" rx="14" fill="#3e4c59" stroke="#1f2933" stroke-width="1.2"/>
<text x="135" y="106" font-size="10" fill="#ffffff" fill-opacity="0.8">T0 · epoch</text>
</g>
<g class="node"><title>T1 · kernel · done
init
write u [0..5]</title>
<rect x="42" y="161.7" width="133" height="59" rx="4" fill="#dbeafe" stroke="#3b6fb6" stroke-width="1.2"/>
<text x="54" y="177.7" font-size="10" fill="#1f2933" fill-opacity="0.8">T1 · kernel · done</text>
<text x="54" y="195.7" font-size="13" fill="#1f2933" font-weight="700">init</text>
<text x="54" y="210.7" font-size="10.5" fill="#1f2933">write u [0..5]</text>
</g>
<g class="node"><title>T2 · host task
save
read u [0..5]</title>
<rect x="260" y="281.3" width="109" height="59" rx="4" fill="#fdecc8" stroke="#b7791f" stroke-width="1.2"/>
<text x="272" y="297.3" font-size="10" fill="#1f2933" fill-opacity="0.8">T2 · host task</text>
<text x="272" y="315.3" font-size="13" fill="#1f2933" font-weight="700">save</text>
<text x="272" y="330.3" font-size="10.5" fill="#1f2933">read u [0..5]</text>
</g>
<g text-anchor="middle" font-size="10" stroke="#f1f3f5" stroke-width="4" stroke-linejoin="round" paint-order="stroke">
<text x="212.2" y="254.5" fill="#1f2933">u</text>
<text x="242.9" y="254.5" fill="#d11a2a">log</text>
</g>
</g>
<rect x="24" y="378.3" width="18" height="12" rx="2" fill="#dbeafe" stroke="#3b6fb6"/><text x="48" y="388.3" font-size="11" fill="#52606d">kernel</text>
<rect x="103.6" y="378.3" width="18" height="12" rx="2" fill="#fdecc8" stroke="#b7791f"/><text x="127.6" y="388.3" font-size="11" fill="#52606d">host task</text>
<rect x="203" y="378.3" width="18" height="12" rx="6" fill="#3e4c59" stroke="#1f2933"/><text x="227" y="388.3" font-size="11" fill="#52606d">epoch</text>
<path d="M276 384.3h28" fill="none" stroke="#1f2933" stroke-width="1.3" marker-end="url(#anabranch-true)"/><text x="312" y="388.3" font-size="11" fill="#52606d">true</text>
<path d="M24 404.3h28" fill="none" stroke="#8a5fbf" stroke-width="1.3" marker-end="url(#anabranch-serial)"/><text x="60" y="408.3" font-size="11" fill="#52606d">serial</text>
<path d="M115.6 404.3h28" fill="none" stroke="#d11a2a" stroke-width="1.3" stroke-dasharray="5 4"/><text x="151.6" y="408.3" font-size="11" fill="#52606d">conflict</text>
</svg>
"##;
