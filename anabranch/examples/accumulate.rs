//! Many tasks fill one histogram, in any order.
//!
//! `cargo run --release -p anabranch --example accumulate`
//!
//! Instruments deliver their measurements at any time; a task adds each delivery to the histogram. Adding
//! needs `&mut`, so two tasks must never add at the same time. But their order makes no difference, and
//! `exclusive()` says so: the task whose measurements are ready goes first, and no thread waits for a lock.
//! With `sequential()` every task would wait for all earlier ones, and the first instrument is the slowest.

use anabranch::prelude::*;
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

const INSTRUMENTS: usize = 12;
const SAMPLES: usize = 1000;
const BINS: usize = 16;

/// The counts, and the order in which the instruments were added.
#[derive(Default)]
struct Histogram {
    counts: [u64; BINS],
    order: Vec<usize>,
}

impl Histogram {
    fn add(&mut self, instrument: usize, samples: &[u32]) {
        sleep(Duration::from_millis(4)); // some work
        for sample in samples {
            self.counts[*sample as usize % BINS] += 1;
        }
        self.order.push(instrument);
    }
}

fn main() -> Result<(), Error> {
    let histograms = (fill(Adding::InOrder)?, fill(Adding::InAnyOrder)?);
    let (Some(ordered), Some(any_order)) = histograms else { return Ok(()) };
    assert_eq!(ordered.order, (0..INSTRUMENTS).collect::<Vec<_>>(), "sequential effects are in order");
    assert_eq!(any_order.counts, ordered.counts, "the order makes no difference");
    assert_eq!(ordered.counts.iter().sum::<u64>(), (INSTRUMENTS * SAMPLES) as u64);
    println!("the same histogram: {:?}", ordered.counts);
    Ok(())
}

#[derive(Debug)]
enum Adding {
    InOrder,
    InAnyOrder,
}

/// Fills a histogram. With several nodes, only the first one has it, because the tasks run there.
fn fill(adding: Adding) -> Result<Option<Histogram>, Error> {
    let begin = Instant::now();
    let rt = Runtime::new()?;
    let node = rt.node();
    let histogram = rt.host_object(Histogram::default()).named("histogram");
    for instrument in 0..INSTRUMENTS {
        let samples = rt.buffer::<u32, 1>([SAMPLES]);
        rt.task("measure").once().write(&samples, all()).host(move |(samples,)| {
            sleep(Duration::from_millis(4 * (INSTRUMENTS - instrument) as u64)); // the first is the slowest
            samples.fill_with(|[i]| reading(instrument, i));
        })?;
        let task = rt.task("add").once().read(&samples, all());
        let add = move |(samples, histogram): (&ReadView<u32, 1>, &mut Histogram)| {
            histogram.add(instrument, samples.as_slice().expect("the whole buffer is one slice"));
        };
        match adding {
            Adding::InOrder => task.effect(&histogram, sequential()).host(add)?,
            Adding::InAnyOrder => task.effect(&histogram, exclusive()).host(add)?,
        };
    }
    let histogram = rt.drain(histogram.capture())?;
    if node != 0 {
        return Ok(None);
    }
    println!("{adding:?}: {:.0?}, added in the order {:?}", begin.elapsed(), histogram.order);
    Ok(Some(histogram))
}

/// A measurement of an instrument: an arbitrary number, the same in every run.
fn reading(instrument: usize, i: usize) -> u32 {
    let mixed = ((instrument * SAMPLES + i) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as u32
}
