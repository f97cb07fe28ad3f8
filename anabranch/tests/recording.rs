//! A recorded program and a dry run compute the same results as a plain run, and their graphs show names,
//! regions and messages.

mod common;

use anabranch::{
    device::{Device, Simulated},
    graph::print::{Drawing, Format},
    local_nodes,
    prelude::*,
};
use common::Gate;
use std::{sync::Arc, time::Duration};
use testing::deadline;

/// A program with some steps of a stencil, a reduction, effects of all orders, a barrier and a fence.
fn program(rt: &Runtime) -> Result<(Vec<f64>, f64, u64), Error> {
    let mut u = rt.buffer_from(&(0..64).map(f64::from).collect::<Vec<_>>())?.named("u");
    let mut u2 = rt.buffer::<f64, 1>([64]).named("u2").with_versions(2);
    let total = rt.buffer::<f64, 0>([]).named("total");
    let count = rt.host_object(0_u64).named("count");
    for step in 0..6 {
        rt.task("smooth").over([64]).read(&u, neighborhood([1])).write(&u2, one_to_one()).kernel(
            |tile, (u, u2)| {
                for [i] in tile.points() {
                    u2.set([i], 0.5 * (u[[i.saturating_sub(1)]] + u[[(i + 1).min(63)]]));
                }
            },
        )?;
        rt.task("count").once().effect(&count, exclusive()).host(|(count,)| *count += 1)?;
        rt.task("look").once().effect(&count, relaxed()).host(|(_,)| ())?;
        std::mem::swap(&mut u, &mut u2);
        if step == 2 {
            drop(rt.barrier_with(u.part(GridBox::new(0, 4)))?);
        }
    }
    u2.discard();
    rt.task("sum")
        .over([64])
        .read(&u, one_to_one())
        .reduce(&total, sum())
        .kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))?;
    let fence = rt.fence(&u)?;
    rt.task("end").once().effect(&count, sequential()).host(|(count,)| *count += 100)?;
    let (total, count) = rt.fence((&total, &count))?.wait()?;
    Ok((fence.wait()?.into_vec(), total[[]], count))
}

#[test]
fn a_recorded_program_computes_the_same_results() {
    let _deadline = deadline();
    let plain = program(&Runtime::builder().threads(2).build().unwrap()).unwrap();
    for nodes in [1, 3, 16] {
        let rt = Runtime::builder().threads(2).record_graphs(true).dry_run(nodes).build().unwrap();
        assert_eq!(program(&rt).unwrap(), plain);
    }
}

/// Five sweeps, by a sequence or by submitted tasks.
fn sweeps(rt: &Runtime, replays: bool) -> Result<(Vec<f64>, u64), Error> {
    let (u, v) = (rt.buffer::<f64, 1>([8]).named("u"), rt.buffer::<f64, 1>([8]).named("v"));
    let (count, sums) = (rt.host_object(0_u64).named("count"), rt.buffer::<f64, 1>([8]));
    rt.task("begin").over([8]).write(&u, one_to_one()).kernel(|tile, (u,)| {
        tile.points().for_each(|point| u.set(point, 1.0));
    })?;
    macro_rules! sweep {
        ($by:expr, $host:expr) => {{
            for (from, to) in [(&u, &v), (&v, &u)] {
                let task = $by.task("step").over([8]).read(from, neighborhood([1])).write(to, one_to_one());
                task.kernel(|tile, (from, to)| {
                    tile.points().for_each(|point| to.set(point, from[point] + 1.0));
                })?;
            }
            // All nodes exchange their parts.
            let task = $by.task("sums").over([8]).read(&u, all()).write(&sums, one_to_one());
            task.kernel(|tile, (u, sums)| {
                tile.points().for_each(|point| sums.set(point, (0..8).map(|i| u[[i]]).sum()));
            })?;
            $by.task("count").once().effect(&count, sequential()).host($host)
        }};
    }
    if replays {
        let sequence = rt.record("sweep", |body| sweep!(body, |_, (count,)| *count += 1))?;
        sequence.replay(5)?;
    } else {
        for _ in 0..5 {
            sweep!(rt, |(count,)| *count += 1)?;
        }
    }
    let (seen, count) = rt.fence((&u, &count))?.wait()?;
    Ok((seen.into_vec(), count))
}

