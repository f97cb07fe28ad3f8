//! The state that a run starts from, written into the buffers: each node writes its rows.

use super::nodes::{RowsOfNodes, own_row};
use crate::{
    error::Error,
    start::{Fields, Start},
};
use anabranch::prelude::*;
use anabranch_store::checkpoint::{Checksum, SavedCheckpoint};

/// Writes the state of `start` to `u` and `v`, and waits until it is there. All nodes check that a checkpoint
/// is undamaged: together they have read all of it.
pub(super) fn fill(
    rt: &Runtime,
    start: Start,
    rows: &RowsOfNodes,
    u: &Buffer<f32, 2>,
    v: &Buffer<f32, 2>,
) -> Result<(), Error> {
    let saved = if let Fields::Saved(path) = &start.fields { Some(path.clone()) } else { None };
    let (own, cols, is_saved) = (rows.own(), start.parameters.cols, saved.is_some());
    let sums = rt.buffer::<u64, 2>([rows.nodes(), 2]).named("checksums");
    rt.task("initial state")
        .collective()
        .write(u, rows.clone())
        .write(v, rows.clone())
        .write(&sums, own_row)
        .host(move |_, (u, v, sums)| {
            let [u, v] = [u, v].map(|view| view.as_mut_slice().expect("whole rows are one slice"));
            start.rows(own, u, v)?;
            let of = |values: &[f32]| if is_saved { Checksum::of(values).value().into() } else { 0 };
            let values = [of(u), of(v)];
            sums.fill_with(|[_, i]| values[i]);
            Ok::<_, Error>(())
        })?;
    let sums = rt.fence(&sums)?.wait()?;
    let Some(path) = saved else { return Ok(()) };
    let saved = SavedCheckpoint::open(path)?;
    for (i, name) in ["u", "v"].into_iter().enumerate() {
        saved.check(name, rows.combine(cols, |node| sums[[node, i]] as u32))?;
    }
    Ok(())
}
