//! Captures of other parts of a buffer on each node.

mod common;

use anabranch::{local_nodes, prelude::*};
use common::{block_on, runtimes};
use testing::deadline;

const N: usize = 40;

/// Squares, computed on all nodes in part.
fn squares(rt: &Runtime) -> Result<Buffer<u64, 1>, Error> {
    let u = rt.buffer::<u64, 1>([N]).named("u");
    rt.task("squares").over([N]).write(&u, one_to_one()).kernel(|tile, (u,)| {
        tile.points().for_each(|[i]| u.set([i], (i * i) as u64));
    })?;
    Ok(u)
}

/// What node `node` captures in turn `turn`: boxes that overlap, that are far away, that are empty, or
/// nothing.
fn part(node: u16, turn: usize) -> Option<GridBox<1>> {
    let begin = (usize::from(node) * 17 + turn * 5) % N;
    match (usize::from(node) + turn) % 5 {
        0 => None,
        1 => Some(GridBox::full([N])),
        2 => Some(GridBox::new(begin, begin)),
        _ => Some(GridBox::new(begin, N.min(begin + 11))),
    }
}

fn expected(part: Option<GridBox<1>>, factor: u64) -> Option<Vec<u64>> {
    let part = part.filter(|part| !part.is_empty())?;
    Some((part.min()[0]..part.max()[0]).map(|i| factor * (i * i) as u64).collect())
}

#[test]
fn every_node_gets_its_own_part() {
    let _deadline = deadline();
    for nodes in [1, 2, 3, 4, 7] {
        for threads in [1, 3] {
            let results = local_nodes(nodes).threads(threads).delays(5, nodes.into()).run(|rt| {
                let (u, me) = (squares(&rt)?, rt.node());
                // Launches that repeat are replayed, also when the parts change between them.
                for turn in [0, 0, 0, 1, 0, 1, 2, 3, 4, 4, 4, 4] {
                    let fence = rt.fence(&u.parts(move |node| part(node, turn)))?;
                    let got = fence.wait()?.map(|got| (got.range(), got.into_vec()));
                    let wanted = part(me, turn).filter(|part| !part.is_empty());
                    assert_eq!(got.as_ref().map(|(range, _)| *range), wanted, "node {me}, turn {turn}");
                    assert_eq!(got.map(|(_, values)| values), expected(part(me, turn), 1));
                }
                Ok::<_, Error>(())
            });
            results.into_iter().for_each(Result::unwrap);
        }
    }
}

#[test]
fn parts_are_captured_at_barriers_and_by_drains_beside_other_values() {
    let _deadline = deadline();
    for nodes in [1, 2, 4] {
        let results = local_nodes(nodes).threads(2).delays(4, 9).run(|rt| {
            let (u, me, last) = (squares(&rt)?, rt.node(), rt.nodes() - 1);
            let log = rt.cluster_object(last, || vec![1])?;
            let parts = u.parts(|node| part(node, 2));
            let barrier = rt.barrier_with((parts, u.part(GridBox::new(3, 5)), log.capture()))?;
            // Ordered behind the captures.
            rt.task("double").over([N]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                tile.points().for_each(|i| u[i] *= 2);
            })?;
            let (own, all, log) = block_on(barrier)?;
            assert_eq!(own.map(|own| own.into_vec()), expected(part(me, 2), 1));
            assert_eq!((all.as_slice(), log), (&[9, 16][..], (me == last).then(|| vec![1])));
            let (own, home) = rt.drain((u.parts(|node| part(node, 3)), u.capture_on(last)))?;
            assert_eq!(own.map(|own| own.into_vec()), expected(part(me, 3), 2));
            let whole = (me == last).then(|| GridBox::full([N]));
            assert_eq!(home.map(|home| home.into_vec()), expected(whole, 2));
            Ok::<_, Error>(())
        });
        results.into_iter().for_each(Result::unwrap);
    }
}

