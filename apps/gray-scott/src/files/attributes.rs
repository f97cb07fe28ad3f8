//! The attributes of an output file and of a checkpoint: the parameters of the run.
//!
//! They have the names of the options, with `_` for `-`; rows, columns and frames are the shape of the
//! dataset. Frame i holds V after (i + 1) × steps-per-frame steps.

use crate::parameters::Parameters;
use anabranch_store::{Attr, Reader, Stamp};

/// The name of the dataset of frames.
pub(crate) const DATASET: &str = "matrix";

/// The step and time of a frame. Frames are counted from 0.
pub fn stamp(parameters: &Parameters, frame: u64) -> Stamp {
    let step = parameters.step_of_frame(frame);
    Stamp { step, time: step as f64 * f64::from(parameters.dt) }
}

/// The parameters as attributes.
pub(crate) fn attributes(p: &Parameters) -> Vec<(&'static str, Attr)> {
    let mut attributes = vec![
        ("steps_per_frame", p.steps_per_frame.into()),
        ("dt", p.dt.into()),
        ("feed", p.feed.into()),
        ("kill", p.kill.into()),
        ("du", p.du.into()),
        ("dv", p.dv.into()),
        ("edges", p.edges.name().into()),
    ];
    attributes.extend(p.noise.map(|seed| ("noise", seed.into())));
    attributes
}

/// The parameters of the run in an output file. `None` if this program did not write the file.
pub fn parameters_of(reader: &Reader) -> Option<Parameters> {
    read_parameters(reader.frames(), reader.frame_shape(), reader.attributes())
}

/// Reads the parameters from the number and shape of the frames, and from the attributes.
pub(crate) fn read_parameters(
    frames: u64,
    frame_shape: &[usize],
    attributes: &[(String, Attr)],
) -> Option<Parameters> {
    let find = |name: &str| attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let real = |name: &str| match find(name) {
        Some(&Attr::F32(value)) => Some(value),
        _ => None,
    };
    let count = |name: &str| match find(name) {
        Some(&Attr::U64(value)) => Some(value),
        _ => None,
    };
    let &[rows, cols] = frame_shape else { return None };
    let Some(Attr::String(edges)) = find("edges") else { return None };
    Some(Parameters {
        rows,
        cols,
        frames,
        steps_per_frame: count("steps_per_frame")?,
        dt: real("dt")?,
        feed: real("feed")?,
        kill: real("kill")?,
        du: real("du")?,
        dv: real("dv")?,
        edges: edges.parse().ok()?,
        noise: count("noise"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_back_from_their_attributes() {
        let shape = |p: &Parameters| [p.rows, p.cols];
        for noise in [None, Some(7)] {
            let p = Parameters { noise, kill: 0.06093, rows: 7, ..Parameters::default() };
            let attributes: Vec<_> = attributes(&p).into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
            assert_eq!(read_parameters(p.frames, &shape(&p), &attributes), Some(p.clone()));
            assert_eq!(read_parameters(p.frames, &shape(&p), &attributes[1..]), None);
        }
    }

    #[test]
    fn a_stamp_counts_the_steps_up_to_its_frame() {
        let p = Parameters { dt: 0.5, ..Parameters::default() };
        assert_eq!((stamp(&p, 0).step, stamp(&p, 0).time), (32, 16.0));
        assert_eq!(stamp(&p, 99).step, 3200);
    }
}
