//! The state of the grid in buffers, and the tasks that advance and store it.

use super::{start::Start, stopwatch::Stopwatch, storage::Storage};
use crate::{
    error::Error,
    kernel::{Output, Simd, Stepper},
    model::Edges,
};
use anabranch::{grid::split_1d, prelude::*};
use ndarray::ArrayView2;

/// Bands for each thread, where the grid has enough rows: a thread then finds work while a band waits.
pub(super) const BANDS_PER_THREAD: usize = 3;

/// A band has at least this many times the rows that it needs around it, because those are computed twice.
const ROWS_PER_ROW_AROUND: usize = 10;

const WHOLE: &str = "all of a buffer is one slice";

/// The number of bands of rows. A single thread never waits for another, so one band is enough.
fn bands(rows: usize, stepper: &Stepper, threads: usize) -> usize {
    if threads == 1 {
        return 1;
    }
    (rows / (ROWS_PER_ROW_AROUND * stepper.preferred_steps())).clamp(threads, BANDS_PER_THREAD * threads)
}

/// The buffers of the state, and those that the next sweeps write.
pub(super) struct Grid<'rt> {
    rt: &'rt Runtime,
    stepper: Stepper,
    edges: Edges,
    bands: Vec<GridBox<2>>,
    u: Buffer<f32, 2>,
    v: Buffer<f32, 2>,
    next_u: Buffer<f32, 2>,
    /// V between frames. The two take turns.
    next_v: [Buffer<f32, 2>; 2],
    /// V as frames. The two take turns, because a sweep may go from one frame straight to the next. Their
    /// versions are the output queue: one frame is computed, one is stored, and the rest wait.
    frames: [Buffer<f32, 2>; 2],
    /// Runs while a sweep is computed.
    pub(super) watch: Stopwatch,
}

impl<'rt> Grid<'rt> {
    /// The state of `start`. `queue` frames may wait for storage.
    pub(super) fn new(rt: &'rt Runtime, start: &Start, simd: Simd, queue: usize) -> Result<Self, Error> {
        let p = &start.parameters;
        let shape = [p.rows, p.cols];
        let stepper = Stepper::new(simd, p.constants(), p.edges, shape);
        let filled =
            |field: &[f32]| rt.buffer_from(&ArrayView2::from_shape(shape, field).expect("a field is a grid"));
        let empty = |name: String| rt.buffer(shape).named(name);
        Ok(Self {
            rt,
            stepper,
            edges: p.edges,
            bands: split_1d(&GridBox::full(shape), bands(p.rows, &stepper, rt.threads()), 1),
            u: filled(&start.u)?.named("u"),
            v: filled(&start.v)?.named("v"),
            next_u: empty("next u".into()),
            next_v: [1, 2].map(|i| empty(format!("next v {i}"))),
            frames: [1, 2].map(|i| empty(format!("frames {i}")).with_versions((queue + 2).div_ceil(2))),
            watch: Stopwatch::default(),
        })
    }

    /// Submits the sweeps to the next frame, `steps` steps away.
    pub(super) fn advance(&mut self, mut steps: u64) -> Result<(), Error> {
        while steps > 0 {
            // Sweeps of nearly equal length: 17 steps are 9 and 8, not 16 and 1.
            let sweeps = steps.div_ceil(self.stepper.preferred_steps() as u64);
            let sweep = steps.div_ceil(sweeps);
            steps -= sweep;
            let to = if steps == 0 {
                self.frames.swap(0, 1);
                // All bands together overwrite the buffer. While its last frame is still being stored, they
                // write another version.
                self.frames[0].discard();
                self.frames[0].clone()
            } else {
                self.next_v.swap(0, 1);
                self.next_v[0].clone()
            };
            self.sweep(sweep as usize, to)?;
        }
        Ok(())
    }

    /// Submits a sweep of `steps` steps, which writes V to `next_v`: a task for each band.
    fn sweep(&mut self, steps: usize, next_v: Buffer<f32, 2>) -> Result<(), Error> {
        let around = match self.edges {
            Edges::Periodic => neighborhood([steps, 0]).periodic(),
            Edges::Absorbing | Edges::Clamped => neighborhood([steps, 0]),
        };
        for &band in &self.bands {
            let (stepper, watch) = (self.stepper, self.watch.clone());
            self.rt
                .task("advance")
                .over(band)
                .chunks(1)
                .flush_denormals()
                .read(&self.u, around)
                .read(&self.v, around)
                .write(&self.next_u, one_to_one())
                .write(&next_v, one_to_one())
                .kernel(move |tile, (u, v, next_u, next_v)| {
                    let _running = watch.start();
                    tile.scratch(|scope| {
                        let scratch = scope.slice(stepper.scratch_len(steps));
                        let input = |row: usize| (u.row(row), v.row(row));
                        stepper.advance(
                            tile.rows(),
                            steps,
                            input,
                            &mut Band { u: next_u, v: next_v },
                            scratch,
                        );
                    });
                })?;
        }
        std::mem::swap(&mut self.u, &mut self.next_u);
        self.v = next_v;
        Ok(())
    }

    /// Submits a host task that stores V as it is now.
    pub(super) fn store_frame(&self, storage: &HostObject<Storage>, frame: u64) -> Result<(), Error> {
        let task = self.rt.task("store frame").once().read(&self.v, all()).effect(storage, sequential());
        task.host(move |(v, storage)| {
            storage.timed(|storage| storage.frame(frame, v.as_slice().expect(WHOLE)))
        })?;
        Ok(())
    }

    /// Submits a host task that passes the storage, and U and V as they are now, to `act`.
    pub(super) fn with_state(
        &self,
        name: &'static str,
        storage: &HostObject<Storage>,
        act: impl FnOnce(&mut Storage, &[f32], &[f32]) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let task =
            self.rt.task(name).once().read(&self.u, all()).read(&self.v, all()).effect(storage, sequential());
        task.host(|(u, v, storage)| {
            storage.timed(|storage| act(storage, u.as_slice().expect(WHOLE), v.as_slice().expect(WHOLE)))
        })?;
        Ok(())
    }
}

/// The rows of the next state that one call of the kernel writes.
struct Band<'a> {
    u: &'a mut WriteView<'a, f32, 2>,
    v: &'a mut WriteView<'a, f32, 2>,
}

impl Output for Band<'_> {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        (self.u.row_mut(row), self.v.row_mut(row))
    }
}
