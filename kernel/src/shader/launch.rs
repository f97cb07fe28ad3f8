//! What a launch gives a shader, and what the shader says about it.

use super::{
    error::ShaderError,
    print::{Field, GROUP_HEAD, Printed, STATUS},
};
use crate::{
    number::Scalar,
    wgsl::{
        BlockPlace, Dispatch, WgslError,
        block::push,
        layout::width,
        points::{HEAD, parts},
    },
};

/// The most groups of one launch: the sum of a number below it and of one that a dispatch adds wraps not
/// around.
const MOST_GROUPS: u64 = 1 << 31;

/// What a launch gives a shader. Points, extents and boxes are padded at the front, the extents with ones.
#[derive(Clone, Copy, Debug)]
pub struct ShaderLaunch<'a> {
    /// The first point, and the one behind the last along each dimension.
    pub points: [[usize; 3]; 2],
    /// The extents of all operands.
    pub extents: &'a [[usize; 3]],
    /// The boxes of all operands that the task declares: the first element of each, and the one behind the
    /// last.
    pub declared: &'a [Vec<[[usize; 3]; 2]>],
    /// The values of the parameters.
    pub parameters: &'a [Scalar],
    /// The groups along each dimension; for shaders with groups.
    pub groups: [usize; 3],
}

/// An access outside of the declared boxes. Of several, the shader notes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The number of the operand.
    pub operand: usize,
    /// The index of the element, padded with zeros at the front.
    pub index: [u32; 3],
}

impl Outside {
    /// Reads a status.
    pub fn of(status: &[u8]) -> Option<Self> {
        let mut words =
            status.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let mut next = || words.next().unwrap_or(0);
        let (is_taken, operand) = (next(), next() as usize);
        (is_taken != 0).then(|| Self { operand, index: [next(), next(), next()] })
    }
}

impl Printed {
    /// The bytes of the status, which are zero before a launch.
    pub const STATUS_BYTES: u64 = 4 * STATUS as u64;

