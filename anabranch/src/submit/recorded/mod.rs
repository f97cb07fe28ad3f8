//! Recorded kernels: the closure of [`each`](super::task::TaskBuilder::each) runs once, on symbolic values,
//! and the recording runs for all points of each chunk.
//!
//! [`access`] gives the closure its operands, and gives the recording the elements of the views. [`reach`]
//! checks at submission that the declaration has all elements that the recording takes.

pub(crate) mod access;
mod reach;
pub(crate) mod reduce;

use self::access::{RecordedAccessList, padded};
use super::{launch::declaration::Declaration, task::tile::Tile};
use crate::{
    device::Parameters,
    error::{DeclarationError, Error},
    execute::Core,
    label::TaskLabel,
};
use anabranch_grid::{Chunk, GridBox, Region};
use anabranch_kernel::{Access, Instructions, Memory, Program, Recording, Scalar, Tape, replay_number};
use reach::Reach;
use smallvec::SmallVec;
use std::{cell::RefCell, sync::Arc};

thread_local! {
    /// What this thread runs programs in. A program calls nothing of the user, so it is never borrowed twice.
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Runs the closure once and takes the recording.
pub(super) fn record<const K: usize, L: RecordedAccessList<K>>(
    task: &TaskLabel,
    accesses: &L,
    closure: impl for<'t> FnOnce(L::Symbols<'t>),
) -> Result<Recording, Error> {
    let tape = Tape::new(K);
    closure(accesses.symbols(&tape));
    tape.finish().map_err(|error| Error::Record { task: task.clone(), error: Box::new(error) })
}

/// The function of a kernel that runs a program.
pub(super) fn function<const K: usize, L: RecordedAccessList<K>>(
    program: Arc<Program>,
    recording: &Recording,
) -> impl for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static {
    let (parameters, replay) = (recording.parameters().to_vec(), recording.replay_parameter());
    let instructions = Instructions::detect();
    move |tile, mut views| {
        let range = tile.range();
        let box_of_points = [padded(range.min().0, 0), padded(range.max().0, 1)];
        let mut run = |parameters: &[Scalar]| {
            MEMORY.with_borrow_mut(|memory| {
                L::with_operands(&mut views, |operands| {
                    program.run(parameters, box_of_points, operands, memory, instructions);
                });
            });
        };
        match replay {
            None => run(&parameters),
            Some(replay) => {
                let mut parameters = Parameters::from_slice(&parameters);
                parameters[replay] = replay_number(tile.replay());
                run(&parameters);
            }
        }
    }
}

/// Checks what a kernel on the host declares against what its recording takes and sets.
pub(super) fn check_recording<const K: usize, L: RecordedAccessList<K>>(
    core: &Core,
    recording: &Recording,
    declaration: &Declaration<'_, K>,
    bound: &L::Bound,
) -> Result<(), Error> {
    let declared = Declared::<K, L> { task: declaration.task, recording, bound };
    let whole = declared.check_whole(declaration.whole.range, &declaration.accesses);
    whole.map_err(|error| core.refuse(error))?;
    // Perhaps only this node finds a mistake in its chunks. Then the others get the reason, with the end of
    // the run.
    declared.check_chunks(declaration.chunks).map_err(|error| core.give_up(error))
}

/// What a task declares for the operands of a recording, to be checked against what the recording takes and
/// sets.
pub(super) struct Declared<'a, const K: usize, L: RecordedAccessList<K>> {
    pub(super) task: &'a TaskLabel,
    pub(super) recording: &'a Recording,
    pub(super) bound: &'a L::Bound,
}

impl<const K: usize, L: RecordedAccessList<K>> Declared<'_, K, L> {
    /// Checks the whole index space, with the regions that the graph gets. All nodes find the same.
    pub(super) fn check_whole(
        &self,
        space: GridBox<K>,
        accesses: &[anabranch_graph::Access],
    ) -> Result<(), Error> {
        self.check(space, |operand| &accesses[operand].region)
    }

    /// Checks each chunk of this node.
    pub(super) fn check_chunks(&self, chunks: &[Chunk<K>]) -> Result<(), Error> {
        chunks.iter().enumerate().try_for_each(|(i, chunk)| {
            let operands = 0..L::RANKS.len();
            let regions: SmallVec<[Region<3>; 4]> =
                operands.map(|operand| L::declared(self.bound, operand, i)).collect();
            self.check(chunk.range, |operand| &regions[operand])
        })
    }

    /// Checks that the regions have what the recording takes and sets for these points.
    fn check<'r>(&self, points: GridBox<K>, region: impl Fn(usize) -> &'r Region<3>) -> Result<(), Error> {
        if points.is_empty() {
            return Ok(());
        }
        let reach = |operand: usize| Reach {
            region: region(operand),
            rank: L::RANKS[operand],
            extent: L::extent_of(self.bound, operand),
            chunk: points,
        };
        let taken = |access: Access| Some((access.operand, reach(access.operand).mistake(&access)?));
        let set = |operand: usize| Some((operand, reach(operand).mistake_of_result()?));
        let recording = self.recording;
        let mistake = recording.accesses().find_map(taken).or_else(|| recording.results().find_map(set));
        let Some((operand, mistake)) = mistake else { return Ok(()) };
        let (buffer, _) = L::labels(self.bound).swap_remove(operand);
        Err(Box::new(DeclarationError { task: self.task.clone(), buffer, mistake }).into())
    }
}
