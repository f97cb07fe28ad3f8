//! The state of the grid in buffers, and the tasks that advance and store it.

use super::{
    around::around,
    fill::fill,
    finite::Findings,
    nodes::{Nodes, RowsOfNodes, RowsOfTile, own_element},
    on_device::{FirstCell, Launch, OnDevice, STEPS_PER_SWEEP},
    pace,
    part::Part,
    storage::Storage,
    times::Accounts,
};
use crate::{
    error::Error,
    kernel::{Output, Simd, Stepper},
    model::Edges,
    not_finite::NotFinite,
    parameters::Parameters,
    start::Start,
};
use anabranch::{device::Device, prelude::*};
use std::sync::Arc;

/// Bands for each thread, where the grid has enough rows: a thread then finds work while a band waits.
pub(super) const BANDS_PER_THREAD: usize = 3;

/// A band has at least this many times the rows that it needs around it, because those are computed twice.
const ROWS_PER_ROW_AROUND: usize = 10;

const WHOLE: &str = "all of a buffer is one slice";
const EXCHANGE: &str = "frames of devices have buffers for what is found";

/// The number of bands of rows. A single thread never waits for another, so one band is enough.
fn bands(rows: usize, steps: usize, threads: usize) -> usize {
    if threads == 1 {
        return 1;
    }
    (rows / (ROWS_PER_ROW_AROUND * steps)).clamp(threads, BANDS_PER_THREAD * threads)
}

/// The buffers of the state, and those that the next sweeps write.
pub(super) struct Grid<'rt> {
    rt: &'rt Runtime,
    nodes: Nodes,
    stepper: Stepper,
    /// The device that computes; `None` for the threads of the runtime.
    on_device: Option<OnDevice>,
    edges: Edges,
    shape: [usize; 2],
    /// The number of bands of rows, on all nodes.
    bands: usize,
    rows: RowsOfNodes,
    u: Buffer<f32, 2>,
    v: Buffer<f32, 2>,
    next_u: Buffer<f32, 2>,
    /// V at the beginning and between frames. The two take turns; the first one was written last.
    next_v: [Buffer<f32, 2>; 2],
    /// V as frames. They take turns, and their versions are the output queue (see [`frame_buffers`]).
    frames: Vec<Frame>,
    accounts: Accounts,
    /// Whether frames are checked for values that are not finite.
    check_finite: bool,
    /// The findings in the state as it is now; `None` if it was not checked.
    findings: Option<Findings>,
}

/// V as a frame.
#[derive(Clone)]
struct Frame {
    v: Buffer<f32, 2>,
    /// With several nodes and on devices: what tasks tell each other about it.
    exchange: Option<Exchange>,
}

/// What tasks tell each other about a frame, also those of several nodes.
#[derive(Clone)]
struct Exchange {
    /// What each band finds in it, in the element of its first row. Nothing is found before the first frame,
    /// and never if frames are not checked. What devices find is in the first element.
    found: Buffer<u64, 1>,
    /// What devices find in it.
    first: FirstCell,
    /// Whether each node has stored its rows, in as many elements as there are nodes.
    parts: Buffer<u64, 1>,
}

impl Exchange {
    /// For a grid of this shape, and the buffer of frames with this number.
    fn new(rt: &Runtime, shape: [usize; 2], nodes: usize, number: usize) -> Result<Self, Error> {
        let nothing = vec![Findings::default().lowest(); shape[0]];
        Ok(Self {
            found: rt.buffer_from(&nothing)?.named(format!("found {number}")),
            first: FirstCell::new(rt, shape, number),
            parts: rt.buffer([nodes]).named(format!("parts {number}")),
        })
    }
}

/// The number of buffers that frames take turns in, and of each one's versions. Together they hold one frame
/// that is computed, one that is stored, and `queue` that wait. There are at least two buffers, because a
/// sweep may go from one frame straight to the next, and all have as many versions, because frames take them
/// in turn.
fn frame_buffers(queue: usize) -> (usize, usize) {
    let frames = queue + 2;
    let buffers = (2..=frames).find(|&n| frames.is_multiple_of(n)).expect("a number divides itself");
    (buffers, frames / buffers)
}

/// The largest number of bytes that the fields of a run take: U twice, V twice at the beginning and between
/// frames, and all versions of the frames.
pub(crate) fn memory(parameters: &Parameters, queue: usize) -> u64 {
    let (buffers, versions) = frame_buffers(queue);
    let fields = 4 + (buffers * versions) as u64;
    parameters.frame_bytes().saturating_mul(fields)
}