#[test]
fn a_replay_is_a_task_in_recorded_graphs() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).record_graphs(true).build().unwrap();
    assert_eq!(sweeps(&rt, true).unwrap(), (vec![11.0; 8], 5));
    let dot = rt.task_graph().unwrap().render(Format::Dot);
    assert!(
        dot.contains("sweep × 5") && dot.contains("object \\\"count\\\"") && !dot.contains("step"),
        "{dot}"
    );
}

#[test]
fn a_dry_run_of_replays_has_the_commands_of_their_tasks() {
    let _deadline = deadline();
    let summaries = [true, false].map(|replays| {
        let rt = Runtime::builder().threads(2).record_graphs(true).dry_run(6).build().unwrap();
        assert_eq!(sweeps(&rt, replays).unwrap(), (vec![11.0; 8], 5));
        let dot = rt.task_graph().unwrap().render(Format::Dot);
        assert_eq!(dot.contains("step in replay 4 of sweep"), replays, "{dot}");
        rt.dry_run_summary().unwrap()
    });
    assert_eq!(summaries[0], summaries[1]);
}

#[test]
fn the_task_graph_shows_names_regions_and_orders() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).record_graphs(true).build().unwrap();
    program(&rt).unwrap();
    let dot = rt.task_graph().unwrap().render(Format::Dot);
    for text in
        ["smooth", "read buffer \\\"u\\\"", "reduce buffer \\\"total\\\"", "exclusive host object", "epoch"]
    {
        assert!(dot.contains(text), "{text} is not in {dot}");
    }
    assert!(dot.contains("dir=none"), "a conflict between an exclusive and a relaxed task");
    assert!(rt.command_graph().is_none(), "there is no dry run");
    for format in Format::ALL {
        assert!(!rt.task_graph().unwrap().render(format).is_empty());
    }
}

#[test]
fn copies_to_devices_are_drawn_before_the_tasks_that_need_them() {
    let _deadline = deadline();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let rt = Runtime::builder().threads(2).record_graphs(true).build().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8]).unwrap().named("u"), rt.buffer([8]).named("v"));
    // So that the numbers of tasks in the drawing are not those of the runtime.
    let pieces = rt.task("pieces").over([8]).pieces(4).update(&u, one_to_one());
    pieces.kernel(|tile, (u,)| tile.points().for_each(|p| u[p] += 1.0)).unwrap();
    for name in ["first", "second"] {
        let task = rt.task(name).over([8]).on(&device).read(&u, one_to_one()).write(&v, one_to_one());
        task.each(|(u, v)| v.set(u.here() + 1.0)).unwrap();
    }
    let on_host = rt.task("on the host").over([8]).update(&v, one_to_one());
    on_host.kernel(|tile, (v,)| tile.points().for_each(|p| v[p] *= 2.0)).unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [6.0; 8]);
    let drawing = rt.task_graph().unwrap();
    let name = |id: &str| {
        let mut nodes = drawing.nodes().iter();
        nodes.find(|node| node.id == id).unwrap_or_else(|| panic!("no node {id}")).name.clone()
    };
    let edges = drawing.edges().iter().map(|edge| (name(&edge.from), name(&edge.to)));
    let edges: Vec<_> = edges.filter(|(from, to)| (from.clone() + to).contains("copy of buffer")).collect();
    for (from, to) in [
        ("pieces", "copy of buffer \"u\""),
        ("copy of buffer \"u\"", "first"),
        ("copy of buffer \"u\"", "second"),
        ("second", "copy of buffer \"v\""),
        ("copy of buffer \"v\"", "on the host"),
    ] {
        let is_there = edges.iter().any(|edge| edge.0.starts_with(from) && edge.1.starts_with(to));
        assert!(is_there, "no edge from {from} to {to} in {edges:?}");
    }
}

