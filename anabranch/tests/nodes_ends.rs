//! How a run on several nodes ends, and what is refused: on all nodes in the same way.

mod common;

use anabranch::{LocalNodes, NodeError, local_nodes, prelude::*};
use common::block_on;
use std::{
    mem::swap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::channel,
    },
    time::Duration,
};
use testing::deadline;

fn nodes(count: u16) -> LocalNodes {
    local_nodes(count).threads(2).delays(3, 5)
}

#[test]
fn different_programs_are_an_error_that_names_the_first_difference() {
    let _deadline = deadline();
    for count in [2, 3, 7] {
        for odd in 0..count {
            let results = nodes(count).run(|rt| {
                let u = rt.buffer_from(&[1_u64; 64])?;
                let odd = rt.node() == odd;
                rt.wait()?;
                for step in 0..5 {
                    let name = if odd && step == 3 { "odd" } else { "even" };
                    let space = if odd && step == 3 { 63 } else { 64 };
                    rt.task(name).over([space]).update(&u, one_to_one()).kernel(|_, _| ())?;
                    rt.task("read").over([64]).read(&u, all()).kernel(|_, _| ())?;
                }
                rt.drain(u.capture()).map(drop)
            });
            for result in results {
                let error = result.unwrap_err();
                assert!(matches!(error, Error::Nodes(_) | Error::Failed(_)), "{error}");
                let text = error.to_string();
                // One call of `wait`, six tasks, and then the first that differs.
                assert!(text.contains("submission 8 of the program is task"), "{text}");
                assert!(text.contains("\"even\"") || text.contains("\"odd\""), "{text}");
            }
        }
    }
}

/// How a program waits for a task.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Future,
    Callback,
    Room,
}

/// No thread of these programs blocks in a call that compares them.
#[test]
fn programs_that_differ_do_not_wait_for_ever_in_futures_and_submissions() {
    let _deadline = deadline();
    for wait in [Wait::Future, Wait::Callback, Wait::Room] {
        let results = nodes(3).builder(Runtime::builder().max_in_flight(5)).run(move |rt| {
            let u = rt.buffer::<u64, 1>([64]);
            rt.task("write").over([64]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1))?;
            // Node 1 awaits rows for a task that the others do not have, and the others await rows of node 1.
            let name = if rt.node() == 1 { "odd" } else { "even" };
            let place = if rt.node() == 1 { 1 } else { 0 };
            let task = rt.task(name).over([1]).on_node(place)?.update(&u, all()).kernel(|_, _| ())?;
            match wait {
                Wait::Future => block_on(rt.fence(&u)?).map(drop),
                Wait::Callback => {
                    let fence = rt.task("after").over([64]).read(&u, all()).kernel(|_, _| ())?;
                    let (send, receive) = channel();
                    fence.on_done(move |_| send.send(()).unwrap());
                    let _ = receive.recv();
                    fence.wait()
                }
                Wait::Room => loop {
                    rt.task("more").over([1]).update(&u, all()).kernel(|_, _| ())?;
                },
            }
            .and(task.wait())
        });
        for result in results {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("submission 2 of the program is task"), "{wait:?}: {error}");
        }
    }
}

#[test]
fn a_node_that_waits_alone_or_ends_early_is_noticed() {
    let _deadline = deadline();
    let results = nodes(3).run(|rt| {
        if rt.node() == 1 {
            rt.wait()?;
        }
        rt.task("task").collective().host(|_, ()| ())?;
        rt.wait()
    });
    assert!(results.into_iter().all(|result| {
        matches!(result.unwrap_err(), Error::Nodes(why)
            if matches!(*why, NodeError::Different { number: 1, .. } | NodeError::Other { .. }))
    }));
    let results = nodes(4).run(|rt| {
        let u = rt.buffer_from(&[0_u8; 8])?;
        if rt.node() == 2 {
            return Ok(());
        }
        rt.task("task").over([8]).update(&u, one_to_one()).kernel(|_, _| ())?;
        rt.drain(u.capture()).map(drop)
    });
    for (node, result) in results.into_iter().enumerate() {
        assert_eq!(result.is_ok(), node == 2);
    }
}

/// At whatever message a node is lost, all nodes end, and the others name it.
#[test]
fn a_lost_node_is_named_by_the_others() {
    let _deadline = deadline();
    let builder = Runtime::builder().threads(2).node_timeout(Duration::from_secs(2));
    for (after, seed) in [(0, 1), (10, 2), (101, 3)] {
        let lost = (after % 3) as u16;
        let nodes = local_nodes(3).builder(builder.clone()).delays(3, seed).lose(lost, after);
        let results = nodes.run(|rt| -> Result<(), Error> {
            let mut u = rt.buffer_from(&[1_u64; 60])?;
            let mut v = rt.buffer::<u64, 1>([60]);
            loop {
                rt.task("sum").over([60]).read(&u, all()).write(&v, one_to_one()).kernel(|_, (u, v)| {
                    v.fill((0..60).fold(0, |sum: u64, i| sum.wrapping_add(u[[i]])));
                })?;
                swap(&mut u, &mut v);
                drop(rt.fence(&u.part(GridBox::new(0, 1)))?.wait()?);
            }
        });
        for (node, result) in (0..).zip(results) {
            let error = result.unwrap_err().to_string();
            let named = format!("node {lost} ");
            assert!(
                node == lost || error.contains(&named),
                "node {node}, {lost} lost after {after}: {error}"
            );
        }
    }
}

#[test]
fn a_panic_on_one_node_ends_the_others() {
    let _deadline = deadline();
    let others = AtomicUsize::new(0);
    let run = || {
        nodes(3).run(|rt| {
            let u = rt.buffer_from(&[0_u8; 9])?;
            rt.task("task").over([9]).update(&u, one_to_one()).kernel(|_, _| ())?;
            assert!(rt.node() != 1, "node 1 panics");
            let error = rt.drain(u.capture()).unwrap_err().to_string();
            assert!(error.contains("node 1") && error.contains("panicked"), "{error}");
            others.fetch_add(1, Relaxed);
            Ok(())
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(others.load(Relaxed), 2);
}

#[test]
fn another_thread_and_a_task_cannot_submit() {
    let _deadline = deadline();
    let results = nodes(2).run(|rt| {
        let rt = Arc::new(rt);
        rt.wait()?;
        let other = Arc::clone(&rt);
        let submit = move || other.task("elsewhere").collective().host(|_, ()| ()).unwrap_err();
        let error = std::thread::spawn(submit.clone()).join().unwrap();
        assert!(error.to_string().contains("on another thread"), "{error}");
        let inside = rt.task("inside").collective().host(move |_, ()| {
            let error = submit();
            assert!(error.to_string().contains("inside a task"), "{error}");
        })?;
        inside.wait()?;
        rt.wait()
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn what_several_nodes_cannot_do_yet_is_an_error() {
    let _deadline = deadline();
    let seeded = nodes(2).builder(Runtime::builder().seeded(1));
    assert!(seeded.run(|_| Ok(())).iter().all(|result| matches!(result, Err(Error::OneNodeOnly { .. }))));
}

#[test]
fn a_wrong_declaration_is_an_error_on_all_nodes() {
    let _deadline = deadline();
    let results = nodes(3).run(|rt| {
        let u = rt.buffer::<u64, 1>([30]).named("u");
        rt.task("all write all").over([30]).write(&u, all()).kernel(|_, _| ())?;
        rt.wait()
    });
    for result in results {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("all write all") && text.contains("\"u\""), "{text}");
    }
}
