//! Recorded kernels: the closure of [`each`](super::task::TaskBuilder::each) runs once, on symbolic values, and the recording runs for
//! all points of each chunk.
//!
//! [`access`] gives the closure its operands, and gives the recording the elements of the views. [`reach`] checks at submission that
//! the declaration has all elements that the recording takes.

pub(crate) mod access;
mod reach;

use self::access::{RecordedAccessList, ViewsOf, padded};
use super::tile::Tile;
use crate::{
    error::{DeclarationError, Error},
    label::TaskLabel,
};
use anabranch_grid::Chunk;
use anabranch_kernel::{Access, Instructions, Memory, Program, Recording, Tape};
use reach::Reach;
use std::{cell::RefCell, sync::Arc};

thread_local! {
    /// What this thread runs programs in. A program calls nothing of the user, so it is never borrowed twice.
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Runs the closure once and takes the recording.
pub(super) fn record<const K: usize, L: RecordedAccessList<K>>(
    task: &TaskLabel,
    closure: impl for<'t> FnOnce(L::Symbols<'t>),
) -> Result<Recording, Error> {
    let tape = Tape::new(K);
    closure(L::symbols(&tape));
    tape.finish().map_err(|error| Error::Record { task: task.clone(), error: Box::new(error) })
}

/// The function of a kernel that runs a program.
pub(super) fn function<const K: usize, L: RecordedAccessList<K>>(
    program: Arc<Program>,
    recording: &Recording,
) -> impl for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static {
    let parameters = recording.parameters().to_vec();
    let instructions = Instructions::detect();
    move |tile, mut views| {
        let range = tile.range();
        let box_of_points = [padded(range.min().0, 0), padded(range.max().0, 1)];
        let mut operands = ViewsOf::<K, L>(&mut views);
        MEMORY.with_borrow_mut(|memory| {
            program.run(&parameters, box_of_points, &mut operands, memory, instructions);
        });
    }
}

/// Checks that each chunk declares what the recording takes and sets.
pub(super) fn check<const K: usize, L: RecordedAccessList<K>>(
    task: &TaskLabel,
    recording: &Recording,
    bound: &L::Bound,
    chunks: &[Chunk<K>],
) -> Result<(), Error> {
    let mistake = chunks.iter().enumerate().find_map(|(i, chunk)| {
        let reach = |operand: usize| {
            let (region, extent) = L::declared(bound, operand, i);
            Reach { region, extent, chunk: chunk.range }
        };
        let taken = |access: Access| Some((access.operand, reach(access.operand).mistake(&access)?));
        let set = |operand: usize| Some((operand, reach(operand).mistake_of_result()?));
        recording.accesses().find_map(taken).or_else(|| recording.results().find_map(set))
    });
    let Some((operand, mistake)) = mistake else { return Ok(()) };
    let (buffer, _) = L::labels(bound).swap_remove(operand);
    Err(Box::new(DeclarationError { task: task.clone(), buffer, mistake }).into())
}
