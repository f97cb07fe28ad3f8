//! JSON, for other programs.

use super::drawing::Drawing;
use serde_json::{Value, json};

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
    /// `note`, `cluster` and `state` are a string or `null`; all other values are a string or a list. Kinds and states
    /// are the words that [`NodeKind`](super::NodeKind), [`EdgeKind`](super::EdgeKind) and [`State`](super::State)
    /// display. Nodes and edges stand in the order in which they were added, one on each line. The order of an object's
    /// members means nothing.
    pub fn to_json(&self) -> String {
        let nodes = self.nodes().iter().map(|node| {
            json!({
                "id": node.id,
                "kind": node.kind.to_string(),
                "name": node.name,
                "details": node.details,
                "cluster": node.cluster,
                "state": node.state.map(|state| state.to_string()),
            })
        });
        let edges = self.edges().iter().map(|edge| {
            json!({"from": edge.from, "to": edge.to, "kind": edge.kind.to_string(), "label": edge.label})
        });
        format!(
            "{{\n  \"title\": {},\n  \"note\": {},\n  \"nodes\": {},\n  \"edges\": {}\n}}\n",
            json!(self.title()),
            json!(self.note()),
            list(nodes),
            list(edges),
        )
    }
}

fn list(items: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = items.map(|item| format!("\n    {item}")).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[{}\n  ]", lines.join(",")) }
}
