//! The dependencies of a task and their kinds, and the versions of buffers.

use anabranch_graph::{Access, Dependency, Effect, GraphError, Kind, Order, TaskGraph};
use anabranch_grid::{Extent, GridBox, Region};

const ROWS: usize = 5;
const COLS: usize = 4;

fn all() -> GridBox<3> {
    GridBox::new([0, 0, 0], [ROWS, COLS, 1])
}

fn row(r: usize) -> GridBox<3> {
    GridBox::new([r, 0, 0], [r + 1, COLS, 1])
}

fn kinds(dependencies: &[Dependency]) -> Vec<(u64, Kind)> {
    dependencies.iter().map(|d| (d.on.0, d.kind)).collect()
}

#[test]
fn dependencies_have_their_kind() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), false);
    let mut submit = |access| graph.submit(&[access], &[], &|_| false).unwrap().dependencies;
    assert_eq!(kinds(&submit(Access::write(u, all()))), [(0, Kind::Serial)]);
    assert_eq!(kinds(&submit(Access::read(u, row(0)))), [(1, Kind::True)]);
    assert_eq!(kinds(&submit(Access::write(u, row(0)))), [(2, Kind::Anti)]);
    assert_eq!(kinds(&submit(Access::write(u, row(1)))), [(1, Kind::Output)]);
    assert_eq!(kinds(&submit(Access::update(u, all()))), [(1, Kind::True), (3, Kind::True), (4, Kind::True)]);
}

#[test]
fn disjoint_rows_are_independent() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    for r in 0..ROWS {
        let submitted = graph.submit(&[Access::update(u, row(r))], &[], &|_| false).unwrap();
        assert_eq!(kinds(&submitted.dependencies), [(0, Kind::True)]);
    }
}

#[test]
fn sequential_effects_form_a_chain() {
    let mut graph = TaskGraph::new();
    let object = graph.create_object();
    let effect = Effect { object, order: Order::Sequential };
    for i in 0..5 {
        let submitted = graph.submit(&[], &[effect], &|_| false).unwrap();
        assert_eq!(kinds(&submitted.dependencies), [(i, Kind::Serial)]);
    }
}

#[test]
fn the_error_names_the_region_that_was_never_written() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), false);
    graph.submit(&[Access::write(u, row(0))], &[], &|_| false).unwrap();
    let error = graph.submit(&[Access::read(u, all())], &[], &|_| false).unwrap_err();
    let missing = Region::from(GridBox::new([1, 0, 0], [ROWS, COLS, 1]));
    assert_eq!(error, GraphError::NeverWritten { access: 0, missing });
}

/// A frame that is still being stored does not hold up the task that overwrites the buffer. Only the bound on
/// versions does.
#[test]
fn a_complete_overwrite_goes_to_another_version() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(v, 2);
    let mut submit = |access| graph.submit(&[access], &[], &|_| false).unwrap();
    let store = submit(Access::read(v, all()));
    let overwrite = submit(Access::write(v, all()));
    assert_eq!(kinds(&overwrite.dependencies), [(0, Kind::Serial)]);
    assert_ne!(overwrite.versions, store.versions);
    let store_2 = submit(Access::read(v, all()));
    assert_eq!(store_2.versions, overwrite.versions);
    let overwrite_2 = submit(Access::write(v, all()));
    assert_eq!(kinds(&overwrite_2.dependencies), [(store.id.0, Kind::Anti)]);
    assert_eq!(overwrite_2.versions, store.versions);
}

/// The reader that produced this task's input comes first anyway, so it causes no new version.
#[test]
fn a_reader_that_comes_first_anyway_causes_no_version() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(u, 3);
    let w = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(w, 3);
    for _ in 0..4 {
        for (from, to) in [(u, w), (w, u)] {
            let accesses = [Access::read(from, all()), Access::write(to, all())];
            let submitted = graph.submit(&accesses, &[], &|_| false).unwrap();
            assert_eq!(submitted.versions[..], [0, 0]);
        }
    }
}

/// Several tasks that overwrite a buffer together, after a discard, go to another version together.
#[test]
fn bands_go_to_another_version_after_a_discard() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(v, 2);
    let store = graph.submit(&[Access::read(v, all())], &[], &|_| false).unwrap();
    graph.discard(v, &|_| false);
    for r in 0..ROWS {
        let band = graph.submit(&[Access::write(v, row(r))], &[], &|_| false).unwrap();
        assert_eq!(kinds(&band.dependencies), [(0, Kind::Serial)]);
        assert_ne!(band.versions, store.versions);
    }
    // The next time no version is free: each band waits for the tasks that use the points that it overwrites.
    let top = graph.submit(&[Access::read(v, row(0))], &[], &|_| false).unwrap();
    graph.discard(v, &|_| false);
    let band = graph.submit(&[Access::write(v, row(0))], &[], &|_| false).unwrap();
    assert_eq!(
        (kinds(&band.dependencies), &band.versions),
        (vec![(store.id.0, Kind::Anti)], &store.versions)
    );
    assert_ne!(top.versions, store.versions);
}

