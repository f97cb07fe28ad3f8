//! Errors in the declaration of a task.

use crate::label::{Label, TaskLabel};
use std::{fmt, panic::Location};

/// The runtime refused a task because of an access that it declares.
#[derive(Clone, thiserror::Error)]
pub struct DeclarationError {
    /// The task.
    pub task: TaskLabel,
    /// The buffer.
    pub buffer: Label,
    /// The mistake.
    pub mistake: Mistake,
}

/// A mistake in a declared access. Regions and chunks are given as they are printed: `[0..4, 3..7]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// The task reads elements that no task has written.
    NeverWritten {
        /// The part that was never written.
        missing: String,
    },
    /// The range mapper leaves the buffer.
    OutsideBuffer {
        /// The extent of the buffer.
        extent: String,
        /// The region that the mapper gave.
        region: String,
        /// The mapper.
        mapper: String,
        /// The chunk for which it gave that region.
        chunk: String,
    },
    /// The range mapper gives a region of another shape than it
    /// [promises](anabranch_grid::RangeMapper::Shape).
    OtherShape {
        /// The mapper.
        mapper: String,
        /// The shape that it promises.
        promised: &'static str,
        /// The chunk for which it gave that region.
        chunk: String,
        /// The region that it gave.
        region: String,
    },
    /// The range mapper gives a part of the index space more than it gives the whole.
    NotMonotonic {
        /// The mapper.
        mapper: String,
        /// A chunk.
        chunk: String,
        /// The region that the mapper gives for that chunk.
        region: String,
        /// The region that it gives for the whole index space.
        whole: String,
    },
    /// Two chunks write the same elements.
    OverlappingWrites {
        /// The mapper.
        mapper: String,
        /// The two chunks.
        chunks: [String; 2],
        /// The elements that both write.
        common: String,
    },
    /// Two accesses of the task have elements in common, and at least one of them writes.
    OverlappingAccesses {
        /// The elements that both accesses touch.
        common: String,
    },
    /// A recorded kernel takes elements that the task does not declare.
    OffsetOutside {
        /// The offset.
        offset: String,
        /// Where the closure asks for the element.
        at: &'static Location<'static>,
        /// The chunk.
        chunk: String,
        /// The elements that it takes and the task does not declare.
        missing: String,
        /// The region that the task declares for the chunk.
        region: String,
    },
    /// A recorded kernel takes elements, by their coordinates, that the task does not declare.
    CoordinatesOutside {
        /// The coordinates.
        coordinates: String,
        /// Where the closure asks for the element.
        at: &'static Location<'static>,
        /// The chunk.
        chunk: String,
        /// The elements that it takes and the task does not declare.
        missing: String,
        /// The region that the task declares for the chunk.
        region: String,
    },
    /// A recorded kernel sets one element at each point, and the task declares other elements.
    NotOwnPoints {
        /// The chunk.
        chunk: String,
        /// The region that the task declares for the chunk.
        region: String,
    },
    /// The parts of the index space that belong to different nodes do not fit together.
    BetweenNodes {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, buffer, mistake } = self;
        match mistake {
            Mistake::NeverWritten { missing } => write!(
                f,
                "{task} reads {missing} of {buffer}, which was never written or was discarded: write it in an earlier \
                 task, or create the buffer from its initial contents"
            ),
            Mistake::OutsideBuffer { extent, region, mapper, chunk } => write!(
                f,
                "{task} accesses {region} of {buffer}, whose extent is {extent} ({mapper} of {chunk}): make the index \
                 space or the mapper fit the buffer"
            ),
            Mistake::OtherShape { mapper, promised, chunk, region } => write!(
                f,
                "{task}: {mapper} promises that each region of {buffer} is {promised}, but gives {region} for chunk {chunk}: give the mapper \
                 the `Shape` that its regions have, `AnyBoxes` if they differ"
            ),
            Mistake::NotMonotonic { mapper, chunk, region, whole } => write!(
                f,
                "{task}: the mapper of {buffer} is not monotonic: {mapper} gives {region} for chunk {chunk}, but \
                 {whole} for the whole index space: give the whole index space all that the mapper gives its chunks"
            ),
            Mistake::OverlappingWrites { mapper, chunks: [first, second], common } => write!(
                f,
                "{task}: chunks {first} and {second} both write {common} of {buffer} ({mapper}): every element may be \
                 written by one chunk only"
            ),
            Mistake::OverlappingAccesses { common } => write!(
                f,
                "{task} declares two accesses to {common} of {buffer}, and at least one of them writes: declare \
                 one `update`, or read from another buffer"
            ),
            Mistake::OffsetOutside { offset, at, chunk, missing, region } => write!(
                f,
                "{task} takes the elements of {buffer} at offset {offset} ({at}). For chunk {chunk} these include {missing}, but the \
                 task declares {region}: declare a wider region, or take them by `at_clamped`, `at_periodic` or `at_or`"
            ),
            Mistake::CoordinatesOutside { coordinates, at, chunk, missing, region } => write!(
                f,
                "{task} takes the elements of {buffer} with the coordinates {coordinates} ({at}). For chunk {chunk} these include \
                 {missing}, but the task declares {region}: declare a wider region, or take them by `get_clamped`, `get_periodic` or `get_or`"
            ),
            Mistake::NotOwnPoints { chunk, region } => write!(
                f,
                "{task} declares {region} of {buffer} for chunk {chunk}, but a recorded kernel sets the element of each point: \
                 declare `one_to_one()`"
            ),
            Mistake::BetweenNodes { why } => {
                write!(f, "{task} cannot be split over the nodes because of {buffer}: {why}")
            }
        }
    }
}