impl<'rt> Grid<'rt> {
    /// The state of `start`, which the device or, without one, the runtime's threads with `simd` advance.
    /// `queue` frames may wait for storage.
    pub(super) fn new(
        rt: &'rt Runtime,
        start: Start,
        simd: Simd,
        device: Option<Arc<dyn Device>>,
        queue: usize,
        check_finite: bool,
        accounts: &Accounts,
    ) -> Result<Self, Error> {
        let p = &start.parameters.clone();
        let shape = [p.rows, p.cols];
        let stepper = Stepper::new(simd, p.constants(), p.edges, shape);
        let empty = |name: String| rt.buffer(shape).named(name);
        let nodes = Nodes::new(rt, &stepper)?;
        // What tasks exchange about a frame has buffers. Then each frame has one, too.
        let exchanges = nodes.are_several() || device.is_some();
        let (buffers, versions) = if exchanges { (queue + 2, 1) } else { frame_buffers(queue) };
        let bands = bands(p.rows, nodes.steps, nodes.threads);
        let frame = |i| {
            let exchange = exchanges.then(|| Exchange::new(rt, shape, nodes.count(), i)).transpose()?;
            Ok::<_, Error>(Frame { v: empty(format!("frames {i}")).with_versions(versions), exchange })
        };
        let rows = nodes.rows(p.rows);
        let edges = p.edges;
        let [u, v] = ["u", "v"].map(|name| empty(name.into()));
        fill(rt, start, &rows, &u, &v)?;
        let next_v = [v.clone(), empty("next v".into())];
        let mut grid = Self {
            rt,
            nodes,
            stepper,
            on_device: None,
            edges,
            shape,
            rows,
            frames: (1..=buffers).map(frame).collect::<Result<_, _>>()?,
            bands,
            u,
            v,
            next_u: empty("next u".into()),
            next_v,
            accounts: accounts.clone(),
            check_finite,
            findings: None,
        };
        if let Some(device) = device {
            let frames = (buffers * versions) as u64;
            let Self { u, v, next_u, next_v: [_, next_v], .. } = &grid;
            let launch = Launch { u, v, next_u, next_v, steps: 1, to_frame: false };
            let own_cells = grid.own_cells();
            let on_device = OnDevice::new(rt, device, p, own_cells, frames, check_finite, accounts, &launch)?;
            grid.on_device = Some(on_device);
        }
        Ok(grid)
    }

    /// The largest number of steps that a sweep should have.
    pub(super) fn preferred_steps(&self) -> u64 {
        if self.is_on_device() { STEPS_PER_SWEEP } else { self.nodes.steps as u64 }
    }

    /// Whether a device advances the grid.
    pub(super) fn is_on_device(&self) -> bool {
        self.on_device.is_some()
    }

    /// Whether the next frame has a buffer now. On the host it may be submitted before.
    pub(super) fn has_room(&self) -> bool {
        self.on_device.as_ref().is_none_or(OnDevice::has_room)
    }

    /// Submits a sweep of `steps` steps: a kernel in bands, or launches on a device. The state after it is a
    /// frame if `to_frame`.
    pub(super) fn sweep(&mut self, steps: u64, to_frame: bool) -> Result<(), Error> {
        if let Some(on_device) = self.on_device.clone() {
            return self.sweep_on(&on_device, steps, to_frame);
        }
        let next_v = self.next_v(to_frame);
        let checks = to_frame && self.check_finite;
        let exchange = self.frames[0].exchange.as_ref().filter(|_| checks);
        let found = exchange.map(|exchange| exchange.found.clone());
        self.findings = checks.then(Findings::default);
        self.advance(steps as usize, next_v, found.as_ref())
    }

    /// Submits a sweep on a device.
    fn sweep_on(&mut self, on_device: &OnDevice, steps: u64, to_frame: bool) -> Result<(), Error> {
        let computing = on_device.computing(steps);
        let mut last = None;
        let mut left = steps;
        while left > 0 {
            let steps = on_device.steps_of_launch(left);
            let to_frame = to_frame && steps == left;
            let next_v = self.next_v(to_frame);
            let (u, v, next_u) = (&self.u, &self.v, &self.next_u);
            let launch = Launch { u, v, next_u, next_v: &next_v, steps, to_frame };
            last = Some(on_device.launch(self.rt, &launch)?);
            left -= steps;
            std::mem::swap(&mut self.u, &mut self.next_u);
            self.v = next_v;
        }
        computing(&last.expect("a sweep has a step"));
        if to_frame && self.check_finite { self.look(on_device) } else { Ok(()) }
    }

