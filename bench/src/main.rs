//! Measures Anabranch and its peers side by side on this machine.
//!
//! ```text
//! cargo run --release -p bench -- list
//! cargo run --release -p bench -- all --json figures.json
//! cargo run --release -p bench -- all --record
//! cargo run --release -p bench -- table conflict-cap
//! cargo run --release -p bench -- table nodes
//! cargo run --release -p bench -- table scaling
//! cargo run --release -p bench -- 'region/*' gray-scott/1080x1920/2t --threads 2
//! cargo run --release -p bench -- all --against ../before/target/release/bench
//! cargo run --release -p bench -- array kernel metal --history history.jsonl
//! cargo run --release -p bench -- plot figures.json --output plots
//! ```
//!
//! A benchmark is a [`row::Row`]; all of them are in [`rows`]. The [`harness`] measures our side and the
//! [`peers`] in turns, and the [`report`] prints the figures. [`workloads`] holds the work that several rows
//! measure. The [`record`] keeps the figures that the documents of the repository show, and [`plot`] draws
//! those of a run. The README explains how figures are taken.

#![forbid(unsafe_code)]

mod against;
mod clock;
mod harness;
mod history;
mod machine;
mod markdown;
mod peers;
mod plot;
mod record;
mod report;
mod row;
mod rows;
mod select;
mod workloads;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    thread::available_parallelism,
};

use clap::{Parser, builder::FalseyValueParser};

use harness::{Context, Failure};
use history::History;
use machine::Setting;
use record::Record;
use report::Entry;
use row::Row;
use workloads::{application, conflicts, generation, memory, nodes, scaling};

/// Measures Anabranch and its peers side by side, and reports whether each bar is met.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    /// `list`, `all`, `documents` (write the recorded figures into the documents again), `plot FILE` (draw
    /// the figures of a file that `--json`, `--record` or `--history` has written), `table conflict-cap` (the
    /// effect of searching more candidates), `table nodes` (messages and generation time against the number
    /// of nodes), `table scaling` (a simulated step of the main program against the number of nodes), or
    /// benchmarks: a name, the beginning of names (`region`), or a pattern (`*/2t`)
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Writes the figures to this file, as a JSON array
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,

    /// Prints the table in Markdown
    #[arg(long, conflicts_with = "against")]
    markdown: bool,

    /// Records the figures in `bench/figures.json` and writes them into the documents of the repository
    #[arg(long, conflicts_with_all = ["against", "no_peers"])]
    record: bool,

    /// Appends the figures of our side to this file, and prints their ratios to the newest earlier run under
    /// the same circumstances
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    history: Option<PathBuf>,

    /// The folder for the pictures of `plot FILE` [default: plots]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Number of threads of the benchmarks whose names do not state it [default: 2, or 1 on a single
    /// processor]
    #[arg(short = 'j', long, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Runs every benchmark for a moment, to check that it works; the figures mean little
    #[arg(long, env = "BENCH_SMOKE", value_parser = FalseyValueParser::new())]
    smoke: bool,

    /// Measures our side only
    #[arg(long, env = against::NO_PEERS, value_parser = FalseyValueParser::new())]
    no_peers: bool,

    /// Another build of this program: measures our side of each benchmark with both builds in turns, and
    /// prints the ratios
    #[arg(long, value_name = "PROGRAM", conflicts_with = "json")]
    against: Option<PathBuf>,

    /// Number of runs of each build with `--against`
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
}

