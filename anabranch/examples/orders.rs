//! All three orders of effects on one object: which tasks may run at the same time, and which must not.
//!
//! `cargo run --release -p anabranch --example orders`
//!
//! Six tasks have an effect on the same object. Between two tasks the stricter order decides. If one is
//! `sequential()`, they run in the order of submission. Otherwise, if one is `exclusive()`, they run one at a
//! time, in any order. Two `relaxed()` tasks may run at the same time. The program draws when each task ran,
//! and checks every pair.

use anabranch::prelude::*;
use std::{
    sync::Mutex,
    thread::sleep,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Sequential,
    Exclusive,
    Relaxed,
}
use Order::*;

/// The tasks, in the order of submission.
const TASKS: [(&str, Order); 6] = [
    ("open", Sequential),
    ("calibrate", Exclusive),
    ("look left", Relaxed),
    ("look right", Relaxed),
    ("adjust", Exclusive),
    ("close", Sequential),
];

/// When a task began and ended.
#[derive(Clone, Copy)]
struct Span {
    begin: Duration,
    end: Duration,
}

/// The host object. It synchronises itself, as an object with relaxed effects must.
struct Diary {
    start: Instant,
    spans: Mutex<[Option<Span>; TASKS.len()]>,
}

impl Diary {
    fn note(&self, task: usize) {
        let begin = self.start.elapsed();
        sleep(Duration::from_millis(20)); // some work
        let end = self.start.elapsed();
        self.spans.lock().expect("no task panics")[task] = Some(Span { begin, end });
    }
}

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let node = rt.node();
    let spans = Mutex::new([None; TASKS.len()]);
    let diary = rt.host_object(Diary { start: Instant::now(), spans }).named("diary");
    for (i, (name, order)) in TASKS.into_iter().enumerate() {
        let task = rt.task(name).once();
        match order {
            Sequential => task.effect(&diary, sequential()).host(move |(diary,)| diary.note(i))?,
            Exclusive => task.effect(&diary, exclusive()).host(move |(diary,)| diary.note(i))?,
            Relaxed => task.effect(&diary, relaxed()).host(move |(diary,)| diary.note(i))?,
        };
    }
    let diary = rt.drain(diary.capture())?;
    if node != 0 {
        return Ok(()); // the tasks have run on node 0
    }
    let spans = diary.spans.into_inner().expect("no task panics").map(|span| span.expect("every task ran"));
    draw(&spans);
    check_pairs(&spans);
    Ok(())
}

fn draw(spans: &[Span]) {
    for ((name, order), span) in TASKS.iter().zip(spans) {
        let [begin, end] = [span.begin, span.end].map(|t| t.as_millis() as usize / 2);
        println!("{name:>10}  {:10}  {}{}", format!("{order:?}"), " ".repeat(begin), "#".repeat(end - begin));
    }
}

/// Checks for each pair of tasks that they ran as their orders promise.
fn check_pairs(spans: &[Span]) {
    for (later, &(late_name, late_order)) in TASKS.iter().enumerate() {
        for (earlier, &(early_name, early_order)) in TASKS[..later].iter().enumerate() {
            let (a, b) = (spans[earlier], spans[later]);
            let in_order = a.end <= b.begin;
            let apart = in_order || b.end <= a.begin;
            let orders = [early_order, late_order];
            if orders.contains(&Sequential) {
                assert!(in_order, "{late_name} began before {early_name} had ended");
            } else if orders.contains(&Exclusive) {
                assert!(apart, "{early_name} and {late_name} ran at the same time");
                let kept = if in_order { "in order" } else { "in the other order" };
                println!("{early_name} and {late_name}: apart, {kept}");
            } else {
                let kept = if apart { "one after the other, as it happened" } else { "at the same time" };
                println!("{early_name} and {late_name}: {kept}");
            }
        }
    }
}
