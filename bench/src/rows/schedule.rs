//! Tasks in conflict: the search for a conflict-free set, and the cost of mutual exclusion.

use anabranch_graph::ConflictScheduler;

use super::tasks;
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::Row,
    workloads::{
        conflicts::{Conflicts, by_object, by_pairs},
        empty_tasks::{Kind, Shape},
    },
};

pub fn rows() -> Vec<Row> {
    let complete = Conflicts::complete(200);
    vec![
        Row::lower(
            "schedule/conflict-free-900",
            "us",
            "per pass: 900 tasks with 10,000 conflicts become eligible at once; the search and the lookups",
            conflict_free,
        )
        .bar(50.0)
        .better(20.0),
        exclusive("schedule/exclusive-200", "per task of 200 that are exclusive on one object, in the scheduler alone", || by_object(200)),
        exclusive(
            "schedule/exclusive-200-pairs",
            "the same with all 19,900 pairs of conflicts declared",
            move || by_pairs(&complete),
        ),
        Row::lower(
            "schedule/exclusive-runtime",
            "ns",
            "per empty host task of 100,000 that are exclusive on one object: submitted one by one, then `wait()`",
            |context| tasks::measure(context, &[], Shape::Exclusive, Kind::Host),
        )
        .bar(600.0)
        .better(250.0),
    ]
}

/// Takes one sample from each of ten graphs.
fn conflict_free(context: &Context) -> Result<Outcome, Failure> {
    let graphs: Vec<_> = (0..10).map(|seed| Conflicts::uniform(900, 10_000, seed)).collect();
    let mut scheduler = ConflictScheduler::new();
    let mut pass = |graph: &Conflicts| graph.pass(&mut scheduler).1.as_secs_f64() * 1e6;
    Contest::ours(|| Ok(graphs.iter().map(&mut pass).collect())).run(context, context.pick(20, 1))
}

/// A row that times 200 tasks, from their insertion until they are finished.
fn exclusive(name: &'static str, about: &'static str, run: impl Fn() + 'static) -> Row {
    let measure = move |context: &Context| {
        let load = Load::back_to_back(context.pick(30, 3), 1);
        Contest::ours(|| Ok(load.time(&run).into_iter().map(|ns| ns / 1e3 / 200.0).collect()))
            .run(context, context.pick(20, 1))
    };
    Row::lower(name, "us", about, measure).bar(2.0).better(1.0)
}