/// The copies among the commands of a node, in a program whose device computes the steps of a stencil.
fn copies_of_a_node(rt: &Runtime, delay: Option<Duration>) -> Result<Vec<(String, String)>, Error> {
    let device: Arc<dyn Device> = match delay {
        Some(delay) => Arc::new(Simulated::builder().delays(3, delay).build()),
        None => Arc::new(Simulated::new()),
    };
    let (u, v) = (rt.buffer::<f32, 1>([8]).named("u"), rt.buffer::<f32, 1>([8]).named("v"));
    for (from, to, step) in [(&u, &v, "first"), (&v, &u, "second")] {
        if step == "first" {
            rt.task("start").over([8]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
        }
        let task = rt.task(step).over([8]).on(&device).read(from, neighborhood([1])).write(to, one_to_one());
        task.each(|(from, to)| to.set(from.at_or([-1], 0.0) + from.at_or([1], 0.0)))?;
        if delay.is_none() {
            // Nothing is left to wait for, and the drawing is the same.
            rt.wait()?;
        }
    }
    assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [2.0, 3.0, 4.0, 4.0, 4.0, 4.0, 3.0, 2.0]);
    let drawing = rt.command_graph().unwrap();
    let name = |id: &str| {
        let node =
            drawing.nodes().iter().find(|node| node.id == id).unwrap_or_else(|| panic!("no node {id}"));
        format!("{} {:?}", node.name, node.kind)
    };
    let edges = drawing.edges().iter().map(|edge| (name(&edge.from), name(&edge.to)));
    Ok(edges.filter(|(from, to)| (from.clone() + to).contains("copy of buffer")).collect())
}

#[test]
fn copies_of_nodes_are_drawn_between_the_commands_that_need_them() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        for delay in [None, Some(Duration::from_millis(2))] {
            let real = local_nodes(nodes).builder(Runtime::builder().threads(2).record_graphs(true));
            for (node, edges) in real.run(|rt| copies_of_a_node(&rt, delay)).into_iter().enumerate() {
                let edges = edges.unwrap();
                for (from, to) in [
                    // What the host of the node has written, and what has come from its neighbours.
                    ("start", "copy of buffer \"u\" to simulated"),
                    ("first", "copy of buffer \"u\" to simulated"),
                    ("copy of buffer \"u\" to simulated", "first"),
                    // The border that the neighbours read is copied to the host, from where it is sent.
                    ("first", "copy of buffer \"v\" to the host"),
                    ("copy of buffer \"v\" to the host", "second"),
                    ("copy of buffer \"v\" to simulated", "second"),
                ] {
                    let is_there =
                        edges.iter().any(|edge| edge.0.starts_with(from) && edge.1.starts_with(to));
                    assert!(is_there, "node {node} of {nodes}: no edge from {from} to {to} in {edges:#?}");
                }
            }
        }
    }
}

#[test]
fn a_dry_run_shows_the_messages_between_its_nodes() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).dry_run(4).build().unwrap();
    program(&rt).unwrap();
    let dot = rt.command_graph().unwrap().render(Format::Dot);
    for text in ["node 3", "await push", "message"] {
        assert!(dot.contains(text), "{text} is not in {dot}");
    }
    let summary = rt.dry_run_summary().unwrap();
    assert!(summary.starts_with("dry run for 4 nodes: "), "{summary}");
    assert!(!summary.contains(" 0 pushes"), "{summary}");
    assert!(!summary.contains("refused"), "{summary}");
    let alone = Runtime::builder().threads(1).dry_run(1).build().unwrap();
    program(&alone).unwrap();
    assert!(alone.dry_run_summary().unwrap().contains(" 0 pushes"));
}

#[test]
fn a_dry_run_counts_the_messages_of_an_exchange() {
    let _deadline = deadline();
    // Eight nodes take three steps, but push large parts to each other.
    for (len, messages) in [(64, 8 * 3), (200_000, 8 * 7)] {
        let rt = Runtime::builder().threads(1).dry_run(8).build().unwrap();
        let (u, v) = (rt.buffer::<f64, 1>([len]), rt.buffer::<f64, 1>([8]));
        rt.task("write").over([len]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0)).unwrap();
        let read = rt.task("read").over([8]).read(&u, all()).write(&v, one_to_one());
        read.kernel(|_, (_, v)| v.fill(1.0)).unwrap();
        rt.wait().unwrap();
        let summary = rt.dry_run_summary().unwrap();
        assert!(summary.contains(&format!("8 pushes in {messages} messages")), "{summary}");
    }
}

