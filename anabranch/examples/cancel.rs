//! A search that is cancelled as soon as something is found.
//!
//! `cargo run --release -p anabranch --example cancel`
//!
//! All blocks of numbers are submitted at once, under a cancellation token. The task that finds a number cancels the
//! token: blocks that have not begun are not searched at all, those that have begun look at the token now and then.
//! A cancelled task writes nothing, so that tasks that need what it would have written are skipped. None of this is an
//! error; the handles tell what became of each task.

use anabranch::prelude::*;

const BLOCKS: u64 = 64;
const PER_BLOCK: usize = 1 << 20;
/// Nobody has found anything: what the smallest of no numbers is.
const NOTHING: u64 = u64::MAX;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let token = CancellationToken::new();
    rt.set_cancellation(Some(&token));
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let found = rt.buffer::<u64, 0>([]).named(format!("found in block {block}"));
        let task = search(&rt, block, &token, &found)?;
        blocks.push((task, found));
    }
    // This one needs what the last block finds.
    let report = rt.task("report").once().read(&blocks[63].1, all()).host(|(_found,)| ())?;
    rt.set_cancellation(None);
    // A single task can be cancelled by its handle, too.
    let other = rt.task("never wanted").once().read(&blocks[0].1, all()).host(|(_found,)| ())?;
    let cancelled = other.cancel();

    rt.wait()?; // cancelled tasks are no failures
    assert!(token.is_cancelled());
    let of_status = |status| blocks.iter().filter(move |(task, _)| task.status() == status);
    let (done, not_begun) = (of_status(Status::Done).count(), of_status(Status::Cancelled).count());
    println!("{done} blocks done or given up, {not_begun} cancelled before they began");
    println!("report: {:?}; never wanted: {:?}", report.status(), other.status());
    assert_eq!(done + not_begun, blocks.len());
    assert_eq!(report.status(), Status::Skipped);
    assert_eq!(other.status() == Status::Cancelled, cancelled);

    let mut numbers = Vec::new();
    for (_, found) in of_status(Status::Done) {
        numbers.push(rt.fence(found)?.wait()?[[]]);
    }
    let number = numbers.into_iter().min().unwrap_or(NOTHING);
    println!("found {number}, whose hash is {:#018x}", hash(number));
    assert!(is_wanted(number));
    Ok(())
}

/// The smallest number of the block that is wanted, unless the search is cancelled first.
fn search(
    rt: &Runtime,
    block: u64,
    token: &CancellationToken,
    found: &Buffer<u64, 0>,
) -> Result<TaskHandle, Error> {
    let token = token.clone();
    rt.task(format!("search block {block}")).over([PER_BLOCK]).reduce(found, min()).kernel(
        move |tile, (found,)| {
            // A kernel is called once for each of many small tiles: often enough to look.
            if token.is_cancelled() {
                return;
            }
            for [i] in tile.points() {
                let number = block * PER_BLOCK as u64 + i as u64;
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