    /// Submits the tasks that look at a frame of a device.
    fn look(&self, on_device: &OnDevice) -> Result<(), Error> {
        let Exchange { found, first, .. } = self.frames[0].exchange.as_ref().expect(EXCHANGE);
        on_device.look(self.rt, &self.v, first, found)
    }

    /// The buffer for V after the next sweep. While the last frame in a buffer of frames is still being
    /// stored, the sweep writes another version of it.
    fn next_v(&mut self, to_frame: bool) -> Buffer<f32, 2> {
        if to_frame {
            self.frames.rotate_left(1);
            return self.frames[0].v.clone();
        }
        self.next_v.swap(0, 1);
        self.next_v[0].clone()
    }

    /// Submits the kernel of a sweep, which writes V to `next_v` and what each band finds to `found`. Each
    /// band begins as soon as the bands around it have made the sweep before.
    fn advance(
        &mut self,
        steps: usize,
        next_v: Buffer<f32, 2>,
        found: Option<&Buffer<u64, 1>>,
    ) -> Result<(), Error> {
        let around = around(self.edges, [steps, 0]);
        let (stepper, accounts) = (self.stepper, self.accounts.clone());
        let advance = move |tile: &Tile<2>, fields: Fields<'_>, findings: Option<&Findings>| {
            let computing = accounts.computing(tile.range().len() as u64 * steps as u64);
            let Fields { u, v, next_u, next_v } = fields;
            tile.scratch(|scope| {
                let scratch = scope.slice(stepper.scratch_len(steps));
                let input = |row: usize| (u.row(row), v.row(row));
                let checking = findings.map(|findings| (&stepper, findings));
                let mut output = Band { u: next_u, v: next_v, written: None, checking };
                stepper.advance(tile.rows(), steps, input, &mut output, scratch);
                output.check();
            });
            computing.done();
        };
        let task = self
            .rt
            .task("advance")
            .over(self.shape)
            .pieces(self.bands)
            .chunks(self.bands)
            .flush_denormals()
            .read(&self.u, around)
            .read(&self.v, around)
            .write(&self.next_u, one_to_one())
            .write(&next_v, one_to_one());
        match found {
            None => {
                let findings = self.findings.clone();
                task.kernel(move |tile, (u, v, next_u, next_v)| {
                    advance(tile, Fields { u, v, next_u, next_v }, findings.as_ref());
                })?;
            }
            Some(found) => {
                task.write(found, RowsOfTile).kernel(move |tile, (u, v, next_u, next_v, found)| {
                    let findings = Findings::default();
                    advance(tile, Fields { u, v, next_u, next_v }, Some(&findings));
                    findings.tell(tile, found);
                })?;
            }
        }
        std::mem::swap(&mut self.u, &mut self.next_u);
        self.v = next_v;
        Ok(())
    }

    /// Submits the tasks that store V as it is now, if it is finite: on one node without a device a host
    /// task.
    pub(super) fn store_frame(&self, to: Stores<'_>, frame: u64, step: u64) -> Result<(), Error> {
        let cols = self.cols() as u64;
        let place = move |field, cell: u64| {
            let [row, col] = [cell / cols, cell % cols].map(|index| index as usize);
            NotFinite { frame, step, field, row, col }
        };
        // The last step of a device has marked V.
        let in_u_or_v = if self.is_on_device() { ["U or V"; 2] } else { ["U", "V"] };
        let not_finite = move |findings: Findings| {
            findings.first().map(|(cell, in_v)| place(in_u_or_v[usize::from(in_v)], cell))
        };
        let Some(exchange) = &self.frames[0].exchange else {
            let findings = self.findings.clone();
            let task = self.rt.task("store frame").once().read(&self.v, all());
            task.effect(to.storage, sequential()).host(move |(v, storage)| {
                let v = v.as_slice().expect(WHOLE);
                storage.frame(frame, Some(v), findings.and_then(not_finite))
            })?;
            return Ok(());
        };
        let of_all = move |found: &ReadView<u64, 1>| {
            not_finite(Findings::of_all(found.as_slice().expect(WHOLE).iter().copied()))
        };
        // Rows that no node stores are not read.
        let rows = if to.in_parts { self.rows.clone() } else { self.rows.at_most(0) };
        let first = rows.own().start * self.cols();
        let rows_stored = self
            .rt
            .task("store rows")
            .collective()
            .read(&self.v, rows)
            .read(&exchange.found, all())
            .write(&exchange.parts, own_element)
            .effect(to.part, sequential())
            .host(move |_, (v, found, parts, part)| {
                parts.fill(frame + 1);
                part.frame(frame, first, v.as_slice().expect(WHOLE), of_all(found))
            })?;
        let task = self.rt.task("store frame").once().read(&exchange.found, all());
        let task = task.effect(to.storage, sequential());
        let frame_stored = if to.is_whole {
            task.read(&self.v, all()).host(move |(found, storage, v)| {
                storage.frame(frame, Some(v.as_slice().expect(WHOLE)), of_all(found))
            })?
        } else {
            task.read(&exchange.parts, all()).host(move |(found, storage, parts)| {
                let stored = parts.as_slice().expect(WHOLE).iter().all(|&part| part == frame + 1);
                assert!(stored, "a node has stored the rows of another frame");
                storage.frame(frame, None, of_all(found))
            })?
        };
        // Only the first node has a part of the second task, which comes after its part of the first one.
        let stored = if self.nodes.is_first() { frame_stored } else { rows_stored };
        self.on_device.iter().for_each(|on_device| on_device.stores(&stored));
        Ok(())
    }

    /// Submits the last tasks of several nodes: each one makes its rows safe, and then node 0 completes the
    /// file.
    pub(super) fn finish_on_nodes(&self, to: Stores<'_>) -> Result<(), Error> {
        let finished = self.rt.buffer::<u64, 1>([self.nodes.count()]).named("finished");
        let task = self.rt.task("finish rows").collective().write(&finished, own_element);
        task.effect(to.part, sequential()).host(|_, (finished, part)| {
            finished.fill(1);
            part.finish()
        })?;
        let task = self.rt.task("finish").once().read(&finished, all()).effect(to.storage, sequential());
        task.host(|(_, storage)| storage.complete())?;
        Ok(())
    }

    /// The rows of each node.
    pub(super) fn rows_of_nodes(&self) -> &RowsOfNodes {
        &self.rows
    }

    /// U as it is now.
    pub(super) fn u(&self) -> &Buffer<f32, 2> {
        &self.u
    }

    /// V as it is now.
    pub(super) fn v(&self) -> &Buffer<f32, 2> {
        &self.v
    }

    /// The number of columns.
    pub(super) fn cols(&self) -> usize {
        self.shape[1]
    }

    /// The cells that this node computes.
    pub(super) fn own_cells(&self) -> u64 {
        self.rows.own().len() as u64 * self.cols() as u64
    }

    /// The rows of each node that a task reads to run after all of the sweeps so far. A device finishes a
    /// sweep at once, and one row is a small copy.
    pub(super) fn rows_swept(&self) -> RowsOfNodes {
        if self.is_on_device() { self.rows.at_most(1) } else { self.rows.clone() }
    }

    /// The time that a step is expected to take before anything is measured, in seconds.
    pub(super) fn expected_seconds(&self) -> f64 {
        let cells = self.shape.iter().map(|&extent| extent as u64).product();
        let together = if self.is_on_device() { self.nodes.count() } else { self.nodes.threads };
        pace::expected(cells, self.is_on_device()) / together as f64
    }

    /// Whether the bands are on several nodes.
    pub(super) fn is_on_several_nodes(&self) -> bool {
        self.nodes.are_several()
    }

    /// Submits a host task that passes the storage, and U and V as they are now, to `act`.
    pub(super) fn with_state(
        &self,
        name: &'static str,
        storage: &HostObject<Storage>,
        act: impl FnOnce(&mut Storage, &[f32], &[f32]) -> Result<(), Error> + Send + 'static,
    ) -> Result<TaskHandle, Error> {
        let task =
            self.rt.task(name).once().read(&self.u, all()).read(&self.v, all()).effect(storage, sequential());
        Ok(task
            .host(|(u, v, storage)| act(storage, u.as_slice().expect(WHOLE), v.as_slice().expect(WHOLE)))?)
    }
}

