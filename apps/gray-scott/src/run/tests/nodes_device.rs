//! Tests of whole runs on devices of several nodes, in this process: simulated ones, which get a recorded
//! kernel for each step, and one that computes on the processor and gets the shader.

use super::{
    nodes::{Nodes, options, parameters},
    *,
};
use crate::error::describe;
use anabranch::local_nodes;
use std::fs;

/// The device of a node.
type DeviceOf = fn(u16) -> Option<Arc<dyn Device>>;

/// A device of each node whose steps take random times.
fn simulated(node: u16) -> Option<Arc<dyn Device>> {
    Some(Arc::new(Simulated::builder().delays(node.into(), Duration::from_micros(100)).build()))
}

/// A driver that computes on the processor; `None` if there is none.
#[cfg(feature = "gpu")]
fn software(_: u16) -> Option<Arc<dyn Device>> {
    use anabranch::device::DeviceKind;
    use std::io::Write as _;
    let adapters = anabranch_gpu::adapters();
    let found = adapters.iter().find(|adapter| adapter.info.kind == DeviceKind::Software);
    if found.is_none() {
        // Not `eprintln!`, which the test harness captures.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: runs on devices of several nodes (need the package mesa-vulkan-drivers)"
        );
    }
    found.map(|adapter| anabranch_gpu::open(Some(&adapter.info.name)).unwrap())
}

#[cfg(not(feature = "gpu"))]
fn software(_: u16) -> Option<Arc<dyn Device>> {
    None
}

/// The devices that the tests run on.
fn devices() -> Vec<DeviceOf> {
    let mut devices: Vec<DeviceOf> = vec![simulated];
    devices.extend(software(0).map(|_| software as DeviceOf));
    devices
}

fn on(device: DeviceOf, count: u16, p: &Parameters) -> Nodes {
    Nodes { device, delays: (2, count.into()), threads: 1 + usize::from(count) % 2, ..Nodes::new(count, p) }
}

fn succeed(outcomes: Vec<Result<RunOutcome, Error>>) -> Vec<RunOutcome> {
    outcomes.into_iter().map(Result::unwrap).collect()
}

#[test]
fn devices_of_several_nodes_write_the_file_of_one_device() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let [host, one, on_nodes] = ["host.h5", "one.h5", "nodes.h5"].map(|name| folder.path().join(name));
    let levels = [SyncLevel::None, SyncLevel::End, SyncLevel::Frame];
    let periodic = Parameters { edges: crate::model::Edges::Periodic, ..parameters(40) };
    let clamped = Parameters { edges: crate::model::Edges::Clamped, cols: 40, ..parameters(13) };
    // More nodes than rows, and parts with fewer rows than a launch has steps.
    let cases = [(parameters(13), None), (parameters(3), None), (periodic, None), (clamped, Some(4))];
    for device in devices() {
        for (p, compress) in &cases {
            Nodes::new(1, p).store_alone(&host, *compress).unwrap();
            on(device, 1, p).store_alone(&one, *compress).unwrap();
            let pairs = frames(&host).concat().into_iter().zip(frames(&one).concat());
            // The tolerance that the README states for the first steps, and a bit more for the later ones.
            let most = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most > 0.0 && most < 2e-6, "{most}");
            for count in [1, 2, 3, 4, 7] {
                let outcomes =
                    on(device, count, p).store(&on_nodes, levels[usize::from(count) % 3], *compress);
                for outcome in succeed(outcomes) {
                    assert_eq!((outcome.steps, outcome.interrupted), (p.steps(), false));
                }
                assert!(
                    fs::read(&one).unwrap() == fs::read(&on_nodes).unwrap(),
                    "{} rows, {compress:?}, {count} nodes",
                    p.rows
                );
                fs::remove_file(&on_nodes).unwrap();
            }
        }
    }
}

