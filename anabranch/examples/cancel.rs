//! A search that is cancelled at the first match.
//!
//! `cargo run --release -p anabranch --example cancel`
//!
//! The program submits a task for each block of numbers, all in one group. The task that finds a number
//! cancels the group. Then blocks that have not begun are not searched at all, and blocks that have begun
//! check the group's token now and then. A cancelled task writes nothing, so tasks that read its buffer are
//! skipped. None of this is an error; the handles have the status of each task.
//!
//! The program is for one node: which fences it submits depends on the statuses, and on several nodes these
//! are those of the node's own parts of the tasks.

use anabranch::prelude::*;

const PER_BLOCK: usize = 1 << 18;
/// The result of a block without a match: the minimum of no numbers.
const NOTHING: u64 = u64::MAX;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let group = rt.group("search");
    let mut blocks = Vec::new();
    for block in 0..64 * rt.threads() {
        let found = rt.buffer::<u64, 0>([]).named(format!("found in block {block}"));
        let task = search(&group, block, &found)?;
        blocks.push((task, found));
    }
    // This one needs what the last block finds.
    let (_, last) = blocks.last().expect("there are blocks");
    let report = group.task("report").once().read(last, all()).host(|(_last,)| ())?;
    group.wait()?; // cancelled tasks are no failures
    let statuses: Vec<Status> = blocks.iter().map(|(task, _)| task.status()).collect();
    let of_status = |status| statuses.iter().filter(|s| **s == status).count();
    let (done, cancelled) = (of_status(Status::Done), of_status(Status::Cancelled));
    println!("{done} blocks were begun, {cancelled} cancelled before that; report: {:?}", report.status());
    assert_eq!(done + cancelled, blocks.len(), "{statuses:?}");
    assert!(group.token().is_cancelled() && report.status() == Status::Skipped);

    // The results of tasks that are done are available.
    let mut number = NOTHING;
    for ((_, found), _) in blocks.iter().zip(&statuses).filter(|(_, status)| **status == Status::Done) {
        number = number.min(rt.fence(found)?.wait()?[[]]);
    }
    println!("found {number}, whose hash is {:#018x}", hash(number));
    assert!(number != NOTHING && is_wanted(number));
    Ok(())
}

/// The smallest number of the block that is wanted, unless the search is cancelled first.
fn search(group: &TaskGroup, block: usize, found: &Buffer<u64, 0>) -> Result<TaskHandle, Error> {
    let token = group.token().clone();
    group.task(format!("search block {block}")).over([PER_BLOCK]).reduce(found, min()).kernel(
        move |tile, (found,)| {
            // The kernel is called once for each of many small tiles, which is often enough to check the
            // token.
            if token.is_cancelled() {
                return;
            }
            for [i] in tile.points() {
                let number = (block * PER_BLOCK + i) as u64;
                if is_wanted(number) {
                    found.combine([], number);
                    token.cancel();
                }
            }
        },
    )
}

/// One number in four million.
fn is_wanted(number: u64) -> bool {
    hash(number) >> 42 == 0
}

fn hash(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
