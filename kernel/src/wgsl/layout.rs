//! What the block of a shader has, and where.

use super::{names::name, points::HEAD};
use crate::{number::Kind, operation::Load};
use std::fmt::Write as _;

/// Where a shader has its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlace {
    /// In the command itself: WGSL calls this immediate data.
    Immediate,
    /// In a uniform buffer, which is binding 0.
    Uniform,
    /// In a storage buffer that is read, which is binding 0: the block has more than 16 KiB.
    Storage,
}

/// The largest block that is a uniform buffer: every device takes as much.
pub(crate) const UNIFORM: usize = 16 << 10;

/// The fields of the block.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The operands whose extents the shader wants.
    pub(super) extents: Vec<usize>,
    /// The periodic loads, by their numbers: the shader wants their offsets modulo the extent.
    pub(super) shifts: Vec<(usize, Load)>,
    /// The literals that the shader wants. Those of 8 bytes are behind the others.
    pub(super) parameters: Vec<(u32, Kind)>,
    pub(super) bytes: usize,
    /// The most bytes of immediate data.
    immediates: usize,
}

pub(crate) fn width(kind: Kind) -> usize {
    if matches!(kind, Kind::F64 | Kind::I64 | Kind::U64) { 8 } else { 4 }
}

impl Layout {
    pub(super) fn new(
        extents: Vec<usize>,
        shifts: Vec<(usize, Load)>,
        mut parameters: Vec<(u32, Kind)>,
        immediates: usize,
    ) -> Self {
        parameters.sort_by_key(|&(number, kind)| (width(kind), number));
        let words = HEAD.len() + 3 * (extents.len() + shifts.len());
        let mut bytes = 4 * words;
        for &(_, kind) in &parameters {
            bytes = bytes.next_multiple_of(width(kind)) + width(kind);
        }
        Self { extents, shifts, parameters, bytes: bytes.next_multiple_of(16), immediates }
    }

    pub(super) fn place(&self) -> BlockPlace {
        // Not every device that has immediate data has numbers of 8 bytes there.
        let is_narrow = self.parameters.iter().all(|&(_, kind)| width(kind) == 4);
        if is_narrow && self.bytes <= self.immediates {
            BlockPlace::Immediate
        } else if self.bytes <= UNIFORM {
            BlockPlace::Uniform
        } else {
            BlockPlace::Storage
        }
    }

    /// The declaration of the block.
    pub(super) fn declare(&self) -> String {
        let mut text = String::from("struct Launch {\n");
        for field in HEAD {
            let _ = writeln!(text, "    {field}: u32,");
        }
        let of = |names: &[usize], what: &str| {
            let fields = names
                .iter()
                .flat_map(|name| ["z", "y", "x"].map(|dim| format!("    {what}{name}_{dim}: u32,\n")));
            fields.collect::<String>()
        };
        text += &of(&self.extents, "extent");
        text += &of(&self.shifts.iter().map(|&(number, _)| number).collect::<Vec<_>>(), "shift");
        for &(number, kind) in &self.parameters {
            let _ = writeln!(text, "    literal{number}: {},", name(kind));
        }
        let variable = match self.place() {
            BlockPlace::Immediate => "var<immediate>",
            BlockPlace::Uniform => "@group(0) @binding(0) var<uniform>",
            BlockPlace::Storage => "@group(0) @binding(0) var<storage, read>",
        };
        let _ = writeln!(text, "}}\n\n{variable} launch: Launch;");
        text
    }
}