#[test]
fn a_checkpoint_of_devices_goes_on_with_another_number_of_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let [whole, path] = ["whole.h5", "run.h5"].map(|name| folder.path().join(name));
    let saved = folder.path().join("run.checkpoint");
    let checkpoints = Some(Checkpoints { path: saved.clone(), every: 2, interval: None });
    let p = parameters(13);
    for device in devices() {
        on(device, 1, &p).store_alone(&whole, None).unwrap();
        for (count, others) in [(2, 1), (1, 4), (3, 2)] {
            let nodes = Nodes { until: 3, checkpoints: checkpoints.clone(), ..on(device, count, &p) };
            succeed(nodes.store(&path, SyncLevel::None, None));
            let start = Start { parameters: p.clone(), step: 33, fields: Fields::Saved(saved.clone()) };
            let nodes = Nodes { start, checkpoints: checkpoints.clone(), ..on(device, others, &p) };
            let writer = options(&path, &p, SyncLevel::None, None).resume::<f32>(3).unwrap();
            succeed(nodes.store_in(&path, writer));
            assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap(), "{count} nodes, then {others}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn one_node_that_is_interrupted_stops_the_devices_of_all_behind_the_same_step() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let p = Parameters { frames: 20_000, ..parameters(13) };
    for (i, device) in devices().into_iter().enumerate() {
        for (count, interrupted) in [(2, 1), (3, 0)] {
            let path = folder.path().join(format!("{i}-{count}.h5"));
            let checkpoints = Some(Checkpoints::on_interruption(checkpoint::path_of(&path)));
            let nodes = Nodes { interrupted: Some(interrupted), checkpoints, ..on(device, count, &p) };
            let outcomes = succeed(nodes.store(&path, SyncLevel::None, None));
            let steps = outcomes[0].steps;
            assert!(
                outcomes.iter().all(|outcome| outcome.interrupted && outcome.steps == steps),
                "{outcomes:?}"
            );
            let stored = Reader::open(&path).unwrap().stored_frames().unwrap();
            assert_eq!((stored, outcomes[0].frames), (steps / 11, stored));
            // The state is that of one device after as many steps.
            let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
            assert_eq!(state.step, steps);
            let as_far = Parameters { frames: 1, steps_per_frame: steps, ..p.clone() };
            let whole = folder.path().join("whole.h5");
            on(device, 1, &as_far).store_alone(&whole, None).unwrap();
            assert!(state.whole().unwrap().1 == frames(&whole)[0], "after {steps} steps");
        }
    }
}

#[test]
fn a_frame_that_is_not_finite_has_the_same_place_on_devices_of_any_number_of_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (one, path) = (folder.path().join("one.h5"), folder.path().join("nodes.h5"));
    let p = Parameters { frames: 40, steps_per_frame: 1, ..parameters(13) };
    for device in devices() {
        // Both fields, the last rows and the first ones.
        for (in_v, at) in [(false, 6 * 17 + 8), (true, 12 * 17), (true, 3)] {
            let prepare = |count| {
                let mut nodes = on(device, count, &p);
                let (mut u, mut v) = nodes.start.whole().unwrap();
                if in_v {
                    v[at] = f32::NAN
                } else {
                    u[at] = f32::INFINITY
                }
                nodes.start.fields = Fields::Given { u, v };
                nodes
            };
            let alone = prepare(1).store_alone(&one, None).unwrap().not_finite.unwrap();
            assert_eq!((alone.frame, alone.step, alone.field), (0, 1, "U or V"));
            for (count, compress) in [(1, None), (2, None), (4, None), (3, Some(1))] {
                for outcome in succeed(prepare(count).store(&path, SyncLevel::None, compress)) {
                    assert_eq!(outcome.not_finite, Some(alone), "{count} nodes");
                }
                assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 0);
                fs::remove_file(&path).unwrap();
            }
            let unchecked = Nodes { check_finite: false, ..prepare(2) };
            for outcome in succeed(unchecked.store(&path, SyncLevel::None, None)) {
                assert_eq!((outcome.not_finite, outcome.steps), (None, 40));
            }
            assert_eq!(frames(&path).len(), 40);
            fs::remove_file(&path).unwrap();
        }
    }
}

/// A run in which the device of one node fails: the error of all nodes, which names it, and the frames that
/// are stored.
fn failed(path: &Path, device: DeviceOf, count: u16, p: &Parameters) -> (String, Vec<Vec<f32>>) {
    let outcomes = on(device, count, p).store(path, SyncLevel::None, None);
    let errors: Vec<_> = outcomes.into_iter().map(|outcome| describe(&outcome.unwrap_err())).collect();
    let reader = Reader::open(path).unwrap();
    let stored = (0..reader.stored_frames().unwrap())
        .map(|i| reader.read_frame(i).unwrap().into_raw_vec_and_offset().0);
    (errors.join("\n"), stored.collect())
}

#[test]
fn a_device_of_one_node_that_is_lost_or_lacks_memory_ends_the_run_of_all() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.h5"), folder.path().join("run.h5"));
    let p = Parameters { frames: 200, ..parameters(13) };
    on(simulated, 1, &p).store_alone(&whole, None).unwrap();
    let whole = frames(&whole);
    let lost: DeviceOf = |node| {
        let device = Simulated::builder().named("a GPU");
        Some(Arc::new(if node == 1 { device.lose_after(400).build() } else { device.build() }))
    };
    let small: DeviceOf = |node| {
        let device = Simulated::builder().named("a GPU");
        Some(Arc::new(if node == 0 { device.memory(4 * 13 * 17 * 3).build() } else { device.build() }))
    };
    for (device, why) in [(lost, "the device a GPU is lost"), (small, "the device a GPU has no memory left")]
    {
        for count in [2, 3] {
            let (errors, stored) = failed(&path, device, count, &p);
            assert_eq!(errors.matches(why).count(), usize::from(count), "{errors}");
            assert!(stored.len() < 200 && stored == whole[..stored.len()], "{} frames", stored.len());
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn devices_of_several_nodes_run_ahead_of_a_slow_store_whose_time_is_not_counted_as_computing() {
    let _deadline = testing::deadline();
    // Few steps, because a horizon of the command graph may make a longer frame wait for all that is stored
    // before.
    let p = Parameters { frames: 8, steps_per_frame: 1, ..parameters(12) };
    for (count, queue) in [(2, 0), (3, 1), (4, 0)] {
        let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
        let run = unstored(Start::initial(p.clone()), 1, &progress, &interrupt, &accounts);
        let builder = Run { queue, device: simulated(0), ..run }.builder();
        let p = p.clone();
        let results = local_nodes(count).builder(builder).run(move |rt| {
            let (progress, interrupt, node) = (quiet(), Interrupt::default(), rt.node());
            let (store, accounts) = SlowStore::new(&p, p.cells() / u64::from(count), queue);
            let writer = (node == 0).then(|| Box::new(store) as Box<dyn FrameSink>);
            let run = unstored(Start::initial(p.clone()), 1, &progress, &interrupt, &accounts);
            let outcome = Run { writer, queue, device: simulated(node), ..run }.run_on(rt);
            // On node 0 the clock goes on while frames are stored, and then nothing may be computing.
            let expected = if node == 0 { SlowStore::times(&p) } else { Times::default() };
            Ok::<_, anabranch::Error>((outcome.map(|outcome| outcome.frames), accounts.times() == expected))
        });
        for (node, result) in results.into_iter().enumerate() {
            let (frames, has_times) = result.unwrap();
            assert_eq!(
                (frames.unwrap(), has_times),
                (if node == 0 { 8 } else { 0 }, true),
                "node {node} of {count}"
            );
        }
    }
}
