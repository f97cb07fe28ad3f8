//! Tests of runs on a simulated device, which computes recorded kernels on the processor.

use super::{
    tests::{frames, parameters, quiet, unstored, writer},
    *,
};
use crate::{files::checkpoint, model::Edges, parameters::Parameters, start::Fields};
use anabranch::device::{Simulated, SimulatedBuilder};
use anabranch_store::{Stamp, SyncLevel};
use std::path::Path;

/// The largest difference of a value of V after 150 steps, of at most 1. Both sides round some thousand times, and the dynamics amplify that.
const TOLERANCE: f32 = 1e-4;

fn simulated(settings: impl FnOnce(SimulatedBuilder) -> SimulatedBuilder) -> Arc<dyn Device> {
    Arc::new(settings(Simulated::builder()).build())
}

/// Stores a whole run, on a device or on two threads.
fn store(path: &Path, start: Start, device: Option<Arc<dyn Device>>, stored: &[Vec<f32>]) -> RunOutcome {
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let mut file = writer(path, &start.parameters, SyncLevel::None, None);
    stored.iter().for_each(|frame| file.append(frame, Stamp::default()).unwrap());
    let run = unstored(start, 2, &progress, &interrupt, &accounts);
    let outcome = Run { device, writer: Some(file), ..run }.run().unwrap();
    assert_eq!(accounts.updates(), outcome.steps * 40 * 33, "each step is counted once");
    outcome
}

#[test]
fn a_device_stores_the_frames_of_the_host_within_the_tolerance() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    for edges in Edges::ALL {
        let p = Parameters { edges, noise: Some(3), ..parameters() };
        let [host, device] =
            ["host", "device"].map(|place| folder.path().join(format!("{place} {edges}.h5")));
        store(&host, Start::initial(p.clone()), None, &[]);
        let on = simulated(|device| device.delays(7, Duration::from_micros(200)));
        let outcome = store(&device, Start::initial(p), Some(Arc::clone(&on)), &[]);
        assert_eq!((outcome.steps, outcome.frames, outcome.interrupted), (150, 3, false));
        assert!(on.timeline().submitted() > 150, "the device computes");
        for (host, device) in frames(&host).iter().zip(frames(&device)) {
            let difference = host.iter().zip(device).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(difference <= TOLERANCE, "{edges}: {difference}");
            assert!(host.iter().any(|&v| v > 0.1), "something happens");
        }
    }
}

#[test]
fn a_run_goes_on_with_the_checkpoint_of_a_device_and_has_its_bits() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.h5"), folder.path().join("run.h5"));
    store(&whole, Start::initial(parameters()), Some(simulated(|device| device)), &[]);
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let short = Parameters { frames: 1000, steps_per_frame: 73, ..parameters() };
    let save = Some(Checkpoints::on_interruption(checkpoint::path_of(&path)));
    let run = unstored(Start::initial(short), 2, &progress, &interrupt, &accounts);
    Run { until: 1, checkpoints: save, device: Some(simulated(|device| device)), ..run }.run().unwrap();
    let start = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
    let start = Start { parameters: parameters(), ..start };
    store(&path, start, Some(simulated(|device| device)), &frames(&whole)[..1]);
    assert_eq!(frames(&path), frames(&whole));
}

#[test]
fn a_frame_of_a_device_that_is_not_finite_ends_the_run() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let p = Parameters { steps_per_frame: 2, ..parameters() };
    let (mut u, v) = Start::initial(p.clone()).whole().unwrap();
    u[20 * 33 + 30] = f32::INFINITY;
    let start = Start { parameters: p, step: 2, fields: Fields::Given { u, v: v.clone() } };
    let outcome = store(&folder.path().join("run.h5"), start, Some(simulated(|device| device)), &[v]);
    let place = outcome.not_finite.unwrap();
    assert_eq!((place.frame, place.step, place.field), (1, 4, 'V'));
    assert_eq!(outcome.summary.unwrap().stored_frames, 1);
}

#[test]
fn a_device_without_memory_or_lost_fails_the_run_with_its_name() {
    let _deadline = testing::deadline();
    let (progress, interrupt) = (quiet(), Interrupt::default());
    let small = |device: SimulatedBuilder| device.named("small").memory(10_000);
    let lost = |device: SimulatedBuilder| device.named("small").lose_after(9);
    for (device, why) in [(simulated(small), "memory"), (simulated(lost), "lost")] {
        let accounts = Accounts::default();
        let run = unstored(Start::initial(parameters()), 2, &progress, &interrupt, &accounts);
        let text = crate::error::describe(&Run { device: Some(device), ..run }.run().unwrap_err());
        assert!(text.contains("small") && text.contains(why), "{text}");
    }
}