/// What stores the frames of a run.
#[derive(Clone, Copy)]
pub(super) struct Stores<'a> {
    pub(super) storage: &'a HostObject<Storage>,
    /// What each of several nodes stores by itself.
    pub(super) part: &'a HostObject<Part>,
    /// Whether each node stores its rows.
    pub(super) in_parts: bool,
    /// Whether node 0 stores whole frames.
    pub(super) is_whole: bool,
}

/// The views of a task that advances a band.
struct Fields<'a> {
    u: &'a ReadView<f32, 2, AnyBoxes<2>>,
    v: &'a ReadView<f32, 2, AnyBoxes<2>>,
    next_u: &'a mut WriteView<'a, f32, 2>,
    next_v: &'a mut WriteView<'a, f32, 2>,
}

/// The rows of the next state that one call of the kernel writes.
struct Band<'a, 'c> {
    u: &'a mut WriteView<'a, f32, 2>,
    v: &'a mut WriteView<'a, f32, 2>,
    /// The row that was given out last.
    written: Option<usize>,
    /// How each row is checked when it is written, and where findings are recorded.
    checking: Option<(&'c Stepper, &'c Findings)>,
}

impl Band<'_, '_> {
    /// Checks the row that was written last.
    fn check(&mut self) {
        let (Some((stepper, findings)), Some(row)) = (self.checking, self.written.take()) else { return };
        for (in_v, values) in [(false, self.u.row_mut(row)), (true, self.v.row_mut(row))] {
            if let Some(col) = stepper.first_non_finite(values) {
                findings.record(row as u64 * values.len() as u64 + col as u64, in_v);
            }
        }
    }
}