#[test]
fn buffers_of_no_and_of_two_dimensions() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (zero, two) = (rt.buffer_from(&[5_u8; 0]).unwrap(), rt.buffer::<u8, 2>([3, 2]));
        rt.task("fill").over([3, 2]).write(&two, one_to_one()).kernel(|_, (two,)| two.fill(4)).unwrap();
        assert!(rt.fence(&zero.capture_on(0)).unwrap().wait().unwrap().is_none());
        let row = two.parts(|node| (node == 0).then(|| GridBox::new([1, 0], [2, 2])));
        assert_eq!(rt.fence(&row).unwrap().wait().unwrap().unwrap().into_vec(), [4, 4]);
    }
    let results = local_nodes(3).threads(1).run(|rt| {
        let sum = rt.buffer::<u64, 0>([]);
        rt.task("sum").over([9]).reduce(&sum, anabranch::sum()).kernel(|tile, (sum,)| {
            tile.points().for_each(|[i]| sum.combine([], i as u64));
        })?;
        Ok::<_, Error>(rt.fence(&sum.capture_on(1))?.wait()?.map(|sum| sum[[]]))
    });
    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(results, [None, Some(36), None]);
}

#[test]
fn parts_that_differ_between_nodes_are_an_error_on_all() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(2).run(|rt| {
        let (u, me) = (squares(&rt)?, usize::from(rt.node()));
        // Each node asks for its own rows, and believes that the others ask for the same: all together are
        // the same on all nodes.
        let shift = move |node: u16| 10 * ((usize::from(node) + me) % 3);
        let parts = u.parts(move |node| Some(GridBox::new(shift(node), shift(node) + 10)));
        // A node may have got its part before it hears of the difference.
        drop(rt.fence(&parts)?.wait()?);
        rt.wait()
    });
    for result in results {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("submission 2 of the program is task \"fence\""), "{error}");
    }
}

/// One node thinks that node 0 captures the first element, the other one that it captures nothing.
#[test]
fn nothing_and_a_small_part_are_different() {
    let _deadline = deadline();
    let results = local_nodes(2).threads(1).run(|rt| {
        let (u, me) = (squares(&rt)?, rt.node());
        let part = move |node| match node {
            0 => (me == 0).then(|| GridBox::new(0, 1)),
            _ => Some(GridBox::new(0, N)),
        };
        drop(rt.fence(&u.parts(part))?.wait()?);
        rt.wait()
    });
    for result in results {
        assert!(result.unwrap_err().to_string().contains("submission 2 of the program is task"));
    }
}

#[test]
fn wrong_parts_are_the_same_error_on_every_node() {
    let _deadline = deadline();
    let results = local_nodes(2).threads(1).run(|rt| {
        let (u, v) = (squares(&rt)?, rt.buffer::<u64, 1>([N]).named("v"));
        // Only node 1 would get it.
        let outside = u.parts(|node| (node == 1).then(|| GridBox::new(N - 1, N + 1)));
        let outside = rt.fence(&outside).unwrap_err().to_string();
        let nowhere = rt.fence(&u.capture_on(2)).unwrap_err().to_string();
        let unwritten = rt.fence(&v.parts(|node| (node == 0).then(|| GridBox::new(1, 2)))).unwrap_err();
        rt.wait()?;
        Ok::<_, Error>([outside, nowhere, unwritten.to_string()])
    });
    for result in results {
        let [outside, nowhere, unwritten] = result.unwrap();
        assert!(outside.contains("u") && outside.contains("[39..41]"), "{outside}");
        assert!(nowhere.contains("the node of a capture") && nowhere.contains('2'), "{nowhere}");
        assert!(unwritten.contains("v") && unwritten.contains("[1..2]"), "{unwritten}");
    }
}

#[test]
fn a_failure_concerns_the_nodes_that_capture_what_it_would_have_written() {
    let _deadline = deadline();
    let results = local_nodes(3).threads(2).delays(3, 1).run(|rt| {
        let (u, me) = (squares(&rt)?, rt.node());
        rt.task("fails").over([10]).on_node(2)?.update(&u, one_to_one()).kernel(|_, (u,)| {
            u[[0]] = 1;
            panic!("no luck");
        })?;
        let parts = u.parts(|node| Some(GridBox::new(8 * usize::from(node), 8 * usize::from(node) + 8)));
        let fence = rt.fence(&parts)?.wait();
        let all = rt.agree_result(fence.as_ref().map(|_| ()).map_err(ToString::to_string));
        assert!(all.unwrap_err().to_string().contains("no luck"));
        assert!(rt.wait().is_err());
        assert_eq!(fence.is_ok(), me == 2, "node {me}");
        Ok::<_, Error>(())
    });
    results.into_iter().for_each(Result::unwrap);
}
