//! Pictures of graphs: a [`Drawing`] is filled node by node and rendered in one of several [`Format`]s.
//!
//! A drawing holds plain text and does not depend on buffers or tasks, so it serves task graphs and command
//! graphs alike, whether they are complete or still growing. A drawing is bounded: it counts the nodes beyond
//! its limit instead of keeping them, and every picture says how many it leaves out.
//!
//! This module needs the feature `print`, which is on by default.
//!
//! | format | extension | for |
//! |---|---|---|
//! | [`Format::Svg`] | `svg` | browsers and documents; laid out here, no other program is needed |
//! | [`Format::Dot`] | `dot`, `gv` | Graphviz |
//! | [`Format::Mermaid`] | `mmd`, `mermaid` | Markdown pages that draw Mermaid |
//! | [`Format::Json`] | `json` | programs; the shape is described at [`Drawing::to_json`] |
//!
//! ```
//! use anabranch_graph::print::{Drawing, Edge, EdgeKind, Format, Node, NodeKind};
//!
//! let mut drawing = Drawing::new("two tasks");
//! drawing.push_node(Node::new("T1", NodeKind::Kernel, "init").detail("write u [0..5]"));
//! drawing.push_node(Node::new("T2", NodeKind::HostTask, "save").detail("read u [0..5]"));
//! drawing.push_edge(Edge::new("T1", "T2", EdgeKind::True).label("u"));
//!
//! let format: Format = "dot".parse()?;
//! assert!(drawing.render(format).starts_with("digraph \"two tasks\" {"));
//! # Ok::<(), anabranch_graph::print::UnknownFormat>(())
//! ```

mod dot;
mod drawing;
mod element;
mod format;
mod json;
mod layout;
mod mermaid;
mod style;
mod svg;

pub use drawing::{DEFAULT_LIMIT, Drawing};
pub use element::{Edge, EdgeKind, Node, NodeKind, State};
pub use format::{Format, UnknownFormat};