    /// The dispatches that make up a launch. `most` is the number of groups that a device takes in each
    /// dimension.
    ///
    /// # Errors
    /// The launch has coordinates, elements or groups that 32 bits do not hold, or other operands, boxes or
    /// parameters than the shader.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn dispatches(&self, launch: &ShaderLaunch<'_>, most: u32) -> Result<Vec<Dispatch>, ShaderError> {
        self.check(launch)?;
        let [min, max] = launch.points;
        if (0..3).any(|dim| max[dim] <= min[dim]) {
            return Ok(Vec::new());
        }
        let heads: Vec<Head> = match self.source.group {
            Some(_) => groups(launch.groups, most)?,
            None => {
                let parts = parts(launch.points, most).map_err(|error| match error {
                    WgslError::TooManyPoints { end } => ShaderError::TooManyPoints { end },
                    other => unreachable!("{other}"),
                })?;
                parts.into_iter().map(|part| (part.head.to_vec(), part.groups)).collect()
            }
        };
        let words = if self.source.group.is_some() { GROUP_HEAD.len() } else { HEAD.len() };
        let tail = self.tail(launch, 4 * words);
        let dispatch = |(head, groups): Head| {
            let mut block = Vec::with_capacity(4 * words + tail.len());
            head.iter().for_each(|word| block.extend_from_slice(&word.to_le_bytes()));
            block.extend_from_slice(&tail);
            Dispatch { block, groups }
        };
        Ok(heads.into_iter().map(dispatch).collect())
    }

    fn check(&self, launch: &ShaderLaunch<'_>) -> Result<(), ShaderError> {
        let source = &self.source;
        let mismatch = |expected: String, found: String| Err(ShaderError::Mismatch { expected, found });
        let operands = source.operands.len();
        if launch.extents.len() != operands || launch.declared.len() != operands {
            return mismatch(format!("{operands} operands"), format!("{}", launch.extents.len()));
        }
        let end = launch.points[1];
        if end.iter().any(|&end| end > u32::MAX as usize) {
            return Err(ShaderError::TooManyPoints { end });
        }
        for ((operand, extent), boxes) in source.operands.iter().zip(launch.extents).zip(launch.declared) {
            let elements = extent.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
            if elements.is_none_or(|elements| elements > u32::MAX as usize)
                || extent.iter().any(|&size| size > u32::MAX as usize)
            {
                return Err(ShaderError::TooManyElements { name: operand.name.to_string(), extent: *extent });
            }
            if boxes.len() > 1 && !self.has_list {
                return mismatch(format!("one box of operand `{}`", operand.name), boxes.len().to_string());
            }
            let is_inside = |of: &[[usize; 3]; 2]| {
                (0..3).all(|dim| of[0][dim] <= of[1][dim] && of[1][dim] <= extent[dim])
            };
            if let Some(outside) = boxes.iter().find(|of| !is_inside(of)) {
                let expected =
                    format!("boxes inside of operand `{}`, whose extent is {extent:?}", operand.name);
                return mismatch(expected, format!("{outside:?}"));
            }
        }
        let kinds = || launch.parameters.iter().map(|value| value.kind());
        if !kinds().eq(source.parameters.iter().map(|&(_, kind)| kind)) {
            let expected = source.parameters.iter().map(|(_, kind)| *kind).collect::<Vec<_>>();
            return mismatch(
                format!("parameters {expected:?}"),
                format!("{:?}", kinds().collect::<Vec<_>>()),
            );
        }
        Ok(())
    }

    /// The part of the block that is equal in all dispatches of a launch; the list of boxes is its end.
    fn tail(&self, launch: &ShaderLaunch<'_>, head: usize) -> Vec<u8> {
        let mut list = Vec::new();
        let mut bytes = Vec::with_capacity(self.bytes);
        let around = launch.declared.iter().map(|boxes| around(boxes)).collect::<Vec<_>>();
        for &field in &self.fields {
            let word = match field {
                Field::Head(_) => continue,
                Field::First(dim) => launch.points[0][dim],
                Field::End(dim) => launch.points[1][dim],
                Field::Extent(operand, dim) => launch.extents[operand][dim],
                Field::Min(operand, dim) => around[operand][0][dim],
                Field::Size(operand, dim) => around[operand][1][dim] - around[operand][0][dim],
                Field::Boxes(_) => list.len(),
                Field::BoxesEnd(operand) => {
                    let dims = 3 - self.source.operands[operand].dimensions..3;
                    for [min, max] in &launch.declared[operand] {
                        list.extend(dims.clone().flat_map(|dim| [min[dim], max[dim] - min[dim]]));
                    }
                    list.len()
                }
                Field::Parameter(number) => {
                    let width = width(self.source.parameters[number].1);
                    bytes.resize((head + bytes.len()).next_multiple_of(width) - head, 0);
                    push(&mut bytes, launch.parameters[number]);
                    continue;
                }
            };
            bytes.extend_from_slice(&(word as u32).to_le_bytes());
        }
        list.iter().for_each(|&word| bytes.extend_from_slice(&(word as u32).to_le_bytes()));
        // The size of a structure is a multiple of its alignment, and a list of no boxes has the room of one
        // number.
        let room = if self.place == BlockPlace::Storage { 4 } else { 0 };
        bytes.resize((head + bytes.len() + room).next_multiple_of(16) - head, 0);
        bytes
    }
}

/// The smallest box around others. Of no boxes it is empty.
fn around(boxes: &[[[usize; 3]; 2]]) -> [[usize; 3]; 2] {
    let filled = boxes.iter().filter(|[min, max]| (0..3).all(|dim| min[dim] < max[dim]));
    let all = filled.copied().reduce(|[min, max], [other_min, other_max]| {
        let [from, to] = [0, 1].map(|end| {
            [0, 1, 2].map(|dim| match end {
                0 => min[dim].min(other_min[dim]),
                _ => max[dim].max(other_max[dim]),
            })
        });
        [from, to]
    });
    all.unwrap_or_default()
}

/// The head of a dispatch, and its groups.
type Head = (Vec<u32>, [u32; 3]);

/// The heads and sizes of the dispatches of groups.
fn groups(groups: [usize; 3], most: u32) -> Result<Vec<Head>, ShaderError> {
    let too_many = ShaderError::TooManyGroups { groups };
    let all = groups.iter().try_fold(1_u64, |product, &along| product.checked_mul(along as u64));
    let Some(all) = all.filter(|&all| all < MOST_GROUPS) else {
        // A dimension without groups is no launch, however many another one has.
        return if groups.contains(&0) { Ok(Vec::new()) } else { Err(too_many) };
    };
    let (mut dispatches, mut from, most) = (Vec::new(), 0, u64::from(most));
    while from < all {
        let left = all - from;
        let x = left.min(most);
        let y = left.div_ceil(x).min(most);
        let z = left.div_ceil(x * y).min(most);
        let head = groups.map(|along| along as u32).into_iter().chain([from as u32]).collect();
        dispatches.push((head, [x, y, z].map(|along| along as u32)));
        from += x * y * z;
    }
    Ok(dispatches)
}
