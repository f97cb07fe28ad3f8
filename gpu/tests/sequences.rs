//! Sequences whose tasks have shaders, or other kernels for devices than for the host.

mod support;

use anabranch::{
    SequenceBody,
    device::{Device, Simulated, Wgsl},
    interface::{Over, SequenceTask},
    local_nodes,
    prelude::*,
};
use std::sync::Arc;
use support::gpu;
use testing::deadline;

const LEN: usize = 53;

/// Adds what the neighbours have and the number of the replay, by a shader.
const SPREAD: &str = "
fn each(x: u32) {
    let last = u_extent() - 1u;
    v_set(x, 3u * u_get(x) + u_get(max(x, 1u) - 1u) + u_get(min(x + 1u, last)) + 5u * n());
}
";

/// A step by a shader, and one by a recorded kernel or by the kernel of the host.
fn record(body: &SequenceBody<'_>, u: &Buffer<u32, 1>, v: &Buffer<u32, 1>) -> Result<(), Error> {
    let spread = body.task("spread").over([LEN]).read(u, neighborhood([1])).write(v, one_to_one());
    spread.shader(Wgsl::new(SPREAD).names(["u", "v"]).replay("n")).kernel(|tile, (u, v)| {
        let replay = 5_u32.wrapping_mul(tile.replay() as u32);
        for [x] in tile.points() {
            let around = u[[x.max(1) - 1]].wrapping_add(u[[(x + 1).min(LEN - 1)]]);
            v.set([x], u[[x]].wrapping_mul(3).wrapping_add(around).wrapping_add(replay));
        }
    })?;
    let back = body.task("back").over([LEN]).read(v, one_to_one()).update(u, one_to_one());
    back.each_on_device(|(v, u)| u.set(u.here() ^ (v.here() + u.replay())))?.kernel(|tile, (v, u)| {
        tile.points().for_each(|p| u[p] ^= v[p].wrapping_add(tile.replay() as u32));
    })
}

/// How many replays there are.
const REPLAYS: u64 = 7 + 3 + 5;

/// What some replays lead to, among other tasks.
fn replayed(rt: &Runtime) -> Result<Vec<u32>, Error> {
    let start = (0..LEN as u32).map(|x| x.wrapping_mul(0x9e37_79b9)).collect::<Vec<_>>();
    let (u, v) = (rt.buffer_from(&start)?, rt.buffer::<u32, 1>([LEN]));
    let sequence = rt.record("sweep", |body| record(body, &u, &v))?;
    sequence.replay(7)?;
    rt.task("host").over([LEN]).update(&u, one_to_one()).kernel(|tile, (u,)| {
        tile.points().for_each(|p| u[p] = u[p].wrapping_add(1));
    })?;
    sequence.replay(3)?;
    let until = sequence.replay_until(5, &v, |_| false)?;
    assert_eq!(until.wait()?, None);
    Ok(rt.fence(&u)?.wait()?.into_vec())
}

#[test]
fn replays_on_a_gpu_have_the_results_of_those_on_the_host() {
    let _deadline = deadline();
    let expected = replayed(&Runtime::builder().threads(1).build().unwrap()).unwrap();
    assert_eq!(replayed(&Runtime::builder().threads(3).build().unwrap()).unwrap(), expected);
    let Some(gpu) = gpu() else { return };
    // The GPU takes part: with at least one batch for each replay.
    let batches = || gpu.timeline().submitted();
    for threads in [1, 2, 3, 4, 8] {
        let rt = Runtime::builder().threads(threads).device(&gpu).build().unwrap();
        let before = batches();
        assert_eq!(replayed(&rt).unwrap(), expected, "{threads} threads");
        assert!(batches() - before >= REPLAYS, "{threads} threads");
    }
    for nodes in [1, 2, 3] {
        let builder = Runtime::builder().threads(2).device(&gpu);
        let before = batches();
        let results = local_nodes(nodes).builder(builder).run(|rt| replayed(&rt));
        assert!(batches() - before >= REPLAYS * u64::from(nodes), "{nodes} nodes");
        for (node, result) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap(), expected, "node {node} of {nodes}");
        }
    }
}

type Task<'r> = SequenceTask<'r, 1, Over, ()>;

/// The values that the forms of a task in a sequence write: a shader alone (1), with a kernel for the host (2)
/// and with a recorded kernel (3); a recorded kernel with one for the host, and all three.
fn forms(rt: &Runtime, place: &dyn Fn(Task<'_>) -> Task<'_>) -> [Result<u32, String>; 5] {
    let u = rt.buffer::<u32, 1>([5]);
    [0, 1, 2, 3, 4].map(|form| {
        let sequence = rt.record("forms", |body| {
            let task = place(body.task("form").over([5])).write(&u, one_to_one());
            let shader = || Wgsl::new("fn each(x: u32) { u_set(x, 1u); }").names(["u"]);
            match form {
                0 => task.shader(shader()).submit(),
                1 => task.shader(shader()).kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2))),
                2 => task.shader(shader()).each(|(u,)| u.set(3)),
                _ => {
                    let task = match form {
                        3 => task.each_on_device(|(u,)| u.set(3))?,
                        _ => task.shader(shader()).each_on_device(|(u,)| u.set(3))?,
                    };
                    task.kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2)))
                }
            }
        });
        let replayed = sequence.and_then(|sequence| sequence.replay(2)?.wait());
        replayed.map_err(|error| error.to_string())?;
        Ok(rt.fence(&u).unwrap().wait().unwrap()[[4]])
    })
}

