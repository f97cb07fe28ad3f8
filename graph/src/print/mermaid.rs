//! Mermaid flowcharts, for Markdown pages.

use super::{
    drawing::{Drawing, printable},
    element::{Edge, EdgeKind, Node, NodeKind, State},
    style,
};

impl Drawing {
    /// The drawing as a Mermaid flowchart.
    ///
    /// Mermaid draws no legend. Colours tell the kinds of edges apart; conflicts are dashed and have no
    /// arrowheads.
    pub fn to_mermaid(&self) -> String {
        let mut lines =
            vec!["---".to_owned(), format!("title: {}", quoted_title(self.title())), "---".to_owned()];
        lines.push("flowchart TB".to_owned());
        if let Some(note) = self.note() {
            lines.push(format!("  note[\"{}\"]", escaped(&note)));
        }
        let members = |cluster: Option<&str>| -> Vec<String> {
            let all = self.nodes().iter().enumerate();
            all.filter(|(_, n)| n.cluster.as_deref() == cluster).map(|(i, n)| node(i, n)).collect()
        };
        lines.extend(members(None).iter().map(|line| format!("  {line}")));
        for (i, cluster) in self.clusters().into_iter().enumerate() {
            lines.push(format!("  subgraph c{i}[\"{}\"]", escaped(cluster)));
            lines.extend(members(Some(cluster)).iter().map(|line| format!("    {line}")));
            lines.push("  end".to_owned());
        }
        lines.extend(self.edges().iter().zip(self.ends()).map(|(e, &ends)| format!("  {}", edge(e, ends))));
        self.mermaid_styles(&mut lines);
        lines.join("\n") + "\n"
    }

    fn mermaid_styles(&self, lines: &mut Vec<String>) {
        let joined = |numbers: Vec<String>| numbers.join(",");
        let (kinds, edge_kinds) = self.kinds();
        for (class, kind) in kinds.into_iter().enumerate() {
            let look = style::node(kind);
            lines.push(format!(
                "  classDef k{class} fill:{},stroke:{},color:{}",
                look.fill, look.line, look.text
            ));
            let nodes = self.nodes().iter().enumerate().filter(|(_, n)| n.kind == kind);
            lines.push(format!("  class {} k{class}", joined(nodes.map(|(i, _)| format!("n{i}")).collect())));
        }
        for (i, node) in self.nodes().iter().enumerate() {
            if let Some(line) = style::state(node.state) {
                let dash = if node.state == Some(State::Skipped) { ",stroke-dasharray:4 3" } else { "" };
                lines.push(format!("  style n{i} stroke:{line},stroke-width:3px{dash}"));
            }
        }
        for kind in edge_kinds {
            let edges = self.edges().iter().enumerate().filter(|(_, e)| e.kind == kind);
            let numbers = joined(edges.map(|(i, _)| i.to_string()).collect());
            lines.push(format!("  linkStyle {numbers} stroke:{}", style::edge(kind)));
        }
    }
}

fn node(i: usize, node: &Node) -> String {
    let mut text = vec![node.headline()];
    text.extend((!node.name.is_empty()).then(|| node.name.clone()));
    text.extend(node.details.iter().cloned());
    let text = escaped(&text.join("\n"));
    match node.kind {
        NodeKind::Epoch | NodeKind::Horizon => format!("n{i}([\"{text}\"])"),
        _ => format!("n{i}[\"{text}\"]"),
    }
}

fn edge(edge: &Edge, [from, to]: [usize; 2]) -> String {
    let arrow = match edge.kind {
        EdgeKind::Conflict => "-.-",
        EdgeKind::Message => "==>",
        _ => "-->",
    };
    let label = escaped(&edge.label);
    let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
    format!("n{from} {arrow}{label} n{to}")
}

/// Escapes text for a label: Mermaid reads labels as HTML with character codes of its own, `#…;`, so every
/// character that could be markup becomes such a code.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' => out.push_str("<br/>"),
            '"' | '#' | '&' | '<' | '>' | '\\' | '`' | '*' | '_' | '|' | ';' => {
                out.push_str(&format!("#{};", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

/// Quotes the title, which stands in a YAML header.
fn quoted_title(title: &str) -> String {
    let text = printable(title).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    format!("\"{text}\"")
}
