//! The formats that a drawing can be rendered in.

use super::drawing::Drawing;
use std::{fmt, path::Path, str::FromStr};

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The language of Graphviz.
    Dot,
    /// A picture, laid out by this crate.
    Svg,
    /// A Mermaid flowchart.
    Mermaid,
    /// An object that programs can read.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Dot, Self::Svg, Self::Mermaid, Self::Json];

    /// The names of the format, which are also file extensions. The first is the usual extension.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Dot => &["dot", "gv"],
            Self::Svg => &["svg"],
            Self::Mermaid => &["mmd", "mermaid"],
            Self::Json => &["json"],
        }
    }

    /// The format that belongs to a file name's extension.
    ///
    /// ```
    /// use anabranch_graph::print::Format;
    ///
    /// assert_eq!(Format::from_path("graphs/tasks.svg"), Ok(Format::Svg));
    /// assert!(Format::from_path("tasks.png").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// If the path has no extension, or one that names no format.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, UnknownFormat> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|e| e.to_str());
        extension.and_then(Self::named).ok_or_else(|| UnknownFormat { asked: path.display().to_string() })
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.names().iter().any(|n| n.eq_ignore_ascii_case(name)))
    }

    /// The names of all formats, for messages.
    fn list() -> String {
        Self::ALL.map(|format| format.names().join(" or ")).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dot => "dot",
            Self::Svg => "svg",
            Self::Mermaid => "mermaid",
            Self::Json => "json",
        })
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::named(name).ok_or_else(|| UnknownFormat { asked: name.to_owned() })
    }
}

impl Drawing {
    /// Renders the drawing in a format.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Dot => self.to_dot(),
            Format::Svg => self.to_svg(),
            Format::Mermaid => self.to_mermaid(),
            Format::Json => self.to_json(),
        }
    }
}

/// The error for a name or a path that belongs to no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked:?} names no format for graphs; use one of {}", Format::list())]
pub struct UnknownFormat {
    /// The name or the path.
    pub asked: String,
}
