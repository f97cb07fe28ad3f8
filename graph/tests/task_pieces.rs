//! A task in pieces: each piece has the dependencies of its own regions, and the task as a whole is checked
//! and renames as one.

use anabranch_graph::{Access, BufferId, Effect, GraphError, Kind, Order, Submitted, TaskGraph, TaskId};
use anabranch_grid::{Extent, GridBox};

const ROWS: usize = 40;
const PIECES: usize = 4;

fn rows(from: usize, to: usize) -> GridBox<3> {
    GridBox::new([from, 0, 0], [to, 1, 1])
}

fn buffers(graph: &mut TaskGraph, initialised: bool) -> [BufferId; 2] {
    [initialised, false].map(|initialised| graph.create_buffer(Extent([ROWS, 1, 1]), initialised))
}

/// A stencil from `from` to `to`: the whole task and its pieces.
fn stencil(from: BufferId, to: BufferId) -> (Vec<Access>, Vec<Vec<Access>>) {
    let of = |first: usize, last: usize| {
        let around = rows(first.saturating_sub(1), (last + 1).min(ROWS));
        vec![Access::read(from, around), Access::write(to, rows(first, last))]
    };
    let each = ROWS / PIECES;
    (of(0, ROWS), (0..PIECES).map(|piece| of(piece * each, (piece + 1) * each)).collect())
}

/// Submits the pieces. Returns the id of each, with the tasks that it depends on.
fn submit(
    graph: &mut TaskGraph,
    (whole, pieces): &(Vec<Access>, Vec<Vec<Access>>),
) -> Result<Vec<(TaskId, Vec<TaskId>)>, GraphError> {
    let mut all = Vec::new();
    let mut submitted = Submitted::default();
    graph.submit_pieces(whole, &[], pieces, &|_| false, &mut submitted, |piece| {
        all.push((piece.id, piece.dependencies.iter().map(|dependency| dependency.on).collect()));
    })?;
    Ok(all)
}

#[test]
fn a_piece_depends_on_the_pieces_that_it_needs() {
    let mut graph = TaskGraph::new();
    let [u, v] = buffers(&mut graph, true);
    let first = submit(&mut graph, &stencil(u, v)).unwrap();
    assert!(first.iter().all(|(_, dependencies)| *dependencies == [TaskId::EPOCH]), "{first:?}");
    let second = submit(&mut graph, &stencil(v, u)).unwrap();
    for (at, (_, dependencies)) in second.iter().enumerate() {
        let needed = at.saturating_sub(1)..(at + 2).min(PIECES);
        assert_eq!(*dependencies, needed.map(|piece| first[piece].0).collect::<Vec<_>>(), "piece {at}");
    }
    let reader = graph.submit(&[Access::read(u, rows(15, 16))], &[], &|_| false).unwrap();
    assert_eq!(
        reader.dependencies.iter().map(|d| (d.on, d.kind)).collect::<Vec<_>>(),
        [(second[1].0, Kind::True)]
    );
}

#[test]
fn pieces_that_overwrite_a_buffer_go_to_one_version() {
    let mut graph = TaskGraph::new();
    let [u, v] = buffers(&mut graph, true);
    graph.set_versions(v, 2);
    submit(&mut graph, &stencil(u, v)).unwrap();
    let reader = graph.submit(&[Access::read(v, rows(0, ROWS))], &[], &|_| false).unwrap();
    let (whole, mut pieces) = stencil(u, v);
    // A piece that writes nothing comes first and last.
    let nothing = vec![Access::read(u, rows(0, 0)), Access::write(v, rows(0, 0))];
    pieces.insert(0, nothing.clone());
    pieces.push(nothing);
    let mut submitted = Submitted::default();
    let waits_for = |piece: &Submitted| {
        assert!(piece.dependencies.iter().all(|dependency| dependency.on != reader.id), "{piece:?}");
    };
    graph.submit_pieces(&whole, &[], &pieces, &|_| false, &mut submitted, waits_for).unwrap();
    assert_eq!(submitted.versions[1], 1);
    let again = graph.submit(&[Access::read(v, rows(0, ROWS))], &[], &|_| false).unwrap();
    assert_eq!(again.versions[0], 1);
}

/// A caller that says of unknown tasks that they are done does not make the graph forget pieces that were
/// just submitted.
#[test]
fn a_piece_is_not_done_while_its_task_is_submitted() {
    let mut graph = TaskGraph::new();
    let [u, v] = buffers(&mut graph, true);
    let of =
        |first: usize, last: usize| vec![Access::read(u, rows(0, ROWS)), Access::write(v, rows(first, last))];
    let pieces: Vec<_> = (0..10).map(|piece| of(4 * piece, 4 * piece + 4)).collect();
    let mut readers = Vec::new();
    graph
        .submit_pieces(&of(0, ROWS), &[], &pieces, &|_| true, &mut Submitted::default(), |piece| {
            readers.push(piece.id)
        })
        .unwrap();
    let writer = graph.submit(&[Access::write(u, rows(0, ROWS))], &[], &|_| false).unwrap();
    assert_eq!(writer.dependencies.iter().map(|dependency| dependency.on).collect::<Vec<_>>(), readers);
}

/// Each piece has the effect, in the order of the pieces.
#[test]
fn sequential_effects_order_the_pieces() {
    let mut graph = TaskGraph::new();
    let [u, v] = buffers(&mut graph, true);
    let object = graph.create_object();
    let (whole, pieces) = stencil(u, v);
    let effects = |order| [Effect { object, order }];
    let mut submit = |order| {
        let mut all = Vec::new();
        let each = |piece: &Submitted| {
            all.push((
                piece.id,
                piece.dependencies.iter().map(|dependency| dependency.on).collect::<Vec<_>>(),
            ));
        };
        graph
            .submit_pieces(&whole, &effects(order), &pieces, &|_| true, &mut Submitted::default(), each)
            .unwrap();
        all
    };
    let exclusive = submit(Order::Exclusive);
    assert!(exclusive.iter().all(|(_, dependencies)| *dependencies == [TaskId::EPOCH]), "{exclusive:?}");
    let sequential = submit(Order::Sequential);
    for pair in sequential.windows(2) {
        assert!(pair[1].1.contains(&pair[0].0), "{sequential:?}");
    }
}

#[test]
fn a_task_that_is_refused_leaves_the_graph_as_it_was() {
    let mut graph = TaskGraph::new();
    let [u, v] = buffers(&mut graph, false);
    graph.set_versions(v, 2);
    // The second half of `u` was never written.
    let writer = graph.submit(&[Access::write(u, rows(0, ROWS / 2))], &[], &|_| false).unwrap();
    let contents = graph.submit(&[Access::write(v, rows(0, ROWS))], &[], &|_| false).unwrap();
    let error = submit(&mut graph, &stencil(u, v)).unwrap_err();
    assert!(matches!(error, GraphError::NeverWritten { access: 0, .. }), "{error}");
    let reader = graph.submit(&[Access::read(v, rows(0, ROWS))], &[], &|_| false).unwrap();
    assert_eq!(reader.id.0, contents.id.0 + 1, "no id was taken after {writer:?}");
    assert_eq!(reader.dependencies[0].on, contents.id);
}
