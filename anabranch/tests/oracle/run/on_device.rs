//! Kernels on devices: the same values as on the host, by recorded kernels. The devices of some programs
//! fail.

use super::{
    results::fault,
    scope::Scope,
    tasks::{Tiled, kernel},
};
use crate::{
    model::Fault,
    program::{Compute, Reduction, Setup, mix},
};
use anabranch::{
    Error, Failure, Failures,
    device::{Device, Simulated, SimulatedBuilder},
    grid::Neighborhood,
    interface::{Over, TaskBuilder},
    prelude::*,
    recorded::{Input, InputOutput, Mask, Output, Value},
};
use std::{
    collections::BTreeMap,
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// A device, with and without its type.
type Both = (Arc<Simulated>, Arc<dyn Device>);

/// The devices of a program.
pub struct Devices {
    all: Vec<Arc<dyn Device>>,
    /// Those that only this program uses, which may fail.
    own: Vec<Arc<Simulated>>,
}

/// What all devices have done.
#[derive(Debug)]
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub struct Work {
    pub launches: AtomicU64,
    pub copies: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub lost: AtomicU64,
}

static WORK: Work = Work {
    launches: AtomicU64::new(0),
    copies: AtomicU64::new(0),
    refused: AtomicU64::new(0),
    failed: AtomicU64::new(0),
    lost: AtomicU64::new(0),
};

/// What the devices of the programs with faults have done, and how often they have failed.
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub fn work_with_faults() -> &'static Work {
    &WORK
}

fn build(number: u64, builder: SimulatedBuilder) -> Both {
    let device = Arc::new(builder.named(format!("device {number}")).build());
    (Arc::clone(&device), device as Arc<dyn Device>)
}

/// The number in the name of a simulated device.
pub fn number(name: &str) -> Option<usize> {
    name.strip_prefix("device ")?.parse().ok()
}

/// The devices of all programs without faults, on one node or on several.
fn shared(on_nodes: bool) -> &'static [Both; 3] {
    static DEVICES: [OnceLock<[Both; 3]>; 2] = [const { OnceLock::new() }; 2];
    DEVICES[usize::from(on_nodes)].get_or_init(|| {
        [0, 1, 2].map(|number| {
            build(number, Simulated::builder().delays(number, Duration::from_micros(30 * number)))
        })
    })
}

/// A device that refuses some memory, fails and is lost as the seed says.
#[allow(dead_code, reason = "the tests on a GPU have other devices")]
fn failing(number: u64, seed: u64) -> Both {
    let drawn = |what: u64, below: u64| mix(mix(seed, number), what) % below;
    let mut builder = Simulated::builder().delays(seed, Duration::from_micros(drawn(0, 3) * 15));
    // Programs give a device only a few batches.
    for n in (1..=4).filter(|n| drawn(10 + n, 5) == 0) {
        builder = builder.refuse_allocation(n);
    }
    for n in (1..=8).filter(|n| drawn(30 + n, 6) == 0) {
        builder = builder.fail_batch(n);
    }
    if drawn(1, 2) == 0 {
        builder = builder.lose_after(drawn(2, 5));
    }
    build(number, builder)
}

impl Devices {
    #[allow(dead_code, reason = "the tests on a GPU have other devices")]
    pub fn of(setup: &Setup) -> Self {
        let devices = 0..setup.devices;
        match setup.faults {
            Some(seed) => {
                let (own, all) = devices.map(|number| failing(number as u64, seed)).unzip();
                Self { all, own }
            }
            None => {
                let shared = &shared(setup.nodes.is_some())[devices];
                Self::given(shared.iter().map(|(_, device)| Arc::clone(device)).collect())
            }
        }
    }

    /// Devices that never fail.
    pub fn given(all: Vec<Arc<dyn Device>>) -> Self {
        Self { all, own: Vec::new() }
    }

    pub fn get(&self, number: usize) -> &Arc<dyn Device> {
        &self.all[number]
    }

    /// Checks these failures, which are all that the program has seen: a task fails by itself only if a
    /// device has failed, and memory that is refused and a batch that fails make one task fail each.
    pub fn check(&self, failures: &[Failures]) -> Result<(), String> {
        let chains = failures.iter().flat_map(|failures| failures.iter()).flat_map(Failure::chain);
        let roots: BTreeMap<_, _> =
            chains.filter_map(|failure| Some((ptr::from_ref(failure), fault(&failure.cause)?))).collect();
        for (number, device) in self.own.iter().enumerate().filter(|_| !roots.is_empty()) {
            let count = |what: &str| {
                roots.values().filter(|fault| (fault.device, fault.what) == (number, what)).count() as u64
            };
            let counts = device.counts();
            let is_lost = device.timeline().is_lost().is_some();
            let has_failed_too_often = count("no memory") > counts.refused
                || count("failed") > counts.failed
                || count("lost") > 0 && !is_lost;
            if has_failed_too_often {
                let seen = roots.values().map(Fault::to_string).collect::<Vec<_>>();
                return Err(format!("device {number}, lost: {is_lost}, {counts:?}, but there were {seen:?}"));
            }
        }
        Ok(())
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        for device in &self.own {
            let counts = device.counts();
            let is_lost = device.timeline().is_lost().is_some();
            WORK.launches.fetch_add(counts.launches, Relaxed);
            WORK.copies.fetch_add(counts.uploads + counts.downloads, Relaxed);
            WORK.refused.fetch_add(counts.refused, Relaxed);
            WORK.failed.fetch_add(counts.failed, Relaxed);
            WORK.lost.fetch_add(is_lost.into(), Relaxed);
        }
    }
}

