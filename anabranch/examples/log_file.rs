//! A log file that is written beside the computation.
//!
//! `cargo run --release -p anabranch --example log_file`
//!
//! The file belongs to a host object: nobody can reach it but tasks that declare an effect on it, and `sequential()`
//! keeps their lines in the order of submission. Kernels know nothing of the file and do not wait for it. At the end
//! `drain` moves the file out, and the program has it back as a plain value.

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
    let text = result?;

    // What the field holds after each step is known: the log must say so, line by line.
    let expected: String = (1..=STEPS).map(|step| line(step, (CELLS * step) as f64)).collect();
    assert_eq!(text, expected, "the log is not what was to be logged");
    println!("{} lines, in order; the last one: {}", text.lines().count(), text.lines().last().unwrap());
    Ok(())
}

/// Runs the program with its log in `file`; what is in the file then.
fn simulate(file: File) -> Result<String, Box<dyn StdError>> {
    let begin = Instant::now();
    let rt = Runtime::new()?;
    let log = rt.host_object(BufWriter::new(file)).named("log");
    let field = rt.buffer_from(&vec![0.0_f64; CELLS])?.named("field");
    // Each line needs the sum of its own step. With versions, the next sum does not wait until the last one is logged.
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
                log.write_all(line(step, total[[]]).as_bytes()) // an error would come out at `drain`
            },
        )?;
    }

    rt.fence(&field)?.wait()?; // the kernels, not the log
    let computed = begin.elapsed();
    let log = rt.drain(log.capture())?;
    println!("{STEPS} steps were computed after {computed:.1?} and logged after {:.1?}", begin.elapsed());

    let mut file = log.into_inner()?; // the buffered rest is written here
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn line(step: usize, total: f64) -> String {
    format!("step {step}: total {total}\n")
}
