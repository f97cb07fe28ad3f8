//! Failures in place of data: the notes that a step sends instead of poisoned contents.
//!
//! A note is a number of boxes, the boxes, and the failure.

use crate::{
    cluster::Said,
    error::{Failure, message},
    label::Locations,
};
use anabranch_grid::{GridBox, Point, Region};
use anabranch_wire::NOTE;
use std::sync::Arc;

/// The bytes of a box.
const BOX: usize = 48;

/// The most boxes in a note.
const BOXES: usize = (NOTE - message::LONGEST - 2) / BOX;

/// The notes that say why a region does not come, each with the number of elements that it is about.
pub(in crate::execute::nodes) fn write(region: &Region<3>, failure: &Failure) -> Vec<(usize, Vec<u8>)> {
    let failure = message::to_bytes(failure);
    let note = |boxes: &[GridBox<3>]| (boxes.iter().map(GridBox::len).sum(), with_boxes(boxes, &failure));
    region.boxes().chunks(BOXES).map(note).collect()
}

/// The note that says why something does not come that is no region.
pub(in crate::execute::nodes) fn of_failure(failure: &Failure) -> Vec<u8> {
    with_boxes(&[], &message::to_bytes(failure))
}

fn with_boxes(boxes: &[GridBox<3>], failure: &[u8]) -> Vec<u8> {
    let mut note = Vec::with_capacity(2 + boxes.len() * BOX + failure.len());
    note.extend((boxes.len() as u16).to_le_bytes());
    let corners = boxes.iter().flat_map(|range| [range.min(), range.max()]);
    let words = corners.flat_map(|Point(point)| point).map(|size| (size as u64).to_le_bytes());
    note.extend(words.flatten());
    note.extend(failure);
    note
}

/// The region and the failure of a note, if another node has written it.
pub(in crate::execute::nodes) fn read(
    said: &Said,
    locations: &Locations,
) -> Option<(Region<3>, Arc<Failure>)> {
    let (count, rest) = said.note.split_first_chunk()?;
    let (boxes, failure) = rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * BOX)?;
    let (words, _) = boxes.as_chunks::<8>();
    let sizes: Vec<_> = words.iter().map(|word| u64::from_le_bytes(*word) as usize).collect();
    let (boxes, _) = sizes.as_chunks::<6>();
    let boxes = boxes.iter().map(|&[a, b, c, d, e, f]| GridBox::new([a, b, c], [d, e, f]));
    Some((Region::from_boxes(boxes), message::from_bytes(failure, locations)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Cause, label::TaskLabel};
    use anabranch_graph::TaskId;
    use std::panic::Location;

    #[test]
    fn a_region_of_many_boxes_takes_several_notes() {
        let task = TaskLabel { name: "task".into(), location: Location::caller() };
        let failure = Failure::new(TaskId(7), task, Cause::Cancelled);
        let boxes = (0..5 * BOXES / 2).map(|i| GridBox::new([2 * i, 3, 0], [2 * i + 1, 5, 4]));
        let region = Region::from_boxes(boxes);
        let notes = write(&region, &failure);
        assert_eq!(notes.len(), 3);
        assert!(notes.iter().all(|(_, note)| note.len() <= NOTE));
        assert_eq!(notes.iter().map(|(elements, _)| elements).sum::<usize>(), region.len());
        let mut read_region = Region::empty();
        for (elements, note) in notes {
            let (part, why) = read(&Said { node: 1, note: note.clone() }, &Locations::default()).unwrap();
            assert_eq!((part.len(), why.id), (elements, TaskId(7)));
            read_region = read_region.union(&part);
            assert!(
                read(&Said { node: 1, note: note[..note.len() - 1].to_vec() }, &Locations::default())
                    .is_none()
            );
        }
        assert_eq!(read_region, region);
    }
}