/// How many kernels have run on the devices of programs without faults, and how many copies there were.
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub fn work(on_nodes: bool) -> (u64, u64) {
    let counts = shared(on_nodes).iter().map(|(device, _)| device.counts());
    counts.fold((0, 0), |(launches, copies), counts| {
        (launches + counts.launches, copies + counts.uploads + counts.downloads)
    })
}

/// What [`mix`] does with the bits in which its arguments differ.
fn mixed(bits: Value<'_, u64>) -> Value<'_, u64> {
    let product = bits * 0x9e37_79b9_7f4a_7c15;
    (product << 23) | (product >> 41)
}

/// What a recorded kernel computes: the values of [`computed`](crate::program::computed).
#[derive(Clone, Copy)]
pub struct Computed<const D: usize> {
    seed: u64,
    /// Whether the seed of a replay depends on its number: see [`Replays::seed`](crate::program::Replays).
    is_replayed: bool,
    /// How far it reads around each point.
    radius: usize,
    /// The size of the buffer that it reads.
    extent: [usize; D],
}

impl<const D: usize> Computed<D> {
    pub fn new(step: &Compute, seed: usize, is_replayed: bool, from: &Buffer<u64, D>) -> Self {
        let radius = step.recorded_radius().expect("a recorded kernel");
        Self { seed: seed as u64, is_replayed, radius, extent: from.extent().0 }
    }

    pub fn reads(self) -> Neighborhood<D> {
        neighborhood([self.radius; D])
    }

    pub fn update(self) -> impl for<'t> FnOnce((Input<'t, u64, D>, InputOutput<'t, u64, D>)) {
        move |(from, to)| to.set(self.value(to.here(), || to.replay(), from))
    }

    pub fn write(self) -> impl for<'t> FnOnce((Input<'t, u64, D>, Output<'t, u64, D>)) {
        move |(from, to)| to.set(self.value(from.here() ^ from.here(), || to.replay(), from))
    }

    /// The value at a point, from the element before and from the elements around the point that the buffer
    /// has.
    fn value<'t>(
        self,
        before: Value<'t, u64>,
        replay: impl Fn() -> Value<'t, u32>,
        from: Input<'t, u64, D>,
    ) -> Value<'t, u64> {
        let seeded = before ^ self.seed;
        let seeded = if self.is_replayed { seeded ^ (replay().convert::<u64>() << 24) } else { seeded };
        let zero = from.here() ^ from.here();
        let indices = (0..3).map(|d| if d < D { from.index(d).convert() } else { zero });
        let begin = indices.fold(mixed(seeded), |hash, index| mixed(hash ^ index));
        let (width, radius) = (2 * self.radius + 1, self.radius as isize);
        let offsets = GridBox::full([width; D]).points().map(|p| p.0.map(|i| i as isize - radius));
        offsets.fold(begin, |hash, offset| {
            let next = mixed(hash ^ from.at_or(offset, 0));
            self.is_inside(offset, from).map_or(next, |is_inside| is_inside.select(next, hash))
        })
    }

    /// Whether the buffer has the element at an offset from the point; `None` if it always does.
    fn is_inside<'t>(self, offset: [isize; D], from: Input<'t, u64, D>) -> Option<Mask<'t>> {
        let along = (0..D).filter(|d| offset[*d] != 0).map(|d| match offset[d] {
            by @ ..0 => from.index(d).ge(by.unsigned_abs() as u32),
            by => from.index(d).lt(self.extent[d].saturating_sub(by as usize) as u32),
        });
        along.reduce(|a, b| a & b)
    }
}

/// Submits a recorded kernel to a device, or to the host if there is none.
pub fn compute<const D: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, D>,
    to: &Buffer<u64, D>,
    step: &Compute,
    device: Option<&Arc<dyn Device>>,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, D, Over, ()>: Tiled,
{
    let task = kernel::<D>(scope, i, step.target, step.split, step.node)?;
    let task = match device {
        None => task.on_host(),
        Some(device) => task.on(device),
    };
    let computed = Computed::new(step, i, false, from);
    let task = task.read(from, computed.reads());
    match step.update {
        true => task.update(to, one_to_one()).each(computed.update()),
        false => task.write(to, one_to_one()).each(computed.write()),
    }
}

/// Submits a recorded reduction to a device, or to the host if there is none. Its values are those of
/// [`Op::Sum`](crate::program::Op::Sum).
pub fn reduce<const D: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, D>,
    to: &Buffer<u64, 0>,
    step: &Reduction,
    device: Option<&Arc<dyn Device>>,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, D, Over, ()>: Tiled,
{
    let task = kernel::<D>(scope, i, step.space, step.split, step.node)?;
    let task = match device {
        None => task.on_host(),
        Some(device) => task.on(device),
    };
    let task = task.read(from, one_to_one());
    let task = if step.include { task.reduce_into(to, sum()) } else { task.reduce(to, sum()) };
    task.each(|(from, to)| to.combine(mixed(from.here() ^ i as u64) | 1))
}