/// A discard has chosen the version, so that a single task that then overwrites the whole buffer chooses
/// none. It waits for the reader of the oldest version, not for that of a newer one.
#[test]
fn a_complete_overwrite_after_a_discard_goes_to_the_version_of_the_discard() {
    for versions in 1..5 {
        let mut graph = TaskGraph::new();
        let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
        graph.set_versions(v, versions);
        let mut stores = Vec::new();
        for frame in 0..12 {
            let store = graph.submit(&[Access::read(v, all())], &[], &|_| false).unwrap();
            stores.push((store.id, store.versions[0]));
            graph.discard(v, &|_| false);
            // A second one changes nothing.
            graph.discard(v, &|_| false);
            let overwrite = graph.submit(&[Access::write(v, all())], &[], &|_| false).unwrap();
            match (frame + 1_usize).checked_sub(versions) {
                None => assert_eq!(kinds(&overwrite.dependencies), [(0, Kind::Serial)]),
                Some(oldest) => {
                    let (reader, version) = stores[oldest];
                    assert_eq!(
                        kinds(&overwrite.dependencies),
                        [(reader.0, Kind::Anti)],
                        "{versions} versions"
                    );
                    assert_eq!(overwrite.versions[0], version);
                }
            }
        }
    }
}

#[test]
fn without_versions_each_part_waits_for_its_users_after_a_discard() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    let readers: Vec<_> =
        (0..2).map(|r| graph.submit(&[Access::read(v, row(r))], &[], &|_| false).unwrap().id).collect();
    graph.discard(v, &|_| false);
    let band = graph.submit(&[Access::write(v, row(1))], &[], &|_| false).unwrap();
    assert_eq!(kinds(&band.dependencies), [(readers[1].0, Kind::Anti)]);
    let band = graph.submit(&[Access::write(v, row(2))], &[], &|_| false).unwrap();
    assert_eq!(kinds(&band.dependencies), [(0, Kind::Output)]);
}

#[test]
fn discarded_contents_cannot_be_read() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.discard(v, &|_| false);
    graph.submit(&[Access::write(v, row(0))], &[], &|_| false).unwrap();
    graph.submit(&[Access::read(v, row(0))], &[], &|_| false).unwrap();
    let missing = Region::from(GridBox::new([1, 0, 0], [ROWS, COLS, 1]));
    for access in [Access::read(v, all()), Access::update(v, all())] {
        let error = graph.submit(&[access], &[], &|_| false).unwrap_err();
        assert_eq!(error, GraphError::NeverWritten { access: 0, missing: missing.clone() });
    }
}

/// If all readers are done, a discard reuses the current version.
#[test]
fn a_discard_with_no_reader_left_needs_no_version() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(v, 3);
    for _ in 0..4 {
        let store = graph.submit(&[Access::read(v, all())], &[], &|_| true).unwrap();
        graph.discard(v, &|_| true);
        let overwrite = graph.submit(&[Access::write(v, all())], &[], &|_| true).unwrap();
        assert_eq!(store.versions, overwrite.versions);
    }
}

#[test]
fn ids_are_dense_and_an_error_takes_none() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), false);
    assert_eq!(graph.submit(&[], &[], &|_| false).unwrap().id.0, 1);
    assert!(graph.submit(&[Access::read(v, all())], &[], &|_| false).is_err());
    assert!(graph.epoch(&[Access::read(v, all())], &[], &|_| false).is_err());
    assert_eq!(graph.epoch(&[], &[], &|_| false).unwrap().id.0, 2);
    assert_eq!((graph.submit(&[], &[], &|_| false).unwrap().id.0, graph.len()), (3, 3));
}

/// An observer comes after all earlier effects and before all later ones, and later effects do not depend on
/// its success.
#[test]
fn observers_are_ordered_but_later_effects_need_nothing_of_them() {
    use anabranch_graph::Order::*;
    let mut graph = TaskGraph::new();
    let object = graph.create_object();
    let mut touch = |order| {
        let submitted = graph.submit(&[], &[Effect { object, order }], &|_| false).unwrap();
        submitted.dependencies.iter().map(|d| (d.on.0, d.kind)).collect::<Vec<_>>()
    };
    assert_eq!(touch(Sequential), [(0, Kind::Serial)]);
    assert_eq!(touch(Observe), [(1, Kind::Serial)]);
    assert_eq!(touch(Exclusive), [(1, Kind::Serial), (2, Kind::Anti)]);
    assert_eq!(touch(Relaxed), [(1, Kind::Serial), (2, Kind::Anti)]);
    assert_eq!(touch(Observe), [(2, Kind::Anti), (3, Kind::Serial), (4, Kind::Serial)]);
    assert_eq!(touch(Sequential), [(3, Kind::Serial), (4, Kind::Serial), (5, Kind::Anti)]);
    assert_eq!(touch(Relaxed), [(6, Kind::Serial)]);
}
