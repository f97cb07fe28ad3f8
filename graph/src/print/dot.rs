//! Graphviz.

use super::{
    drawing::{Drawing, printable},
    element::{Edge, EdgeKind, Node, State},
    style,
};
use std::fmt::Write;

impl Drawing {
    /// The drawing in Graphviz' language. Clusters are subgraphs. Conflicts are dashed, have no arrowheads
    /// and put no constraint on the ranks of their ends.
    pub fn to_dot(&self) -> String {
        let mut out = format!("digraph {} {{\n", quoted(self.title()));
        let title = match self.note() {
            Some(note) => format!("{}\n{note}", self.title()),
            None => self.title().to_owned(),
        };
        writeln!(
            out,
            "  graph [label={}, labelloc=t, fontname=\"Helvetica\", newrank=true];",
            quoted(&title)
        )
        .unwrap();
        out += "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=11];\n";
        out += "  edge [fontname=\"Helvetica\", fontsize=10];\n";
        self.dot_nodes(None, "  ", &mut out);
        for (i, cluster) in self.clusters().into_iter().enumerate() {
            writeln!(out, "  subgraph cluster_{i} {{").unwrap();
            writeln!(
                out,
                "    label={}; style=\"rounded,filled\"; color=\"{}\";",
                quoted(cluster),
                style::LANE
            )
            .unwrap();
            self.dot_nodes(Some(cluster), "    ", &mut out);
            out += "  }\n";
        }
        for edge in self.edges() {
            out += &dot_edge(edge);
        }
        out + "}\n"
    }

    fn dot_nodes(&self, cluster: Option<&str>, indent: &str, out: &mut String) {
        for node in self.nodes().iter().filter(|n| n.cluster.as_deref() == cluster) {
            *out += &format!("{indent}{};\n", dot_node(node));
        }
    }
}

fn dot_node(node: &Node) -> String {
    let look = style::node(node.kind);
    let shape = match (look.round, node.state) {
        (true, _) => ", style=\"filled,rounded\"",
        (false, Some(State::Skipped)) => ", style=\"filled,dashed\"",
        _ => "",
    };
    let (line, width) = match style::state(node.state) {
        Some(line) => (line, ", penwidth=2.5"),
        None => (look.line, ""),
    };
    format!(
        "{} [label={}, fillcolor=\"{}\", color=\"{line}\", fontcolor=\"{}\"{width}{shape}]",
        quoted(&node.id),
        node_label(node),
        look.fill,
        look.text
    )
}

/// Centred lines for the headline and the name, left-aligned lines for the details.
fn node_label(node: &Node) -> String {
    let mut label = escaped(&node.headline(), "\\n");
    if !node.name.is_empty() {
        write!(label, "\\n{}", escaped(&node.name, "\\n")).unwrap();
    }
    if !node.details.is_empty() {
        label += "\\n";
    }
    for line in &node.details {
        write!(label, "{}\\l", escaped(line, "\\l")).unwrap();
    }
    format!("\"{label}\"")
}

fn dot_edge(edge: &Edge) -> String {
    let colour = style::edge(edge.kind);
    let mut attributes = format!("color=\"{colour}\", fontcolor=\"{colour}\", tooltip=\"{}\"", edge.kind);
    match edge.kind {
        EdgeKind::Conflict => attributes += ", style=dashed, dir=none, constraint=false",
        EdgeKind::Message => attributes += ", penwidth=2",
        _ => {}
    }
    if !edge.label.is_empty() {
        write!(attributes, ", label={}", quoted(&edge.label)).unwrap();
    }
    format!("  {} -> {} [{attributes}];\n", quoted(&edge.from), quoted(&edge.to))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text, "\\n"))
}

/// Escapes text for a quoted string: Graphviz reads backslashes as commands and ampersands as HTML entities.
fn escaped(text: &str, line_end: &str) -> String {
    let text = printable(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;");
    text.replace('\n', line_end)
}