#[test]
fn a_task_runs_on_the_node_that_it_names() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).dry_run(3).build().unwrap();
    rt.task("there").once().on_node(2).unwrap().host(|()| ()).unwrap();
    rt.task("all").collective().host(|_, ()| ()).unwrap();
    rt.task("parts").over([9]).host(|tile, ()| assert_eq!(tile.range().len(), 9)).unwrap();
    rt.wait().unwrap();
    let summary = rt.dry_run_summary().unwrap();
    assert!(summary.contains("3 tasks, 7 commands"), "{summary}");
    let error = rt.task("nowhere").once().on_node(3).unwrap_err().to_string();
    assert!(error.contains("its node is 3; choose an existing node"), "{error}");
}

#[test]
fn a_dry_run_with_an_impossible_number_of_nodes_is_an_error() {
    let _deadline = deadline();
    for nodes in [0, 4097] {
        let error = Runtime::builder().dry_run(nodes).build().unwrap_err().to_string();
        assert!(error.contains(&format!("is {nodes}; choose a number from 1 to 4096")), "{error}");
    }
}

/// Uses child processes, because a runtime reads the environment of its process when it is built.
#[test]
fn the_environment_can_request_graphs() {
    let _deadline = deadline();
    const CHILD: &str = "ANABRANCH_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        program(&Runtime::builder().threads(2).build().unwrap()).unwrap();
        return;
    }
    let folder = std::env::temp_dir().join(format!("anabranch-recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |path: &str, nodes: &str| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["the_environment_can_request_graphs", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .env("ANABRANCH_PRINT_GRAPHS", folder.join(path))
            .env("ANABRANCH_DRY_RUN_NODES", nodes)
            .output()
            .unwrap()
    };
    let output = run("graphs.svg", "16");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("dry run for 16 nodes"), "{text}");
    for name in ["graphs.svg", "graphs-commands.svg"] {
        let svg = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(svg.contains("<svg") && svg.contains("smooth"), "{name}");
    }
    for (path, nodes, complaint) in
        [("graphs.png", "1", "ends in .svg, .dot, .mmd or .json"), ("a.svg", "x", "a number from 1 to 4096")]
    {
        let output = run(path, nodes);
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(complaint), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_kernel_on_one_node_gets_all_that_it_reads() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).dry_run(4).build().unwrap();
    let [u, v] = [(); 2].map(|()| rt.buffer::<u64, 1>([64]));
    rt.task("fill").over([64]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
    let copy = rt.task("copy").over([64]).on_node(2).unwrap();
    copy.read(&u, one_to_one()).write(&v, one_to_one()).kernel(|_, (_, v)| v.fill(2)).unwrap();
    let summary = rt.dry_run_summary().unwrap();
    assert!(summary.contains(" 3 pushes in 3 messages"), "{summary}");
    assert!(rt.task("nowhere").over([64]).on_node(4).is_err());
}

/// A program with borders, pieces, a transposition, reductions, fences, an epoch, effects, buffers that are
/// dropped and discarded, and weights of the nodes.
fn distributed(rt: &Runtime, nodes: u16) -> Result<f64, Error> {
    const N: usize = 12;
    let u = rt.buffer_from(&ndarray::Array2::from_shape_fn((N, N), |(y, x)| (y * N + x) as f64))?.named("u");
    let total = rt.buffer::<f64, 0>([]).named("total");
    let log = rt.host_object(0_u64).named("log");
    for step in 0..2 {
        let next = rt.buffer::<f64, 2>([N, N]).named(format!("next {step}"));
        rt.task("smooth")
            .over([N, N])
            .pieces(12)
            .read(&u, neighborhood([1, 1]))
            .write(&next, one_to_one())
            .kernel(|tile, (u, next)| {
            tile.points().for_each(|p| next.set(p, 0.5 * u[p] + u[[p[0].max(1) - 1, p[1]]]))
        })?;
        let turn = rt.task("turn").over([N, N]).read(&next, transposed()).write(&u, one_to_one());
        turn.kernel(|tile, (next, u)| tile.points().for_each(|[y, x]| u.set([y, x], next[[x, y]])))?;
        // The tasks may still use it.
        drop(next);
        let sum = rt.task("sum").over([N, N]).chunks(9).read(&u, one_to_one()).reduce(&total, sum());
        sum.kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))?;
        let log = rt.task("log").once().read(&total, all()).effect(&log, sequential());
        log.host(|(_, log)| *log += 1)?;
    }
    // The weights 1, 2, 0, 1, and so on.
    rt.set_weights(&(1..=nodes).map(|node| f64::from(node % 3)).collect::<Vec<_>>())?;
    drop(rt.fence(&u.part(GridBox::new([3, 0], [9, 2])))?);
    drop(rt.barrier_with((total.capture(), log.capture()))?);
    let v = rt.buffer::<f64, 2>([N, N]).named("v");
    rt.task("copy")
        .over([N, N])
        .tiles(2, 2)
        .read(&u, one_to_one())
        .write(&v, one_to_one())
        .kernel(|tile, (u, v)| tile.points().for_each(|p| v.set(p, u[p])))?;
    u.discard();
    let rows = mapper(|chunk, _| GridBox::new([chunk.range.min()[0], 0], [chunk.range.max()[0], N]));
    rt.task("refill").over([N]).read(&v, fixed(GridBox::full([N, N]))).write(&u, rows).kernel(
        |tile, (v, u)| {
            for y in tile.along(0) {
                (0..N).for_each(|x| u.set([y, x], v[[N - 1 - y, x]]));
            }
        },
    )?;
    let sum = rt.task("sum").over([N, N]).read(&u, one_to_one()).reduce_into(&total, sum());
    sum.kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))?;
    Ok(rt.fence(&total)?.wait()?[[]])
}

