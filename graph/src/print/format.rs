//! The formats that a drawing can be rendered in.

use super::Drawing;
use std::{fmt, path::Path, str::FromStr};

/// How a drawing is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The language of Graphviz.
    Dot,
    /// A picture, laid out without the help of another program.
    Svg,
    /// A Mermaid flowchart.
    Mermaid,
    /// An object that programs can read.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Dot, Self::Svg, Self::Mermaid, Self::Json];

    /// The names by which the format is asked for, which are file extensions, too. The first is the usual extension.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Dot => &["dot", "gv"],
            Self::Svg => &["svg"],
            Self::Mermaid => &["mmd", "mermaid"],
            Self::Json => &["json"],
        }
    }

    /// The format that a file name's extension asks for.
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
    /// If there is no extension, or none that names a format.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, UnknownFormat> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|e| e.to_str());
        extension.and_then(Self::named).ok_or_else(|| UnknownFormat { asked: path.display().to_string() })
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.names().iter().any(|n| n.eq_ignore_ascii_case(name)))
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
    /// The drawing in a format.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Dot => self.to_dot(),
            Format::Svg => self.to_svg(),
            Format::Mermaid => self.to_mermaid(),
            Format::Json => self.to_json(),
        }
    }
}

/// A name or a path that stands for no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The name or the path.
    pub asked: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no format for graphs is known by {:?}; there are", self.asked)?;
        for (i, format) in Format::ALL.into_iter().enumerate() {
            write!(f, "{} {}", if i == 0 { "" } else { "," }, format.names().join(" or "))?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownFormat {}
