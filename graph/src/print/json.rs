//! JSON, for other programs.
//!
//! It is written by hand: `serde_json` among the dependencies adds implementations of `PartialEq` for the
//! primitive types, and comparisons such as `slice == []` then fail to infer their types in every program
//! that uses this crate.

use super::drawing::Drawing;
use std::fmt::{Display, Write};

impl Drawing {
    /// The drawing as a JSON object.
    ///
    /// ```json
    /// {
    ///   "title": "tasks",
    ///   "note": null,
    ///   "nodes": [
    ///     {"id": "T1", "kind": "kernel", "name": "init", "details": ["write u [0..5]"], "cluster": null, "state": "done"}
    ///   ],
    ///   "edges": [
    ///     {"from": "T1", "to": "T2", "kind": "true", "label": "u"}
    ///   ]
    /// }
    /// ```
    ///
    /// `note`, `cluster` and `state` are a string or `null`; all other values are a string or a list. Kinds
    /// and states are the words that [`NodeKind`](super::NodeKind), [`EdgeKind`](super::EdgeKind) and
    /// [`State`](super::State) display. Nodes and edges stand in the order in which they were added.
    pub fn to_json(&self) -> String {
        let nodes = self.nodes().iter().map(|node| {
            let details = node.details.iter().map(string).collect::<Vec<_>>().join(", ");
            format!(
                r#"{{"id": {}, "kind": {}, "name": {}, "details": [{details}], "cluster": {}, "state": {}}}"#,
                string(&node.id),
                string(node.kind),
                string(&node.name),
                optional(node.cluster.as_ref()),
                optional(node.state),
            )
        });
        let edges = self.edges().iter().map(|edge| {
            let [from, to] = [string(&edge.from), string(&edge.to)];
            let [kind, label] = [string(edge.kind), string(&edge.label)];
            format!(r#"{{"from": {from}, "to": {to}, "kind": {kind}, "label": {label}}}"#)
        });
        format!(
            "{{\n  \"title\": {},\n  \"note\": {},\n  \"nodes\": {},\n  \"edges\": {}\n}}\n",
            string(self.title()),
            optional(self.note()),
            list(nodes),
            list(edges),
        )
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = items.map(|item| format!("\n    {item}")).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[{}\n  ]", lines.join(",")) }
}

fn optional(text: Option<impl Display>) -> String {
    text.map_or_else(|| "null".to_owned(), string)
}

fn string(text: impl Display) -> String {
    let mut quoted = String::from('"');
    for c in text.to_string().chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => write!(quoted, "\\u{:04x}", c as u32).expect("a String takes all text"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