#[test]
fn the_best_form_for_the_place_is_taken_in_a_sequence() {
    let _deadline = deadline();
    let values = |forms: [Result<u32, String>; 5]| forms.map(Result::ok);
    let simulated: Arc<dyn Device> = Arc::new(Simulated::new());
    let runtime = |device| Runtime::builder().threads(2).device(device).build().unwrap();
    let host = Runtime::builder().threads(2).build().unwrap();
    let on_host = forms(&host, &|task| task);
    let error = on_host[0].clone().unwrap_err();
    assert!(error.contains("task \"form\"") && error.contains("no device"), "{error}");
    assert_eq!(values(on_host), [None, Some(2), Some(3), Some(2), Some(2)]);
    // A device that takes no shaders runs the recording; a task that names it has no other kernel for it.
    assert_eq!(values(forms(&runtime(&simulated), &|task| task)), [None, Some(2), Some(3), Some(3), Some(3)]);
    let named = forms(&host, &|task| task.on(&simulated));
    assert!(named[1].clone().unwrap_err().contains("no shaders"));
    assert_eq!(values(named), [None, None, Some(3), Some(3), Some(3)]);
    assert_eq!(
        values(forms(&runtime(&simulated), &|task| task.on_host())),
        [None, Some(2), Some(3), Some(2), Some(2)]
    );
    let Some(gpu) = gpu() else { return };
    let all_on_device = [Some(1), Some(1), Some(1), Some(3), Some(1)];
    assert_eq!(values(forms(&runtime(&gpu), &|task| task)), all_on_device);
    assert_eq!(values(forms(&host, &|task| task.on(&gpu))), all_on_device);
    assert_eq!(
        values(forms(&runtime(&gpu), &|task| task.on_host())),
        [None, Some(2), Some(3), Some(2), Some(2)]
    );
}

#[test]
fn a_shader_of_a_sequence_is_checked_when_it_is_recorded_and_fails_with_task_and_replay() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = Runtime::builder().threads(2).build().unwrap();
    let u = rt.buffer_from(&[0_u32; 8]).unwrap().named("u");
    let record = |text: &str| {
        rt.record("wrong", |body| {
            let task = body.task("step").over([8]).on(&gpu).update(&u, one_to_one());
            task.shader(Wgsl::new(text).names(["u"])).submit()
        })
    };
    let error = record("fn each(x: u32) { u_set(x, 1.5); }").unwrap_err().to_string();
    assert!(error.contains("task \"step\"") && error.contains("line 1"), "{error}");
    // It counts, and leaves its element in the fourth replay.
    let outside = "fn each(x: u32) { let n = u_get(x) + 1u; u_set(select(x, 99u, n == 4u && x == 5u), n); }";
    let handle = record(outside).unwrap().replay(6).unwrap();
    let error = handle.wait().unwrap_err().to_string();
    assert!(error.contains("step in replay 3 of wrong") && error.contains("accessed [99]"), "{error}");
    assert!(rt.wait().is_err());
    assert!(rt.fence(&u).unwrap().wait().is_err());
}

/// Adds a number to what each tile of 4 × 8 points shares.
const TILES: &str = "
var<workgroup> block: array<u32, 32>;
fn group(id: vec3u, local: vec3u, index: u32) {
    let place = first_point() + id.xy * vec2u(8u, 4u) + local.xy;
    let is_inside = all(place < end_point());
    if is_inside {
        block[index] = u_get(place.y, place.x);
    }
    workgroupBarrier();
    if is_inside {
        u_set(place.y, place.x, block[index] + added());
    }
}
";

#[test]
fn shaders_of_a_sequence_have_parameters_and_tiles_and_a_fixed_number_of_groups_on_one_node_only() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let tiles = |rt: &Runtime| {
        let u = rt.buffer::<u32, 2>([10, 12]);
        rt.task("start").over([10, 12]).write(&u, one_to_one()).each(|(u,)| u.set(1))?;
        let sequence = rt.record("tiles", |body| {
            [5_u32, 7].into_iter().try_for_each(|added| {
                let task = body.task("tiles").over([10, 12]).on(&gpu).update(&u, one_to_one());
                let shader = Wgsl::new(TILES).names(["u"]).parameter("added", added);
                task.shader(shader.tiles([4, 8], [4, 8])).submit()
            })
        })?;
        sequence.replay(3)?;
        Ok::<_, Error>(rt.fence(&u)?.wait()?.into_vec())
    };
    assert_eq!(tiles(&Runtime::builder().threads(2).build().unwrap()).unwrap(), [37; 120]);
    for result in local_nodes(2).threads(1).run(|rt| {
        assert_eq!(tiles(&rt)?, [37; 120]);
        let u = rt.buffer_from(&anabranch::ndarray::Array2::from_elem((8, 8), 1_u32))?;
        let refused = rt.record("groups", |body| {
            let task = body.task("groups").over([8, 8]).on(&gpu).update(&u, one_to_one());
            let shader = Wgsl::new(TILES).names(["u"]).parameter("added", 1_u32);
            task.shader(shader.groups([4, 8], [2, 1])).submit()
        });
        Ok::<_, Error>(refused.unwrap_err())
    }) {
        let error = result.unwrap();
        assert!(
            matches!(error, Error::OneNodeOnly { .. }) && error.to_string().contains("`tiles`"),
            "{error}"
        );
    }
}
