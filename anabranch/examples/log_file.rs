//! Writes a log file beside the computation.
//!
//! `cargo run --release -p anabranch --example log_file`
//!
//! The file belongs to a host object: only tasks that declare an effect on it can use it, and `sequential()`
//! keeps their lines in the order of submission. Kernels do not use the file and do not wait for it. At the
//! end `drain` moves the file out, and the program has it back as a plain value.

use anabranch::prelude::*;
use std::{
    error::Error as StdError,
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    thread,
    time::{Duration, Instant},
};

const CELLS: usize = 1000;
const STEPS: usize = 100;

fn main() -> Result<(), Box<dyn StdError>> {
    let path = std::env::temp_dir().join(format!("anabranch-log-{}.txt", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    let result = simulate(file);
    std::fs::remove_file(&path)?;
    // With several nodes, each has a file of its own, and the tasks write to that of node 0.
    let Some(text) = result? else { return Ok(()) };

    // The contents of the field after each step are known, and so is each line of the log.
    let expected: String = (1..=STEPS).map(|step| line(step, (CELLS * step) as f64)).collect();
    assert_eq!(text, expected, "the log has wrong lines");
    println!("{} lines, in order; the last one: {}", text.lines().count(), text.lines().last().unwrap());
    Ok(())
}

/// Runs the program with its log in `file`. Returns the contents of the file, on the node whose tasks write
/// it.
fn simulate(file: File) -> Result<Option<String>, Box<dyn StdError>> {
    let begin = Instant::now();
    let rt = Runtime::new()?;
    let node = rt.node();
    let log = rt.host_object(BufWriter::new(file)).named("log");
    let field = rt.buffer_from(&vec![0.0_f64; CELLS])?.named("field");
    // Each line needs the sum of its own step. With versions, the next sum does not wait until the previous
    // one is logged.
    let total = rt.buffer::<f64, 0>([]).named("total").with_versions(STEPS);

    for step in 1..=STEPS {
        rt.task("grow").over([CELLS]).update(&field, one_to_one()).reduce(&total, sum()).kernel(
            |tile, (field, total)| {
                for [i] in tile.points() {
                    field[[i]] += 1.0;
                    total.combine([], field[[i]]);
                }
            },
        )?;
        rt.task("log").once().read(&total, all()).effect(&log, sequential()).host(
            move |(total, log)| -> io::Result<()> {
                thread::sleep(Duration::from_millis(2)); // a slow disk
                log.write_all(line(step, total[[]]).as_bytes()) // `drain` would report an error
            },
        )?;
    }

    rt.fence(&field)?.wait()?; // waits for the kernels, not for the log
    let computed = begin.elapsed();
    let log = rt.drain(log.capture())?;
    if node != 0 {
        return Ok(None);
    }
    println!("{STEPS} steps were computed after {computed:.1?} and logged after {:.1?}", begin.elapsed());

    let mut file = log.into_inner()?; // writes the buffered rest
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

fn line(step: usize, total: f64) -> String {
    format!("step {step}: total {total}\n")
}