impl Output for Band<'_, '_> {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        self.check();
        self.written = Some(row);
        (self.u.row_mut(row), self.v.row_mut(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;
    use anabranch::device::Simulated;
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        time::Duration,
    };

    #[test]
    fn the_buffers_hold_exactly_the_frames_of_the_queue_and_two_more() {
        let _deadline = testing::deadline();
        for queue in 0..=1024 {
            let (buffers, versions) = frame_buffers(queue);
            assert!(buffers >= 2 && buffers * versions == queue + 2, "{queue}: {buffers} × {versions}");
        }
        assert_eq!([0, 1, 2, 7].map(frame_buffers), [(2, 1), (3, 1), (2, 2), (3, 3)]);
    }

    #[test]
    fn the_computation_runs_ahead_of_storage_by_the_length_of_the_queue() {
        let _deadline = testing::deadline();
        for queue in [0, 1, 2, 3, 4, 7] {
            for (threads, sweeps) in [(1, 1), (2, 3)] {
                runs_ahead_by(queue, threads, sweeps, None);
                let slow = Simulated::builder().delays(sweeps, Duration::from_micros(300)).build();
                runs_ahead_by(queue, threads, sweeps, Some(Arc::new(slow)));
            }
        }
    }

    /// Checks that the computation, on the host or on this device, goes on while frames wait for storage, and
    /// how far.
    fn runs_ahead_by(queue: usize, threads: usize, sweeps: u64, device: Option<Arc<dyn Device>>) {
        let patience = Duration::from_millis(20);
        let rt = Runtime::builder().threads(threads).build().unwrap();
        let parameters = Parameters { rows: 5, cols: 6, ..Parameters::default() };
        let accounts = Accounts::default();
        let mut grid =
            Grid::new(&rt, Start::initial(parameters), Simd::detect(), device, queue, false, &accounts)
                .unwrap();
        let (computed, progress) = channel::<u64>();
        let (open, gate) = channel::<()>();
        let computed: HostObject<Sender<u64>> = rt.host_object(computed);
        let gate: HostObject<Receiver<()>> = rt.host_object(gate);
        let frames = queue as u64 + 5;
        for frame in 0..frames {
            (1..=sweeps).for_each(|i| grid.sweep(2, i == sweeps).unwrap());
            let task = rt.task("computed").once().read(&grid.v, all()).effect(&computed, sequential());
            task.host(move |(_, computed)| computed.send(frame).map_err(std::io::Error::other)).unwrap();
            let task = rt.task("store").once().read(&grid.v, all()).effect(&gate, sequential());
            task.host(move |(_, gate)| gate.recv().map_err(std::io::Error::other)).unwrap();
        }
        // One frame is being stored, `queue` wait, and one was computed.
        let ahead = queue as u64 + 2;
        for stored in 0..=frames - ahead {
            let first = if stored == 0 { 0 } else { stored + ahead - 1 };
            for frame in first..stored + ahead {
                assert_eq!(progress.recv(), Ok(frame), "queue {queue}");
            }
            assert!(progress.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
            open.send(()).unwrap();
        }
        (0..frames).for_each(|_| open.send(()).unwrap());
        rt.wait().unwrap();
    }
}
