//! What node 0 tells the other nodes about a run before it starts, as numbers.

use crate::{
    files::checkpoint,
    model::Edges,
    parameters::Parameters,
    start::{Fields, Start},
};
use anabranch_store::Announcement;
use std::path::Path;

/// The number of numbers.
const NUMBERS: usize = 4 + PARAMETERS + Announcement::WORDS;

const PARAMETERS: usize = 12;

/// How a run starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Beginning {
    /// Not at all: the run to resume is complete.
    Complete,
    /// Not at all: it was interrupted.
    Interrupted,
    /// From this state.
    Starts {
        parameters: Parameters,
        step: u64,
        /// Whether the state is that of the checkpoint, not the initial one.
        is_saved: bool,
        /// The frames that are stored already.
        stored: u64,
        output: Output,
    },
}

/// What becomes of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Nowhere,
    /// Node 0 stores whole frames.
    Whole,
    /// Each node stores its rows in this file.
    Parts(Announcement),
}

impl Beginning {
    pub(super) fn to_numbers(&self) -> [u64; NUMBERS] {
        let mut numbers = [0; NUMBERS];
        let Self::Starts { parameters, step, is_saved, stored, output } = self else {
            numbers[0] = u64::from(*self == Self::Interrupted);
            return numbers;
        };
        let (kind, words) = match output {
            Output::Nowhere => (2, None),
            Output::Whole => (3, None),
            Output::Parts(announcement) => (4, Some(announcement.to_words())),
        };
        let (head, rest) = numbers.split_at_mut(4);
        head.copy_from_slice(&[kind, *step, u64::from(*is_saved), *stored]);
        rest[..PARAMETERS].copy_from_slice(&encode(parameters));
        rest[PARAMETERS..].copy_from_slice(&words.unwrap_or_default());
        numbers
    }

    /// # Panics
    /// If these are not the numbers of [`to_numbers`](Self::to_numbers).
    pub(super) fn from_numbers(numbers: &[u64]) -> Self {
        let (head, rest) = numbers.split_at(4);
        let output = match head[0] {
            0 => return Self::Complete,
            1 => return Self::Interrupted,
            2 => Output::Nowhere,
            3 => Output::Whole,
            _ => {
                let words = rest[PARAMETERS..].try_into().expect("there are as many");
                Output::Parts(Announcement::from_words(words).expect("node 0 has written an announcement"))
            }
        };
        let parameters = decode(&rest[..PARAMETERS]);
        Self::Starts { parameters, step: head[1], is_saved: head[2] > 0, stored: head[3], output }
    }
}

/// The state that a node starts from.
pub(super) fn start(parameters: Parameters, step: u64, is_saved: bool, output: &Path) -> Start {
    let fields = if is_saved { Fields::Saved(checkpoint::path_of(output)) } else { Fields::Initial };
    Start { parameters, step, fields }
}

fn encode(p: &Parameters) -> [u64; PARAMETERS] {
    let real = |value: f32| u64::from(value.to_bits());
    let edges = Edges::ALL.iter().position(|edges| *edges == p.edges).expect("these are all") as u64;
    [
        p.rows as u64,
        p.cols as u64,
        p.frames,
        p.steps_per_frame,
        real(p.dt),
        real(p.feed),
        real(p.kill),
        real(p.du),
        real(p.dv),
        edges,
        p.noise.is_some().into(),
        p.noise.unwrap_or(0),
    ]
}

fn decode(numbers: &[u64]) -> Parameters {
    let real = |at: usize| f32::from_bits(numbers[at] as u32);
    Parameters {
        rows: numbers[0] as usize,
        cols: numbers[1] as usize,
        frames: numbers[2],
        steps_per_frame: numbers[3],
        dt: real(4),
        feed: real(5),
        kill: real(6),
        du: real(7),
        dv: real(8),
        edges: Edges::ALL[numbers[9] as usize],
        noise: (numbers[10] > 0).then_some(numbers[11]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_run_is_read_back_from_its_numbers() {
        let starts = |edges, noise, is_saved, output| Beginning::Starts {
            parameters: Parameters { edges, noise, kill: 0.06093, ..Parameters::default() },
            step: 1 << 40,
            is_saved,
            stored: 7,
            output,
        };
        for beginning in [
            Beginning::Complete,
            Beginning::Interrupted,
            starts(Edges::Periodic, None, false, Output::Nowhere),
            starts(Edges::Clamped, Some(0), true, Output::Whole),
        ] {
            assert_eq!(Beginning::from_numbers(&beginning.to_numbers()), beginning);
        }
    }
}