fn main() -> ExitCode {
    if let Some(status) =
        application::run_if_asked().or_else(memory::run_if_asked).or_else(nodes::run_if_asked)
    {
        return status;
    }
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether every benchmark could be measured. A bar that is not met is not a failure; the table
/// reports it.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let rows = rows::all();
    if let Some(text) = run_command(arguments, &rows)? {
        print!("{text}");
        return Ok(true);
    }
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let chosen = select::select(&names, &arguments.names)?;
    let processors = available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(processors.min(2), usize::from);
    let context = Context { threads, smoke: arguments.smoke, peers: !arguments.no_peers };
    introduce(&context, processors);
    if let Some(other) = &arguments.against {
        let chosen: Vec<&Row> = chosen.iter().map(|&row| &rows[row]).collect();
        return against::compare(other, &chosen, &context, arguments.rounds);
    }
    // An error here ends the program before anything is measured.
    let record = arguments.record.then(|| Record::without(&rows, &chosen, &Setting::here(&context)));
    let record = record.transpose()?;
    let history = arguments.history.as_deref().map(History::load).transpose()?;
    let (chosen, missing): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|&row| rows[row].check_available().is_ok());
    for row in missing {
        eprintln!("skipped: {}: {}", rows[row].name, rows[row].check_available().unwrap_err());
    }
    let entries = measure(&rows, &chosen, &context);
    if arguments.markdown {
        println!("{}\n", Setting::here(&context).sentence());
        print!(
            "{}",
            markdown::table(entries.iter().map(|(entry, row)| (&*entry.name, row.about, Some(entry))))
        );
    }
    let complete = entries.len() == chosen.len();
    if let Some(mut record) = record {
        let of_the_record = entries.iter().filter(|(_, row)| row.is_recorded_here());
        record.add(of_the_record.map(|(entry, _)| entry.clone()));
        record.write(&rows)?;
    }
    let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
    if !arguments.markdown {
        print!("{}", report::table(&entries));
    }
    if let Some(path) = &arguments.json {
        fs::write(path, report::json(&entries))
            .map_err(|error| format!("cannot write the figures to {}: {error}", path.display()))?;
    }
    if let Some(history) = history {
        print!("\n{}", history.append(Setting::here(&context), entries)?);
    }
    Ok(complete)
}

/// Runs the command that the names are, and returns what it prints, or `None` if the names are those of
/// benchmarks.
fn run_command(arguments: &Arguments, rows: &[Row]) -> Result<Option<String>, Failure> {
    let names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    if arguments.output.is_some() && names[0] != "plot" {
        return Err("`--output` is the folder of `plot FILE`, and of nothing else".into());
    }
    let text = match names[..] {
        ["list"] => list(rows),
        ["table", "conflict-cap"] => conflicts::cap_table(arguments.smoke),
        ["table", "nodes"] => generation::nodes_table(arguments.smoke)?,
        ["table", "scaling"] => scaling::scaling_table(arguments.smoke)?,
        ["documents"] => {
            Record::load()?.write(rows)?;
            String::new()
        }
        ["plot", file] => {
            plot::plot(Path::new(file), arguments.output.as_deref().unwrap_or(Path::new("plots")))?
        }
        ["plot", ..] => return Err("`plot` draws the figures of one file: `plot FILE`".into()),
        _ => return Ok(None),
    };
    Ok(Some(text))
}

/// Measures the rows `chosen`, except those that cannot be measured.
fn measure<'a>(rows: &'a [Row], chosen: &[usize], context: &Context) -> Vec<(Entry, &'a Row)> {
    let mut entries = Vec::new();
    for (i, &row) in chosen.iter().enumerate() {
        let row = &rows[row];
        eprintln!("[{}/{}] {}", i + 1, chosen.len(), row.name);
        match row.measure(context) {
            Ok(outcome) => {
                let entry = Entry::new(row, outcome);
                eprintln!("      {}", entry.summary());
                entries.push((entry, row));
            }
            Err(failure) => eprintln!("error: {} could not be measured: {failure}", row.name),
        }
    }
    entries
}

fn introduce(context: &Context, processors: usize) {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; run `cargo run --release -p bench` for figures");
    }
    if context.smoke {
        eprintln!("warning: a smoke run; its figures mean little");
    }
    eprintln!("{} threads where the name states none; {processors} processors", context.threads);
    if context.threads > processors {
        eprintln!("warning: more threads than processors");
    }
}

fn list(rows: &[Row]) -> String {
    let head = ["benchmark", "unit", "bar", "better", "what"].map(String::from);
    let line = |row: &Row| {
        [row.name.clone(), row.unit.into(), row.bar_text(), row.better_text(), row.about.to_string()]
    };
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(line)).collect();
    report::aligned(&lines)
}
