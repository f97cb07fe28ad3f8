//! No barrier is between two replays of a sequence: what the next one does runs while the one before has not
//! ended.

mod common;

use anabranch::prelude::*;
use common::{THREADS, runtime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// Waits until a flag is set, or panics.
fn wait_for(flag: &AtomicBool) {
    let begin = Instant::now();
    while !flag.load(Acquire) {
        assert!(begin.elapsed() < Duration::from_secs(60), "what should set the flag does not run");
        thread::yield_now();
    }
}

/// There is no barrier between replays: a chunk of the second one runs while one of the first has not ended.
#[test]
fn a_chunk_begins_before_the_replay_before_it_has_ended() {
    let _deadline = testing::deadline();
    for threads in THREADS.into_iter().filter(|&threads| threads >= 2) {
        let rt = runtime(threads);
        let u = rt.buffer_from(&[0_u64; 2]).unwrap();
        let has_begun = Arc::new(AtomicBool::new(false));
        let sequence = rt
            .record("apart", |body| {
                let has_begun = Arc::clone(&has_begun);
                body.task("own").over([2]).chunks(2).update(&u, one_to_one()).kernel(move |tile, (u,)| {
                    match (tile.points().next(), tile.replay()) {
                        (Some([0]), 1) => has_begun.store(true, Release),
                        (Some([1]), 0) => wait_for(&has_begun),
                        _ => {}
                    }
                    tile.points().for_each(|point| u[point] += 1);
                })
            })
            .unwrap();
        sequence.replay(5).unwrap().wait().unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [5, 5]);
    }
}

/// Tasks that follow each other in a replay are a pipeline of replays, if nothing orders the last one before
/// the first one of the next replay.
#[test]
fn a_chain_of_tasks_is_a_pipeline_of_replays() {
    let _deadline = testing::deadline();
    const STAGES: usize = 4;
    for threads in THREADS.into_iter().filter(|&threads| threads >= 2) {
        let rt = runtime(threads);
        let stages: Vec<_> = (0..=STAGES).map(|_| rt.buffer_from(&[0_u64]).unwrap()).collect();
        let has_begun = Arc::new(AtomicBool::new(false));
        let sequence = rt
            .record("pipeline", |body| {
                (0..STAGES).try_for_each(|stage| {
                    let has_begun = Arc::clone(&has_begun);
                    let task = body.task(format!("stage {stage}")).over([1]).read(&stages[stage], all());
                    task.write(&stages[stage + 1], all()).kernel(move |tile, (from, to)| {
                        match (stage, tile.replay()) {
                            (0, 1) => has_begun.store(true, Release),
                            (3, 0) => wait_for(&has_begun),
                            _ => {}
                        }
                        to.set([0], from[[0]] + tile.replay());
                    })
                })
            })
            .unwrap();
        sequence.replay(5).unwrap().wait().unwrap();
        assert_eq!(rt.fence(&stages[STAGES]).unwrap().wait().unwrap().as_slice(), [STAGES as u64 * 4]);
    }
}
