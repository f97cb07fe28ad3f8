//! Checkpoints of several nodes: one file, of which each node writes its rows.
//!
//! Node 0 lays the file out under a temporary name. Then each node writes its rows and makes them durable,
//! and tells node 0 their checksums. When node 0 has all of them, it gives the file its name. The file is
//! that of one process, byte for byte.

use super::{
    grid::{Grid, Stores},
    nodes::own_row,
    storage::WORDS,
    times::{Accounts, Stored},
};
use crate::error::Error;
use anabranch::prelude::*;
use anabranch_store::checkpoint::{Checksum, DraftPart};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The numbers of a node: the checksums of its rows of U and V, and whether all of them are finite.
const NUMBERS: usize = 3;

/// Where and how checkpoints are saved.
pub(super) struct Saving {
    pub(super) path: PathBuf,
    /// Whether a state that is not finite is refused.
    pub(super) check_finite: bool,
    pub(super) accounts: Accounts,
    /// On node 0: whether a checkpoint that was due by time is under way.
    pub(super) is_saving: Arc<AtomicBool>,
}

impl Saving {
    /// Submits the tasks that save the state as it is now, after `step` steps.
    pub(super) fn submit(
        &self,
        rt: &Runtime,
        grid: &Grid<'_>,
        to: Stores<'_>,
        step: u64,
    ) -> Result<(), Error> {
        let rows = grid.rows_of_nodes().clone();
        let (first, cols) = (rows.own().start * grid.cols(), grid.cols());
        let draft = rt.buffer::<u64, 1>([WORDS]).named("draft");
        let saved = rt.buffer::<u64, 2>([rows.nodes(), NUMBERS]).named("saved rows");
        let task = rt.task("begin checkpoint").once().write(&draft, all()).effect(to.storage, sequential());
        task.host(move |(draft, storage)| {
            storage.begin_checkpoint(step).map(|words| draft.fill_with(|[i]| words[i]))
        })?;
        let (path, accounts, check_finite) = (self.path.clone(), self.accounts.clone(), self.check_finite);
        rt.task("save rows")
            .collective()
            .read(&draft, all())
            .read(grid.u(), rows.clone())
            .read(grid.v(), rows.clone())
            .write(&saved, own_row)
            .host(move |_, (draft, u, v, saved)| {
                let _storing = accounts.storing(Stored::Checkpoint);
                let [u, v] = [u, v].map(|view| view.as_slice().expect("whole rows are one slice"));
                let is_finite = !check_finite || u.iter().chain(v).all(|value| value.is_finite());
                let words = draft.as_slice().expect("all of a buffer is one slice");
                let sums = if is_finite { write(&path, words, first, [u, v])? } else { [0; 2] };
                let numbers = [sums[0], sums[1], is_finite.into()];
                saved.fill_with(|[_, i]| numbers[i]);
                Ok::<_, Error>(())
            })?;
        let is_saving = Arc::clone(&self.is_saving);
        let task = rt.task("place checkpoint").once().read(&saved, all()).effect(to.storage, sequential());
        task.host(move |(saved, storage)| {
            let is_finite = (0..rows.nodes()).all(|node| saved[[node, 2]] == 1);
            let sums = [0, 1].map(|i| rows.combine(cols, |node| saved[[node, i]] as u32));
            let placed = storage.place_checkpoint(is_finite.then_some(sums));
            is_saving.store(false, Ordering::Relaxed);
            placed
        })?;
        Ok(())
    }
}

/// Writes rows of U and V into the draft that these numbers describe, if there is one, and returns their
/// checksums.
fn write(path: &Path, words: &[u64], first: usize, fields: [&[f32]; 2]) -> Result<[u64; 2], Error> {
    if words.iter().all(|&word| word == 0) || fields[0].is_empty() {
        return Ok(fields.map(|_| Checksum::of(&[]).value().into()));
    }
    let mut part = DraftPart::open(path, words)?;
    let mut sums = [0; 2];
    for (array, field) in fields.into_iter().enumerate() {
        sums[array] = part.write(array, first, field)?.value().into();
    }
    part.finish()?;
    Ok(sums)
}
