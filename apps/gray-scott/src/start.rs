//! Where a run starts from: the initial state, or the checkpoint of an interrupted run.

use std::path::Path;

use anabranch_store::Reader;

use crate::checkpoint::{self, Checkpoint};
use crate::error::Error;
use crate::model;
use crate::options::SimulateArgs;
use crate::output;
use crate::parameters::Parameters;

/// The state that a run starts from, and what is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// What is run, in whole.
    pub parameters: Parameters,
    /// Frames that lie behind this state: the run goes on with the frame of that number.
    pub first_frame: u64,
    /// U, row after row.
    pub u: Vec<f32>,
    /// V, row after row.
    pub v: Vec<f32>,
    /// What the user should know about the choice of this state.
    pub note: Option<String>,
}

impl Start {
    /// The start that the command line asks for.
    ///
    /// # Errors
    /// When the parameters cannot be computed with, the file to be resumed cannot be read, or the command line
    /// asks for other parameters than it was made with.
    pub fn new(args: &SimulateArgs) -> Result<Self, Error> {
        if args.output.resume { Self::resume(args) } else { Self::fresh(args) }
    }

    /// Whether nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.first_frame >= self.parameters.frames
    }

    fn fresh(args: &SimulateArgs) -> Result<Self, Error> {
        let parameters = args.parameters.over(&Parameters::default());
        if !parameters.is_representable() {
            return Err(Error::Usage(
                "--rows, --cols, --frames, --steps-per-frame: together more than 63 bits can count: choose smaller ones"
                    .into(),
            ));
        }
        Ok(Self::initial(parameters))
    }

    /// The initial state of a run.
    pub fn initial(parameters: Parameters) -> Self {
        let (u, v) = model::initial(parameters.rows, parameters.cols, parameters.noise);
        Self { parameters, first_frame: 0, u, v, note: None }
    }

    /// The parameters come from the file; what the command line says as well must be the same.
    fn resume(args: &SimulateArgs) -> Result<Self, Error> {
        let path = &args.output.output;
        let reader = Reader::open(path)?;
        let of_file = output::parameters_of(&reader).ok_or_else(|| Error::NotOurs { path: path.clone() })?;
        let asked = args.parameters.over(&of_file);
        if let Some(difference) = of_file.difference(&asked) {
            return Err(Error::Mismatch { path: path.clone(), difference });
        }
        let stored = reader.stored_frames()?;
        if stored == of_file.frames {
            return Ok(Self {
                parameters: of_file,
                first_frame: stored,
                u: Vec::new(),
                v: Vec::new(),
                note: None,
            });
        }
        Self::from_checkpoint(path, of_file, stored)
    }

    /// A checkpoint is used if it is there and fits. Without one the run begins again: the frames that are
    /// stored already come out the same.
    fn from_checkpoint(output: &Path, parameters: Parameters, stored: u64) -> Result<Self, Error> {
        let path = checkpoint::path_of(output);
        let again = |why: String| {
            let note =
                format!("{why}: computing the {stored} stored frames again to get to where the run stopped");
            Ok(Self { note: Some(note), ..Self::initial(parameters.clone()) })
        };
        let Some(Checkpoint { parameters: of_checkpoint, frames_done, u, v }) = checkpoint::load(&path)?
        else {
            return again(format!("There is no checkpoint {}", path.display()));
        };
        if let Some(difference) = parameters.difference(&of_checkpoint) {
            return Err(Error::ForeignCheckpoint { path, output: output.to_owned(), difference });
        }
        if frames_done > stored {
            return again(format!("{} is ahead of the file", path.display()));
        }
        Ok(Self { parameters, first_frame: frames_done, u, v, note: None })
    }
}
