//! The values outside the grid.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The values outside the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edges {
    /// U = V = 0: both species are lost over the edge.
    #[default]
    Absorbing,
    /// The opposite side of the grid, which is a torus.
    Periodic,
    /// The nearest cell, repeated.
    Clamped,
}

impl Edges {
    /// All kinds of edges.
    pub const ALL: [Self; 3] = [Self::Absorbing, Self::Periodic, Self::Clamped];

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absorbing => "absorbing",
            Self::Periodic => "periodic",
            Self::Clamped => "clamped",
        }
    }

    /// Which of `len` rows (or columns) stands at `index`, which may lie outside the grid. `None` if no row
    /// does, and both species are 0 there.
    ///
    /// ```
    /// use gray_scott::model::Edges;
    /// assert_eq!(Edges::Absorbing.resolve(-1, 10), None);
    /// assert_eq!(Edges::Periodic.resolve(-1, 10), Some(9));
    /// assert_eq!(Edges::Clamped.resolve(-1, 10), Some(0));
    /// ```
    #[inline]
    pub fn resolve(self, index: isize, len: usize) -> Option<usize> {
        match usize::try_from(index) {
            Ok(inside) if inside < len => Some(inside),
            _ => match self {
                Self::Absorbing => None,
                Self::Periodic => Some(index.rem_euclid(len as isize) as usize),
                Self::Clamped => Some(index.clamp(0, len as isize - 1) as usize),
            },
        }
    }
}

impl fmt::Display for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is none of the [`Edges`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown edges '{name}': use absorbing, periodic or clamped")]
pub struct ParseEdgesError {
    /// The unknown name.
    pub name: String,
}

impl FromStr for Edges {
    type Err = ParseEdgesError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|edges| edges.name() == name);
        found.ok_or_else(|| ParseEdgesError { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_its_own_name() {
        for edges in Edges::ALL {
            assert_eq!(edges.to_string().parse(), Ok(edges));
            assert_eq!(serde_json::to_string(&edges).unwrap(), format!("\"{edges}\""));
        }
    }

    #[test]
    fn the_error_of_an_unknown_name_lists_the_kinds() {
        let error = "open".parse::<Edges>().unwrap_err();
        assert_eq!(error.to_string(), "unknown edges 'open': use absorbing, periodic or clamped");
    }

    #[test]
    fn indices_far_outside_wrap_or_are_clamped() {
        assert_eq!(Edges::Periodic.resolve(-7, 3), Some(2));
        assert_eq!(Edges::Periodic.resolve(8, 3), Some(2));
        assert_eq!(Edges::Clamped.resolve(8, 3), Some(2));
        assert_eq!(Edges::Absorbing.resolve(3, 3), None);
        assert_eq!(Edges::Absorbing.resolve(2, 3), Some(2));
    }
}