/// The commands of a node and the edges between them, in the order in which they were drawn.
fn commands_of(node: u16, graph: &Drawing) -> Vec<String> {
    let json = graph.render(Format::Json);
    assert!(json.contains(r#""note": null"#), "the drawing is complete");
    let begins = [format!(r#"{{"id": "N{node}."#), format!(r#"{{"from": "N{node}."#)];
    let is_of_node = |line: &&str| {
        begins.iter().any(|begin| line.starts_with(begin)) && !line.contains(r#""kind": "message""#)
    };
    json.lines().map(|line| line.trim().trim_end_matches(',')).filter(is_of_node).map(str::to_owned).collect()
}

#[test]
fn nodes_execute_the_commands_of_a_dry_run() {
    let _deadline = deadline();
    for nodes in [1, 2, 3, 4, 7] {
        let dry = Runtime::builder().threads(2).dry_run(nodes).build().unwrap();
        let expected = distributed(&dry, nodes).unwrap();
        let dry = dry.command_graph().unwrap();
        for threads in [1, 3] {
            let real = local_nodes(nodes).builder(Runtime::builder().threads(threads).record_graphs(true));
            let results = real.delays(7, threads as u64).run(|rt| {
                let total = distributed(&rt, rt.nodes())?;
                Ok((total.to_bits(), commands_of(rt.node(), &rt.command_graph().unwrap())))
            });
            for (node, result) in (0..).zip(results) {
                let (total, commands) = result.unwrap();
                assert_eq!(total, expected.to_bits());
                assert!(commands.len() > 10, "{commands:#?}");
                assert_eq!(commands, commands_of(node, &dry), "node {node} of {nodes}");
            }
        }
    }
}

/// On each node the second write goes on with another version, because a task still reads the first one.
#[test]
fn nodes_use_the_versions_of_a_dry_run() {
    let _deadline = deadline();
    let program = |rt: &Runtime| {
        let (u, gate) = (rt.buffer::<u64, 1>([8]).with_versions(2), Gate::default());
        let write = |value| {
            let task = rt.task("write").over([8]).write(&u, one_to_one());
            task.kernel(move |_, (u,)| u.fill(value))
        };
        write(1)?;
        let waits = gate.clone();
        rt.task("read").over([8]).read(&u, one_to_one()).host(move |_, _| waits.pass())?;
        u.discard();
        write(2)?;
        gate.open();
        Ok::<_, Error>(rt.fence(&u)?.wait()?.into_vec())
    };
    let dry = Runtime::builder().threads(2).dry_run(2).build().unwrap();
    assert_eq!(program(&dry).unwrap(), [2; 8]);
    let dry = dry.command_graph().unwrap();
    let real = local_nodes(2).builder(Runtime::builder().threads(2).record_graphs(true));
    let results = real.run(|rt| {
        assert_eq!(program(&rt)?, [2; 8]);
        Ok(commands_of(rt.node(), &rt.command_graph().unwrap()))
    });
    for (node, result) in (0..).zip(results) {
        assert_eq!(result.unwrap(), commands_of(node, &dry), "node {node}");
    }
}
